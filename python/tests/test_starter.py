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
    ran = subprocess.run(
        [sys.executable, *arguments], input=PROGRAM, text=True, capture_output=True, timeout=60, cwd=tmp_path, check=False
    )
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
