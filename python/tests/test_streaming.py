"""Records come as they are made: in the order of the input, in bounded memory, and no function runs for nothing.

Nothing here measures time: functions wait for files that the test makes when it has what they made before.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill.engines.machine import streams

HERE = pytest.mark.parametrize("engine", ["local", "machine"], indirect=True)
ONLY_MACHINE = pytest.mark.parametrize("engine", ["machine"], indirect=True)


@pytest.fixture(params=["fork", "starter"])
def way(request: pytest.FixtureRequest, engine: str) -> Iterator[str]:
    """The program has one thread, or more."""
    over = threading.Event()
    if request.param == "starter":
        threading.Thread(target=over.wait, daemon=True).start()
    with gm.configure(deadline=60):
        yield request.param
    over.set()


def waits_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def calls(folder: Path) -> Callable[[Any], Any]:
    """A function that leaves a file for each call."""

    def function(record: Any) -> Any:
        (folder / f"{record}.{os.getpid()}").touch()
        time.sleep(0.002)
        return record

    return function


@HERE
def test_the_first_record_comes_before_the_second_is_made(way: str, tmp_path: Path) -> None:
    # The first record of a loop came when nearly the whole job had run.
    def function(record: int) -> int:
        if record:
            waits_for(tmp_path / "the first is there")
        return record

    records = iter(gm.range(100_000).map(function))
    assert next(records) == 0
    (tmp_path / "the first is there").touch()
    assert list(records) == list(range(1, 100_000))


@HERE
def test_each_record_comes_while_the_next_is_made(way: str, tmp_path: Path) -> None:
    # Records waited in a buffer until a slow one filled it.
    def function(record: int) -> list[int]:
        waits_for(tmp_path / str(record))
        return [record, record]

    (tmp_path / "0").touch()
    found = []
    for record in gm.range(20).flat_map(function):
        found.append(record)
        (tmp_path / str(record + 1)).touch()
    assert found == [record // 2 for record in range(40)]


@HERE
@pytest.mark.parametrize("count", [1, 10, 100])
def test_take_calls_functions_for_few_records_more(way: str, count: int, tmp_path: Path) -> None:
    # take(1) of 50,000 records ran nearly all of them.
    with gm.configure(workers=2):
        assert gm.range(50_000).map(calls(tmp_path)).take(count) == list(range(count))
    # Tasks that were begun end on their own; those of two workers are 1/64 of what lies before them, or one record.
    assert len(list(tmp_path.iterdir())) <= count + 2 * 2 + 25


@HERE
def test_lines_of_a_large_file_come_one_by_one(way: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("".join(f"{line}\n" for line in range(300_000)))
    (tmp_path / "calls").mkdir()
    assert gm.read_text(file).map(calls(tmp_path / "calls")).take(20) == [str(line) for line in range(20)]
    assert len(list((tmp_path / "calls").iterdir())) < 150


@HERE
def test_an_endless_generator_gives_its_first_records(way: str) -> None:
    # take(3) of an endless generator never returned.
    def endless(record: int) -> Iterator[tuple[int, int]]:
        number = 0
        while True:
            yield record, number
            number += 1

    assert gm.range(3).flat_map(endless).take(3) == [(0, 0), (0, 1), (0, 2)]
    assert gm.range(1).map_batches(lambda batch: endless(batch[0])).take(2) == [(0, 0), (0, 1)]


@HERE
def test_all_that_a_record_yields_is_not_held(engine: str) -> None:
    # 6 million strings from one record took 1.24 GB.
    program = """
import resource, sys
import gristmill as gm

def texts(n):
    for i in range(300_000):
        yield f"{i:01000d}"

with gm.configure(memory="100MiB", engine=sys.argv[1]):
    assert sum(1 for _ in gm.range(1).flat_map(texts)) == 300_000
    assert gm.range(1).flat_map(texts).count() == 300_000
    groups = gm.range(1).map(lambda n: (n, n)).group_by_key().map_groups(lambda key, values: texts(key))
    assert sum(map(len, groups)) == 300_000_000
# `getrusage` counts what the process that started this one had.
own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(own >> 10, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""
    ran = subprocess.run([sys.executable, "-c", program, engine], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    most = 250 if engine == "machine" else 100_000
    assert all(int(mebibytes) < most for mebibytes in ran.stdout.split()), ran.stdout


@HERE
def test_records_that_are_only_counted_stay_where_they_are(way: str, engine: str) -> None:
    # count() sent every record to the program. These cannot be sent.
    assert gm.range(1000).map(lambda n: threading.Lock()).count() == 1000
    assert gm.range(1000).filter(lambda n: n % 3 == 0).count() == 334
    counted = gm.range(1000).map(lambda n: n % 7).count_by_value()
    assert counted.count() == counted.filter(lambda pair: pair[0] >= 0).count() == 7
    with gm.configure(on_error="skip"):
        assert gm.range(100).map(lambda n: 1 // (n % 2)).count() == 50


@HERE
def test_slow_tasks_keep_the_order_and_what_waits_goes_to_a_file(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MEMORY_BYTES", 100_000)

    def function(record: int) -> str:
        if record == 0:
            time.sleep(1)
        return f"{record:0500d}"

    with gm.configure(workers=2, spill_dir=str(tmp_path)):
        found = gm.range(20_000).map(function).collect()
    assert found == [f"{record:0500d}" for record in range(20_000)]
    assert not list(tmp_path.iterdir())


@ONLY_MACHINE
@pytest.mark.parametrize("takes", [list, lambda records: records.collect()], ids=["one by one", "together"])
def test_a_worker_that_dies_loses_and_doubles_no_record(way: str, takes: Any, tmp_path: Path) -> None:
    def function(record: int) -> Iterator[int]:
        yield record
        if record in (0, 3000) and not (tmp_path / str(record)).exists():
            time.sleep(0.1)
            (tmp_path / str(record)).touch()
            os.abort()
        yield -record

    found = takes(gm.range(6000).flat_map(function))
    assert found == [sign * record for record in range(6000) for sign in (1, -1)]
    assert (tmp_path / "3000").exists()


@ONLY_MACHINE
def test_records_that_come_again_must_be_the_same(way: str, tmp_path: Path) -> None:
    def function(record: int) -> Iterator[tuple[int, int]]:
        yield record, os.getpid()
        if record == 0 and not (tmp_path / "died").exists():
            waits_for(tmp_path / "seen")
            (tmp_path / "died").touch()
            os.abort()

    records = iter(gm.range(10).flat_map(function))
    next(records)
    (tmp_path / "seen").touch()
    with pytest.raises(gm.GristmillError, match="did not make those records again"):
        list(records)
    (tmp_path / "died").unlink()
    assert [record for record, _ in gm.range(10).flat_map(function).collect()] == list(range(10))


@ONLY_MACHINE
def test_a_job_that_waits_for_a_writer_ends_at_its_deadline(way: str, tmp_path: Path) -> None:
    # With nobody who writes to the FIFO, the job waited for ever.
    os.mkfifo(tmp_path / "pipe")
    with gm.configure(deadline=0.5), pytest.raises(gm.ResourceError, match="did not end within 0.5 s"):
        gm.read_text(tmp_path / "pipe").count()


@HERE
@pytest.mark.parametrize("step", ["map", "filter", "flat_map", "map_batches", "sort_by", "map_groups", "reduce"])
def test_stop_iteration_is_an_error_like_any_other(step: str, way: str) -> None:
    # A function that raised StopIteration, as next() without a default does, dropped the records behind it.
    def only(record: Any) -> Any:
        return next(item for item in [record] if item != 700)

    pairs = gm.range(1000).map(lambda n: (n, n))
    job = {
        "map": lambda: gm.range(1000).map(only),
        "filter": lambda: gm.range(1000).filter(lambda n: only(n) >= 0),
        "flat_map": lambda: gm.range(1000).flat_map(lambda n: [only(n)]),
        "map_batches": lambda: gm.range(1000).map_batches(lambda batch: [only(n) for n in batch]),
        "sort_by": lambda: gm.range(1000).sort_by(only),
        "map_groups": lambda: pairs.group_by_key().map_groups(lambda key, values: [only(key)]),
        "reduce": lambda: gm.from_iterable([(700, 700), (700, 1)]).reduce_by_key(lambda a, b: only(max(a, b))),
    }[step]()
    with pytest.raises(gm.JobError, match="StopIteration") as caught:
        job.collect()
    assert caught.value.record == 700
    assert isinstance(caught.value.__cause__, StopIteration)
    with pytest.raises(StopIteration):
        gm.replay(caught.value)
    with gm.configure(on_error="skip"):
        result = job.run()
    assert [bad.record for bad in result.bad_records] == [700]
    assert "StopIteration" in result.bad_records[0].error
    assert len(result) == (999 if step != "reduce" else 0)


@ONLY_MACHINE
def test_a_slow_program_makes_no_worker_late(way: str) -> None:
    # A worker that waited for the program was killed, as if its function had not returned in time.
    with gm.configure(task_timeout=0.3, workers=2):
        found = []
        for record in gm.range(3000).map(lambda n: str(n).zfill(2000)):
            found.append(int(record))
            if len(found) in (1, 1000):
                time.sleep(1)
    assert found == list(range(3000))


@ONLY_MACHINE
@pytest.mark.parametrize("options", [{"isolation": "thread"}, {"exchange": "barrier"}, {"retries": 0}, {"map_workers": 2}, {"split_bytes": 7}])
def test_every_option_gives_the_records_in_order(options: dict[str, Any]) -> None:
    with gm.configure(**options):
        assert gm.range(5000).flat_map(lambda n: [n, -n]).collect() == [sign * n for n in range(5000) for sign in (1, -1)]
        assert gm.range(5000).filter(lambda n: n % 3).count() == 3333
        assert gm.range(5000).map(str).take(3) == ["0", "1", "2"]
