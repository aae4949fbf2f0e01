"""Surprises of users who had only the documents."""

import datetime
import decimal
import math
import os
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

import numpy
import pytest

import gristmill as gm

NEW_YORK = ZoneInfo("America/New_York")
UTC = datetime.timezone.utc


def test_times_that_a_clock_shows_twice_are_one_key_as_in_python() -> None:
    # The later of two equal clock times was one key with an instant that it does not equal.
    late = datetime.datetime(2024, 11, 3, 1, 30, fold=1, tzinfo=NEW_YORK)
    times = [late, late.replace(fold=0), datetime.datetime(2024, 11, 3, 5, 30, tzinfo=UTC), datetime.datetime(2024, 11, 3, 6, 30, tzinfo=UTC)]
    times += [datetime.datetime(2024, 3, 10, hour, 30, tzinfo=NEW_YORK) for hour in (2, 3)]
    times += [datetime.datetime(2024, 7, 1, 12, tzinfo=NEW_YORK), datetime.datetime(2024, 7, 1, 16, tzinfo=UTC)]
    expected = sorted(sum(time == other for other in times) for time in times)
    found = gm.from_iterable(times).count_by_value().collect()
    assert sorted(count for _, count in found for _ in range(count)) == expected


def test_text_with_line_ends_is_not_written_as_lines(tmp_path: Path) -> None:
    # A record with a line end was read back as two.
    for record in ("a\nb", "d\r\n", "c\r"):
        with pytest.raises(gm.PlanError, match="record 2 has line ends in it.*write_jsonl keeps them"):
            gm.from_iterable(["first", record]).write_text(tmp_path / "lines")
        gm.from_iterable([record]).write_jsonl(tmp_path / "lines.jsonl")
        assert gm.read_jsonl(tmp_path / "lines.jsonl").collect() == [record]
    assert not (tmp_path / "lines").exists()


def test_an_iterator_that_threads_share_is_an_error_and_no_crash() -> None:
    # Python crashed.
    program = """
import gristmill as gm, threading, sys
it = iter(gm.range(10**5)); got = []; errors = []
def pull():
    try:
        for x in it: got.append(x)
    except ValueError as e: errors.append(e)
threads = [threading.Thread(target=pull) for _ in range(3)]
[t.start() for t in threads]; [t.join(30) for t in threads]
assert len(set(got)) == len(got)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_a_record_that_kills_its_worker_is_listed(engine: str) -> None:
    # It was listed as b"\\x00".
    with gm.configure(on_error="skip"):
        assert [bad.record for bad in gm.range(20).map(lambda x: os._exit(9) if x == 7 else x).run().bad_records] == [7]


def test_rows_that_group_by_sets_aside_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # They were written to a file in the current folder, and the result listed none.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.csv").write_text("shop,price\na,1\nb,x\n")
    with gm.configure(on_error="skip"):
        result = gm.group_by("sales.csv", "shop", sum="price").run()
    assert list(result) == [("a", 1)]
    assert [(bad.record, bad.line) for bad in result.bad_records] == [(b"b,x", 3)]
    assert os.listdir() == ["sales.csv"]


class Strange:
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def test_a_key_function_that_fails_is_named() -> None:
    # The error had neither the function nor the record.
    def key(strange: Strange) -> int:
        return 1 // 0

    gm.register_key(Strange, key)
    data = gm.from_iterable([Strange()])
    for job in (data.distinct(), data.map(lambda each: (each, 1)).reduce_by_key(gm.sum), data.sort_by(lambda each: each)):
        with pytest.raises(gm.JobError, match="ZeroDivisionError.*\n.*key function of Strange"):
            job.collect()


class Unbuildable(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} {other}")


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_a_record_that_cannot_be_unpickled_is_an_error_of_the_job(engine: str) -> None:
    # It was a bare TypeError.
    with pytest.raises(gm.JobError, match="cannot be unpickled here: TypeError"):
        gm.range(3).map(lambda n: Unbuildable(n, n)).collect()


def test_a_huge_number_of_records_is_an_error_that_says_so() -> None:
    with pytest.raises(gm.PlanError, match="give a whole number from 0 to"):
        gm.range(3).take(10**30)


def test_a_function_that_exits_is_an_error() -> None:
    # With engine="local" the program ended.
    with pytest.raises(gm.JobError, match="SystemExit"):
        gm.range(3).map(lambda n: sys.exit(n)).collect()


STATE = """
import sys
if sys.argv[1] == "starter":
    import threading, time
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
import csv, datetime, decimal, locale, os, socket, time
import numpy, pandas
import gristmill as gm

decimal.getcontext().prec = 6
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
os.umask(0o027)
sys.setrecursionlimit(4321)
socket.setdefaulttimeout(7)
csv.field_size_limit(99)
numpy.seterr(divide="raise")
numpy.set_printoptions(precision=3)
pandas.set_option("display.max_rows", 7)
locale.setlocale(locale.LC_ALL, "C.UTF-8")

def state(_):
    limit = csv.field_size_limit(99)
    umask = os.umask(0o027)
    return [
        str(decimal.Decimal(1) / 7), str(datetime.datetime.fromtimestamp(0)), sys.getrecursionlimit(), socket.getdefaulttimeout(), limit, umask,
        numpy.geterr(), numpy.get_printoptions()["precision"], pandas.get_option("display.max_rows"), locale.setlocale(locale.LC_ALL),
    ]

with gm.configure(engine=sys.argv[2]):
    print(gm.range(1).map(state).collect()[0] == state(0))
"""


@pytest.mark.parametrize("way", ["fork", "starter"])
def test_functions_see_the_state_of_the_interpreter(way: str, engine: str) -> None:
    # In a program with threads, decimals had the default precision, and local times another zone.
    ran = subprocess.run([sys.executable, "-c", STATE, way, engine], capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout == "True\n", ran.stdout + ran.stderr


def test_a_job_ends_with_the_last_record_that_is_taken(tmp_path: Path) -> None:
    # After take() functions ran on, until Python looked for garbage.
    def function(record: int) -> int:
        (tmp_path / str(record)).touch()
        time.sleep(0.01)
        return record

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert gm.range(10**6).map(function).take(2) == [0, 1]
    called = len(os.listdir(tmp_path))
    time.sleep(0.3)
    assert len(os.listdir(tmp_path)) == called
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def _fails(record: object) -> object:
    raise ValueError("x")


@pytest.mark.parametrize("record", [5, None, True, 1.5, "abc", b"ab", "", (), (1, 2, 3)], ids=repr)
def test_an_error_behind_a_shuffle_names_the_whole_record(record: object) -> None:
    # It named the first item of the record, or was an error about telling of the error.
    shuffled = gm.from_iterable([record]).distinct()
    other = gm.from_iterable([(1, 2)])
    for run in (shuffled.map(_fails).count, shuffled.map(_fails).collect, shuffled.key_by(_fails).join(other, "full").collect):
        with pytest.raises(gm.JobError, match="ValueError: x") as caught:
            run()
        assert caught.value.record == record and type(caught.value.record) is type(record)


@pytest.mark.parametrize("record", [5, None, (), (1,), (1, 2, 3), "ab"], ids=repr)
def test_a_record_that_is_no_pair_is_shown_whole(record: object) -> None:
    # The first item of a tuple was shown.
    data = gm.from_iterable([record])
    for job in (data.reduce_by_key(gm.sum), data.group_by_key().map_groups(lambda key, values: values), data.join(data)):
        with pytest.raises(gm.PlanError) as caught:
            job.collect()
        assert str(caught.value).endswith(f"needs pairs of a key and a value, and this record is {record!r}")


def test_a_key_that_is_beyond_all_limits_is_a_bad_record() -> None:
    # The error had no record, and with engine="local" it ended the job although bad records were to be set aside.
    huge = decimal.Decimal("1E+9000")
    for records, job in [([1, huge, 2], lambda data: data.distinct()), ([(1, 1), (huge, 1)], lambda data: data.reduce_by_key(gm.sum))]:
        with pytest.raises(gm.JobError) as caught:
            job(gm.from_iterable(records)).collect()
        assert caught.value.record in (records[1], huge)
        with gm.configure(on_error="skip"):
            result = job(gm.from_iterable(records)).run()
        assert [bad.record for bad in result.bad_records] == [records[1]]
        assert len(result) == len(records) - 1


def test_paths_have_the_order_of_this_python() -> None:
    paths = [PurePosixPath(text) for text in ("/a", ".", "//a", "a/b", "a", "/", "a b/c", "/a/b", "a.b")]
    assert gm.from_iterable(paths).sort_by(lambda path: path).collect() == sorted(paths)


def test_deep_keys_are_compared_part_by_part() -> None:
    # With engine="local" each level of a tuple doubled the time.
    keys = []
    for deepest in (1, 2, 1):
        key = deepest
        for _ in range(60):
            key = (key,)
        keys.append(key)
    assert gm.from_iterable(keys).distinct().count() == 2
    assert gm.from_iterable(keys).sort_by(lambda key: key).collect() == [keys[0], keys[0], keys[1]]


def test_numbers_of_numpy_are_compared_with_decimals() -> None:
    # Which of the two came first decided whether it was an error.
    values = [numpy.int64(1), decimal.Decimal(2), numpy.int64(3)]
    for order in (values, values[::-1]):
        pairs = gm.from_iterable([("key", value) for value in order])
        assert [pairs.reduce_by_key(each).to_dict()["key"] for each in (gm.min, gm.max)] == [1, 3]
        assert pairs.reduce_by_key(gm.top(2)).to_dict()["key"] == [3, 2]
    long = numpy.longdouble
    assert gm.from_iterable([long("2e400"), long("1e400"), math.inf]).sort_by(lambda key: key).collect() == [long("1e400"), long("2e400"), math.inf]


def _unless_11(record: int) -> int:
    if record == 11:
        raise ValueError(record)
    return record


def test_nothing_is_kept_of_a_bad_record_on_any_engine() -> None:
    # With engine="local", other records that the bad one had become were kept.
    data = gm.from_iterable([1, 2]).flat_map(lambda n: [n, 10 + n])
    jobs = [data.sort_by(_unless_11), data.top(9, _unless_11), data.map(_unless_11), data.map_batches(lambda batch: list(map(_unless_11, batch)))]
    with gm.configure(on_error="skip"):
        for job in jobs:
            result = job.run()
            assert sorted(result) == [2, 12]
            assert [bad.record for bad in result.bad_records] == [1]


class Hashed(int):
    def __hash__(self) -> int:
        return 7


def test_a_class_with_a_hash_of_its_own_is_no_plain_key() -> None:
    # A `dict` has two keys, and there was one.
    assert len({Hashed(1): 1, 1: 2}) == 2
    with pytest.raises(gm.PlanError, match="Hashed.*gm.register_key"):
        gm.from_iterable([Hashed(1), 1]).distinct().collect()


def test_a_folder_that_was_deleted_is_no_matter_for_jobs_without_files(tmp_path: Path) -> None:
    # The import of the package raised FileNotFoundError.
    program = "import os; os.rmdir(os.getcwd()); import gristmill as gm; print(gm.range(3).map(str).collect())"
    (tmp_path / "gone").mkdir()
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "gone", timeout=60, capture_output=True, text=True, check=True)
    assert done.stdout == "['0', '1', '2']\n"


def test_a_subinterpreter_runs_jobs(tmp_path: Path) -> None:
    # The process of the job ended with "Fatal Python error", because only the main interpreter may fork.
    inner = f"""
import gristmill as gm
open({str(tmp_path / "found")!r}, "w").write(str(gm.range(3).map(lambda n: n * n).collect()))
"""
    program = f"""
import sys
if sys.version_info >= (3, 13):
    import _interpreters
    print(_interpreters.run_string(_interpreters.create("legacy"), {inner!r}))
else:
    import _xxsubinterpreters
    print(_xxsubinterpreters.run_string(_xxsubinterpreters.create(isolated=False), {inner!r}))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True)
    assert (tmp_path / "found").exists(), done
    assert (tmp_path / "found").read_text() == "[0, 1, 4]"
