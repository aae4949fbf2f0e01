"""Tables: records as columns, for Arrow, pandas and Polars."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..base.blocks import decoded
from ..base.errors import PlanError
from ..base.libraries import library
from .runs import Run

if TYPE_CHECKING:
    import pandas
    import pyarrow


#: The greatest number that every float below it can count.
_EXACT_MAX = 1 << 53


def columns(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Columns of records: those of dictionaries by name, those of pairs as `key` and `value`, others as `value`.

    >>> columns([("a", 1), ("b", 2)])
    {'key': ['a', 'b'], 'value': [1, 2]}
    >>> columns([{"name": "ann", "age": 31}, {"name": "bob"}])
    {'name': ['ann', 'bob'], 'age': [31, None]}
    """
    return _columns(records, _names(records))


def whole_columns(records: Sequence[Any], pairs: bool, function: str) -> dict[str, list[Any]]:
    """The columns of records, of which none is lost. Without records they are those of `pairs`, or of other values.

    Raises :class:`gristmill.PlanError` if columns cannot hold them.
    """
    if pairs and not records:
        return {"key": [], "value": []}
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
        return table_of(whole_columns(list(run.records), run.pairs, function), function)
    from .. import _native

    blocks, found, fits = [], _native.Columns(), True
    for block in run.blocks:
        blocks.append(block)
        fits = fits and found.add(block)
    arrays = found.arrays()
    if not fits or not arrays:
        return table_of(whole_columns([record for block in blocks for record in decoded(block)], run.pairs, function), function)
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
            arrays[name] = _array(_structured(values))
        except (pyarrow.ArrowException, ArithmeticError, TypeError, ValueError) as error:
            raise _mixed(function, name, "Arrow", error) from error
    return pyarrow.table(arrays)


def _mixed(function: str, name: str, library: str, error: Exception) -> PlanError:
    why = str(error).partition("\n")[0]
    return PlanError(f"{function}: the values of column {name!r} are none of one type of {library} ({why}). Convert them first, with map")


def pandas_frame(run: Run[Any]) -> pandas.DataFrame:
    """A data frame of pandas, in which no whole number is rounded."""
    made = library("pandas", "to_pandas")
    found: dict[str, Any] = dict(whole_columns(list(run.records), run.pairs, "to_pandas"))
    for name, values in found.items():
        kinds = set(map(type, values))
        # These would be floats.
        if int in kinds and kinds & {float, NoneType} and any(isinstance(value, int) and abs(value) > _EXACT_MAX for value in values):
            found[name] = made.Series(values, dtype=object)
    frame: pandas.DataFrame = made.DataFrame(found)
    return frame


def polars_frame(run: Run[Any]) -> Any:
    """A data frame of Polars.

    Raises :class:`gristmill.PlanError`, which names the column, for values that it would change.
    """
    polars = library("polars", "to_polars")
    found = whole_columns(list(run.records), run.pairs, "to_polars")
    return polars.DataFrame([_series(polars, name, _structured(values)) for name, values in found.items()])


def _series(polars: Any, name: str, values: Sequence[Any]) -> Any:
    """A column of values, which are all of one type or equal as one."""
    kinds = set(map(type, values)) - {NoneType}
    is_plain = len(kinds) == 1 and not kinds & {tuple, list, dict}
    try:
        series = polars.Series(name, values, strict=is_plain)
        if not is_plain and not all(map(_same, series.to_list(), values)):
            raise TypeError(f"there are {' and '.join(sorted(kind.__name__ for kind in kinds))}" if len(kinds) > 1 else "their items differ in type")
    except (polars.exceptions.PolarsError, ArithmeticError, TypeError, ValueError) as error:
        raise _mixed("to_polars", name, "Polars", error) from error
    return series


def _same(found: Any, value: Any) -> bool:
    """Whether a column has a value as it was, but for the type of a number."""
    if isinstance(value, (tuple, list)):
        return isinstance(found, list) and len(found) == len(value) and all(map(_same, found, value))
    if isinstance(value, dict):
        # It has all fields of the column.
        return isinstance(found, dict) and all(_same(item, value.get(name)) for name, item in found.items())
    return bool(found == value or (found != found and value != value))


def _structured(values: Sequence[Any]) -> Sequence[Any]:
    """Tuples of one length whose items differ in type, as dictionaries of their items: a list of Arrow has one type."""
    first = next((value for value in values if value is not None), None)
    if not isinstance(first, tuple) or not first:
        return values
    if not all(value is None or (isinstance(value, tuple) and len(value) == len(first)) for value in values):
        return values
    if len({type(item) for value in values if value is not None for item in _leaves(value)} - {NoneType}) < 2:
        return values
    items = [_structured([None if value is None else value[at] for value in values]) for at in range(len(first))]
    names = [str(at) for at in range(len(first))]
    return [None if value is None else dict(zip(names, row)) for value, row in zip(values, zip(*items))]


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


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
