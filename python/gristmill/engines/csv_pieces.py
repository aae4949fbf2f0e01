"""Pieces of CSV files: whole rows, many at a time, as the native engine cuts a file for several workers.

Their records and errors are those of :func:`gristmill.engines.formats.csv_rows`, which reads a whole file. What ends it ends a piece as well; then
the file is read from its start, because that knows the line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Set
from typing import IO, Any, NamedTuple, NoReturn, cast

from ..base.errors import InputError
from ..base.files.compression import Damaged, unpacked
from ..base.printable import printable
from ..records.batches import Pluck
from .formats import Place, Placed, Refuse, csv_rows, numbered, placed_row, unreadable

#: The bytes of a file in which line ends are counted together.
_BLOCK_BYTES = 1 << 20
#: Handlers of bytes that are not UTF-8 with which a quote stays where it is in its field.
_KEEPING = ("strict", "replace", "surrogateescape", "backslashreplace")
#: The most bytes of a row, if its fields are not expected to be longer.
_ROW_BYTES = 64 << 20


class Rows(NamedTuple):
    """Some whole rows of a file."""

    path: str
    #: Where they begin in the content of the file, in bytes.
    offset: int
    content: bytes


def are_cut(options: Mapping[str, Any]) -> bool:
    """Whether the engine finds the rows that `csv` does, from the bytes alone."""
    return options["delimiter"].isascii() and options["errors"] in _KEEPING


def row_bytes_max(options: Mapping[str, Any]) -> int:
    """The most bytes of a row: several of the longest fields."""
    longest: int = options["field_characters_max"]
    return min(max(_ROW_BYTES, 8 * longest), 2**32 - 1)


def first_error(path: str, options: Mapping[str, Any], *, of_rows: bool) -> InputError | None:
    """The error with which reading a whole file ends, if it does; without `of_rows`, rows may not fit the header."""
    try:
        for _ in csv_rows(path, options, _raise if of_rows else lambda *_: None):
            pass
    except InputError as error:
        return error
    return None


class Pieces:
    """The records of pieces."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        #: For each file the names of its columns, and where the rows below its header begin.
        self._headers: dict[str, tuple[list[str], int]] = {}
        #: The last offset that was looked for, in which file, and its line.
        self._found = ("", 0, 1)

    def records(self, piece: Rows, pluck: Pluck | None = None) -> list[Any]:
        """The records of a piece, or the fields that are plucked from them, which :meth:`has` must have found.

        Raises :class:`gristmill.InputError` if a row does not fit the header.
        """
        try:
            names, _, reader = self._opened(piece)
            rows = list(filter(None, reader))
        except (csv.Error, UnicodeDecodeError) as error:
            raise self._explained(piece.path) from error
        if not all(len(row) == len(names) for row in rows):
            rows = [list(record.values()) for record, _ in self.placed(piece, _raise)]
        if pluck is not None:
            return list(map(pluck.of_rows(names), rows))
        return [dict(zip(names, row)) for row in rows]

    def has(self, piece: Rows, names: Set[Any]) -> bool:
        """Whether the file of a piece has columns of all these names."""
        return names <= set(self._names(piece.path)[0])

    def placed(self, piece: Rows, refuse: Refuse) -> Iterator[Placed]:
        """The same records, each with its place."""
        try:
            names, begin, rows = self._opened(piece)
            above = self._line(piece.path, begin)
            line = above
            for row in rows:
                place, line = Place(piece.path, line), above + rows.line_num
                yield from placed_row(names, row, place, refuse)
        except (csv.Error, UnicodeDecodeError) as error:
            raise self._explained(piece.path) from error

    def _opened(self, piece: Rows) -> tuple[list[str], int, Any]:
        """The names of the columns; where the rows of a piece begin that are below the header; and the rows."""
        names, end = self._names(piece.path)
        begin = max(end, piece.offset)
        text = self._decoded(piece.content[begin - piece.offset :])
        return names, begin, self._reader(io.StringIO(text, newline=""))

    def _names(self, path: str) -> tuple[list[str], int]:
        csv.field_size_limit(self._options["field_characters_max"])
        if path not in self._headers:
            try:
                self._headers[path] = self._header(path)
            except (csv.Error, UnicodeDecodeError) as error:
                raise self._explained(path) from error
        return self._headers[path]

    def _header(self, path: str) -> tuple[list[str], int]:
        end = 0

        def lines(content: IO[str]) -> Iterator[str]:
            nonlocal end
            for number, line in enumerate(content):
                end += len(line.encode("utf-8", "surrogateescape"))
                yield line if number else line.removeprefix("\ufeff")

        try:
            with unpacked(path) as file:
                content = io.TextIOWrapper(cast("IO[bytes]", file), "utf-8", "surrogateescape", newline="")
                # Lines above it may be empty.
                found: list[str] = next(filter(None, self._reader(lines(content))), [])
        except (OSError, Damaged) as error:
            raise unreadable(path, error) from error
        names = [self._decoded(name.encode("utf-8", "surrogateescape")) for name in found]
        return numbered(path, names, self._options["duplicate_names"]), end

    def _reader(self, lines: Iterator[str] | IO[str]) -> Any:
        return csv.reader(lines, delimiter=self._options["delimiter"], strict=True)

    def _decoded(self, content: bytes) -> str:
        return content.decode("utf-8", self._options["errors"])

    def _line(self, path: str, offset: int) -> int:
        """The line, from 1, that begins at an offset. A worker's offsets ascend, so few lines are counted twice."""
        found, begin, line = self._found
        try:
            with unpacked(path) as file:
                if path != found or offset < begin or not file.seekable():
                    begin, line = 0, 1
                else:
                    file.seek(begin)
                left, last = offset - begin, b""
                while left and (block := file.read(min(left, _BLOCK_BYTES))):
                    # A line end of two bytes is counted at the first.
                    line += block.count(b"\n") + block.count(b"\r") - (last + block).count(b"\r\n")
                    left, last = left - len(block), block[-1:]
        except (OSError, Damaged) as error:
            raise unreadable(path, error) from error
        self._found = path, offset, line
        return line

    def _explained(self, path: str) -> InputError:
        changed = f"{printable(path)} has changed since the job began: a part of it was not CSV, and all of it is"
        return first_error(path, self._options, of_rows=False) or InputError(changed)


def _raise(record: Any, place: Place, error: Exception) -> NoReturn:
    raise error
