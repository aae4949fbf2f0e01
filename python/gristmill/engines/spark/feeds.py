"""Feeds: records of the rows that Spark brings."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from ... import _native
from ...base.errors import InputError
from ...plan.nodes import Shuffle, Source
from ...records.batches import Batch
from ..formats import NOWHERE, Place, Share, line_blocks, parquet_batches, read
from ..functions import Reduce
from .report import RAISED, Report, failed_group
from .rows import KEY, Batches, column, listed

#: Records that go through the functions together, unless they come in larger pieces.
_CHUNK = 1024
#: The bytes of one read.
_BLOCK_BYTES = 1 << 20


@dataclass
class Chunk:
    """Some records, and where each is."""

    records: Iterable[Any]
    place: Callable[[int], Place] = lambda number: NOWHERE


class Feed(Protocol):
    """Makes records of the rows that Spark brings."""

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]: ...


# From sources.


@dataclass
class FromBlocks:
    """Records that the program or another stage made, as blocks."""

    is_read: bool = False

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]:
        for block in column(batches, "block"):
            records = _native.decode(block)
            if self.is_read:
                report.count("read", len(records))
            for start in range(0, len(records), _CHUNK):
                yield Chunk(records[start : start + _CHUNK])


@dataclass(frozen=True)
class Piece:
    """A part of a file: the lines that begin in it."""

    path: str
    start: int
    stop: int


@dataclass
class FromParts:
    """Records of a source, of which each row names a part."""

    source: Source
    parts: Sequence[Any]
    #: The fields of its records that the job needs, if it needs only some.
    fields: Set[Any] | None

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]:
        for number in column(batches, "id"):
            for part in self.parts[number]:
                yield from self._counted(self._chunks(part, report), report)

    def _counted(self, chunks: Iterator[Chunk], report: Report) -> Iterator[Chunk]:
        try:
            for chunk in chunks:
                records = chunk.records
                report.count("read", records.table.num_rows if isinstance(records, Batch) else len(list(records)))
                yield chunk
        except InputError as error:
            report.failed(error, kind="input", text=str(error))

    def _chunks(self, part: Any, report: Report) -> Iterator[Chunk]:
        source = self.source
        match part:
            case range():
                for start in range(0, len(part), _CHUNK):
                    yield Chunk(part[start : start + _CHUNK])
            case Piece():
                yield from self._lines(part, report)
            case Share():
                for batch in parquet_batches(part, source.options.get("columns"), self.fields):
                    yield Chunk(batch, functools.partial(_in, part.path))
            case path:

                def refuse(record: Any, place: Place, error: Exception) -> None:
                    if not report.skip:
                        raise error
                    report.set_aside(record, str(error), place)

                # JSON is parsed by the first function of the stage, as that of pieces is.
                kind = "bytes" if source.kind == "jsonl" else source.kind
                placed = read(Source(kind, [path], source.options), refuse)
                while some := list(itertools.islice(placed, _CHUNK)):
                    yield Chunk([record for record, _ in some], [place for _, place in some].__getitem__)

    def _lines(self, piece: Piece, report: Report) -> Iterator[Chunk]:
        errors = self.source.options.get("errors", "strict")
        for start, block in line_blocks(piece.path, piece.start, piece.stop):
            place = _Places(piece.path, start, block)
            if self.source.kind != "text":
                yield Chunk(_split(block, b"\n", b"\r"), place)
                continue
            try:
                yield Chunk(_split(block.decode("utf-8", errors), "\n", "\r"), place)
            except UnicodeDecodeError:
                yield from self._texts(_split(block, b"\n", b"\r"), place, report)

    def _texts(self, lines: list[bytes], place: Callable[[int], Place], report: Report) -> Iterator[Chunk]:
        """Lines, some of which are no text."""
        for number, line in enumerate(lines):
            try:
                yield Chunk([line.decode()], functools.partial(_of, place, number))
            except UnicodeDecodeError as error:
                where = place(number)
                at = Place(where.file, where.line, (where.byte or 0) + error.start)
                refused = InputError(f"{at}: this is not UTF-8")
                if not report.skip:
                    raise refused from error
                report.set_aside(line, str(refused), where)


def _of(place: Callable[[int], Place], number: int, _: int) -> Place:
    """The place of the only record of a chunk."""
    return place(number)


def _in(path: str, _: int) -> Place:
    """The place of a record of which only the file is known."""
    return Place(path)


def _split(block: Any, end: Any, before: Any) -> Any:
    """Lines without their ends, which are LF or CR LF."""
    lines = block.split(end)
    last = lines.pop()
    if before in block:
        lines = [line[:-1] if line.endswith(before) else line for line in lines]
    return [*lines, last] if last else lines


@dataclass
class _Places:
    """Where the lines of a block are. Lines are counted when somebody asks."""

    path: str
    start: int
    block: bytes

    def __call__(self, number: int) -> Place:
        at = 0
        for _ in range(number):
            at = self.block.index(b"\n", at) + 1
        with open(self.path, "rb") as file:
            left, lines = self.start + at, 1
            while left and (some := file.read(min(left, _BLOCK_BYTES))):
                lines, left = lines + some.count(b"\n"), left - len(some)
        return Place(self.path, lines, self.start + at)


# From shuffles.


@dataclass
class FromShuffle:
    """The records that a stage makes of the rows that Spark brought together."""

    #: The number of the stage that ends with the shuffle.
    number: int
    make: Callable[[Batches, Report], Iterator[list[Any]]]

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]:
        records: list[Any] = []
        for some in self.make(batches, report):
            report.count(self.number, len(some))
            records += some
            if len(records) >= _CHUNK:
                yield Chunk(records)
                records = []
        if records:
            yield Chunk(records)


def from_keys(with_count: bool, batches: Batches, report: Report) -> Iterator[list[Any]]:
    """One record for each row: a key, and how often it occurs if that is wanted."""
    for batch in batches:
        made: Iterable[Any] = map(_native.decode_key, *(listed(batch, column) for column in KEY))
        yield list(zip(made, listed(batch, "n")) if with_count else made)


def from_values(batches: Batches, report: Report) -> Iterator[list[Any]]:
    """One record for each row: its value."""
    for batch in batches:
        yield _native.decode(b"".join(listed(batch, "value")))


def from_pairs(is_anti: bool, batches: Batches, report: Report) -> Iterator[list[Any]]:
    """One record for each row: a key and two values of a join, or one if it is `anti`."""
    for batch in batches:
        of = list(map(_native.decode_key, *(listed(batch, column) for column in KEY)))
        ones = _values_or_none(listed(batch, "one"))
        yield list(zip(of, ones if is_anti else zip(ones, _values_or_none(listed(batch, "other")))))


def _values_or_none(values: list[bytes | None]) -> list[Any]:
    return _native.decode(b"".join(_NONE if value is None else value for value in values))


_NONE = _native.encode_value(None)


@dataclass
class FromGroups:
    """The records that a function makes of each key and its values. Rows come in the order of their keys."""

    end: Shuffle
    reduce: Reduce
    #: Makes values of the columns of a row.
    columns: Sequence[str] = ("value",)
    values: Callable[[Iterator[tuple[Any, ...]]], list[Any]] = field(default=lambda rows: _decoded(rows))

    def __call__(self, batches: Batches, report: Report) -> Iterator[list[Any]]:
        rows = itertools.chain.from_iterable(zip(*(listed(batch, column) for column in (*KEY, *self.columns))) for batch in batches)
        for coded, group in itertools.groupby(rows, lambda row: row[0]):
            shown = _Shown()
            values = self.values(map(shown.see, group))
            key = _native.decode_key(coded, shown.types, shown.odd or b"")
            try:
                yield list(self.reduce(key, values))
            except RAISED as error:
                failed_group(error, self.end, key, values, report)


@dataclass
class _Shown:
    """The key that stands for equal ones."""

    types: int = 0
    odd: bytes | None = None

    def see(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The columns of a row without those of its key."""
        _, types, odd, *others = row
        self.types |= types
        self.odd = odd if self.odd is None else min(self.odd, odd)
        return tuple(others)


def _decoded(rows: Iterator[tuple[Any, ...]]) -> list[Any]:
    return _native.decode(b"".join(value for (value,) in rows))
