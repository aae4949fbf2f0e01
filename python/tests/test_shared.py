"""Arrays that functions write in their workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import gristmill as gm

COUNT = 3000


def test_elements_that_functions_write_are_there_after_the_job(tmp_path: Path) -> None:
    squares = gm.shared_array((COUNT // 100, 100), "int64")
    halves = gm.shared_array(COUNT, "float32")
    squares[0, 3] = 5
    program = os.getpid()

    def write(n: int) -> int:
        if n == 1000 and os.getpid() != program and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        squares[n // 100, n % 100] += n * n
        halves[n] = n / 2
        return n % 3

    assert gm.range(COUNT).map(write).uses(squares).uses(halves, squares).count_by_value().to_dict() == {k: COUNT // 3 for k in range(3)}
    expected = numpy.arange(COUNT) ** 2
    expected[3] += 5
    assert numpy.array_equal(numpy.asarray(squares).ravel(), expected)
    assert numpy.array_equal(halves[:], numpy.arange(COUNT, dtype="float32") / 2)


def test_later_stages_and_jobs_see_what_earlier_ones_wrote() -> None:
    array = gm.shared_array(10, "uint32")

    def double(n: int) -> int:
        array[n] = 2 * n
        return n

    def read(n: int) -> int:
        return int(array[n]) + int(array[9 - n])

    assert gm.range(10).map(double).uses(array).distinct().map(read).uses(array).collect() == [18] * 10
    assert gm.range(10).map(read).uses(array).collect() == [18] * 10


def test_a_job_that_fails_or_is_left_early_leaves_the_array_as_it_was() -> None:
    array = gm.shared_array(COUNT, "uint8")
    array[:] = 7

    def write(n: int) -> int:
        array[n] = 1
        return 1 // (n - COUNT + 1)

    with pytest.raises(gm.JobError, match="ZeroDivisionError"):
        gm.range(COUNT).map(write).uses(array).collect()
    assert (array[:] == 7).all()


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_two_workers_that_write_different_values_to_an_element_are_an_error() -> None:
    array = gm.shared_array(5, "int64", name="last")

    def write(n: int) -> int:
        array[2] = n
        return n

    with gm.configure(workers=2), pytest.raises(gm.GristmillError, match="element 2 of the shared array last was 0; one task"):
        gm.range(1, COUNT).map(write).uses(array).collect()
    assert array[2] == 0


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_an_array_is_not_written_where_nobody_would_merge_it() -> None:
    array = gm.shared_array(5)

    def write(key: int, values: list[int]) -> list[int]:
        array[key] = 1
        return values

    keyed = gm.range(5).key_by(lambda n: n)
    with pytest.raises(gm.JobError, match="is not here"):
        keyed.uses(array).group_by_key().map_groups(write).collect()
    with pytest.raises(gm.JobError, match="is not here. Name it with Dataset.uses"):
        keyed.map(lambda pair: write(*pair)).collect()
    assert not array[:].any()


def test_a_program_with_threads_shares_arrays_too() -> None:
    program = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
import gristmill as gm
array = gm.shared_array(1000, "int32")
array[5] = 1
def write(n):
    array[n] += n
gm.range(1000).map(write).uses(array).run()
assert array[:].tolist() == [n + (n == 5) for n in range(1000)], array[:]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("shape, dtype", [(0, "int64"), ((), "int64"), ((3, 0), "int64"), (3, "int16"), (3, "bool"), (3, "O")])
def test_what_cannot_be_shared_is_said_at_once(shape: object, dtype: str) -> None:
    with pytest.raises(gm.PlanError, match="a shared array"):
        gm.shared_array(shape, dtype)  # type: ignore[arg-type]
