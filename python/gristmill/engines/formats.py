"""Formats of files, read in plain Python: each record with its place."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, NoReturn, cast

from ..base.errors import InputError, PlanError
from ..base.files.compression import Damaged, unpacked
from ..base.printable import printable
from ..plan.describe import counted
from ..plan.nodes import Source
from ..records.batches import Batch


class Place(NamedTuple):
    """Where a record is: its file, its line from 1, and its first byte.

    The bytes of a compressed file are those of its content.
    """

    file: str | None = None
    line: int | None = None
    byte: int | None = None

    def __str__(self) -> str:
        name = printable(self.file) if self.file else None
        parts = [name, f"line {self.line}" if self.line else None, f"byte {self.byte}" if self.byte is not None else None]
        return ", ".join(part for part in parts if part)

    def before(self, text: str) -> str:
        """An error of the input, with this place unless it names that itself."""
        return text if self.file is None or printable(self.file) in text else f"{self}: {text}"


NOWHERE = Place()
#: The size of the tables that Parquet files are read as: bytes, roughly, and at most this number of rows.
_TABLE_BYTES, _TABLE_ROWS = 32 << 20, 1 << 19
#: A Parquet file has a share for each so many bytes.
_SHARE_BYTES = 8 << 20
#: The bytes of one read of a Parquet file, and of a file whose lines are not wanted one by one.
_BLOCK_BYTES = 1 << 20
Placed = tuple[Any, Place]
#: Takes what is no record of the format, with its place and the error. It raises, or the record is left out.
Refuse = Callable[[Any, Place, Exception], None]


def read(source: Source, refuse: Refuse, fields: Set[Any] | None = None) -> Iterator[Placed]:
    """The records of a source; of tables only some fields, if no others are needed."""
    options = source.options
    readers: dict[str, Callable[[str], Iterable[Placed]]] = {
        "text": lambda path: _text(path, options.get("errors", "strict"), refuse),
        "bytes": _lines,
        "files": lambda path: [(_whole(path), Place(path))],
        "csv": lambda path: csv_rows(path, options, refuse),
        "jsonl": lambda path: _jsonl(path, refuse),
        "parquet": lambda path: _parquet(path, options.get("columns"), fields),
    }
    if source.kind not in readers:
        return ((record, NOWHERE) for record in source.data)
    return itertools.chain.from_iterable(map(readers[source.kind], source.data))


def unreadable(path: str, error: Exception) -> InputError:
    after = f" after byte {error.content_bytes} of its content" if isinstance(error, Damaged) and error.content_bytes else ""
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InputError(f"cannot read {printable(path)}{after}: {why}")


def _whole(path: str) -> tuple[str, bytes]:
    try:
        with unpacked(path) as file:
            return path, file.read()
    except (OSError, Damaged) as error:
        raise unreadable(path, error) from error


def _lines(path: str) -> Iterator[tuple[bytes, Place]]:
    """Lines without their ends, which are LF or CR LF."""
    byte = 0
    try:
        with unpacked(path) as file:
            for number, line in enumerate(file, 1):
                end = 2 if line.endswith(b"\r\n") else 1 if line.endswith(b"\n") else 0
                yield line[: len(line) - end], Place(path, number, byte)
                byte += len(line)
    except (OSError, Damaged) as error:
        raise unreadable(path, error) from error


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
        raise unreadable(path, error) from error


def _text(path: str, errors: str, refuse: Refuse) -> Iterator[Placed]:
    for line, place in _lines(path):
        try:
            record = line.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            at = Place(path, place.line, (place.byte or 0) + error.start)
            refuse(line, place, InputError(f"{at}: this is not UTF-8"))
            continue
        yield record, place


# JSON.


def _jsonl(path: str, refuse: Refuse) -> Iterator[Placed]:
    for line, place in _lines(path):
        try:
            values = json_values(line)
        except InputError as error:
            refuse(line, place, InputError(f"{place}: {error}"))
            continue
        yield from ((value, place) for value in values)


def json_values(line: bytes) -> list[Any]:
    """The JSON value of a line, if there is one. Raises :class:`gristmill.InputError`.

    The rules are those of RFC 8259 and of the command: NaN and Infinity are no numbers, and the encoding is UTF-8. Values may be nested up to
    a limit, beyond which they could be read and not sent to another process.
    """
    if not line.strip():
        return []
    try:
        # A byte order mark may begin a file, and so a line inside of files that were put together.
        text = line.decode("utf-8-sig")
        if len(line) > _DEEPEST and _is_deep(line):
            raise RecursionError
        return [_JSON.decode(text)] if text.strip(_BLANK) else []
    except UnicodeDecodeError as error:
        raise InputError(f"this is not UTF-8, from byte {error.start} of the line on") from error
    except json.JSONDecodeError as error:
        raise InputError(f"this is not JSON: {error.msg} (character {error.pos + 1} of the line)") from error
    except ValueError as error:
        # More digits than Python turns into a number.
        raise InputError(f"this JSON cannot be read: {error}") from error
    except RecursionError as error:
        raise InputError(f"this JSON cannot be read: its values are nested deeper than {_DEEPEST}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON. Write null instead")


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)
_DEEPEST = 500
_BLANK = " \t\r\n\v\f"
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _is_deep(line: bytes) -> bool:
    """Whether brackets are nested deeper than the limit."""
    brackets = line.translate(None, _NO_BRACKETS)
    for _ in range(16):
        if len(brackets) <= _DEEPEST:
            return False
        # The innermost level, which is most of what there is.
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    depth = 0
    for found in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', line):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if depth > _DEEPEST:
            return True
    return False


# CSV.


def csv_rows(path: str, options: Mapping[str, Any], refuse: Refuse) -> Iterator[Placed]:
    """The rows of a CSV file below its header, as dictionaries."""
    csv.field_size_limit(options.get("field_characters_max", csv.field_size_limit()))
    begins = 1
    try:
        with unpacked(path) as file:
            text = io.TextIOWrapper(cast("IO[bytes]", file), "utf-8-sig", options.get("errors", "strict"), newline="")
            rows = csv.reader(text, delimiter=options.get("delimiter", ","), strict=True)
            # Lines above it may be empty.
            names = numbered(path, next(filter(None, rows), []), options.get("duplicate_names"))
            begins = rows.line_num + 1
            for row in rows:
                place, begins = Place(path, begins), rows.line_num + 1
                yield from placed_row(names, row, place, refuse)
    except csv.Error as error:
        raise InputError(f"{Place(path, rows.line_num)}: this is not CSV: {_csv_error(str(error), begins)}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{Place(path, _undecodable(path))}: this is not UTF-8") from error
    except (OSError, Damaged) as error:
        raise unreadable(path, error) from error


def placed_row(names: list[str], row: list[str], place: Place, refuse: Refuse) -> Iterator[Placed]:
    """A row as a dictionary, unless it is empty, or is refused because it does not fit the names of the columns."""
    # Some programs write a delimiter after every field.
    if len(row) == len(names) or (len(row) == len(names) + 1 and not row[-1]):
        yield dict(zip(names, row)), place
    elif row:
        fields = f"this row has {counted(len(row), 'field')}, and the header has {len(names)}"
        refuse(row, place, InputError(f"{place}: {fields}"))


def _undecodable(path: str) -> int | None:
    """The first line of a file that is not UTF-8."""
    with unpacked(path) as file:
        for number, line in enumerate(io.TextIOWrapper(cast("IO[bytes]", file), "utf-8", "surrogateescape", newline=""), 1):
            try:
                line.encode()
            except UnicodeEncodeError:
                return number
    return None


def _csv_error(said: str, begins: int) -> str:
    """Explains an error of the module `csv`."""
    if said == "unexpected end of data":
        return f"a quote is not closed before the end of the file, in the row that begins in line {begins}"
    if said.startswith("field larger than field limit"):
        return (
            f"a field is longer than {csv.field_size_limit()} characters, in the row that begins in line {begins}. If no quote is"
            " missing, call csv.field_size_limit(...) with more before read_csv"
        )
    return said


def numbered(path: str, names: list[str], duplicate_names: str | None) -> list[str]:
    """The names of columns. Those that are equal are an error, or get numbers: `a`, `a_2`, `a_3`."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and duplicate_names != "number":
        listed = ", ".join(map(repr, twice))
        raise InputError(
            f"{printable(path)}: several columns have the name {listed}, and a dictionary holds one of them."
            ' read_csv(..., duplicate_names="number") numbers them: a, a_2, a_3'
        )
    taken, made = set(names), []
    seen: set[str] = set()
    for name in names:
        if name in seen:
            numbers = (f"{name}_{number}" for number in range(2, len(names) + len(taken) + 2))
            name = next(numbered for numbered in numbers if numbered not in taken)
        seen.add(name)
        taken.add(name)
        made.append(name)
    return made


# Parquet.


@dataclass(frozen=True)
class Share:
    """One of several equal shares of the row groups of a Parquet file."""

    path: str
    number: int
    of: int


def shares(paths: list[str]) -> Iterator[Share]:
    """Parts of Parquet files, so that several workers read a large one."""
    for path in paths:
        count = max(1, file_bytes(path) // _SHARE_BYTES)
        yield from (Share(path, number, count) for number in range(count))


def file_bytes(path: str) -> int:
    """The size of a file; nothing if there is none, which its reader says."""
    return os.path.getsize(path) if os.path.exists(path) else 0


def _parquet(share: str | Share, columns: list[str] | None, fields: Set[Any] | None) -> Iterator[Placed]:
    return ((record, Place(batch.file)) for batch in parquet_batches(share, columns, fields) for record in batch)


def parquet_batches(share: str | Share, columns: list[str] | None, fields: Set[Any] | None) -> Iterator[Batch]:
    """The rows of a file, or of a share of it, in batches that are not large.

    If the job needs only some `fields` of the rows, no other column is read, unless one of them is missing.
    """
    try:
        from pyarrow import ArrowException, OSFile, Table, parquet
    except ImportError as error:
        raise PlanError("read_parquet needs pyarrow: pip install 'gristmill[arrow]'") from error
    share = share if isinstance(share, Share) else Share(share, 0, 1)
    try:
        # Opened here, because pyarrow takes some names for addresses, and none that is not UTF-8. Buffered, because
        # otherwise a whole row group would be in memory.
        with cast(Any, OSFile)(os.fsencode(share.path), "r") as opened, parquet.ParquetFile(opened, buffer_size=_BLOCK_BYTES) as file:
            _check_columns(share.path, file, columns)
            if fields is not None and fields <= set(file.schema_arrow.names if columns is None else columns):
                columns = sorted(fields)
            groups = file.num_row_groups
            for group in range(groups * share.number // share.of, groups * (share.number + 1) // share.of):
                size = file.metadata.row_group(group)
                rows = max(1, size.num_rows * _TABLE_BYTES // max(1, size.total_byte_size))
                batches = file.iter_batches(min(rows, _TABLE_ROWS), [group], columns, use_threads=False)
                yield from (Batch(Table.from_batches([batch]), file=share.path) for batch in batches)
    except (OSError, ArrowException) as error:
        raise unreadable(share.path, error) from error


def check_columns(paths: Sequence[str], columns: list[str]) -> None:
    """Fails if a Parquet file lacks one of these columns."""
    for path in paths:
        # Its first share has no row group.
        next(parquet_batches(Share(path, 0, 1 << 62), columns, None), None)


def _check_columns(path: str, file: Any, columns: list[str] | None) -> None:
    """Fails if a Parquet file lacks a column, or if a record could not hold all that are wanted."""
    names = file.schema_arrow.names
    twice = [name for name, count in Counter(names).items() if count > 1 and (columns is None or name in columns)]
    if twice:
        raise InputError(f"{printable(path)}: several columns have the name {twice[0]!r}, and a dictionary holds one of them")
    missing = [column for column in columns or () if column not in names and not _is_field(file.metadata.schema, names, column)]
    if missing:
        there = ", ".join(map(repr, names))
        raise InputError(f"{printable(path)}: there is no column {missing[0]!r}; there are {there}")


def _is_field(schema: Any, names: list[str], column: str) -> bool:
    """Whether a column is a field of a structure, such as `place.town`."""
    paths = [schema.column(number).path for number in range(len(schema))] if column.partition(".")[0] in names else []
    return any(path == column or path.startswith(column + ".") for path in paths)


def check_errors(errors: str) -> None:
    """Fails on a name that is no handler of decoding errors."""
    try:
        codecs.lookup_error(errors)
    except LookupError as error:
        raise PlanError(f"errors={errors!r}: use strict, replace, ignore or surrogateescape") from error
