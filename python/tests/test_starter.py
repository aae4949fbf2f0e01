"""Programs with threads, notebooks, `python -` and processes that the user forks run jobs as others do."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import gristmill as gm

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

#: Everything that a function may refer to lives in `__main__` here, which the starter does not have.
PROGRAM = """
import os, sys, threading, time
from dataclasses import dataclass
import gristmill as gm

threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
LIMIT = 3

@dataclass(frozen=True)
class Point:
    x: int

class Late(Exception):
    pass

def made(n):
    if n == LIMIT + 5:
        raise Late(n)
    return Point(n)

points = gm.range(LIMIT).map(made).collect()
assert points == [Point(n) for n in range(LIMIT)], points
assert all(type(point) is Point for point in points)
# What changes after the first job, too.
for changed in "one", "two":
    sys.argv[1:], os.environ["CHANGED"] = [changed], changed
    seen = gm.range(1).map(lambda n: (sys.argv, os.environ["CHANGED"])).collect()
    assert seen == [(sys.argv, changed)], seen
assert gm.range(6).map(lambda n: (Point(n % 2), n)).reduce_by_key(gm.sum).to_dict() == {Point(0): 6, Point(1): 9}
try:
    gm.range(20).map(made).collect()
except gm.JobError as error:
    assert type(error.__cause__) is Late and error.record == LIMIT + 5, error
    assert f'File "{made.__code__.co_filename}"' in error.traceback_text, error.traceback_text
    print("done")
"""

#: A model that is loaded where it is first needed, in a program with threads.
CACHED = """
import functools, threading, time
import gristmill as gm
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

@functools.cache
def model():
    return {0: "tea", 1: "rice"}

@functools.lru_cache(maxsize=7)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

assert gm.range(2).map(lambda n: model()[n]).collect() == ["tea", "rice"]
assert gm.range(30).map(fibonacci).top(1).collect() == [514229]
assert gm.range(1).map(lambda n: fibonacci.cache_parameters()).collect() == [{"maxsize": 7, "typed": False}]
print("done")
"""


def test_a_function_with_a_cache_travels() -> None:
    """In a notebook, a function that uses one with `functools.cache` could not be sent to its workers."""
    ran = subprocess.run([sys.executable, "-c", CACHED], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "done\n", ran.stderr


@pytest.mark.parametrize("way", ["file", "standard input", "-c"])
def test_functions_and_classes_of_the_main_program_travel(way: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    arguments = {"file": [str(tmp_path / "job.py")], "standard input": ["-"], "-c": ["-c", PROGRAM]}[way]
    ran = subprocess.run([sys.executable, *arguments], input=PROGRAM, text=True, capture_output=True, timeout=60, cwd=tmp_path, check=False)
    assert ran.stdout == "done\n", ran.stderr


def test_threads_run_jobs_at_once() -> None:
    found: dict[int, list[int]] = {}

    def run(number: int) -> None:
        with gm.configure(engine="machine"):
            found[number] = gm.range(100).map(lambda n: n * number).collect()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert found == {number: [n * number for n in range(100)] for number in range(4)}


def test_a_process_that_the_program_forks_runs_jobs() -> None:
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        assert gm.range(3).map(str).collect() == ["0", "1", "2"]
        pid = os.fork()
        if pid == 0:
            right = False
            try:
                with gm.configure(engine="machine"):
                    right = gm.range(3).map(str).collect() == ["0", "1", "2"]
            finally:
                os._exit(0 if right else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert gm.range(3).map(str).collect() == ["0", "1", "2"]
    finally:
        waiting.set()
        thread.join()


def test_the_working_directory_and_the_path_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_of_the_job.py").write_text("def double(n):\n    return 2 * n\n")
    monkeypatch.chdir(tmp_path)
    program = "import threading, time, os, sys; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
    program += "import gristmill as gm, helper_of_the_job as helper\nos.chdir('/')\n"
    program += "print(gm.range(3).map(helper.double).map(lambda n: (n, os.getcwd())).collect())"
    ran = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True, timeout=60, check=False)
    assert ran.stdout == "[(0, '/'), (2, '/'), (4, '/')]\n", ran.stderr


#: Prints how many threads libraries of numbers may have in the workers, and the size of each group.
THREADS = """
import os, sys
import gristmill as gm

if sys.argv[1] == "starter":
    import threading, time
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

def threads(key, rows):
    return [os.environ["OPENBLAS_NUM_THREADS"], len(rows)]

pairs = gm.read_parquet(sys.argv[2]).pluck("key", "row").group_by_key()
for _ in range(2):
    print(*pairs.map_groups(threads, format="numpy").collect())
"""


@pytest.mark.parametrize("way", ["fork", "starter"])
@pytest.mark.parametrize("wanted", [None, "2"])
def test_workers_have_libraries_of_one_thread_unless_the_user_wants_more(way: str, wanted: str | None, tmp_path: Path) -> None:
    gm.from_iterable({"key": row % 2, "row": row} for row in range(6)).write_parquet(tmp_path / "a.parquet")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
    if wanted is not None:
        environment["OPENBLAS_NUM_THREADS"] = wanted
    program = [sys.executable, "-c", THREADS, way, str(tmp_path / "a.parquet")]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (ran.stdout, ran.returncode) == (f"{wanted or 1} 3 {wanted or 1} 3\n" * 2, 0), ran.stderr


def run_in(folder: Path, program: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with two threads."""
    thread = "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
    (folder / "job.py").write_text(thread + program)
    return subprocess.run(
        [sys.executable, *options, folder / "job.py"],
        text=True,
        capture_output=True,
        timeout=100,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.parametrize("name", ["json", "pickle", "importlib", "socket", "gristmill", "cloudpickle"])
@pytest.mark.parametrize("way", ["file", "-c"])
def test_a_file_of_the_current_folder_never_runs_in_place_of_a_library(name: str, way: str, tmp_path: Path) -> None:
    """A file json.py that lay in the folder where a job was started ran instead of the standard library's."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / f"{name}.py").write_text("import os; os.write(2, b'this should not run'); raise SystemExit\n")
    program = f"import os, gristmill as gm; os.chdir({str(tmp_path / 'here')!r})\n"
    program += "import colorsys; print(gm.range(2).map(lambda n: (__import__('json').dumps(n), os.getcwd())).collect())"
    (tmp_path / "here" / "colorsys.py").write_text("")
    thread = "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
    arguments = ["-c", thread + program]
    if way == "file":
        (tmp_path / "job.py").write_text(thread + program)
        arguments = [str(tmp_path / "job.py")]
    ran = subprocess.run([sys.executable, *arguments], text=True, capture_output=True, timeout=60, cwd=tmp_path, check=False)
    here = str(tmp_path / "here")
    assert (ran.stdout, ran.stderr) == (f"{[('0', here), ('1', here)]}\n", "")


def test_options_and_variables_of_the_interpreter_reach_the_workers(tmp_path: Path) -> None:
    """With PYTHONINSPECT or PYTHONSTARTUP set, workers are those of the program, whose options they have."""
    program = "import sys, gristmill as gm; print(gm.range(1).map(lambda n: (sys.flags.optimize, sys.flags.no_site)).collect())"
    (tmp_path / "startup.py").write_text("raise SystemExit('this should not run')")
    ran = run_in(tmp_path, program, "-O", PYTHONSTARTUP=str(tmp_path / "startup.py"), PYTHONINSPECT="")
    assert (ran.stdout, ran.stderr) == ("[(1, 0)]\n", "")


#: Modules that start threads, and a function of them.
WITH_THREADS = {
    "polars": ("import polars as pl", "lambda n: pl.DataFrame({'a': [n, n]}).lazy().group_by('a').len().collect()['len'][0]"),
    "a module that starts a thread": ("import starts", "starts.f"),
    "a module that needs it": ("import needs", "needs.f"),
    "a record": ("import starts", "lambda n: n.x"),
    "numpy with threads": ("import numpy as np", "lambda n: int((np.ones((99, 99)) @ np.ones(99))[0]) - 97"),
    "pyarrow": ("import pyarrow as pa, pyarrow.compute as pc", "lambda n: pc.sum(pa.array([1, 1])).as_py()"),
}


@pytest.mark.parametrize("case", WITH_THREADS)
def test_modules_that_start_threads_are_imported_in_the_workers(case: str, tmp_path: Path) -> None:
    """`import polars` at the top of a program ended its jobs: "what it imports started 3 threads"."""
    (tmp_path / "starts.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
        "class Record:\n    x = 2\nX = 1\ndef f(n):\n    return 2 + n * 0 if threading.active_count() > 1 else X\n"
    )
    (tmp_path / "needs.py").write_text("import starts\nRATE = 1\ndef f(n):\n    return starts.f(n) * RATE\n")
    imports, function = WITH_THREADS[case]
    records = "gm.from_iterable([starts.Record(), starts.Record()])" if case == "a record" else "gm.range(2)"
    program = f"{imports}\nimport gristmill as gm\n"
    program += f"for _ in range(3):\n    print({records}.map({function}).collect(), flush=True)\n"
    program += f"print({records}.map({function}).key_by(lambda n: n).group_by_key().map_groups(lambda k, v: [(k, len(v))]).collect())\n"
    program += "def fails(n):\n    raise LookupError(n)\n"
    program += f"try:\n    {records}.map({function}).map(fails).collect()\nexcept gm.JobError as error:\n"
    program += "    print(type(error.__cause__), type(error.record).__name__)\n"
    if case == "a module that needs it":
        program += "needs.RATE = 5; print(gm.range(1).map(needs.f).collect())\n"
    ran = run_in(tmp_path, program, OPENBLAS_NUM_THREADS="2" if "numpy" in case else "1")
    record = "Record" if case == "a record" else "int"
    expected = "[2, 2]\n" * 3 + f"[(2, 2)]\n<class 'LookupError'> {record}\n"
    assert ran.stdout == expected + ("[10]\n" if case == "a module that needs it" else ""), ran.stderr


UNPICKLABLE = {
    "lambda n: lock and n": "the function of map, run.<locals>.<lambda> (job.py:10): the global variable lock is an object of type _thread.lock",
    "made()": "the function of map, made.<locals>.inner (job.py:15): its variable held['a'][1] is an object of type _thread.lock",
    "Holds().method": "the function of map, Holds.method (job.py:6): its object.lock is an object of type _thread.lock",
    "functools.partial(print, end=lock)": "its argument end is an object of type _thread.lock",
    "lambda n: Has.held": "the global variable Has.held is an object of type _thread.lock",
    "lambda n, given=lock: n": "the default of its argument given is an object of type _thread.lock",
}


@pytest.mark.parametrize("function", UNPICKLABLE)
def test_what_cannot_be_pickled_is_named(function: str, tmp_path: Path) -> None:
    """A job ended with "cannot pickle '_thread.lock' object", which named neither the function nor the variable."""
    program = f"""import functools, threading, gristmill as gm
lock = threading.Lock()
class Holds:
    def __init__(self): self.lock = lock
    def method(self, n): return self.lock and n
class Has: held = threading.Lock()
def run():
    try:
        gm.range(1).map({function}).collect()
    except gm.PlanError as error:
        print(error)
def made():
    held = {{"a": [1, lock]}}
    def inner(n): return held and n
    return inner
run()
"""
    ran = run_in(tmp_path, program)
    assert UNPICKLABLE[function] in ran.stdout and "Make it inside the function" in ran.stdout, (ran.stdout, ran.stderr)


def test_a_record_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    """The same for a record of the program: nobody knew which of them it was."""
    program = "import gristmill as gm\ntry: gm.from_iterable([1, {'a': threading.Lock()}]).collect()\nexcept gm.PlanError as e: print(e)"
    ran = run_in(tmp_path, program)
    assert "record 1['a'] is an object of type _thread.lock" in ran.stdout, (ran.stdout, ran.stderr)
