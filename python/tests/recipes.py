"""Values of every common type, and functions with parameters, for the programs of test_oracle.py.

All have a repr that can be pasted.
"""

import collections
import datetime
import enum
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from math import inf, nan
from pathlib import PosixPath, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import strategies as st
from oracle import same
from pandas import Timedelta, Timestamp

# Types of a program.

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
# Without `complex(1)`: it equals these but has no order, so it would depend on the key that stands for equal ones
# whether records can be sorted.
ONES: list[Any] = [1, 1.0, True, Decimal(1), Fraction(1), np.int64(1), np.uint8(1), np.float32(1), np.bool_(True), Level.LOW, Whole(1)]
NUMBERS: list[Any] = [0, -0.0, 0.0, False, 2, 0.5, -0.25, Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float64(0.5), np.int64(2), np.int8(-3)]
NUMBERS += [2**53 + 1, 2.0**53, 2**62, np.int64(2**62), 2**63, -(2**63), 2**70, inf, -inf, nan, Level.HIGH, Whole(7), Decimal("1.0"), Decimal("1.00")]
PLAIN: list[Any] = [None, 0, 1, -5, 2**70, 0.5, nan, -0.0, inf, "", "a", "b", "\0", "a\0", "\ud800", "\U0001f600", b"", b"a", b"\0\xff"]
PLAIN += [(), (1,), (1.0,), ("a", 1), ("a", 2.5), (None, (nan,)), ((), "a"), (True, "a")]
NESTED: list[Any] = [
    (1, "a"),
    (1.0, "a"),
    (True, "a"),
    (Decimal(1), "a"),
    (np.int64(1), "a"),
    Point(1, "a"),
    Point(1.0, Text("a")),
    Pair((1, Word.A)),
]
NESTED += [(Point(1, 2), 3), ((1, 2), 3), (datetime.date(2026, 1, 1), 1), (datetime.date(2026, 1, 1), 1.0), (frozenset({1}), 1), ([1], 1), ([1.0], 1)]
TEXTS: list[Any] = ["a", Text("a"), Word.A, np.str_("a"), b"a", bytearray(b"a"), np.bytes_(b"a"), ("a",), ["a"], "b", Word.B, Text("b"), "A"]
DAYS: list[Any] = [datetime.date(2026, 11, 24), datetime.date(2026, 11, 25)]
TIMES: list[Any] = [
    datetime.datetime(2026, 1, 1, 12),
    Timestamp("2026-01-01 12:00"),
    datetime.datetime(2026, 1, 1, 13),
    Timestamp("2026-01-01 13:00"),
]
ZONED: list[Any] = [
    datetime.datetime(2026, 1, 1, 12, tzinfo=UTC),
    datetime.datetime(2026, 1, 1, 14, tzinfo=ROME),
    Timestamp("2026-01-01 12:00", tz="UTC"),
]
SPANS: list[Any] = [datetime.timedelta(1), datetime.timedelta(hours=24), Timedelta(days=1), datetime.timedelta(2)]
OTHERS: list[Any] = [[1], [1.0], [True], [], {1: "a"}, {1.0: Text("a")}, {}, {1}, frozenset({1}), frozenset({1.0}), set(), frozenset()]
OTHERS += [Frozen(1), Frozen(1.0), Frozen("a", 1), Colour.RED, Colour.BLUE, complex(0, 1), range(0), range(1, 1), range(3), bytearray(b"b")]
OTHERS += [UUID(int=1), UUID(int=2), PurePosixPath("a"), PosixPath("a"), PosixPath("b"), IPv4Address("10.0.0.1"), IPv6Address("::1")]
OTHERS += [*DAYS, *TIMES, *ZONED, *SPANS, datetime.time(1), datetime.time(12, tzinfo=UTC), datetime.time(14, tzinfo=ROME)]
ORDERED: list[list[Any]] = [
    DAYS,
    TIMES,
    ZONED,
    SPANS,
    [UUID(int=1), UUID(int=2)],
    [PosixPath("a"), PosixPath("b")],
    [Point(1, 2), Point(1, 3), (1, 2)],
]

simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=4) | st.binary(max_size=4)
plain = st.sampled_from(PLAIN) | simple | st.tuples(simple) | st.tuples(simple, simple)
anything = st.one_of(*(st.sampled_from(family) for family in (ONES, ONES, ONES, NUMBERS, NESTED, TEXTS, OTHERS)), plain)
#: A program draws its keys from one of these, and some twice.
pools = st.sampled_from([ONES, ONES, NUMBERS, ONES + NUMBERS, PLAIN, NESTED, TEXTS, *ORDERED]).map(st.sampled_from) | st.just(anything)

# Functions with parameters. Equal records give equal results, because behind a shuffle any of several equal records
# may come.


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
    """Gives the record back, or raises the error if it is the bad one."""
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
