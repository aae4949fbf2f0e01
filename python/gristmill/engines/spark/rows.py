"""Rows of Arrow: the columns of keys and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow

from ... import _native
from ...plan.orders import is_pair

#: Keys of these types are equal in a `dict` only if they are one key, and nobody can choose very many that have one
#: hash. Numbers are not among them: the hashes of the multiples of 2**61 - 1 are 0, and a dictionary of them takes
#: time with the square of their number.
_PLAIN = frozenset((str, bool, type(None)))
#: The types of a key that is an int.
_INT = _native.encode_key(0)[1]
Batches = Iterator[pyarrow.RecordBatch]
#: The columns of a key; see `encode_key` in crates/python/src/lib.rs.
KEY = ("key", "types", "odd_key")


def pair(record: Any) -> Any:
    """A record that is a key and a value; an error if it is not."""
    if not is_pair(record):
        raise _native.NotAPair(record)
    return record


def coded(slot: Any) -> tuple[bytes, int, bytes]:
    """The columns of a key, as :func:`slot_of` has it."""
    if type(slot) is bytes:
        return slot, _INT, b""
    return slot if type(slot) is tuple else _native.encode_key(slot)


def slot_of(key: Any) -> Any:
    """A key of a `dict` that is different for keys that differ.

    The same key may have several. Bytes are those of an int.
    """
    kind = type(key)
    if kind in _PLAIN:
        return key
    return _native.encode_key(key)[0] if kind is int else _native.encode_key(key)


def are_plain(some: Iterable[Any]) -> bool:
    """Whether :func:`slot_of` is the key itself for all keys."""
    return _PLAIN.issuperset(map(type, some))


def key_rows(keyed: Sequence[tuple[bytes, int, bytes]], **columns: Any) -> pyarrow.RecordBatch:
    key, types, odd = zip(*keyed) if keyed else ((), (), ())
    of_keys = {"key": binary(key), "types": pyarrow.array(types, pyarrow.int32()), "odd_key": binary(odd)}
    return pyarrow.record_batch(of_keys | columns)


def binary(values: Sequence[bytes | None]) -> Any:
    return pyarrow.array(values, pyarrow.binary())


def listed(batch: pyarrow.RecordBatch, column: str) -> list[Any]:
    return batch.column(column).to_pylist()


def column(batches: Batches, column: str) -> Iterator[Any]:
    for batch in batches:
        yield from listed(batch, column)
