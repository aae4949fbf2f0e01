"""Tables: records as columns, for Arrow, pandas, Polars and files."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import PlanError
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
    if records and all(isinstance(record, dict) for record in records):
        names = dict.fromkeys(name for record in records for name in record)
        return {str(name): [record.get(name) for record in records] for name in names}
    if records and all(isinstance(record, tuple) and len(record) == 2 for record in records):
        return {"key": [record[0] for record in records], "value": [record[1] for record in records]}
    return {"value": list(records)}


def arrow(run: Run[Any], function: str) -> pyarrow.Table:
    """The records of a job as a table of Arrow. Text and numbers become columns without becoming objects."""
    library("pyarrow", function)
    import pyarrow

    if run.blocks is None:
        return pyarrow.table(columns(list(run.records)))
    from . import _native
    from .engines.machine import decoded

    blocks, found, fits = [], _native.Columns(), True
    for block in run.blocks:
        blocks.append(block)
        fits = fits and found.add(block)
    arrays = found.arrays()
    if not fits or not arrays:
        return pyarrow.table(columns([record for block in blocks for record in decoded(block)]))
    kinds: dict[str, pyarrow.DataType] = {
        "string": pyarrow.string(),
        "large_string": pyarrow.large_string(),
        "int64": pyarrow.int64(),
        "double": pyarrow.float64(),
    }
    names = ["key", "value"] if len(arrays) == 2 else ["value"]
    made = [
        pyarrow.Array.from_buffers(kinds[kind], count, [None, *map(pyarrow.py_buffer, buffers)])
        for kind, count, buffers in arrays
    ]
    return pyarrow.table(made, names=names)


def library(name: str, function: str) -> Any:
    """A library that not everybody needs; an error that says how to install it if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise PlanError(f"{function} needs {name}: pip install {name}") from error


@contextmanager
def complete(path: str | Path) -> Iterator[Path]:
    """A file beside `path`, which takes its place if the block succeeds, and is removed if it does not.

    It is made before the block begins: no job runs for hours only to find that its result cannot be written."""
    path = Path(path)
    # Checked first, because "/" and "." have no file name from which to make a temporary one.
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.touch()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_lines(path: str | Path, lines: Callable[[], Iterable[str]]) -> int:
    """Writes lines; returns their number. Lone surrogates are written as the bytes that they stand for."""
    count = 0
    with complete(path) as aside, open(aside, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        for line in lines():
            file.write(line + "\n")
            count += 1
    return count


def write_csv(path: str | Path, run: Callable[[], Run[Any]]) -> int:
    """Writes CSV with a header; returns the number of rows."""
    with complete(path) as aside, open(aside, "w", encoding="utf-8", newline="") as file:
        records = list(run().records)
        table = columns(records)
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(table)
        rows.writerows(zip(*table.values()))
    return len(records)


def write_parquet(path: str | Path, run: Callable[[], Run[Any]]) -> int:
    """Writes a Parquet file; returns the number of rows."""
    write: Callable[[Any, Path], None] = library("pyarrow.parquet", "write_parquet").write_table
    with complete(path) as aside:
        table = arrow(run(), "write_parquet")
        write(table, aside)
    return int(table.num_rows)
