"""Formats of files, read in plain Python: each record with its place."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, cast

from .errors import InputError, PlanError
from .plan import Source

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Place:
    """Where a record is: its file, its line from 1, and its first byte. The bytes of a compressed file are those of its content."""

    file: str | None = None
    line: int | None = None
    byte: int | None = None

    def __str__(self) -> str:
        parts = [self.file, f"line {self.line}" if self.line else None, f"byte {self.byte}" if self.byte is not None else None]
        return ", ".join(part for part in parts if part)

    def before(self, text: str) -> str:
        """An error of the input, with this place unless it names that itself."""
        return text if self.file is None or self.file in text else f"{self}: {text}"


NOWHERE = Place()
#: Of the tables that Parquet files are read as: about so many bytes, and at most so many rows.
_TABLE_BYTES, _TABLE_ROWS = 32 << 20, 1 << 19
#: Rows that become objects together.
_ROWS = 4096
#: The bytes of one read of a Parquet file, and of a file whose lines are not wanted one by one.
_BLOCK_BYTES = 1 << 20
Placed = tuple[Any, Place]
#: Takes what is no record of the format, with its place and the error. It raises, or the record is left out.
Refuse = Callable[[Any, Place, Exception], None]


def read(source: Source, refuse: Refuse) -> Iterator[Placed]:
    """The records of a source."""
    match source.kind:
        case "iterable" | "range":
            yield from ((record, NOWHERE) for record in source.data)
        case "text":
            for path in source.data:
                yield from _text(path, source.options.get("errors", "strict"), refuse)
        case "bytes":
            for path in source.data:
                yield from _lines(path)
        case "files":
            yield from ((_whole(path), Place(path)) for path in source.data)
        case "csv":
            for path in source.data:
                yield from _csv(path, source.options.get("delimiter", ","), refuse)
        case "jsonl":
            for path in source.data:
                yield from _jsonl(path, refuse)
        case "parquet":
            for path in source.data:
                yield from _parquet(path, source.options.get("columns"))


def _open(path: str) -> io.BufferedIOBase:
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def _unreadable(path: str, error: Exception) -> InputError:
    return InputError(f"cannot read {path}: {error}")


def _whole(path: str) -> tuple[str, bytes]:
    try:
        with _open(path) as file:
            return path, file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def _lines(path: str) -> Iterator[tuple[bytes, Place]]:
    """Lines without their ends, which are LF or CR LF."""
    byte = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
                yield line[: len(line) - end], Place(path, number, byte)
                byte += len(line)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


def line_blocks(path: str, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in a part of a file, many at a time, and where the first of them begins."""
    try:
        with open(path, "rb") as file:
            if start:
                # A line that began before ends here.
                file.seek(start - 1)
                file.readline()
            while (at := file.tell()) < stop and (block := file.read(min(_BLOCK_BYTES, stop - at))):
                yield at, block if block.endswith(b"\n") else block + file.readline()
    except OSError as error:
        raise _unreadable(path, error) from error


def _text(path: str, errors: str, refuse: Refuse) -> Iterator[Placed]:
    for line, place in _lines(path):
        try:
            record = line.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            at = Place(path, place.line, (place.byte or 0) + error.start)
            refuse(line, at, InputError(f"{at}: this is not UTF-8"))
            continue
        yield record, place


def _jsonl(path: str, refuse: Refuse) -> Iterator[Placed]:
    for line, place in _lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            refuse(line, place, InputError(f"{place}: this is not JSON: {error}"))
            continue
        yield record, place


def _csv(path: str, delimiter: str, refuse: Refuse) -> Iterator[Placed]:
    try:
        with _open(path) as file:
            rows = csv.reader(io.TextIOWrapper(cast("IO[bytes]", file), "utf-8-sig", newline=""), delimiter=delimiter, strict=True)
            names = next(rows, [])
            line = rows.line_num + 1
            for row in rows:
                place, line = Place(path, line), rows.line_num + 1
                if len(row) == len(names):
                    yield dict(zip(names, row)), place
                elif row:
                    fields = f"this row has {len(row)} fields, and the header has {len(names)}"
                    refuse(row, place, InputError(f"{place}: {fields}"))
    except csv.Error as error:
        raise InputError(f"{path}, line {rows.line_num}: this is not CSV: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, in line {rows.line_num + 1} or behind it: this is not UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from error


@dataclass(frozen=True)
class Share:
    """One of several equal shares of the row groups of a Parquet file."""

    path: str
    number: int
    of: int


def _parquet(share: str | Share, columns: list[str] | None) -> Iterator[Placed]:
    place = Place(share.path if isinstance(share, Share) else share)
    for table in parquet_tables(share, columns):
        for start in range(0, table.num_rows, _ROWS):
            yield from ((record, place) for record in table.slice(start, _ROWS).to_pylist())


def parquet_tables(share: str | Share, columns: list[str] | None) -> Iterator[pyarrow.Table]:
    """The rows of a file, or of a share of it, in tables that are not large."""
    try:
        from pyarrow import ArrowException, Table, parquet
    except ImportError as error:
        raise PlanError("read_parquet needs pyarrow: pip install 'gristmill[arrow]'") from error
    share = share if isinstance(share, Share) else Share(share, 0, 1)
    try:
        # Buffered, because otherwise a whole row group would be in memory.
        with parquet.ParquetFile(share.path, buffer_size=_BLOCK_BYTES) as file:
            groups = file.num_row_groups
            for group in range(groups * share.number // share.of, groups * (share.number + 1) // share.of):
                size = file.metadata.row_group(group)
                rows = max(1, size.num_rows * _TABLE_BYTES // max(1, size.total_byte_size))
                batches = file.iter_batches(min(rows, _TABLE_ROWS), [group], columns, use_threads=False)
                yield from (Table.from_batches([batch]) for batch in batches)
    except (OSError, ArrowException) as error:
        raise _unreadable(share.path, error) from error


def check_errors(errors: str) -> None:
    """Fails on a name that is no handler of decoding errors."""
    try:
        codecs.lookup_error(errors)
    except LookupError as error:
        raise PlanError(f"errors={errors!r}: use strict, replace, ignore or surrogateescape") from error
