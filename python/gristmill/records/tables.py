"""Tables: records as columns, for Arrow, pandas and Polars."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..base.blocks import decoded
from ..base.errors import PlanError
from ..base.libraries import library
from .runs import Run

if TYPE_CHECKING:
    import pyarrow


def columns(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Columns of records: those of dictionaries by name, those of pairs as `key` and `value`, others as `value`.

    >>> columns([("a", 1), ("b", 2)])
    {'key': ['a', 'b'], 'value': [1, 2]}
    >>> columns([{"name": "ann", "age": 31}, {"name": "bob"}])
    {'name': ['ann', 'bob'], 'age': [31, None]}
    """
    return _columns(records, _names(records))


def whole_columns(records: Sequence[Any], function: str) -> dict[str, list[Any]]:
    """The columns of records, of which none is lost.

    Raises :class:`gristmill.PlanError` if columns cannot hold them.
    """
    names = _names(records)
    if names == []:
        raise PlanError(f"{function} needs columns, and all {len(records):,} records are empty dictionaries")
    table = _columns(records, names)
    if names is not None and len(table) < len(names):
        raise PlanError(f"{function}: several names of columns are one as text, in {reprlib.repr(names)}. Rename them first, with map")
    return table


def _names(records: Sequence[Any]) -> list[Any] | None:
    """The names that occur in records, if all are dictionaries."""
    if not records or not all(isinstance(record, dict) for record in records):
        return None
    return list(dict.fromkeys(name for record in records for name in record))


def _columns(records: Sequence[Any], names: list[Any] | None) -> dict[str, list[Any]]:
    if names is not None:
        return {str(name): [record.get(name) for record in records] for name in names}
    if records and all(isinstance(record, tuple) and len(record) == 2 for record in records):
        return {"key": [record[0] for record in records], "value": [record[1] for record in records]}
    return {"value": list(records)}


def arrow(run: Run[Any], function: str) -> pyarrow.Table:
    """The records of a job as a table of Arrow. Text and numbers become columns without becoming objects."""
    library("pyarrow", function)
    import pyarrow

    if run.blocks is None:
        return table_of(whole_columns(list(run.records), function), function)
    from .. import _native

    blocks, found, fits = [], _native.Columns(), True
    for block in run.blocks:
        blocks.append(block)
        fits = fits and found.add(block)
    arrays = found.arrays()
    if not fits or not arrays:
        return table_of(whole_columns([record for block in blocks for record in decoded(block)], function), function)
    names = ["key", "value"] if len(arrays) == 2 else ["value"]
    made = [
        pyarrow.Array.from_buffers(pyarrow.type_for_alias(kind), count, [None, *map(pyarrow.py_buffer, buffers)]) for kind, count, buffers in arrays
    ]
    return pyarrow.table(made, names=names)


def table_of(found: Mapping[str, Sequence[Any]], function: str) -> pyarrow.Table:
    """A table of columns of objects.

    Raises :class:`gristmill.PlanError`, which names the column, for values that no column of Arrow has together.
    """
    import pyarrow

    arrays = {}
    for name, values in found.items():
        try:
            arrays[name] = _array(values)
        except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise PlanError(
                f"{function}: the values of column {name!r} are none of one type of Arrow ({why}). Convert them first, with map"
            ) from error
    return pyarrow.table(arrays)


def _array(values: Sequence[Any]) -> pyarrow.Array[Any]:
    """An array of objects, of a type that loses nothing of them."""
    import pyarrow

    try:
        array: pyarrow.Array[Any] = pyarrow.array(values)
    except OverflowError:
        # pyarrow tries int64 only.
        return pyarrow.array(values, pyarrow.uint64())
    # And microseconds for what pandas has as nanoseconds.
    kind = array.type
    if pyarrow.types.is_timestamp(kind) and any(getattr(value, "nanosecond", 0) for value in values):
        return pyarrow.array(values, pyarrow.timestamp("ns", kind.tz))
    if pyarrow.types.is_duration(kind) and any(getattr(value, "nanoseconds", 0) for value in values):
        return pyarrow.array(values, pyarrow.duration("ns"))
    return array
