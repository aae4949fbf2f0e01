"""Logs of functions were lost in programs with threads, and under pytest: workers use the program's handlers."""

import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import gristmill as gm

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

PROGRAM = """
import logging, sys, threading, time, warnings
import gristmill as gm

if sys.argv[1] == "threads":
    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
logging.basicConfig(format="%(levelname)s %(name)s %(message)s %(extra)s", level=logging.INFO, force=True)
logging.addLevelName(25, "NOTE")
logging.root.handlers[0].addFilter(lambda record: setattr(record, "extra", getattr(record, "extra", "-")) or True)
own = logging.getLogger("own")
own.propagate = False
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("own %(message)s"))
own.addHandler(handler)
logging.getLogger("quiet").setLevel(logging.ERROR)
logging.getLogger("loud").setLevel(logging.DEBUG)
logging.getLogger("off").disabled = True

class Odd:
    def __init__(self): self.held = threading.Lock()
    def __str__(self): return "odd"

def f(n):
    logging.info("info %s", n)
    logging.debug("not seen")
    logging.getLogger("quiet").warning("not seen")
    logging.getLogger("loud").debug("seen %d", n)
    logging.getLogger("off").error("not seen")
    logging.getLogger("a.b").log(25, "level", extra={"extra": "more"})
    library = logging.getLogger("library")
    library.addHandler(logging.NullHandler())
    library.warning("from a library: %s", Odd())
    own.error("error\\nof two lines")
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("failed")
    warnings.warn("once", UserWarning)
    warnings.warn("hidden", PendingDeprecationWarning)
    return n

print(gm.range(2).map(f).collect())
logging.basicConfig(force=True, level=logging.ERROR)
print(gm.range(1).map(f).collect())
logging.disable(logging.CRITICAL)
print(gm.range(1).map(f).collect())
"""


@pytest.mark.parametrize("way", ["one", "threads"])
def test_records_of_workers_reach_the_handlers_of_the_program(way: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    ran = subprocess.run([sys.executable, tmp_path / "job.py", way], capture_output=True, text=True, timeout=100, check=False)
    assert ran.stdout == "[0, 1]\n[0]\n[0]\n", ran.stderr
    record = """DEBUG loud seen {n} -
NOTE a.b level more
WARNING library from a library: odd -
own error
of two lines
ERROR root failed -
ZeroDivisionError: division by zero"""
    shown = [line for line in ran.stderr.splitlines() if not line.startswith(("Traceback", "  ", "INFO"))]
    for n in range(2):
        for line in record.format(n=n).splitlines():
            assert line in shown, (line, ran.stderr)
    assert [ran.stderr.count(f"INFO root info {n} -") for n in range(2)] == [1, 1], ran.stderr
    assert ran.stderr.count("File ") == ran.stderr.count("Traceback") == ran.stderr.count("    1 / 0") == 3, ran.stderr
    assert "not seen" not in ran.stderr and "hidden" not in ran.stderr
    assert ran.stderr.count("ERROR:root:failed") == 1 and "WARNING:" not in ran.stderr, ran.stderr
    # Once for each job.
    assert ran.stderr.count("UserWarning: once") == 3, ran.stderr


def test_records_arrive_while_the_job_runs(tmp_path: Path) -> None:
    """Records that came at the end of a long job told nobody how it went."""
    program = """
import logging, time, gristmill as gm
logging.basicConfig(format="%(created)f %(message)s")
class Late(logging.Handler):
    def emit(self, record): print(time.time() - record.created < 1)
logging.root.handlers = [Late()]
def slow(n):
    logging.warning("begun")
    time.sleep(2.5)
gm.range(1).map(slow).collect()
"""
    (tmp_path / "job.py").write_text(program)
    ran = subprocess.run([sys.executable, tmp_path / "job.py"], capture_output=True, text=True, timeout=100, check=False)
    assert ran.stdout == "True\n", ran.stderr


def noisy(n: int) -> int:
    logging.getLogger("noisy").info("record %d", n, extra={"number": n})
    return n


def test_caplog_has_the_records(caplog: pytest.LogCaptureFixture) -> None:
    """pytest's caplog had none of the records of workers."""
    with caplog.at_level(logging.INFO):
        gm.range(2000).map(noisy).count()
    found = [record for record in caplog.records if record.name == "noisy"]
    assert sorted(record.args[0] for record in found if isinstance(record.args, tuple)) == list(range(2000))
    assert sorted(vars(record)["number"] for record in found) == list(range(2000))


def test_warnings_are_those_of_the_program() -> None:
    """`pytest.warns` did not see what a function warned of."""

    def warns(n: int) -> int:
        warnings.warn(f"number {n % 2}", RuntimeWarning, stacklevel=1)
        return n

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert gm.range(100).map(warns).count() == 100
    assert sorted(str(each.message) for each in found) == ["number 0", "number 1"]
    assert {(each.category, Path(each.filename).name) for each in found} == {(RuntimeWarning, "test_logs.py")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gm.JobError) as caught:
            gm.range(1).map(warns).count()
        assert isinstance(caught.value.__cause__, RuntimeWarning)


def test_a_handler_that_a_function_adds_is_used(tmp_path: Path) -> None:
    """A function that configures logging in its worker still may."""

    def configured(n: int) -> int:
        logger = logging.getLogger("of a function")
        logger.addHandler(logging.FileHandler(tmp_path / "log"))
        logger.propagate = False
        logger.warning("from the function's own handler")
        return n

    gm.range(1).map(configured).collect()
    assert (tmp_path / "log").read_text() == "from the function's own handler\n"


def test_the_last_records_of_a_worker_that_dies_are_there(caplog: pytest.LogCaptureFixture) -> None:
    """They are what tells why it died."""

    def dies(n: int) -> int:
        logging.getLogger("dying").warning("about to die")
        import os

        os._exit(3)

    with gm.configure(retries=1), pytest.raises(gm.WorkerDied):
        gm.range(1).map(dies).count()
    assert "about to die" in [record.getMessage() for record in caplog.records]
