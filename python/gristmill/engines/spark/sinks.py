"""Sinks: rows of records, for Spark to take away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow

from ... import _native
from .rows import Batches, binary, key_rows, pair

#: The bytes of a block of records, and the records that are held besides the greatest.
_BLOCK_BYTES, _FEW = 1 << 20, 1024


class Sink(Protocol):
    """Makes rows of records. `add` raises what is wrong with records, and then has taken none of them."""

    #: The columns of the rows.
    @property
    def schema(self) -> str: ...

    def add(self, records: Sequence[Any]) -> Batches: ...

    def end(self) -> Batches:
        """Yields the rows that are left."""
        return iter(())


class ToBlocks:
    """Records as blocks, for the program or several stages."""

    schema = "block binary, n bigint"

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.records = self.size = 0

    def add(self, records: Sequence[Any]) -> Batches:
        added = b"".join(map(_native.encode_value, records))
        self.parts.append(added)
        self.size += len(added)
        self.records += len(records)
        if self.size >= _BLOCK_BYTES:
            yield from self.end()

    def end(self) -> Batches:
        if self.records:
            yield pyarrow.record_batch({"block": binary([b"".join(self.parts)]), "n": pyarrow.array([self.records])})
        self.__init__()  # type: ignore[misc]


class ToPairs(Sink):
    """A row for each pair of a key and a value."""

    schema = "key binary, types int, odd_key binary, value binary"

    def add(self, records: Sequence[Any]) -> Batches:
        keyed = [_native.encode_key(pair(record)[0]) for record in records]
        values = [_native.encode_value(value) for _, value in records]
        yield key_rows(keyed, value=binary(values))


class ToSorted(Sink):
    """A row for each pair of a key, by whose order records are sorted, and a record."""

    schema = "key binary, value binary"

    def __init__(self, descending: bool) -> None:
        self.descending = descending

    def add(self, records: Sequence[Any]) -> Batches:
        keys = [_native.encode_sorted(key, self.descending) for key, _ in records]
        values = [_native.encode_value(record) for _, record in records]
        yield pyarrow.record_batch({"key": binary(keys), "value": binary(values)})


class ToTop:
    """A row for each of the greatest records; of equal ones the smaller come first."""

    schema = ToSorted.schema

    def __init__(self, count: int) -> None:
        self.count = count
        self.best: list[tuple[bytes, bytes]] = []

    def add(self, records: Sequence[Any]) -> Batches:
        self.best += [(_rank(key, record), _native.encode_value(record)) for key, record in records]
        if len(self.best) > max(2 * self.count, _FEW):
            self._cut()
        return iter(())

    def end(self) -> Batches:
        self._cut()
        yield pyarrow.record_batch({"key": binary([k for k, _ in self.best]), "value": binary([v for _, v in self.best])})

    def _cut(self) -> None:
        self.best.sort()
        del self.best[self.count :]


def _rank(key: Any, record: Any) -> bytes:
    """Bytes whose order is that of the greatest records."""
    rank = _native.encode_sorted(key, True)
    try:
        return rank + _native.encode_sorted(record, False)
    except _native.NoOrder:
        return rank + b"\xff"
