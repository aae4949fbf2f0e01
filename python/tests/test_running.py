"""Jobs that run beside the program: only Ctrl-C could end a job, and no other thread, nor asyncio."""

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

#: No test waits longer for what must happen.
LIMIT = 60.0
on_machine = pytest.mark.parametrize("engine", ["machine"], indirect=True)


def until(holds: Callable[[], bool]) -> bool:
    """Waits until something holds; false if it never does."""
    end = time.monotonic() + LIMIT
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    """A folder in which functions leave the numbers of the processes that they run in."""
    (tmp_path / "pids").mkdir()
    return tmp_path / "pids"


def endless(pids: Path) -> gm.Dataset[int]:
    def slowly(n: int) -> int:
        (pids / str(os.getpid())).touch()
        time.sleep(0.01)
        return n

    return gm.range(10**6).map(slowly)


def workers(pids: Path) -> list[int]:
    """The processes in which functions run now, besides this one."""
    found = [int(path.name) for path in pids.iterdir()]
    return [pid for pid in found if pid != os.getpid() and is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_started_job_gives_its_result() -> None:
    """A program that had other things to do meanwhile needed a thread of its own."""
    job = gm.from_iterable("abca").count_by_value().start()
    assert isinstance(job, gm.RunningJob)
    result = job.result(LIMIT)
    assert (list(result), job.result() is result, job.exception()) == ([("a", 2), ("b", 1), ("c", 1)], True, None)
    assert (job.done(), job.running(), job.cancelled(), job.cancel(), repr(job)) == (True, False, False, False, "<RunningJob: done>")


def test_an_error_of_a_started_job_is_raised_by_whoever_waits() -> None:
    job = gm.range(3).map(lambda n: 1 // n).start()
    with pytest.raises(gm.JobError) as caught:
        job.result(LIMIT)
    assert caught.value.record == 0 and job.exception() is caught.value
    assert repr(job) == "<RunningJob: failed, JobError>" and not job.cancelled()


def test_a_timeout_leaves_the_job_running(pids: Path) -> None:
    job = endless(pids).start()
    for wait in (job.result, job.exception):
        with pytest.raises(TimeoutError, match="not ended within 0.05 s.*cancel"):
            wait(0.05)  # type: ignore[operator]  # both take it
    assert job.running() and repr(job) == "<RunningJob: running>"
    assert job.cancel()


def test_a_cancel_from_another_thread_ends_the_wait_and_all_processes(pids: Path) -> None:
    """A web server whose user had left could not end the user's job."""
    job = endless(pids).start()
    assert until(lambda: any(pids.iterdir()))
    threading.Timer(0.1, job.cancel).start()
    began = time.monotonic()
    with pytest.raises(gm.Cancelled):
        job.result(LIMIT)
    assert time.monotonic() - began < 5
    assert job.cancel() and job.cancel() and job.cancelled() and job.done()
    assert until(lambda: not workers(pids))
    assert gm.range(3).collect() == [0, 1, 2], "the next job runs"


def test_cancelling_at_any_moment_leaves_either_a_result_or_cancelled() -> None:
    for number in range(60):
        job = gm.from_iterable([3, 1, 2]).distinct().start()
        time.sleep(number / 10_000)
        if job.cancel():
            with pytest.raises(gm.Cancelled):
                job.result(LIMIT)
        else:
            assert list(job.result(LIMIT)) == [1, 2, 3]


def test_a_job_has_the_settings_of_the_moment_in_which_it_was_started() -> None:
    """A job that was begun in a `with` block ran with other settings if the block ended first."""
    with gm.configure(on_error="skip"):
        job = gm.from_iterable(["1", "two"]).map(int).cache().map(str).start()
    assert list(job.result(LIMIT)) == ["1"]
    with pytest.raises(gm.JobError):
        gm.from_iterable(["1", "two"]).map(int).start().result(LIMIT)


@on_machine
def test_a_job_sees_the_program_as_it_was_when_it_was_started() -> None:
    factor = 2
    jobs = []
    for factor in range(5):  # the function sees it
        jobs.append(gm.range(3).map(lambda n: n * factor).start())
    assert [list(job.result(LIMIT)) for job in jobs] == [[0, n, 2 * n] for n in range(5)]


def test_many_jobs_run_at_once() -> None:
    jobs = [gm.range(100).map(lambda n, by=by: (n % by, n)).reduce_by_key(gm.sum).start() for by in range(1, 9)]
    for by, job in enumerate(jobs, 1):
        assert dict(job.result(LIMIT)) == {key: sum(range(key, 100, by)) for key in range(by)}


def test_two_jobs_that_start_together_make_cached_records_once(tmp_path: Path) -> None:
    """Both jobs made them, and the records were there twice."""

    def seen(n: int) -> int:
        (tmp_path / f"{n}-{time.monotonic_ns()}").touch()
        return n

    cached = gm.range(40).map(seen).cache()
    jobs = [cached.map(lambda n, add=add: n + add).start() for add in range(3)]
    assert [list(job.result(LIMIT)) for job in jobs] == [list(range(add, 40 + add)) for add in range(3)]
    assert len({path.name.split("-")[0] for path in tmp_path.iterdir()}) == 40
    assert cached.count() == 40


def test_records_of_a_cancelled_job_are_not_kept(pids: Path) -> None:
    """Half of the records were in the cache when a job was interrupted, and the next job had them twice."""
    go = pids / "go"

    def slowly(n: int) -> int:
        if not go.exists():
            time.sleep(0.001)
        return n

    cached = gm.range(20_000).map(slowly).cache()
    job = cached.map(str).start()
    time.sleep(0.5)
    job.cancel()
    go.touch()
    assert cached.collect() == list(range(20_000))


def test_a_block_ends_its_job(pids: Path) -> None:
    with endless(pids).start() as job:
        assert until(lambda: any(pids.iterdir()))
    assert job.cancelled() and until(lambda: not workers(pids))
    with gm.range(3).start() as job:
        job.result(LIMIT)
    assert not job.cancelled()


def test_callbacks_get_the_job() -> None:
    found: list[Any] = []
    job = gm.range(3).start()
    job.add_done_callback(found.append)
    job.result(LIMIT)
    assert until(lambda: found == [job])


def test_a_job_stays_in_its_program() -> None:
    job = gm.range(3).start()
    with pytest.raises(TypeError, match="use its result"):
        pickle.dumps(job)
    job.result(LIMIT)
    if (pid := os.fork()) == 0:
        try:
            job.result(LIMIT)
        except gm.PlanError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_job_may_be_awaited() -> None:
    """In asyncio, a job stopped the whole program until it had ended."""

    async def program() -> list[Any]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        slow = gm.range(3).map(lambda n: (time.sleep(0.05), n)[1])
        found = await asyncio.gather(slow.start(), gm.from_iterable("aa").distinct().start())
        ticking.cancel()
        assert ticks
        return [list(result) for result in found]

    assert asyncio.run(program()) == [[0, 1, 2], ["a"]]


def test_cancelling_the_task_that_waits_cancels_the_job(pids: Path) -> None:
    async def program() -> gm.RunningJob[int]:
        job = endless(pids).start()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(job, 0.3)
        assert job.cancelled()
        job = endless(pids).start()

        async def wait() -> object:
            return await job

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return job

    assert asyncio.run(program()).cancelled() and until(lambda: not workers(pids))


def test_cancelling_the_job_is_an_error_of_the_task_that_waits(pids: Path) -> None:
    async def program() -> None:
        job = endless(pids).start()
        asyncio.get_running_loop().call_later(0.1, job.cancel)
        await job

    with pytest.raises(gm.Cancelled):
        asyncio.run(program())


def test_ctrl_c_in_the_wait_ends_the_job(pids: Path) -> None:
    job = endless(pids).start()
    assert until(lambda: any(pids.iterdir()))
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        job.result(LIMIT)
    assert job.cancelled() and until(lambda: not workers(pids))


@pytest.mark.parametrize("is_loop", [False, True])
def test_another_thread_may_close_the_records(pids: Path, is_loop: bool) -> None:
    """`close` of a generator that waits is an error of Python, and what a dataset gave for a loop had none."""
    records = iter(endless(pids))

    def take() -> list[int]:
        found = []
        if is_loop:
            for record in records:
                found.append(record)
        else:
            while True:
                found.append(next(records))
        return found

    with ThreadPoolExecutor() as pool:
        taking = pool.submit(take)
        assert until(lambda: any(pids.iterdir()))
        time.sleep(0.1)
        records.close()
        with pytest.raises(gm.Cancelled):
            taking.result(LIMIT)
    assert until(lambda: not workers(pids))


def test_records_that_are_closed_end() -> None:
    records = iter(gm.range(10**6))
    assert next(records) == 0
    records.close()
    records.close()
    assert list(records) == []
    records = iter(gm.range(10**6))
    for record in records:
        records.close()
    assert record == 0, "the last one"
    untouched = iter(gm.range(3))
    untouched.close()
    assert next(untouched, None) is None


@on_machine
def test_a_ready_application_ends_when_its_job_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "command"
    command.write_text("#!/bin/sh\nexec sleep 1000\n")
    command.chmod(0o755)
    monkeypatch.setattr("gristmill.applications._command", lambda: str(command))
    job = gm.group_by(command, "k").start()
    assert job.running() and job.cancel()
    with pytest.raises(gm.Cancelled):
        job.result(LIMIT)


ENDS = """
import os, sys, time
import gristmill as gm
def slowly(n):
    open(f"{sys.argv[1]}/{os.getpid()}", "w").close()
    time.sleep(0.01)
    return n
job = gm.range(10**6).map(slowly).start()
while not os.listdir(sys.argv[1]):
    time.sleep(0.01)
ENDING
"""


@on_machine
@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "os._exit(0)", "raise SystemExit", "del job", "os.kill(os.getpid(), 9)"])
def test_a_program_that_ends_without_waiting_ends_at_once_and_leaves_nothing(ending: str, pids: Path) -> None:
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", ENDS.replace("ENDING", ending), str(pids)], timeout=LIMIT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (-9 if "kill" in ending else 0, "", "")
    assert time.monotonic() - began < 20
    assert until(lambda: not workers(pids))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert until(lambda: not [thread for thread in threading.enumerate() if thread.name == "gristmill job"])
