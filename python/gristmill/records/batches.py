"""Batches: many records as columns, for functions of tables and arrays, and for the native engine."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ..base.errors import InputError
from ..base.known_as import known_as
from ..base.printable import printable
from .tables import columns, table_of

if TYPE_CHECKING:
    import pyarrow

known_as(__name__, "gristmill.batches")

#: Rows that become objects together.
_ROWS = 4096

Format = Literal["list", "arrow", "numpy"]
#: A field of a record, or several of them.
Field = Any


class Pluck:
    """A function that takes fields out of a record; see :meth:`gristmill.Dataset.pluck`."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields

    def __call__(self, record: Any) -> Any:
        fields = self.fields
        return _field(fields[0] if len(fields) == 1 else fields, record)

    def __str__(self) -> str:
        return f"pluck({', '.join(map(repr, self.fields))})"

    def names(self) -> set[Any]:
        """The fields, without the structure of what is made of them."""
        return set(_names(self.fields))

    def of_rows(self, names: list[str]) -> Callable[[list[Any]], Any]:
        """The same function of a record that is a list, whose items have these names."""
        return _of_rows(self.fields[0] if len(self.fields) == 1 else self.fields, names)


def _of_rows(field: Field, names: list[str]) -> Callable[[list[Any]], Any]:
    if not isinstance(field, tuple):
        return operator.itemgetter(names.index(field))
    if len(field) > 1 and not any(isinstance(part, tuple) for part in field):
        return operator.itemgetter(*map(names.index, field))
    parts = [_of_rows(part, names) for part in field]
    return lambda row: tuple(part(row) for part in parts)


def _field(field: Field, record: Any) -> Any:
    return tuple(_field(part, record) for part in field) if isinstance(field, tuple) else record[field]


def _names(field: Field) -> Iterator[Any]:
    if isinstance(field, tuple):
        for part in field:
            yield from _names(part)
    else:
        yield field


@dataclass(frozen=True)
class Batch:
    """The rows of a table as records: dictionaries, or the fields that are plucked from them."""

    table: pyarrow.Table
    pluck: Pluck | None = None
    #: The file of the rows, if a file has them.
    file: str | None = None

    def __iter__(self) -> Iterator[Any]:
        """Makes the records; raises :class:`gristmill.InputError` for a value that Python cannot have."""
        for start in range(0, self.table.num_rows, _ROWS):
            # A table without columns has as many rows as a slice asks for.
            part = self.table.slice(start, min(_ROWS, self.table.num_rows - start))
            try:
                rows = _whole(part).to_pylist()
            except (ArithmeticError, ValueError) as error:
                self._refuse(part, error)
            yield from rows if self.pluck is None else map(self.pluck, rows)

    def _refuse(self, part: pyarrow.Table, error: Exception) -> NoReturn:
        """Raises an error that names the column whose values failed to become objects."""
        for number, name in enumerate(part.column_names):
            try:
                _whole(part.select([number])).to_pylist()
            except (ArithmeticError, ValueError):
                where = f"{printable(self.file)}, " if self.file else ""
                advice = "leave the column out with pluck, or convert it with map_batches(..., format='arrow')"
                raise InputError(f"{where}column {name!r}: a {part.column(number).type} has no object in Python ({error}): {advice}") from error
        raise error

    def plucked(self, pluck: Pluck) -> Iterable[Any]:
        """The fields of the records, still in columns if they are columns."""
        names = self.table.column_names
        if not pluck.fields:
            return Batch(self.table.select([]), pluck, self.file)
        if self.pluck is None and pluck.names() <= set(names) and len(set(names)) == len(names):
            return Batch(self.table.select(sorted(pluck.names())), pluck, self.file)
        return map(pluck, self)

    def native(self) -> Any:
        """The records as the native engine reads them; `None` if a column is neither numbers, bools, text nor bytes."""
        from .. import _native

        if self.pluck is None or (arrays := _arrays(self.table)) is None:
            return None
        fields = self.pluck.fields
        return _native.Batch(self.table.num_rows, _structure(fields[0] if len(fields) == 1 else fields, arrays))


def _whole(table: pyarrow.Table) -> pyarrow.Table:
    """The same rows. Raises an error for times of day that Python would cut to microseconds."""
    import pyarrow

    for number, column in enumerate(table.columns):
        if column.type == pyarrow.time64("ns"):
            table = table.set_column(number, table.field(number).name, column.cast(pyarrow.time64("us")))
    return table


#: A column as the native engine reads it: its type, a byte for each row that is 0 where there is no value, and buffers.
_Array = tuple[str, bytes | None, list[bytes]]


def _structure(field: Field, arrays: Mapping[str, _Array]) -> Any:
    return [_structure(part, arrays) for part in field] if isinstance(field, tuple) else arrays[field]


def _arrays(table: pyarrow.Table) -> dict[str, _Array] | None:
    import pyarrow

    found = {}
    for name, column in zip(table.column_names, table.columns):
        kind = _kind(column.type)
        if kind is None:
            return None
        # `pyarrow.array` imports pandas if it is there: a third of a second for each worker of each job.
        chunks = (column if column.type == kind else column.cast(kind)).chunks
        array = chunks[0] if len(chunks) == 1 else pyarrow.concat_arrays([*chunks, pyarrow.array([], kind)])
        count, start = len(array), array.offset
        valid = bytes(_of(array.is_valid().cast(pyarrow.uint8()), 1)) if array.null_count else None
        if kind == pyarrow.large_string() or kind == pyarrow.large_binary():
            offsets = _buffer(array, 1)[start * 8 : (start + count + 1) * 8]
            first, last = (int.from_bytes(offset, "little") for offset in (offsets[:8], offsets[-8:]))
            content = [bytes(offsets), bytes(_buffer(array, 2)[first:last])]
            found[name] = ("string" if kind == pyarrow.large_string() else "binary", valid, content)
        elif kind == pyarrow.uint8():
            found[name] = ("bool", valid, [bytes(_of(array, 1))])
        else:
            found[name] = (str(kind), valid, [bytes(_of(array, 8))])
    return found


def _kind(of: pyarrow.DataType) -> pyarrow.DataType | None:
    """The type in which the native engine gets a column."""
    from pyarrow import float64, int64, large_binary, large_string, types, uint8

    if types.is_dictionary(of):
        of = of.value_type
    if types.is_integer(of) and not types.is_uint64(of):
        return int64()
    if types.is_floating(of):
        return float64()
    if types.is_boolean(of):
        return uint8()
    if types.is_string(of) or types.is_large_string(of):
        return large_string()
    if types.is_binary(of) or types.is_large_binary(of):
        return large_binary()
    return None


def _of(array: pyarrow.Array[Any], width: int) -> memoryview:
    """The values of an array of numbers."""
    return _buffer(array, 1)[array.offset * width : (array.offset + len(array)) * width]


def _buffer(array: pyarrow.Array[Any], number: int) -> memoryview:
    buffer: Any = array.buffers()[number]
    return memoryview(b"" if buffer is None else buffer)


class OnTables:
    """Calls a function of many records with a table of Arrow, or with arrays of NumPy by name."""

    def __init__(self, function: Callable[[Any], Any], format: Format) -> None:
        self.function, self.format = function, format

    def __str__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))

    def __call__(self, records: Iterable[Any]) -> Iterable[Any]:

        if isinstance(records, Batch) and records.pluck is None:
            table = records.table
        elif given := list(records):
            table = table_of(columns(given), "map_batches")
        else:
            return []
        if self.format == "arrow":
            return _records(self.function(table))
        arrays = {name: _decoded(column).to_numpy() for name, column in zip(table.column_names, table.columns)}
        return _records(self.function(arrays))


def _decoded(column: pyarrow.ChunkedArray[Any]) -> pyarrow.ChunkedArray[Any]:
    """A dictionary-encoded column as plain values: `to_numpy` replaces its nulls by the last item of the dictionary."""
    import pyarrow

    return column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type) else column


def _records(made: Any) -> Iterable[Any]:
    """Returns the records that a function gave: the rows of a table, or the items of an array or any iterable.

    Data frames of pandas and Polars are tables, too.
    """
    import pyarrow

    if isinstance(made, pyarrow.RecordBatch):
        made = pyarrow.Table.from_batches([made])
    if isinstance(made, Mapping):
        made = pyarrow.table(dict(made))
    if hasattr(made, "columns") and hasattr(made, "__arrow_c_stream__"):
        made = pyarrow.table(made)
    if isinstance(made, pyarrow.Table):
        return Batch(made)
    if isinstance(made, (pyarrow.Array, pyarrow.ChunkedArray)):
        made = made.to_pylist()
    if hasattr(made, "__array_interface__"):
        if made.ndim != 1:
            raise ValueError(f"an array of {made.ndim} dimensions is not a list of records")
        made = made.tolist()
    found: Iterable[Any] = made
    records = found if isinstance(found, list) else iter(found)
    first = list(itertools.islice(records, 1))
    if first and isinstance(first[0], (pyarrow.Table, pyarrow.RecordBatch)):
        raise ValueError("a table is no record. Return one table, such as pyarrow.concat_tables(tables)")
    return records if isinstance(records, list) else itertools.chain(first, records)


class OnArrays:
    """Calls a function with a key and an array of NumPy that has its values."""

    def __init__(self, function: Callable[[Any, Any], Iterable[Any]]) -> None:
        self.function = function

    def __str__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))

    def __call__(self, key: Any, values: Any) -> Iterable[Any]:
        import numpy

        return self.function(key, numpy.asarray(values))


def natively(outputs: Iterable[Any]) -> Iterable[Any]:
    """Records for the native engine: a batch as one, if its columns can be read."""
    if isinstance(outputs, Batch) and (native := outputs.native()) is not None:
        return [native]
    return outputs
