"""The answer of a program, by plain Python: the oracle of test_oracle.py. It imports nothing of the package.

It is written from the reference and the guide. A program is a list of records, the steps that they go through, and an end. Its answer
holds all that the documents leave free; difference.py compares what an engine gave with it, up to that freedom:

1. Two records or keys are one exactly when `a == b` in Python; NaN equals NaN.
2. Any of several equal keys may stand for all of them. Values of a key come in any order.
3. A record that makes a function raise ends the job or, with `skip`, is set aside: the record with which the stage began, or the key.
4. Without a shuffle, records have an order and keep their types. Behind a shuffle they come in the order of keys, where there is one.

Where the documents do not say what must happen, the oracle raises :class:`Open`.
"""

import functools
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple


class Program(NamedTuple):
    """Steps and the end are tuples: the name of a method and its arguments.

    `map_groups` stands for both methods of groups.
    """

    source: list[Any]
    steps: list[Any]
    end: Any = ("collect",)
    skip: bool = False


class Open(BaseException):
    """The documents leave open what must happen. No `except Exception` of a function hides it."""


class Free:
    """A value that the documents leave free. A function that looks at it leaves its own result open."""

    def __init__(self, accepts: Callable[[Any], bool], shown: Any) -> None:
        self.accepts, self.shown = accepts, shown

    def __repr__(self) -> str:
        return f"<free: {self.shown!r}>"

    def refuse(self, *_: Any) -> Any:
        raise Open("a function looks at a value that is free")

    __eq__ = __lt__ = __gt__ = __add__ = __radd__ = __neg__ = __len__ = __iter__ = __getitem__ = __hash__ = __bool__ = __float__ = refuse


class Fault(NamedTuple):
    """An error that a job may end with, or a record that was set aside."""

    kind: str  # `call`: a function raised; `pair`: a record is no pair; `order`: a key has no order
    record: Any
    error: type[Exception] = Exception


class Row(NamedTuple):
    """The records that one record has become in its stage.

    Rows of one place come in any order, rows without a place anywhere.
    """

    place: int | None
    origin: Any
    records: list[Any]


@dataclass
class Answer:
    rows: list[Row]
    errors: list[Fault] = field(default_factory=list)  # the job ends with one of them, if there are any
    bad: list[Fault] = field(default_factory=list)
    is_straight: bool = True  # no shuffle yet
    is_exact: bool = True  # no record stands for others

    def each(self) -> Iterator[tuple[int | None, Any]]:
        """All records with their places."""
        records = (record for row in self.rows for record in row.records)
        return enumerate(records) if self.is_straight else ((row.place, record) for row in self.rows for record in row.records)


# 1. When values are equal, and which comes first.


def is_true(found: Any) -> bool:
    """Whether a comparison says yes. NumPy compares a scalar with a tuple item by item: that is no answer."""
    return found is True or (getattr(found, "shape", None) == () and bool(found))


def is_equal(a: Any, b: Any) -> bool:
    """Whether `a == b`, either way round.

    `Decimal(1) == np.int64(1)` raises an error, and `np.int64(1) == Decimal(1)` is true.
    """
    return any(is_true(outcome(compared)[0]) for compared in (lambda: a == b, lambda: b == a))


def is_nan(a: Any) -> bool:
    return is_true(a != a)


def same(a: Any, b: Any) -> bool:
    """Whether `a == b`, with NaN equal to NaN, also within tuples, lists and dictionaries."""
    if isinstance(a, Free):
        return a.accepts(b)
    for kind in (tuple, list):
        if isinstance(a, kind) and isinstance(b, kind):
            return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return all(same(a[key], b[key]) for key in a)
    return is_equal(a, b) or (is_nan(a) and is_nan(b))


def one_of(values: list[Any]) -> Any:
    if all(same(values[0], value) for value in values):
        return values[0]
    return Free(lambda found: any(same(value, found) for value in values), values)


def in_any_order(values: list[Any]) -> Free:
    return Free(lambda found: isinstance(found, list) and len(found) == len(values) and not left_over(values, found), values)


def left_over(some: Iterable[Any], others: Iterable[Any], equal: Callable[[Any, Any], bool] = same) -> list[Any]:
    """The values that are left when each of the others has taken one that is equal to it."""
    left = sorted(some, key=lambda a: "<free" in repr(a))
    for other in others:
        hit = next((place for place, a in enumerate(left) if equal(a, other)), None)
        if hit is not None:
            del left[hit]
    return left


def rank(a: Any) -> int:
    """Nothing, numbers, text, bytes, tuples, and all other types that have an order in Python."""
    if isinstance(a, (numbers.Real, Decimal)) or type(a).__name__ in ("bool", "bool_"):
        return 1
    return next((place for kind, place in ((type(None), 0), (str, 2), (bytes, 3), (tuple, 4)) if isinstance(a, kind)), 5)


def compare(a: Any, b: Any) -> int:
    """Below zero if `a` comes first. NaN is the greatest number. `TypeError` if a type has no order."""
    for each in (a, b):
        if isinstance(each, (list, set, frozenset, bytearray)):
            raise Open("lists, sets and byte arrays have an order in Python; the guide says that lists have none")
        if rank(each) == 5:
            each < each
    if rank(a) != rank(b) and 5 in (rank(a), rank(b)):
        raise Open("the order of other types beside those that the guide orders")
    if rank(a) != rank(b) or a is None:
        return rank(a) - rank(b)
    if isinstance(a, tuple):
        return next((order for order in map(compare, a, b) if order), len(a) - len(b))
    if is_nan(a) or is_nan(b):
        return is_nan(a) - is_nan(b)
    for way in (lambda: is_true(a > b) - is_true(a < b), lambda: is_true(b < a) - is_true(b > a)):
        found, failed = outcome(way)
        if not failed:
            return int(found)
    raise Open("the order of other types that Python cannot compare")


def compare_values(a: Any, b: Any) -> int:
    """As `min`, `max` and `top(k)` compare: as Python does, so there is no order between types."""
    if rank(a) != rank(b) or a is None:
        raise TypeError("not comparable")
    if isinstance(a, tuple):
        for x, y in [pair for pair in zip(a, b) if not same(*pair)][:1]:
            if outcome(compare_values, x, y)[1]:
                raise Open("whether two of several tuples meet that Python cannot compare")
    return compare(a, b)


def outcome(function: Callable[..., Any], *arguments: Any) -> tuple[Any, type[Exception] | None]:
    try:
        return function(*arguments), None
    except Exception as error:
        return None, type(error)


# 2. Reducers.


def reduced(reducer: Any, values: list[Any]) -> Any:
    """One value for the values of a key."""
    name, *counts = reducer if isinstance(reducer, tuple) else (reducer,)
    if name == "several":
        return tuple(reduced(part, values) for part in counts)
    if name in ("count", "list", "first"):
        return {"count": len, "list": in_any_order, "first": one_of}[name](values)
    if name in ("min", "max", "top"):
        order = sorted(values, key=functools.cmp_to_key(compare_values), reverse=name != "min")
        return order[: counts[0]] if name == "top" else order[0]
    there, back = (outcome(combined, reducer, order) for order in (values, values[::-1]))
    if there[1] is not back[1] or not same(there[0], back[0]):
        raise Open("a reducer whose result depends on the order of values")
    return combined(reducer, values)


def combined(reducer: Any, values: list[Any]) -> Any:
    if reducer not in ("sum", "mean"):
        return functools.reduce(reducer, values)
    amounts = [value for value in values if isinstance(value, numbers.Complex)]
    if not all(isinstance(a, numbers.Rational) for a in amounts) and any(2**40 < abs(a) < math.inf for a in amounts):
        raise Open("sums of floats are rounded")
    total = sum(operator.index(value) if isinstance(value, numbers.Integral) else value for value in values)
    return total if reducer == "sum" else total / len(values)


# 3. Steps of one record, and steps of all.


def narrow(name: str, arguments: list[Any], records: list[Any]) -> list[Any]:
    function = arguments[0] if arguments else None
    if name == "pluck":
        parts = lambda record: [tuple(record[f] for f in part) if isinstance(part, tuple) else record[part] for part in arguments]
        return [tuple(parts(record)) if len(arguments) > 1 else parts(record)[0] for record in records]
    steps: dict[str, Callable[[], Any]] = {
        "map": lambda: [function(record) for record in records],
        "filter": lambda: [record for record in records if function(record)],
        "flat_map": lambda: [each for record in records for each in function(record)],
        "map_batches": lambda: list(function(records)) if records else [],
        "key_by": lambda: [(function(record), record) for record in records],
    }
    return steps[name]()


class Job:
    """Runs the steps one after another, and gathers the errors and the records that are set aside."""

    def __init__(self, program: Program) -> None:
        self.skip = program.skip
        self.answer = Answer([Row(place, record, [record]) for place, record in enumerate(program.source)])
        for number, (name, *arguments) in enumerate(program.steps):
            if name == "cache":
                self.answer.rows = [Row(place, record, [record]) for place, record in self.answer.each()]
            elif name in ("map", "filter", "flat_map", "map_batches", "key_by", "pluck"):
                done = [(row, *outcome(narrow, name, arguments, row.records)) for row in self.answer.rows]
                if name in ("flat_map", "map_batches") and number + 1 < len(program.steps) and any(failed for _, _, failed in done):
                    self.ask_whether_half_way(arguments[0])
                self.answer.rows = [Row(row.place, row.origin, made) for row, made, failed in done if not self.fails(row.origin, failed)]
            else:
                self.answer.rows = self.wide(name, *arguments)
                self.answer.is_straight = False
                if self.answer.errors:
                    break

    def ask_whether_half_way(self, function: Any) -> None:
        if any(inspect.isgenerator(outcome(function, row.records and row.records[0])[0]) for row in self.answer.rows):
            raise Open("whether later steps see, and fail on, what a generator yields before it fails")

    def fails(self, record: Any, error: type[Exception] | None) -> bool:
        if error:
            (self.answer.bad if self.skip else self.answer.errors).append(Fault("call", record, error))
        return error is not None

    def wide(self, name: str, first: Any = None, second: Any = None) -> list[Row]:
        records = [record for _, record in self.answer.each()]
        if name in ("sort_by", "sort_by_key"):
            self.pairs(records if name == "sort_by_key" else [])
            return self.ordered(*((first, second, False) if name == "sort_by" else (operator.itemgetter(0), first, False)))
        self.answer.is_exact = False
        if name == "top":
            if second in ("key", "value") and not all(map(is_pair, records)):
                raise Open("top by key or value of records that are not pairs")
            by = {None: lambda record: record, "key": operator.itemgetter(0), "value": operator.itemgetter(1)}.get(second, second)
            return self.ordered(by, True, True)[:first]
        if name in ("distinct", "count_by_value"):
            make = lambda key, ones: [key if name == "distinct" else (key, len(ones))]
            return self.grouped([(record, 1) for record in records], make)
        if name == "join":
            sides = [(key, (side, value)) for side, part in enumerate((records, first)) for key, value in self.pairs(part)]
            return self.grouped(sides, functools.partial(joined, second))
        make = (lambda key, values: [(key, reduced(first, values))]) if name == "reduce_by_key" else (lambda key, values: list(first(key, values)))
        return self.grouped(self.pairs(records), make)

    def pairs(self, records: list[Any]) -> list[tuple[Any, Any]]:
        self.answer.errors += [Fault("pair", record) for record in records if not is_pair(record)]
        return [] if self.answer.errors else records

    def grouped(self, pairs: list[tuple[Any, Any]], make: Callable[[Any, list[Any]], list[Any]]) -> list[Row]:
        """The records that `make` gives for each key.

        Keys of the types that the guide orders come in order, others anywhere.
        """
        rows, groups = [], classes(pairs)
        ordered = [keys[0] for keys, _ in groups if all(map(is_plain, keys))]
        for keys, values in groups:
            made, failed = outcome(make, keys[0], values)
            if not self.fails(keys[0], failed):
                place = sum(compare(key, keys[0]) < 0 for key in ordered) if all(map(is_plain, keys)) else None
                rows += [Row(place, record, [record]) for record in made]
        return rows

    def ordered(self, by: Callable[[Any], Any], descending: bool, ties: bool) -> list[Row]:
        """All records by a function of each; `ties` orders those that are equally great by themselves."""
        keyed: list[tuple[Any, Any]] = []
        for row in self.answer.rows:
            keys, failed = outcome(lambda: [by(record) for record in row.records])
            # The documents do not say whether the error names the record of the stage or that of the function.
            if not self.fails(one_of([row.origin, *row.records]) if failed else None, failed):
                keyed += zip(keys, row.records)
        if any(outcome(compare, key, key)[1] for key, _ in keyed):
            self.answer.errors.append(Fault("order", None, TypeError))
            return []
        in_order = lambda a, b: (compare(b[0], a[0]) if descending else compare(a[0], b[0])) or (compare(a[1], b[1]) if ties else 0)
        try:
            keyed.sort(key=functools.cmp_to_key(in_order))
        except TypeError:
            raise Open("which of equally great records is the smaller, if they have no order") from None
        return [Row(sum(in_order(other, pair) < 0 for other in keyed), pair[1], [pair[1]]) for pair in keyed]


def is_pair(record: Any) -> bool:
    if isinstance(record, list) and len(record) == 2:
        raise Open("whether a list of two is a pair")
    return isinstance(record, tuple) and len(record) == 2


def is_plain(key: Any) -> bool:
    """Whether the guide gives a key a place in the result of a shuffle."""
    return all(map(is_plain, key)) if type(key) is tuple else type(key) in (type(None), bool, int, float, str, bytes)


def classes(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[list[Any], list[Any]]]:
    """The keys that are one, and their values."""
    found: list[tuple[list[Any], list[Any]]] = []
    for key, value in pairs:
        known = next((known for known in found if same(known[0][0], key)), None)
        if known is None:
            found.append(known := ([], []))
        known[0].append(key)
        known[1].append(value)
    return found


def joined(how: str, key: Any, sides: list[tuple[int, Any]]) -> list[Any]:
    left, right = ([value for side, value in sides if side == wanted] for wanted in (0, 1))
    if how == "anti":
        return [(key, value) for value in left if not right]
    left = left or [None] * (how in ("right", "full"))
    right = right or [None] * (how in ("left", "full"))
    return [(key, (a, b)) for a in left for b in right]
