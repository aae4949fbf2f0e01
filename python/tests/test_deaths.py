"""Deaths on which `multiprocessing.Pool.map` hangs: here the answer is right, or an error names the record.

Only the engine with workers: the local one runs functions in the test's own process.
"""

import ctypes
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import gristmill as gm

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

COUNT = 1000


@pytest.fixture
def once(tmp_path: Path) -> Callable[[], bool]:
    """True for the first process that asks, and never again."""

    def first() -> bool:
        try:
            os.close(os.open(tmp_path / "done", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    return first


def segfault() -> None:
    ctypes.string_at(0)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def left() -> None:
    os._exit(3)


DEATHS = pytest.mark.parametrize("die", [segfault, killed, left])


@DEATHS
def test_a_worker_that_dies_once_costs_nothing(die: Callable[[], None], once: Callable[[], bool]) -> None:
    def function(n: int) -> tuple[int, int]:
        if n == 700 and once():
            die()
        return n % 10, n

    result = gm.range(COUNT).map(function).reduce_by_key(gm.sum).run()
    assert list(result) == [(k, sum(range(k, COUNT, 10))) for k in range(10)]
    assert len(result.stats["stages"][0]["deaths"]) == 1


@DEATHS
def test_a_worker_that_dies_in_a_long_job_takes_nothing_with_it_that_was_reduced(
    die: Callable[[], None], once: Callable[[], bool], tmp_path: Path
) -> None:
    """Workers that only reduce run none of the functions, so the tasks that were done stay done."""
    text = tmp_path / "text"
    text.write_text("".join(f"{number}\n" for number in range(20_000)))

    def slow(line: str) -> int:
        for _ in range(500):
            pass
        if line == "15000" and once():
            die()
        return int(line) % 100

    with gm.configure(workers=2):
        run = gm.read_text(text).map(slow).count_by_value().run()
    assert sorted(run) == [(key, 200) for key in range(100)]
    (stage,) = run.stats["stages"]
    assert (len(stage["deaths"]), stage["rounds"]) == (1, 1)


def test_workers_that_run_out_of_memory_together_work_one_by_one(tmp_path: Path) -> None:
    """They died until the job failed. The status is that of a worker which the system refuses memory."""
    lock = tmp_path / "lock"
    lock.touch()

    def alone(n: int) -> int:
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os._exit(186)
            time.sleep(0.001)
            return n

    with gm.configure(workers=4, map_at_once=4, retries=0):
        result = gm.range(100).map(alone).run()
    assert list(result) == list(range(100))
    assert result.stats["stages"][0]["deaths"]


@DEATHS
def test_a_record_that_always_kills_is_named(die: Callable[[], None], tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"line {n}\n" for n in range(COUNT)))

    def function(line: str) -> str:
        if line == "line 700":
            die()
        return line

    began = time.monotonic()
    with pytest.raises(gm.WorkerDied) as caught:
        gm.read_text(path).map(function).collect()
    assert (caught.value.file, caught.value.line) == (str(path), 701)
    assert time.monotonic() - began < 60, "it must not hang"
    assert ("in segfault" in str(caught.value)) == (die is segfault), "Python knows where it crashed"


@DEATHS
def test_a_record_that_always_kills_is_set_aside(die: Callable[[], None], tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"{n}\n" for n in range(COUNT)))

    def function(line: str) -> int:
        if line == "700":
            die()
        return int(line)

    with gm.configure(on_error="skip"):
        result = gm.read_text(path).map(function).run()
    assert list(result) == [n for n in range(COUNT) if n != 700]
    assert [bad.line for bad in result.bad_records] == [701]


def test_sys_exit_is_an_error_like_others() -> None:
    with pytest.raises(gm.JobError) as caught:
        gm.range(3).map(lambda n: sys.exit(n)).collect()
    assert isinstance(caught.value.__cause__, SystemExit)


def test_a_result_that_cannot_be_pickled_is_named() -> None:
    def function(n: int) -> object:
        return iter([n]) if n != 2 else (each for each in [n])

    with pytest.raises(gm.JobError, match="cannot pickle 'generator' object") as caught:
        gm.range(3).map(function).collect()
    assert caught.value.record == 2


class Odd(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")


def test_an_exception_that_cannot_be_rebuilt_is_told_as_text() -> None:
    def function(n: int) -> int:
        raise Odd(n, 2)

    with pytest.raises(gm.JobError, match="0 and 2") as caught:
        gm.range(1).map(function).collect()
    assert isinstance(caught.value.__cause__, gm.RemoteError)
    assert "raise Odd(n, 2)" in str(caught.value.__cause__)


def test_a_generator_that_fails_half_way_leaves_nothing() -> None:
    def function(n: int) -> Iterator[int]:
        yield n
        if n == 5:
            raise ValueError(n)

    with gm.configure(on_error="skip"):
        result = gm.range(10).flat_map(function).run()
    assert (list(result), [bad.record for bad in result.bad_records]) == ([0, 1, 2, 3, 4, 6, 7, 8, 9], [5])


def test_random_numbers_are_drawn_once_each_though_workers_die(tmp_path: Path) -> None:
    def function(n: int) -> tuple[int, float]:
        if n % 250 == 249:
            try:
                os.close(os.open(tmp_path / f"done {n}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                killed()
        return n, random.random()

    drawn = gm.range(COUNT).map(function).collect()
    assert [n for n, _ in drawn] == list(range(COUNT))
    assert len({number for _, number in drawn}) == COUNT


PROGRAM = """
import sys, time, os
import gristmill as gm

def slow(n):
    open(sys.argv[1] + f"/{os.getpid()}", "w").close()
    time.sleep(60)

gm.range(8).map(slow).collect()
"""


def workers_of(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir()]


def are_alive(pids: list[int]) -> bool:
    return any(Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in pids)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_is_left_when_the_program_ends(how: signal.Signals, tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while len(workers_of(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    pids = workers_of(tmp_path)
    assert len(pids) >= 2
    program.send_signal(how)
    program.wait(timeout=10)
    while are_alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not are_alive(pids)


INTERRUPTED_AT_THE_FORK = """
import os, signal, sys, time
import gristmill as gm

os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
gm.range(8).map(lambda n: time.sleep(60)).collect()
"""


def test_a_signal_at_the_fork_is_noticed() -> None:
    """Python ignores what functions raise that it calls at a fork, so Ctrl-C there was lost."""
    command = [sys.executable, "-c", INTERRUPTED_AT_THE_FORK]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == -signal.SIGINT and "KeyboardInterrupt" in ended.stderr, ended


def test_an_iterator_that_is_left_ends_its_job(tmp_path: Path) -> None:
    def function(n: int) -> int:
        (tmp_path / str(os.getpid())).touch()
        return n

    assert next(iter(gm.range(10**6).map(function))) == 0
    deadline = time.monotonic() + 10
    while are_alive(workers_of(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not are_alive(workers_of(tmp_path))


def test_a_killed_worker_loses_no_group_of_columns(once: Callable[[], bool], tmp_path: Path) -> None:
    keys = [row * row % 500 for row in range(20_000)]
    pyarrow.parquet.write_table(pyarrow.table({"key": keys, "row": range(len(keys))}), tmp_path / "a.parquet", row_group_size=999)

    def whole(key: int, rows: list[int]) -> list[tuple[int, list[int]]]:
        if key == 1 and once():
            os.kill(os.getpid(), signal.SIGKILL)
        return [(key, sorted(rows))]

    groups = gm.read_parquet(tmp_path).pluck("key", "row").group_by_key().map_groups(whole).to_dict()
    assert not once()
    assert groups == {key: [row for row, other in enumerate(keys) if other == key] for key in {*keys}}
