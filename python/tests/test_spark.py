"""Jobs give on Spark what they give in one process; what cannot run is refused; errors are those of every engine.

The examples of all functions and all programs of `python/examples` run there too: see ci/python.sh.
"""

import datetime
import doctest
import operator
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from test_properties import ODD, exact

import gristmill as gm
from gristmill import _native

pytestmark = pytest.mark.parametrize("engine", ["spark"], indirect=True)

#: Pairs whose keys are of every type that has an order; each key occurs twice at least.
PAIRS = list(zip([*ODD, *reversed(ODD)], range(2 * len(ODD))))
#: Whole numbers that Spark adds up, and some that it cannot; and numbers of several types, whose sums are exact in
#: any order.
WHOLE = [3, 2**63 - 1, -(2**63), 10**40, True, -7, 2**62]
MIXED = [3, 0.25, True, -7, -1.5, False]
Data = gm.Dataset[Any]


def whole(pair: tuple[Any, int]) -> tuple[Any, Any]:
    return pair[0], WHOLE[pair[1] % len(WHOLE)]


def mixed(pair: tuple[Any, int]) -> tuple[Any, Any]:
    return pair[0], MIXED[pair[1] % len(MIXED)]


def of_many_types(pair: tuple[Any, int]) -> tuple[Any, Any]:
    return pair[0], [3, Fraction(1, 2), Decimal(7), 2.5, float("nan"), True][pair[1] % 6]


def sorted_values(pair: tuple[Any, list[Any]]) -> tuple[Any, list[Any]]:
    return pair[0], sorted(pair[1])


CASES: dict[str, Callable[[Data], Data]] = {
    "map": lambda data: data.map(lambda pair: [pair]).filter(lambda pair: pair[0][1] % 3).flat_map(lambda pair: [pair, pair[0]]),
    "map_batches": lambda data: data.map_batches(lambda pairs: [[pair] for pair in pairs]),
    "count_by_value": lambda data: data.map(operator.itemgetter(0)).count_by_value(),
    "distinct": lambda data: data.map(operator.itemgetter(0)).distinct().map(lambda key: (key, None)),
    "sum": lambda data: data.map(whole).reduce_by_key(gm.sum),
    "sum of several types": lambda data: data.map(mixed).reduce_by_key(gm.sum),
    "mean": lambda data: data.map(mixed).reduce_by_key(gm.mean),
    "min": lambda data: data.map(whole).reduce_by_key(gm.min),
    "max": lambda data: data.map(mixed).reduce_by_key(gm.max),
    "greatest of many types": lambda data: data.map(of_many_types).reduce_by_key(gm.max),
    "least dates": lambda data: data.map(lambda pair: (pair[0], datetime.date(2024, 1, pair[1] % 28 + 1))).reduce_by_key(gm.min),
    "count": lambda data: data.reduce_by_key(gm.count),
    "list": lambda data: data.reduce_by_key(gm.list).map(sorted_values),
    "first": lambda data: data.map(lambda pair: (pair[0], "one")).reduce_by_key(gm.first),
    "top of a key": lambda data: data.reduce_by_key(gm.top(2)),
    "function": lambda data: data.reduce_by_key(lambda a, b: a ^ b),
    "groups": lambda data: data.group_by_key().map_groups(lambda key, values: [(key, sorted(values)), (key, len(values))]),
    "arrays": lambda data: data.group_by_key().map_groups(lambda key, values: [(key, int(values.sum()))], format="numpy"),
    "sort": lambda data: data.sort_by(lambda pair: (pair[0], pair[1])),
    "sort, descending": lambda data: data.sort_by(lambda pair: (pair[0], pair[1]), descending=True),
    "top": lambda data: data.top(7),
    "top by value": lambda data: data.top(7, by="value"),
    "a shuffle of a sorted stage": lambda data: data.sort_by_key().reduce_by_key(gm.max),
    "many stages": lambda data: data.reduce_by_key(gm.sum).map(lambda pair: (pair[1] % 5, pair[1])).reduce_by_key(gm.sum).top(3),
    "a stage that is used twice": lambda data: (sums := data.reduce_by_key(gm.sum)).join(sums.map(lambda pair: (pair[0], -pair[1]))),
}


def keyed(records: list[Any]) -> list[Any]:
    """Records to compare: one of the equal keys stands for them, whichever."""
    return [(_native.encode_key(each[0])[0], exact(each[1])) if type(each) is tuple else exact(each) for each in records]


def both(make: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    """Returns the result of a job on Spark, and in one process."""
    found = make()
    with gm.configure(engine="local"):
        return found, make()


@pytest.mark.parametrize("case", CASES)
def test_a_job_gives_what_it_gives_in_one_process(case: str) -> None:
    found, expected = both(lambda: CASES[case](gm.from_iterable(PAIRS)).collect())
    assert keyed(found) == keyed(expected)


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "anti"])
def test_joins_give_what_they_give_in_one_process(how: Any) -> None:
    def make() -> list[Any]:
        left, right = gm.from_iterable(PAIRS[::3]), gm.from_iterable(PAIRS[1::3]).map(lambda pair: (pair[0], None))
        return left.join(right, how).collect()

    found, expected = both(make)
    assert [each[0] for each in keyed(found)] == [each[0] for each in keyed(expected)]
    assert sorted(keyed(found)) == sorted(keyed(expected))


def test_keys_without_an_order_and_odd_values_are_brought_together() -> None:
    keys: list[Any] = [[1], {"a": 1}, (1, [2]), (True, [2.0]), Decimal(1), 1, Fraction(1, 3), "1", datetime.date(2024, 1, 1), [1.0], {"a": True}]
    pairs = [(key, Decimal(n)) for n, key in enumerate(keys * 3)]
    for reducer in (gm.sum, gm.mean, gm.max, gm.count, lambda a, b: a + b):
        found, expected = both(lambda: gm.from_iterable(pairs).reduce_by_key(reducer).collect())
        assert sorted(keyed(found)) == sorted(keyed(expected))


def test_functions_and_classes_of_the_main_module_travel() -> None:
    main = sys.modules["__main__"].__dict__
    exec("import collections\nclass Point(collections.namedtuple('Point', 'x y')): pass\ndef point(n): return Point(n % 2, n)", main)
    point, Point, offset = main["point"], main["Point"], 10
    points = gm.range(4).map(point).map(lambda point: Point(point.x, point.y + offset)).cache()
    assert points.collect() == [(0, 10), (1, 11), (0, 12), (1, 13)]
    assert type(points.collect()[0]) is Point
    assert points.distinct().count() == 4


def test_files_in_many_parts_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.engines.spark.parts._PART_BYTES", range(10, 40))
    texts = ["", "one\r\ntwo\n", "\n".join(f"line {n}" for n in range(50)), "a\r", "\n\n\n" + "long" * 40 + "\nend"]
    for at, text in enumerate(texts):
        (tmp_path / f"{at}.txt").write_text(text, newline="")

    def fails(line: str) -> str:
        return line if line != "line 37" else str(1 // 0)

    found, expected = both(gm.read_text(tmp_path).collect)
    assert found == expected
    with pytest.raises(gm.JobError) as caught:
        gm.read_text(tmp_path).map(fails).collect()
    assert (caught.value.line, caught.value.byte, caught.value.record) == (38, texts[2].index("line 37"), "line 37")


def test_large_results_come_partition_by_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.engines.spark.held._FEW_BYTES", 0)
    assert gm.range(5000).map(str).collect() == list(map(str, range(5000)))


def test_the_error_is_that_of_the_function_and_names_the_record(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("1\ntwo\n3\n")
    with pytest.raises(gm.JobError) as caught:
        gm.read_text(tmp_path / "numbers").map(int).distinct().collect()
    error = caught.value
    assert (error.record, error.file, error.line, error.byte) == ("two", str(tmp_path / "numbers"), 2, 2)
    assert isinstance(error.__cause__, ValueError) and "in map int, on 'two'" in str(error)
    with pytest.raises(ValueError, match="two"):
        gm.replay(error)


@pytest.mark.parametrize(
    "fails",
    [
        lambda data: data.reduce_by_key(lambda a, b: a.missing),
        lambda data: data.map(lambda pair: (pair[0], str(pair[1]))).reduce_by_key(gm.sum),
        lambda data: data.group_by_key().map_groups(lambda key, values: [values.missing]),
        lambda data: data.sort_by(lambda pair: pair.missing),
        lambda data: data.map(lambda pair: threading.Lock()),
        lambda data: data.map(lambda pair: sys.exit(3)),
    ],
)
def test_every_kind_of_function_may_fail(fails: Callable[[Data], Data]) -> None:
    with pytest.raises(gm.JobError) as caught:
        fails(gm.from_iterable([(1, 2), (1, 3), (1, 4)])).collect()
    assert isinstance(caught.value.__cause__, (AttributeError, TypeError, SystemExit))


def test_bad_records_and_groups_are_set_aside(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_bytes(b"1\ntwo\n\xff\n0\n2\n")
    with gm.configure(on_error="skip"):
        result = gm.read_text(tmp_path / "numbers").map(int).key_by(lambda n: n % 2).reduce_by_key(lambda a, b: a.missing).run()
    assert list(result) == [(1, 1)]
    assert [(str(bad.record), bad.line, bad.byte) for bad in result.bad_records] == [("two", 2, 2), ("b'\\xff'", 3, 6), ("0", None, None)]


def test_the_plan_is_at_fault() -> None:
    with pytest.raises(gm.PlanError, match="reduce_by_key needs pairs of a key and a value, and this record is 0"):
        gm.range(1).reduce_by_key(gm.sum).collect()  # type: ignore[misc]  # that is the mistake
    with pytest.raises(TypeError, match="keys of the type dict have no order"):
        gm.from_iterable([{}]).sort_by(lambda record: record).collect()
    with pytest.raises(gm.PlanError, match=r"distinct: keys of the type object .*: register with gm.register_key\(object, "):
        gm.from_iterable([object()]).distinct().collect()
    with pytest.raises(gm.JobError, match=r"TypeError: '[<>]' not supported.*\n.* on 'k'"):
        gm.from_iterable([("k", 1), ("k", "a")]).reduce_by_key(gm.max).collect()


class Version(str):
    """Text that is equal to other text if its numbers are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.numbers() == other.numbers()

    __hash__ = str.__hash__

    def numbers(self) -> tuple[int, ...]:
        return tuple(map(int, self.split(".")))


def test_registered_types_travel_to_the_executors() -> None:
    """A type that only the program has registered was unknown to the executors."""
    gm.register_key(Version, Version.numbers)
    found = gm.from_iterable(["1.10", "1.9", "01.9"]).map(Version).distinct().map(Version.numbers).collect()
    assert found == [(1, 9), (1, 10)]


def test_nobody_can_choose_numbers_that_make_a_task_slow() -> None:
    """16,000 multiples of 2**61 - 1, which all have the hash 0, took a dictionary of the task 2.7 s and not 0.002 s."""
    from gristmill.engines.spark import partials

    keys = [number * (2**61 - 1) for number in range(1 << 14)]
    for chosen in (keys, list(map(float, range(1 << 14))), [(key,) for key in keys]):
        sums = partials.ToSums()
        began = time.process_time()
        rows = [*sums.add([(key, 1) for key in chosen]), *sums.end()]
        assert sum(batch.num_rows for batch in rows) == len(chosen)
        assert time.process_time() - began < 1.5


def test_a_dead_worker_costs_nothing_and_one_that_dies_each_time_is_an_error(tmp_path: Path) -> None:
    def once(n: int) -> float:
        if n == 7 and not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return random.random()

    draws = gm.range(100).map(once).collect()
    assert (tmp_path / "died").exists() and len(set(draws)) == 100
    with pytest.raises(gm.WorkerDied, match="each time that Spark tried"):
        gm.range(1).map(lambda n: os._exit(3)).collect()


def test_a_deadline_ends_the_job_on_the_cluster_too() -> None:
    with gm.configure(deadline=0.5), pytest.raises(gm.ResourceError, match="0.5 s"):
        gm.range(10**9).map(lambda n: n + 1).count()
    assert gm.range(3).count() == 3, "the cluster is free for the next job"


def test_what_cannot_run_on_spark_is_refused_before_it_starts(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    array = gm.shared_array(3, name="counts")
    with pytest.raises(gm.PlanError, match="counts.* is in the memory of this machine, so jobs that use it cannot run on Spark"):
        gm.range(3).map(lambda n: ran.touch()).uses(array).distinct().collect()
    with gm.configure(retries=3), pytest.raises(gm.PlanError, match="retries is an option of the engine for one machine"):
        gm.range(3).map(lambda n: ran.touch()).collect()
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(gm.PlanError, match="gristmill group-by runs on this machine, not on Spark"):
        gm.group_by(tmp_path / "a.csv", "a").collect()
    lock = threading.Lock()
    with pytest.raises(gm.PlanError, match=r"filter .*locked.* cannot travel to the executors of Spark"):
        gm.range(3).map(lambda n: ran.touch()).filter(lock.locked).collect()
    assert not ran.exists()


def test_cached_records_stay_on_the_cluster() -> None:
    def drawn(n: int) -> tuple[int, float]:
        return n % 3, random.random()

    cached = gm.range(300).map(drawn).cache()
    kept: Any = cached._node.data  # type: ignore[union-attr]
    largest = cached.reduce_by_key(gm.max).to_dict()
    assert kept.held is not None and not kept._is_here
    assert largest == {key: max(value for other, value in cached if other == key) for key in largest}
    with gm.configure(engine="local"):
        assert cached.reduce_by_key(gm.max).to_dict() == largest


def test_the_guide_goes_as_printed() -> None:
    """It did not tell of `engine="spark"`, which is all that a user of Python needs."""
    page = Path(__file__).parents[2] / "docs/guide/spark.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (failed, tried > 5) == (0, True)


def test_a_started_job_can_be_cancelled_and_its_cluster_is_free() -> None:
    """A job could be ended by Ctrl-C only."""
    from pyspark import SparkContext

    job = gm.range(10**9).map(lambda n: n + 1).start()
    time.sleep(1)
    assert job.running() and job.cancel()
    with pytest.raises(gm.Cancelled):
        job.result(60)
    context = SparkContext.getOrCreate()
    until = time.monotonic() + 60
    while context.statusTracker().getActiveJobsIds() and time.monotonic() < until:
        time.sleep(0.1)
    assert not context.statusTracker().getActiveJobsIds()
    assert gm.range(3).count() == 3


def test_a_session_may_be_given_and_uses_our_shuffle() -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    assert session.conf.get("spark.shuffle.manager") == "org.apache.spark.shuffle.gristmill.GristmillShuffleManager"
    with gm.configure(engine=session):
        assert gm.range(3).distinct().run().stats["engine"] == "spark"


def test_no_two_tasks_draw_the_same_numbers_from_a_generator_of_the_program() -> None:
    """Each task drew the same numbers from a generator in a closure."""
    generator = random.Random(0)
    found = gm.range(4000).map(lambda n: generator.random()).collect()
    assert len(set(found)) == 4000
    with gm.configure(seed=3):
        assert gm.range(40).map(lambda n: generator.random()).collect() == gm.range(40).map(lambda n: generator.random()).collect()
