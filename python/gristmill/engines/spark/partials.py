"""Partial results, combined before data moves: each task sends one row for a key, not one for each record.

Spark adds up and compares the numbers of these rows itself, wherever it gives the same answer as Python: counts; whole numbers of 64
bits, whose halves are added up apart, so that no sum overflows; floats. What is of another type, or larger, is *odd*: it travels in a
row of its own as bytes, and Python has the last word.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow

from ... import _native
from ...base.keys.values import ValueKey, whole
from ...plan.reducers import Reducer
from .report import GroupFailed
from .rows import Batches, are_plain, coded, key_rows, pair, slot_of

#: Keys that a task holds at most before it sends rows.
_KEYS = 1 << 18
_INT = range(-(2**63), 2**63)
_LOW = 0xFFFF_FFFF
#: No value at all.
_NOTHING: Any = object()


class ToCounts:
    """A row for each key: how often it occurs. Keys are records, or those of pairs."""

    schema = "key binary, types int, odd_key binary, n bigint"

    def __init__(self, of_pairs: bool) -> None:
        self.of_pairs = of_pairs
        self.counts: Counter[Any] = Counter()

    def add(self, records: Sequence[Any]) -> Batches:
        keys = [pair(record)[0] for record in records] if self.of_pairs else records
        self.counts.update(keys if are_plain(keys) else list(map(slot_of, keys)))
        if len(self.counts) > _KEYS:
            yield from self.end()

    def end(self) -> Batches:
        counts, self.counts = self.counts, Counter()
        for some in _batched(counts.items()):
            yield key_rows([coded(slot) for slot, _ in some], n=pyarrow.array([n for _, n in some], pyarrow.int64()))


class _ToPartials:
    """Rows for each key: what has become of its values so far, a *partial*."""

    def __init__(self) -> None:
        self.partials: dict[Any, Any] = {}

    def add(self, records: Sequence[Any]) -> Batches:
        pairs = [(slot_of(pair(record)[0]), record[1]) for record in records]
        partials, take = self.partials, self.take
        for slot, value in pairs:
            before = partials.get(slot, _NOTHING)
            try:
                partials[slot] = take(before, value)
            except Exception as error:
                raise GroupFailed(error, _key(slot), [before, value]) from error
        if len(partials) > _KEYS:
            yield from self.end()

    def end(self) -> Batches:
        partials, self.partials = self.partials, {}
        for some in _batched(partials.items()):
            keyed, rows = [], []
            for slot, partial in some:
                try:
                    made = self.rows_of(partial)
                except Exception as error:
                    raise GroupFailed(error, _key(slot), [partial]) from error
                rows += made
                keyed += [coded(slot)] * len(made)
            columns = list(zip(*rows))
            yield key_rows(keyed, **{name: pyarrow.array(column, kind) for (name, kind), column in zip(self.columns, columns)})

    columns: Sequence[tuple[str, pyarrow.DataType]]

    def take(self, partial: Any, value: Any) -> Any:
        """A partial with one value more."""
        raise NotImplementedError

    def rows_of(self, partial: Any) -> list[tuple[Any, ...]]:
        """The columns of the rows that stand for a partial."""
        raise NotImplementedError


class ToReduced(_ToPartials):
    """Partials that a function of two values makes."""

    schema = "key binary, types int, odd_key binary, value binary"
    columns = [("value", pyarrow.binary())]

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def take(self, partial: Any, value: Any) -> Any:
        return value if partial is _NOTHING else self.function(partial, value)

    def rows_of(self, partial: Any) -> list[tuple[Any, ...]]:
        return [(_native.encode_value(partial),)]


def first(one: Any, other: Any) -> Any:
    """A function of two values that keeps the first one."""
    return one


class ToTops(_ToPartials):
    """Lists of the greatest values, or of all if they have no order."""

    schema = ToReduced.schema
    columns = ToReduced.columns

    def __init__(self, reducer: Reducer) -> None:
        super().__init__()
        self.reducer = reducer

    def take(self, partial: Any, value: Any) -> Any:
        if partial is _NOTHING:
            return [value]
        partial.append(value)
        if len(partial) > 2 * self.reducer.k + 64:
            with suppress(Exception):
                partial[:] = heapq.nlargest(self.reducer.k, partial, ValueKey)
        return partial

    def rows_of(self, partial: Any) -> list[tuple[Any, ...]]:
        return [(b"".join(map(_native.encode_value, partial)),)]


@dataclass
class _Sum:
    count: int = 0
    ints: int = 0
    floats: float | None = None
    #: Sums of other values, with the number of values in each.
    odds: list[tuple[Any, int]] = field(default_factory=list)


class ToSums(_ToPartials):
    """Numbers and sums of values."""

    schema = "key binary, types int, odd_key binary, odd binary, times bigint, n bigint, low bigint, high bigint, real double"
    columns = [("odd", pyarrow.binary()), *((name, pyarrow.int64()) for name in ("times", "n", "low", "high")), ("real", pyarrow.float64())]

    def take(self, partial: Any, value: Any) -> Any:
        if partial is _NOTHING:
            partial = _Sum()
        value = whole(value)
        kind = type(value)
        if kind is int:
            partial.count += 1
            partial.ints += value
        elif kind is float:
            partial.count += 1
            partial.floats = value if partial.floats is None else partial.floats + value
        else:
            try:
                sum_, count = partial.odds[0]
                partial.odds[0] = sum_ + value, count + 1
            except Exception:
                # There is none yet, or what is wrong is found when all values are together.
                partial.odds.append((value, 1))
        return partial

    def rows_of(self, partial: Any) -> list[tuple[Any, ...]]:
        odds = [(_native.encode_value(value), 1, count, 0, 0, None) for value, count in partial.odds]
        if not partial.count:
            return odds
        ints = partial.ints
        if ints not in _INT:
            odds.append((_native.encode_value(ints), 1, 0, 0, 0, None))
            ints = 0
        return [(None, 0, partial.count, ints & _LOW, ints >> 32, partial.floats), *odds]


class Total(list[Any]):
    """Values whose sum is that of all values of a key, and the number of these."""

    number: int


def totals(rows: Iterator[tuple[Any, ...]]) -> Total:
    """Returns the values for which the rows of a key stand, as :class:`ToSums` made them and Spark added them up."""
    total, count, ints, floats = Total(), 0, 0, None
    for odd, times, n, low, high, some in rows:
        count += n
        ints += (high << 32) + low
        if odd is not None:
            total += _native.decode(odd) * times
        if some is not None:
            floats = some if floats is None else floats + some
    total.insert(0, ints)
    if floats is not None:
        total.insert(1, floats)
    total.number = count
    return total


def mean(key: Any, values: Any) -> list[tuple[Any, Any]]:
    """The mean of values of which :func:`totals` knows the sum."""
    return [(key, sum(values) / values.number)]


class ToExtremes(_ToPartials):
    """The least or the greatest values."""

    schema = "key binary, types int, odd_key binary, odd binary, whole bigint, real double"
    columns = [("odd", pyarrow.binary()), ("whole", pyarrow.int64()), ("real", pyarrow.float64())]

    def __init__(self, reducer: Reducer) -> None:
        super().__init__()
        self.reducer = reducer

    def take(self, partial: Any, value: Any) -> Any:
        if partial is _NOTHING:
            return [value]
        best = partial[0]
        if type(value) in _NUMBERS and type(best) in _NUMBERS and value == value and best == best:
            partial[0] = min(best, value) if self.reducer.name == "min" else max(best, value)
            return partial
        try:
            partial[0] = self.reducer.of([best, value])
        except Exception:
            # What is wrong is found when all values are together.
            partial.append(value)
        return partial

    def rows_of(self, partial: Any) -> list[tuple[Any, ...]]:
        return [self._row(value) for value in partial]

    def _row(self, value: Any) -> tuple[Any, ...]:
        if type(value) is int and value in _INT:
            return None, value, None
        if type(value) is float:
            return None, None, value
        return _native.encode_value(value), None, None


_NUMBERS = (int, float)


def extremes(rows: Iterator[tuple[Any, ...]]) -> list[Any]:
    """Returns the values for which the rows of a key stand, of :class:`ToExtremes` and compared by Spark."""
    values: list[Any] = []
    for odd, *numbers in rows:
        values += [number for number in numbers if number is not None]
        if odd is not None:
            values += _native.decode(odd)
    return values


def _key(slot: Any) -> Any:
    return _native.decode_key(*coded(slot))


def _batched(items: Any) -> Iterator[list[Any]]:
    iterator = iter(items)
    while some := list(itertools.islice(iterator, 1 << 16)):
        yield some
