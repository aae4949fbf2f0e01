"""Two keys are one exactly when `a == b` in Python, whatever their type; NaN is one key.

Keys and values have Python's order.

The oracle is plain Python: keys are compared two by two with `==` and `hash`, as a `dict` does, and ordered by `sorted`.
"""

import collections
import dataclasses
import datetime as dt
import enum
import functools
import ipaddress
import math
import pathlib
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gristmill as gm

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True, order=True)
class City:
    name: str
    size: float = 0
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass
class Other:
    name: str
    size: float = 0


class Color(enum.Enum):
    RED = 1
    CRIMSON = 1
    BLUE = 2


class Size(enum.IntEnum):
    ONE = 1
    TWO = 2


class Mode(enum.Flag):
    R = 1
    W = 2


class Word(str):
    pass


class Odd:
    """Equal by an `__eq__` that only its author knows."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)


class Version:
    """As `Odd`, with an order."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash(self.parts())

    def parts(self) -> tuple[int, ...]:
        return tuple(map(int, self.text.split(".")))


UTC, EAST = dt.timezone.utc, dt.timezone(dt.timedelta(hours=2))
NEW_YEAR = dt.datetime(2024, 1, 1, 12)
#: Keys that are alike, by type.
FAMILIES: dict[str, list[Any]] = {
    "tuples": [(1, 2), Point(1, 2), Point(1.0, 2), (np.int64(1), 2), [1, 2], [1.0, Decimal(2)], [[1], 2], collections.deque([1, 2])],
    "ones": [1, True, 1.0, np.int64(1), np.float32(1), np.bool_(True), Size.ONE, Decimal("1.0"), Decimal("1.00"), Fraction(1), complex(1, 0), "1"],
    "halves": [0.5, np.float64(0.5), np.float16(0.5), Fraction(1, 2), Decimal("0.50"), complex(0.5, 1), 0.5 + 1j],
    "tenths": [0.1, np.float32(0.1), Decimal("0.1"), Fraction(1, 10), Decimal(0.1), -Decimal("0.1"), np.float64(0.1)],
    "large": [2**70, float(2**70), Decimal(2**70), 2**70 + 1, Decimal(2**70) + Decimal("0.5"), 10**400, Decimal("1e400"), Fraction(1, 10**400)],
    "not numbers": [math.nan, -math.nan, np.float64("nan"), np.float32("nan"), Decimal("NaN"), math.inf, Decimal("Infinity"), -math.inf],
    "texts": ["a", Word("a"), np.str_("a"), b"a", bytearray(b"a"), np.bytes_(b"a"), ("a",), Word("b")],
    "collections": [{1, 2}, frozenset({2, 1}), frozenset({1.0, 2}), {"a": 1, "b": [2]}, {"b": [2.0], "a": True}, {"a": 1}, set(), {}, []],
    "dates": [dt.date(2024, 1, 1), NEW_YEAR, dt.datetime(2024, 1, 1), pd.Timestamp(NEW_YEAR), pd.Timestamp(NEW_YEAR) + pd.Timedelta(1, "ns")],
    "instants": [NEW_YEAR.replace(tzinfo=UTC), NEW_YEAR.replace(hour=14, tzinfo=EAST), pd.Timestamp(NEW_YEAR, tz="UTC"), NEW_YEAR],
    "NumPy's dates": [
        np.datetime64("2024-01-01T12", "h"),
        np.datetime64("2024-01-01T12:00:00", "us"),
        NEW_YEAR,
        np.datetime64("2024-01-01T12:00:01"),
    ],
    "times": [dt.time(12), dt.time(12, tzinfo=UTC), dt.time(14, tzinfo=EAST), dt.time(12, 0, 0, 1)],
    "spans": [
        dt.timedelta(1),
        dt.timedelta(hours=24),
        pd.Timedelta(1, "D"),
        np.timedelta64(24, "h"),
        np.timedelta64(1, "Y"),
        np.timedelta64(12, "M"),
    ],
    "classes": [
        City("a", 1),
        City("a", 1.0, "n"),
        City("b"),
        Other("a", 1),
        Other("a", 1),
        Color.RED,
        Color.CRIMSON,
        Color.BLUE,
        Mode.R | Mode.W,
        Mode.R,
    ],
    "names": [
        uuid.UUID(int=1),
        uuid.UUID(int=1),
        pathlib.Path("/a/./b"),
        pathlib.PurePosixPath("/a/b"),
        pathlib.PureWindowsPath("A"),
        pathlib.PureWindowsPath("a"),
    ],
    "addresses": [ipaddress.ip_address(each) for each in ("10.0.0.1", "::a00:1")] * 2
    + [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("10.0.0.1/8"), ipaddress.ip_interface("10.0.0.1/8")],
    "others": [range(3), range(0, 3), range(0, 5, 2), range(0, 6, 2), ..., int, int, len, re.compile("a"), re.compile("a"), re.compile(b"a")],
}
#: Keys of every type in which several are equal.
EVERY: list[Any] = [key for family in FAMILIES.values() for key in family]


def hashed(key: Any) -> Any:
    try:
        return hash(key)
    except TypeError:
        return None


def is_nan(key: Any) -> bool:
    return isinstance(key, (float, Decimal, np.floating)) and bool(key != key)


def equal(a: Any, b: Any) -> bool:
    """Whether a `dict` takes two keys for one. Those that have no hash are compared alone."""
    if is_nan(a) or is_nan(b):
        return is_nan(a) and is_nan(b)
    if type(a) is type(b) and type(a) in (list, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if type(a) is type(b) is dict:
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, Decimal) and isinstance(b, np.integer):
        a, b = b, a  # Decimal fails on integers of NumPy, which compare themselves with it.
    sequences = (list, tuple, collections.deque, range)
    if (isinstance(a, sequences) and isinstance(b, np.generic)) or (isinstance(b, sequences) and isinstance(a, np.generic)):
        return False  # NumPy makes an array of the list.
    try:
        is_equal = bool(a == b)
    except (TypeError, ValueError, OverflowError):  # NumPy and pandas do not compare days with months, or floats with 10**500.
        return False
    return is_equal and (hashed(a) == hashed(b) or None in (hashed(a), hashed(b)))


def grouped(pairs: list[tuple[Any, Any]]) -> list[tuple[list[Any], list[Any]]]:
    groups: list[tuple[list[Any], list[Any]]] = []
    for key, value in pairs:
        for known, values in groups:
            if any(equal(each, key) for each in known):
                known.append(key)
                values.append(value)
                break
        else:
            groups.append(([key], [value]))
    return groups


def check(found: list[tuple[Any, Any]], pairs: list[tuple[Any, int]], of: Callable[[list[int]], Any]) -> None:
    """Checks that there is one record for each group, whose key is one of the group, and whose value is right."""
    expected = grouped(pairs)
    for known, values in expected:
        hits = [value for key, value in found if any(equal(key, each) for each in known)]
        assert hits == [of(values)], known
    assert len(found) == len(expected)


@pytest.fixture(params=["fork", "threads"])
def program(request: pytest.FixtureRequest, engine: str) -> Iterator[None]:
    """A program with one thread, whose jobs are forked, and one with two, which sends them to a starter."""
    if request.param == "fork":
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    yield
    ended.set()
    thread.join()


some = st.sampled_from([family for family in FAMILIES.values()]).flatmap(
    lambda family: st.lists(st.tuples(st.sampled_from(family) | st.sampled_from(EVERY), st.integers(0, 9)), max_size=12)
)
nested = some.map(lambda pairs: [(("in", [key]) if value % 2 else {"k": key}, value) for key, value in pairs])
REDUCERS: list[tuple[Any, Callable[[list[int]], Any]]] = [
    (gm.sum, sum),
    (gm.max, max),
    (gm.count, len),
    (gm.mean, lambda values: sum(values) / len(values)),
    (lambda a, b: a + b, sum),
]


@settings(max_examples=60, deadline=None)
@given(some | nested, st.sampled_from(REDUCERS))
def test_keys_of_every_type_are_one_when_they_are_equal(pairs: list[tuple[Any, int]], way: tuple[Any, Callable[[list[int]], Any]]) -> None:
    """`reduce_by_key` gave several groups for equal keys of all but seven types."""
    reducer, plain = way
    check(gm.from_iterable(pairs).reduce_by_key(reducer).collect(), pairs, plain)
    check(gm.from_iterable(pairs).map(lambda pair: pair[0]).count_by_value().collect(), pairs, len)
    check(gm.from_iterable(pairs).reduce_by_key(gm.sum, gm.count).collect(), pairs, lambda values: (sum(values), len(values)))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_type_is_grouped_and_joined(family: str, program: None) -> None:
    """Joins lost rows whose keys were equal but not of one of seven types."""
    keys = FAMILIES[family]
    pairs = [(key, number) for number, key in enumerate(keys)]
    data = gm.from_iterable(pairs)
    check(data.reduce_by_key(gm.sum).collect(), pairs, sum)
    check(data.group_by_key().map_groups(lambda key, values: [(key, sorted(values))]).collect(), pairs, sorted)
    check([(key, 1) for key in data.map(lambda pair: pair[0]).distinct()], pairs, lambda values: 1)
    check([(key, 1) for key in gm.from_iterable(pairs * 300).map(lambda pair: pair[0]).distinct()], pairs, lambda values: 1)
    for how in ("inner", "full", "anti"):
        left, right = pairs[::2], pairs[1::2]
        found = gm.from_iterable(left).join(gm.from_iterable(right), how).collect()
        both = [(v, w) for _, values in grouped(pairs) for v in values if v % 2 == 0 for w in values if w % 2]
        alone = [(v, None) for _, values in grouped(pairs) if not any(w % 2 for w in values) for v in values]
        others = [(None, w) for _, values in grouped(pairs) if all(w % 2 for w in values) for w in values]
        expected = {"inner": both, "full": both + alone + others, "anti": [v for v, _ in alone]}[how]
        assert sorted(map(repr, (value for _, value in found))) == sorted(map(repr, expected)), how
        for key, value in found:
            number = next(n for n in (value if how != "anti" else (value,)) if n is not None)
            assert any(equal(key, each) for known, values in grouped(pairs) if number in values for each in known)


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_the_same_one_of_equal_keys_is_shown_each_time() -> None:
    """Which of `Decimal("1.0")` and `Decimal("1.00")` a result shows must not depend on which worker was first."""
    keys = [Decimal("2." + "0" * (n % 7 + 1)) for n in range(3000)]
    shown = {str(gm.from_iterable(keys[at:] + keys[:at]).distinct().collect()[0]) for at in (0, 1, 2, 5)}
    assert len(shown) == 1


def test_a_key_is_shown_as_it_is() -> None:
    """A named tuple, an enum or a date comes back as what it is; NumPy's scalars as Python's."""
    for key in (Point(1, 2), Size.TWO, Color.RED, City("a"), NEW_YEAR, [1, 2], Decimal("0.10"), pathlib.Path("a"), Word("w")):
        for found in (
            gm.from_iterable([key, key]).distinct().collect(),
            gm.from_iterable([(key, 1)] * 2).reduce_by_key(gm.list).map(lambda p: p[0]).collect(),
        ):
            assert (found, type(found[0])) == ([key], type(key))
    found = gm.from_iterable([np.int64(5), 5, np.int64(5)]).distinct().collect()
    assert found == [5]


# Types that nobody knows.


@pytest.mark.parametrize("key", [Odd(1), np.arange(2), pd.Series([1]), (1, [Odd(1)]), collections.Counter("a")], ids=lambda key: type(key).__name__)
def test_what_nobody_knows_is_refused_by_name(key: Any, program: None) -> None:
    """Objects with an `__eq__` of their own were several groups, without a word."""
    kind = "Odd" if isinstance(key, tuple) else type(key).__name__
    jobs: dict[str, Callable[[], Any]] = {
        "distinct": gm.from_iterable([key]).distinct().collect,
        "count_by_value": gm.from_iterable([key]).count_by_value().collect,
        "reduce_by_key": gm.from_iterable([(key, 1)]).reduce_by_key(gm.sum).collect,
        "group_by_key": gm.from_iterable([(key, 1)]).group_by_key().map_groups(lambda key, values: []).collect,
        "join": gm.from_iterable([(key, 1)]).join(gm.from_iterable([(key, 1)])).collect,
    }
    for step, job in jobs.items():
        with pytest.raises(gm.PlanError, match=rf"^{step}: keys of the type {kind} .*: register with gm.register_key\({kind}, "):
            job()
        with gm.configure(on_error="skip"), pytest.raises(gm.PlanError, match=rf"^{step}: keys of the type {kind} "):
            job()


def test_keys_of_the_program_are_refused_before_the_job_runs(tmp_path: pathlib.Path) -> None:
    """A stage ran for hours before the next one refused its keys."""

    def ran(pair: tuple[int, int]) -> tuple[int, int]:
        (tmp_path / "ran").touch()
        return pair

    first = gm.from_iterable([(1, 2)]).map(ran).reduce_by_key(gm.sum)
    with pytest.raises(gm.PlanError, match="join: keys of the type Odd"):
        first.join(gm.from_iterable([(Odd(1), 2)])).collect()
    assert not (tmp_path / "ran").exists()


def test_objects_that_are_equal_only_to_themselves_are_refused() -> None:
    """A generator or a lock as a key cannot be found again in another process."""
    with pytest.raises(gm.PlanError, match="distinct: keys of the type generator are equal only to themselves"):
        gm.range(2).map(lambda n: (x for x in ())).distinct().collect()


@pytest.fixture
def versions() -> Iterator[None]:
    from gristmill.base.keys import canonical as keys

    before = keys.registered()
    gm.register_key(Version, Version.parts)
    yield
    keys.adopt(before)


def test_a_registered_type_is_a_key_and_has_an_order(versions: None, program: None) -> None:
    """A class with an `__eq__` of its own becomes a key by one function, in workers that have started before, too."""
    texts = ["1.10", "1.9", "01.9", "2", "1.9"]
    data = gm.from_iterable(list(map(Version, texts)))
    assert sorted(count for _, count in data.count_by_value()) == [1, 1, 3]
    assert [version.parts() for version in data.sort_by(lambda version: version)] == [(1, 9)] * 3 + [(1, 10), (2,)]
    assert data.map(lambda version: (version, 1)).join(data.map(lambda version: (version, 2))).count() == 11
    assert [version.text for version in data.top(1)] == ["2"]


def test_plain_types_cannot_be_registered() -> None:
    """`register_key(int, ...)` would have been ignored."""
    for wrong in (int, str, type(None), "Odd"):
        with pytest.raises(TypeError, match="register_key"):
            gm.register_key(wrong, lambda key: key)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="callable"):
        gm.register_key(Odd, 1)  # type: ignore[arg-type]


def test_numbers_too_long_for_a_key_are_refused() -> None:
    """The number `Decimal("1e999999999")` must not take all memory."""
    for key in (Decimal("1e999999999"), Decimal("1e-999999999"), Fraction(1, 3**100_000)):
        with pytest.raises(gm.JobError, match="too large for a key: round it first"):
            gm.from_iterable([key]).distinct().collect()


def test_a_list_that_contains_itself_is_refused() -> None:
    """A key without an end must not end the worker."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(gm.JobError, match="more than 100 deep"):
        gm.range(1).map(lambda n: endless).distinct().collect()


# Order.

ORDERED: dict[str, list[Any]] = {
    "dates": [dt.date(2024, 5, 1), dt.date(1, 1, 1), dt.date(2023, 12, 31)],
    "datetimes": [NEW_YEAR, NEW_YEAR.replace(microsecond=1), pd.Timestamp(NEW_YEAR) + pd.Timedelta(1, "ns"), dt.datetime(1, 1, 1), dt.datetime.max],
    "instants": [NEW_YEAR.replace(tzinfo=EAST), NEW_YEAR.replace(tzinfo=UTC), pd.Timestamp(NEW_YEAR, tz="Asia/Tokyo")],
    "times": [dt.time(3), dt.time(2, 59, 59, 999999), dt.time(23)],
    "spans": [dt.timedelta(1), dt.timedelta(-1), dt.timedelta(0, 1), pd.Timedelta(1, "ns"), dt.timedelta.max],
    "Decimals": [Decimal("1.10"), Decimal("-2"), Decimal("1.1000001"), Decimal("1e-400"), Decimal("-Infinity"), 1, -1.5, Decimal("0.1"), 0.1],
    "Fractions": [
        Fraction(1, 3),
        Fraction(2, 3),
        0.333,
        1,
        Fraction(-1, 3),
        2**60,
        Fraction(2**60 * 3 + 1, 3),
        -(2**60),
        Fraction(-(2**60) * 3 - 1, 3),
    ],
    "scalars": [np.float64(2.5), np.int8(3), 2, np.float32(2.25), np.uint64(2**64 - 1), np.bool_(False)],
    "named tuples": [Point(2, 1), Point(1, 5), (1, 4), Point(1, 6)],
    "lists": [[2], [1, 5], [], [1]],
    "enums": [Size.TWO, Size.ONE, 1.5],
    "dataclasses": [City("b", 1), City("a", 2), City("a", 1), City("a", 1.5)],
    "names": [uuid.UUID(int=5), uuid.UUID(int=3), uuid.UUID(int=2**127)],
    "paths": [pathlib.Path("b"), pathlib.Path("a/c"), pathlib.Path("a"), pathlib.Path("a b"), pathlib.Path("a/b")],
    "addresses": [ipaddress.ip_address(each) for each in ("10.0.0.2", "9.255.0.1", "10.0.0.10")],
    "networks": [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "10.0.0.0/16", "9.0.0.0/8")],
    "interfaces": [ipaddress.ip_interface(each) for each in ("10.0.0.2/8", "10.0.0.1/8", "10.0.0.1/16", "9.1.0.0/8")],
    "NumPy's dates": [np.datetime64("2024-01"), np.datetime64("2023-12-31"), np.datetime64("2024-01-01T00:00:00.000000001")],
}


@pytest.mark.parametrize("kind", ORDERED)
def test_records_are_sorted_as_python_sorts(kind: str, program: None) -> None:
    """`sort_by` and `top` refused all but seven types."""
    keys = ORDERED[kind]
    expected = sorted(keys)
    assert gm.from_iterable(keys).sort_by(lambda key: key).collect() == expected
    assert gm.from_iterable(keys).sort_by(lambda key: (key, 1), descending=True).collect() == expected[::-1]
    pairs = [(key, number) for number, key in enumerate(keys)]
    assert [key for key, _ in gm.from_iterable(pairs).sort_by_key()] == expected
    assert gm.from_iterable(keys).top(2).collect() == expected[::-1][:2]
    assert gm.from_iterable(keys).distinct().collect() == expected


rationals = (
    st.fractions() | st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: not d or abs(d.adjusted()) < 400) | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**80), 2**80).map(lambda n: n + Fraction(1, 3))
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(rationals, max_size=40), st.booleans())
@example([Fraction(1, 3), 2**60, Fraction(3 * 2**60 + 1, 3), -(2**60), Fraction(-3 * 2**60 - 1, 3), 10**400, Fraction(-1, 10**400), 5e-324], False)
def test_numbers_of_all_types_have_one_order(numbers: list[Any], in_tuples: bool) -> None:
    """Numbers beside each other that differ by less than a float can say must not be mixed up."""
    data = gm.from_iterable([(number, "") for number in numbers]) if in_tuples else gm.from_iterable(numbers)
    of = (lambda key: Fraction(key[0])) if in_tuples else Fraction
    assert list(map(of, data.sort_by(lambda key: key))) == sorted(map(Fraction, numbers))
    assert list(map(of, data.distinct())) == sorted(set(map(Fraction, numbers)))


@pytest.mark.parametrize("key", [{1}, {"a": 1}, 1j, Color.RED, Other("a"), range(3), Odd(1), (1, {2}), int], ids=repr)
def test_what_has_no_order_in_python_is_not_sorted(key: Any) -> None:
    """Keys that Python cannot compare are an error that names the type."""
    kind = type(key[1] if isinstance(key, tuple) else key).__name__
    with pytest.raises(TypeError, match=f"keys of the type {kind} have no order"):
        gm.from_iterable([key, key]).sort_by(lambda record: record).collect()


# Values.

COMPARED: list[list[Any]] = [
    [np.float64(2), 3.0, Decimal("2.5"), Fraction(11, 4)][:3],
    [Fraction(5, 2), 2, 3.0],
    [Size.TWO, 1, 1.5],
    [dt.date(2024, 1, 1), dt.date(2023, 1, 1)],
    [Word("b"), "a", "c"],
    [(1, Decimal(2)), (1, 3), (0, 9)],
    [[2], [1, 2]],
    [pd.Timestamp(NEW_YEAR), dt.datetime(2023, 1, 1)],
    [True, np.int64(7), -1],
    ["b", "a"],
    [{1}, {1, 2}],
]


@pytest.mark.parametrize("values", COMPARED, ids=repr)
def test_the_least_and_the_greatest_are_pythons(values: list[Any], program: None) -> None:
    """`gm.min` of `np.float64(2)` and `3.0` was `3.0`, because types were compared before values."""
    pairs = [("k", value) for value in values]
    data = gm.from_iterable(pairs)
    assert data.reduce_by_key(gm.min).collect() == [("k", min(values))]
    assert data.reduce_by_key(gm.max).collect() == [("k", max(values))]
    assert data.reduce_by_key(gm.top(2)).collect() == [("k", sorted(values, reverse=True)[:2])]


@pytest.mark.parametrize("nan", [math.nan, np.float64("nan"), np.float32("nan"), Decimal("NaN")], ids=repr)
def test_nan_is_the_greatest_in_tuples_too(nan: Any) -> None:
    """Python's `max` of tuples with NaN depends on their order; here NaN is the greatest number."""
    for values in ([(nan, 1), (1.0, 2), (2.0, 3)], [(2.0, 3), (nan, 1), (1.0, 2)], [(1.0, 2), (2.0, 3), (nan, 1)]):
        data = gm.from_iterable([("k", value) for value in values])
        assert [value[1] for _, value in data.reduce_by_key(gm.max)] == [1]
        assert [value[1] for _, value in data.reduce_by_key(gm.min)] == [2]
        assert [[value[1] for value in top] for _, top in data.reduce_by_key(gm.top(2))] == [[1, 3]]
    found = dict(gm.from_iterable([("k", nan), ("k", 5), ("k", nan)]).reduce_by_key(gm.min).collect())
    assert found == {"k": 5}


@pytest.mark.parametrize("values", [[1, "a"], [None, 2], [(1, "a"), (1, 2)], [b"a", "a"], [1j, 2j]], ids=repr)
@pytest.mark.parametrize("reducer", [gm.min, gm.max, gm.top(1)], ids=str)
def test_values_that_python_cannot_compare_are_its_error(values: list[Any], reducer: gm.Reducer, program: None) -> None:
    """The least of `1` and `"a"` was `1`, which Python does not say."""
    with pytest.raises(gm.JobError, match="TypeError: '[<>]' not supported between instances of .*\n.* on 'k'") as caught:
        gm.from_iterable([("k", value) for value in values]).reduce_by_key(reducer).collect()
    assert caught.value.record == "k" and isinstance(caught.value.__cause__, TypeError)


WHOLE: list[list[Any]] = [[np.int64(2**62)] * 4, [np.uint8(200)] * 3, [np.bool_(True)] * 3, [Size.TWO, Size.ONE], [True, np.int32(-5), 2**70]]


@pytest.mark.parametrize("values", WHOLE, ids=repr)
def test_sums_of_whole_numbers_are_exact_whatever_their_type(values: list[Any], program: None) -> None:
    """Four times `np.int64(2**62)` added up to 0."""
    expected = sum(map(int, values))
    data = gm.from_iterable([("k", value) for value in values])
    ((_, found),) = data.reduce_by_key(gm.sum).collect()
    assert (found, type(found)) == (expected, int)
    assert data.reduce_by_key(gm.mean).collect() == [("k", expected / len(values))]


def test_sums_of_other_types_are_pythons() -> None:
    """Decimals, Fractions and spans of time are added up as Python adds them."""
    for values in ([Decimal("0.1")] * 3, [Fraction(1, 3), 1], [np.float64(0.5), 2]):
        found = gm.from_iterable([("k", value) for value in values]).reduce_by_key(gm.sum).collect()
        assert found == [("k", functools.reduce(lambda a, b: a + b, values))]


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_sums_by_date_combine_natively() -> None:
    """Sums by a date kept all values of a key in memory as Python lists."""
    run = gm.range(20_000).map(lambda n: ((dt.date(2024, 1, n % 28 + 1), "Rome"), n)).reduce_by_key(gm.sum).run()
    assert dict(run)[dt.date(2024, 1, 3), "Rome"] == sum(range(2, 20_000, 28))
    assert run.stats["stages"][-1]["pairs"] == 28
