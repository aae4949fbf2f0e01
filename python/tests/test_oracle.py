"""Every engine gives the answer of plain Python, for programs drawn by Hypothesis, and for keys and values of every common type.

`GRISTMILL_PROGRAMS=10000 pytest python/tests/test_oracle.py` runs so many programs, other ones each time. A program that fails is printed
so that it can be pasted: `PYTHONPATH=python:python/tests python -c 'from test_oracle import *; check(Program(...))'`.
"""

import collections
import datetime
import enum
import functools
import operator
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from math import inf, nan
from pathlib import PosixPath, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st
from oracle import Free, Open, Program, difference, is_true, same
from pandas import Timedelta, Timestamp

import gristmill as gm

COUNT = int(os.environ.get("GRISTMILL_PROGRAMS", 150))

# Types of a program, and values of every common type. Each has a repr that can be pasted.

Point = collections.namedtuple("Point", "x y")


@dataclass(frozen=True)
class Frozen:
    x: Any
    y: Any = 0


class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    __repr__ = enum.Enum.__str__


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2
    __repr__ = enum.Enum.__str__


class Word(str, enum.Enum):
    A = "a"
    B = "b"
    __repr__ = enum.Enum.__str__


class Whole(int):
    def __repr__(self) -> str:
        return f"Whole({int(self)})"


class Text(str):
    def __repr__(self) -> str:
        return f"Text({str(self)!r})"


class Pair(tuple[Any, ...]):
    def __repr__(self) -> str:
        return f"Pair({tuple(self)!r})"


UTC, ROME = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=2))

#: Values that are equal, or nearly so, though they have different types.
ONES: list[Any] = [1, 1.0, True, Decimal(1), Fraction(1), np.int64(1), np.uint8(1), np.float32(1), np.bool_(True), Level.LOW, Whole(1), complex(1)]
NUMBERS: list[Any] = [0, -0.0, 0.0, False, 2, 0.5, -0.25, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float64(0.5), np.int64(2), np.int8(-3)]
NUMBERS += [2**53 + 1, 2.0**53, 2**62, np.int64(2**62), 2**63, -(2**63), 2**70, inf, -inf, nan, Level.HIGH, Whole(7), Decimal("1.0"), Decimal("1.00")]
PLAIN: list[Any] = [None, 0, 1, -5, 2**70, 0.5, nan, -0.0, inf, "", "a", "b", "\0", "a\0", "\ud800", "\U0001f600", b"", b"a", b"\0\xff"]
PLAIN += [(), (1,), (1.0,), ("a", 1), ("a", 2.5), (None, (nan,)), ((), "a"), (True, "a")]
NESTED: list[Any] = [(1, "a"), (1.0, "a"), (True, "a"), (Decimal(1), "a"), (np.int64(1), "a"), Point(1, "a"), Point(1.0, Text("a")), Pair((1, Word.A))]
NESTED += [(Point(1, 2), 3), ((1, 2), 3), (datetime.date(2026, 1, 1), 1), (datetime.date(2026, 1, 1), 1.0), (frozenset({1}), 1), ([1], 1), ([1.0], 1)]
TEXTS: list[Any] = ["a", Text("a"), Word.A, np.str_("a"), b"a", bytearray(b"a"), np.bytes_(b"a"), ("a",), ["a"], "b", Word.B, Text("b"), "A"]
DAYS: list[Any] = [datetime.date(2026, 11, 24), datetime.date(2026, 11, 25)]
TIMES: list[Any] = [datetime.datetime(2026, 1, 1, 12), Timestamp("2026-01-01 12:00"), datetime.datetime(2026, 1, 1, 13), Timestamp("2026-01-01 13:00")]
ZONED: list[Any] = [datetime.datetime(2026, 1, 1, 12, tzinfo=UTC), datetime.datetime(2026, 1, 1, 14, tzinfo=ROME), Timestamp("2026-01-01 12:00", tz="UTC")]
SPANS: list[Any] = [datetime.timedelta(1), datetime.timedelta(hours=24), Timedelta(days=1), datetime.timedelta(2)]
OTHERS: list[Any] = [[1], [1.0], [True], [], {1: "a"}, {1.0: Text("a")}, {}, {1}, frozenset({1}), frozenset({1.0}), set(), frozenset()]
OTHERS += [Frozen(1), Frozen(1.0), Frozen("a", 1), Colour.RED, Colour.BLUE, complex(0, 1), range(0), range(1, 1), range(3), bytearray(b"b")]
OTHERS += [UUID(int=1), UUID(int=2), PurePosixPath("a"), PosixPath("a"), PosixPath("b"), IPv4Address("10.0.0.1"), IPv6Address("::1")]
OTHERS += [*DAYS, *TIMES, *ZONED, *SPANS, datetime.time(1), datetime.time(12, tzinfo=UTC), datetime.time(14, tzinfo=ROME)]
ORDERED: list[list[Any]] = [DAYS, TIMES, ZONED, SPANS, [UUID(int=1), UUID(int=2)], [PosixPath("a"), PosixPath("b")], [Point(1, 2), Point(1, 3), (1, 2)]]

simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=4) | st.binary(max_size=4)
plain = st.sampled_from(PLAIN) | simple | st.tuples(simple) | st.tuples(simple, simple)
anything = st.one_of(*(st.sampled_from(family) for family in (ONES, ONES, ONES, NUMBERS, NESTED, TEXTS, OTHERS)), plain)
#: A program draws its keys from one of these, and some twice.
pools = st.sampled_from([ONES, ONES, NUMBERS, ONES + NUMBERS, PLAIN, NESTED, TEXTS, *ORDERED]).map(st.sampled_from) | st.just(anything)

# Functions with parameters. Equal records give equal results, because behind a shuffle any of several equal records may come.


class Function:
    """A closure, with a repr that makes it again."""

    def __init__(self, maker: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.closure, self.shown = maker(*arguments), f"{maker.__name__}({', '.join(getattr(each, '__name__', repr(each)) for each in arguments)})"

    def __repr__(self) -> str:
        return self.shown

    def __call__(self, *arguments: Any) -> Any:
        return self.closure(*arguments)


def recipe(maker: Callable[..., Any]) -> Callable[..., Function]:
    return functools.wraps(maker)(lambda *arguments: Function(maker, arguments))


def refused(error: type[Exception]) -> Any:
    """Raises as programs do: `StopIteration` comes from `next` of an empty iterator."""
    if error is StopIteration:
        next(iter([]))
    raise error("refused")


def itself(bad: Any, error: Any) -> Callable[[Any], Any]:
    """The record, or an error if it is the bad one; with `None` for the error, any record."""
    return lambda record: refused(error) if error and same(record, bad) else record


@recipe
def unless(bad: Any, error: Any) -> Callable[[Any], Any]:
    return itself(bad, error)


@recipe
def negated() -> Callable[[Any], Any]:
    return lambda record: -record


@recipe
def swapped() -> Callable[[Any], Any]:
    return lambda pair: (pair[1], pair[0])


@recipe
def paired(value: Any) -> Callable[[Any], Any]:
    return lambda record: (record, value)


@recipe
def constant(value: Any) -> Callable[[Any], Any]:
    return lambda record: value


@recipe
def item(place: int) -> Callable[[Any], Any]:
    return lambda record: record[place]


@recipe
def is_other(value: Any, bad: Any, error: Any) -> Callable[[Any], Any]:
    check = itself(bad, error)
    return lambda record: not same(check(record), value)


@recipe
def times(count: int, bad: Any, error: Any) -> Callable[[Any], Any]:
    check = itself(bad, error)
    return lambda record: [check(record)] * count


@recipe
def yielded(count: int, bad: Any, error: Any) -> Callable[[Any], Any]:
    """Yields the record, and fails behind the first."""
    check = itself(bad, error)

    def generator(record: Any) -> Iterator[Any]:
        yield record
        for _ in range(count - 1):
            yield check(record)

    return generator


@recipe
def each(bad: Any, error: Any) -> Callable[[Any], Any]:
    check = itself(bad, error)
    return lambda batch: [check(record) for record in batch]


@recipe
def each_yielded(bad: Any, error: Any) -> Callable[[Any], Any]:
    check = itself(bad, error)
    return lambda batch: (check(record) for record in batch)


@recipe
def sizes(bad: Any, error: Any) -> Callable[[Any, Any], Any]:
    check = itself(bad, error)
    return lambda key, values: [(check(key), len(values))]


@recipe
def spread(bad: Any, error: Any) -> Callable[[Any, Any], Any]:
    check = itself(bad, error)

    def generator(key: Any, values: list[Any]) -> Iterator[Any]:
        for value in values:
            yield check(key), value

    return generator


@recipe
def added() -> Callable[[Any, Any], Any]:
    return lambda a, b: a + b


@recipe
def never(error: type[Exception]) -> Callable[[Any, Any], Any]:
    return lambda a, b: refused(error)


# Programs.

ERRORS = [None, None, None, None, None, StopIteration, ValueError, KeyError]
REDUCERS = ["sum", "sum", "min", "max", "mean", "count", "list", "first", ("top", 1), ("top", 2), added(), never(StopIteration)]


@st.composite
def programs(draw: Any, pools: st.SearchStrategy[Any] = pools) -> Program:
    keys, values = draw(pools), draw(st.sampled_from([st.sampled_from(ONES + NUMBERS)] * 2) | pools)
    are_pairs = draw(st.booleans())
    records = lambda pairs: st.lists(st.tuples(keys, values) if pairs else keys, max_size=draw(st.sampled_from([1, 4, 12])))
    source, steps = draw(records(are_pairs)) * draw(st.sampled_from([1, 1, 1, 30])), []
    for _ in range(draw(st.integers(1, 5))):
        # A function looks for a record that there is, so that some fail.
        bad = (draw(st.sampled_from(source) if source else keys), draw(st.sampled_from(ERRORS)))
        one = [("map", unless(*bad)), ("map", paired(draw(values))), ("map", negated()), ("map", constant(draw(keys))), ("cache",)]
        one += [("filter", is_other(draw(keys), *bad)), ("flat_map", times(draw(st.integers(0, 2)), *bad))]
        one += [("flat_map", yielded(draw(st.integers(1, 3)), *bad)), ("map_batches", each(*bad)), ("map_batches", each_yielded(*bad))]
        one += [("key_by", unless(*bad)), ("sort_by", unless(*bad), draw(st.booleans())), ("distinct",), ("count_by_value",), ("top", 2, None)]
        count, (key, error) = draw(st.integers(1, 4)), bad
        key = key[0] if isinstance(key, tuple) and key else key
        two = [("map", swapped()), ("pluck", draw(st.sampled_from([0, 1]))), ("pluck", 1, 0), ("pluck", (0, 1), 1), ("key_by", item(1))]
        two += [("reduce_by_key", draw(st.sampled_from(REDUCERS)))] * 4 + [("sort_by_key", draw(st.booleans())), ("sort_by", item(1), False)]
        two += [("map_groups", sizes(key, error)), ("map_groups", spread(key, error))]
        two += [("top", count, draw(st.sampled_from(["key", "value", item(1)]))), ("join", draw(records(True)), draw(st.sampled_from(KINDS)))]
        step = draw(st.sampled_from(one + two * 2 if are_pairs else one))
        steps.append(step)
        are_pairs = step[0] in ("key_by", "count_by_value", "join", "reduce_by_key", "map_groups") or "paired" in repr(step) or (
            are_pairs and step[0] not in ("pluck", "map_batches") and "constant" not in repr(step)) or step[1:] == (1, 0)
    ends = [("collect",)] * 4 + [("count",), ("take", draw(st.integers(0, 4)))] + [("to_dict",)] * are_pairs
    end = draw(st.sampled_from(ends))
    return Program(source, steps, end, end == ("collect",) and draw(st.booleans()))


KINDS = ["inner", "left", "right", "full", "anti"]


def dataset_of(program: Program) -> Any:
    plain = lambda argument: argument.closure if isinstance(argument, Function) else argument
    data: Any = gm.from_iterable(program.source)
    for name, *arguments in program.steps:
        first, *others = map(plain, arguments or [None])
        if name == "map_groups":
            data = data.group_by_key().map_groups(first)
        elif name == "join":
            data = data.join(gm.from_iterable(first), *others)
        elif name == "reduce_by_key":
            data = data.reduce_by_key(gm.top(first[1]) if isinstance(first, tuple) else getattr(gm, first) if isinstance(first, str) else first)
        elif name in ("sort_by", "sort_by_key"):
            data = getattr(data, name)(*[first][: name == "sort_by"], descending=arguments[-1])
        else:
            data = getattr(data, name)(*map(plain, arguments))
    return data


def check(program: Program) -> None:
    """Runs a program on the engine that is set, and fails if the answer is not that of plain Python."""
    error, found, bad = None, None, None
    try:
        with gm.configure(on_error="skip" if program.skip else "raise", deadline=60), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = dataset_of(program)
            if program.end == ("collect",):
                result = data.run()
                found, bad = list(result), result.bad_records
            else:
                found = getattr(data, program.end[0])(*program.end[1:])
    except Exception as raised:
        error = raised
    told = difference(program, found, error, bad)
    assert not told, f"{program!r}\n  gives {told}"


@contextmanager
def another_thread() -> Iterator[None]:
    """A second thread: then a starter, and not the program, forks the workers."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# The oracle itself, against answers written by hand.

HANDS: list[tuple[Program, Any]] = [
    (Program([1, 2, 3], [("map", negated()), ("filter", is_other(-2, None, None))]), [-1, -3]),
    (Program([1, 2], [("flat_map", yielded(2, None, None)), ("map_batches", each(None, None))]), [1, 1, 2, 2]),
    (Program([(1, "a"), (1.0, "b"), (2, "c")], [("reduce_by_key", "count")]), [(True, 2), (2, 1)]),
    (Program([(nan, 1), (-nan, 2)], [("reduce_by_key", "sum")]), [(nan, 3)]),
    (Program([(1, np.int64(2**62))] * 4, [("reduce_by_key", "sum")]), [(1, 2**64)]),
    (Program([(1, Decimal("0.5")), (1, Fraction(1, 3)), (1, 1)], [("reduce_by_key", "min")]), [(1, Fraction(1, 3))]),
    (Program([(1, 3), (1, np.float64(2)), (1, nan)], [("reduce_by_key", ("top", 2))]), [(1, [nan, 3])]),
    (Program([(1, "b"), (1, "a")], [("reduce_by_key", "list"), ("pluck", 1)]), [["a", "b"]]),
    (Program([(1, "b"), (1, "a"), (2, "c")], [("reduce_by_key", "first")], ("take", 1)), [(1, "a")]),
    (Program([(1, 2), (3, 4)], [("pluck", (0, 1), 1), ("map", swapped())]), [(2, (1, 2)), (4, (3, 4))]),
    (Program([("b", 2), (None, 1), (b"", 3), (0.5, 4)], [("sort_by_key", False)]), [(None, 1), (0.5, 4), ("b", 2), (b"", 3)]),
    (Program([Level.HIGH, 1, nan, 0.5], [("sort_by", unless(None, None), True)]), [nan, Level.HIGH, 1, 0.5]),
    (Program([("a", 1), ("b", 3), ("c", 3)], [("top", 2, "value")]), [("b", 3), ("c", 3)]),
    (Program([Point(1, 2), (1, 2), [1], [1.0], Decimal("1.00"), 1], [("count_by_value",)]), [((1, 2), 2), ([1], 2), (1, 2)]),
    (Program([(1, 2), (3, 4)], [("join", [(True, 5)], "inner")]), [(1, (2, 5))]),
    (Program([(1, 2), (3, 4)], [("join", [(1, 5)], "left")]), [(1, (2, 5)), (3, (4, None))]),
    (Program([(3, 4)], [("join", [(1, 5)], "full")]), [(1, (None, 5)), (3, (4, None))]),
    (Program([(1, 2), (3, 4)], [("join", [(1, 5)], "anti")]), [(3, 4)]),
    (Program([], [("join", [(1, 5)], "right"), ("cache",)]), [(1, (None, 5))]),
    (Program([("a", 1), ("a", 2)], [], ("to_dict",)), {"a": 2}),
    (Program([("a", 1), ("a", 2)], [("map_groups", sizes(None, None))], ("count",)), 1),
    (Program([], [("distinct",)]), []),
]


@pytest.mark.parametrize("program, answer", HANDS, ids=map(str, range(len(HANDS))))
def test_the_oracle_agrees_with_answers_written_by_hand(program: Program, answer: Any) -> None:
    assert difference(program, answer) is None
    check_all_differ(program, answer)


def check_all_differ(program: Program, answer: Any) -> None:
    """An answer with one record more, fewer, or in the place of another is a wrong one."""
    wrong = [answer + 1] if isinstance(answer, int) else [answer | {"z": 1}] if isinstance(answer, dict) else [[*answer, "z"]]
    wrong += [["z", *answer[1:]], answer[1:]] if isinstance(answer, list) and answer else []
    assert all(difference(program, each) for each in wrong)


def test_the_oracle_tells_orders_and_types_and_errors_apart() -> None:
    assert difference(Program([1, 2], [("distinct",)]), [2, 1])
    assert difference(Program([1], [("map", unless(None, None))]), [True])
    assert not difference(Program([1], [("distinct",)]), [True])
    assert difference(Program([1, 2], [("map", unless(1, StopIteration))]), [2])
    failed = gm.JobError("refused", record=1)
    failed.__cause__ = StopIteration()
    assert not difference(Program([1, 2], [("map", unless(1, StopIteration))]), None, failed)
    assert difference(Program([1, 2], [("map", unless(2, StopIteration))]), None, failed), "it names the record"
    assert difference(Program([1, 2], [("map", unless(1, KeyError))]), None, failed), "its cause is what was raised"
    assert difference(Program([1], []), None, failed)
    bad = gm.BadRecord(1, "StopIteration: ")
    assert not difference(Program([1, 2], [("flat_map", yielded(2, 1, KeyError))], skip=True), [2, 2], bad=[gm.BadRecord(1, "KeyError: 'refused'")])
    assert not difference(Program([1, 2], [("map", unless(1, StopIteration))], skip=True), [2], bad=[bad])
    assert difference(Program([1, 2], [("map", unless(1, StopIteration))], skip=True), [2], bad=[])
    with pytest.raises(Open):
        difference(Program([[1], [2]], [("sort_by", unless(None, None), False)]), [[1], [2]])


@given(program=programs())
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_a_program_can_be_pasted(program: Program) -> None:
    assert repr(eval(repr(program))) == repr(program)


def tries(parts: int) -> settings:
    phases = [Phase.explicit, Phase.generate, Phase.shrink]
    return settings(
        max_examples=max(1, COUNT // parts), deadline=None, derandomize="GRISTMILL_PROGRAMS" not in os.environ, database=None, phases=phases,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )  # fmt: skip


@pytest.mark.parametrize("threads", [False, True], ids=["alone", "threads"])
@tries(4)
@given(program=programs())
def test_programs_give_the_answer_of_plain_python(program: Program, threads: bool) -> None:
    with another_thread() if threads else nullcontext():
        try:
            check(program)
        except Open:
            assume(False)
