"""What Spark's executors do: from the rows that Spark brings, through the functions of a stage, to the rows that it takes away.

::

    Arrow --[Feed]--> chunks of records --[the user's functions]--> records --[sink]--> Arrow

Rows are made so that Spark itself can group, sort, join and add up: keys are the bytes of crates/python/src/keys.rs, whose order
and equality are those of keys. Values are bytes too, except numbers that Spark adds up or compares.
"""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import pyarrow
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from .. import _native
from ..base import keys, pickles
from ..base.errors import InputError, PairsNeeded
from ..formats import NOWHERE, Place, Share, line_blocks, parquet_tables, read
from ..plan.describe import name, step_of
from ..plan.nodes import Shuffle, Source
from ..plan.orders import is_pair
from ..randoms import Generators
from ..records.batches import Batch
from ..records.runs import BadRecord
from ..replays import Call, Step, raised
from .functions import Failure, Reduce, Side, _first_failing, one_line

#: Records that go through the functions together, unless they come in larger pieces.
_CHUNK = 1024
#: A block of records has about so many bytes.
_BLOCK_BYTES = 1 << 20
#: Keys of these types are equal in a `dict` only if they are one key, and nobody can choose very many that have one hash. Numbers are not among
#: them: the hashes of the multiples of 2**61 - 1 are 0, and a dictionary of them takes time with the square of their number.
_PLAIN = frozenset((str, bool, type(None)))
#: The types of a key that is an int.
_INT = _native.encode_key(0)[1]
#: What user code may raise; the rest is of the worker.
_RAISED = (Exception, SystemExit)

#: What tasks tell the driver: for each job, entries whose keys are the same when a task runs again.
Told = dict[str, dict[Any, Any]]
Batches = Iterator[pyarrow.RecordBatch]


class Telling(AccumulatorParam[Told]):
    """Merges what tasks tell."""

    def zero(self, value: Told) -> Told:
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:
        for job, entries in value2.items():
            value1.setdefault(job, {}).update(entries)
        return value1


class Stop(Exception):
    """The task has told what failed and ends. It does not fail, or Spark would try it again."""


class GroupFailed(Exception):
    """A function failed on values of a key, before all of them were together."""

    def __init__(self, error: BaseException, key: Any, values: Any) -> None:
        self.error, self.key, self.values = error, key, values


class Report:
    """Tells the driver what a task did and what went wrong. It arrives when the task ends."""

    def __init__(self, told: Accumulator[Told], job: str, number: int, skip: bool) -> None:
        self.told, self.job, self.number, self.skip = told, job, number, skip
        context = TaskContext.get()
        self.partition = context.partitionId() if context is not None else 0
        self.entries = itertools.count()
        self.counts: dict[Any, int] = {}

    def count(self, of: Any, records: int) -> None:
        """Counts records that are read (`"read"`), or that a stage makes, by its number."""
        self.counts[of] = self.counts.get(of, 0) + records

    def end(self) -> None:
        self._tell({("count", of, self.number, self.partition): count for of, count in self.counts.items()})

    def failed(self, error: BaseException, **about: Any) -> NoReturn:
        """Ends the job with an error, with what :meth:`Failure.of` takes."""
        self._tell({("failure", self.number, self.partition): Failure.of(error, **about)})
        raise Stop

    def set_aside(self, record: Any, error: str, place: Place = NOWHERE) -> None:
        """Leaves a record out, and says so."""
        key = ("bad", self.number, self.partition, next(self.entries))
        self._tell({key: pickles.dumps(BadRecord(record, error, place.file, place.line, place.byte))})

    def _tell(self, entries: dict[Any, Any]) -> None:
        self.told.add({self.job: entries})


@dataclass
class Chunk:
    """Some records, and where each is."""

    records: Iterable[Any]
    place: Callable[[int], Place] = lambda number: NOWHERE


class Feed(Protocol):
    """Makes records of the rows that Spark brings."""

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]: ...


class Sink(Protocol):
    """Makes rows of records. `add` raises what is wrong with records, and then has taken none of them."""

    #: Of the rows.
    @property
    def schema(self) -> str: ...

    def add(self, records: Sequence[Any]) -> Batches: ...

    def end(self) -> Batches: ...


@dataclass
class Work:
    """The part of a stage that runs in Python between two exchanges of Spark."""

    #: Among those of the job.
    number: int
    feed: Feed
    side: Side
    sink: Sink
    skip: bool
    #: Of the job, for draws of random numbers.
    seed: int
    #: The number of the stage whose records the sink gets, if that is no shuffle.
    counts: int | None = None

    def run(self, batches: Batches, report: Report) -> Batches:
        sink, generators = self.sink, Generators(self.side.functions())
        for number, chunk in enumerate(self.feed.chunks(batches, report)):
            # The same when Spark runs a task again.
            generators.seed(self.seed, self.number, report.partition, number)
            yield from self.passed(chunk, sink, report)
        try:
            yield from sink.end()
        except GroupFailed as early:
            self.failed_early(early, report)

    def passed(self, chunk: Chunk, sink: Sink, report: Report) -> Batches:
        """What becomes of a chunk. If it fails, its records are tried one by one, to find the one at fault."""
        try:
            made = self._made(chunk.records)
            rows = list(sink.add(made))
        except GroupFailed as early:
            self.failed_early(early, report)
        except _RAISED as error:
            found = error
        else:
            self._count(made, report)
            yield from rows
            return
        failed = False
        for number, record in enumerate(chunk.records):
            try:
                made = self._made([record])
                rows = list(sink.add(made))
            except GroupFailed as early:
                self.failed_early(early, report)
            except _RAISED as error:
                failed = True
                self.failed(error, record, chunk.place(number), report)
            else:
                self._count(made, report)
                yield from rows
        if not failed and not report.skip:
            report.failed(raised(found))

    def failed(self, error: BaseException, record: Any, place: Place, report: Report) -> None:
        """Ends the job because of a record, or leaves it out."""
        error = raised(error)
        self._is_at_fault(error, report)
        if isinstance(error, InputError):
            text = place.before(str(error))
            if report.skip:
                return report.set_aside(record, text, place)
            report.failed(error, kind="input", text=text, record=record, place=place)
        step, steps = _first_failing(self.side, record)
        if steps:
            error = raised(error, steps[-1][0])
        if report.skip:
            return report.set_aside(record, one_line(error), place)
        report.failed(error, step=step, record=record, place=place, call=Call(steps, record).pickled() if steps else None)

    def failed_early(self, early: GroupFailed, report: Report) -> NoReturn:
        """Ends the job because values of a key could not be combined."""
        assert self.side.end is not None
        report.skip = False
        failed_group(early.error, self.side.end, early.key, early.values, report)
        raise AssertionError("a group that is not left out ends the job")

    def _made(self, records: Iterable[Any]) -> list[Any]:
        return list(self.side.chain(records))

    def _count(self, made: list[Any], report: Report) -> None:
        if self.counts is not None:
            report.count(self.counts, len(made))

    def _is_at_fault(self, error: BaseException, report: Report) -> None:
        """Ends the job if the plan is at fault, not the record."""
        if isinstance(error, keys.KeyFunctionFailed) and not report.skip:
            report.failed(error.__cause__ or error, step=f"the key function of {error.kind.__qualname__}", record=error.key)
        if isinstance(error, PairsNeeded):
            report.failed(error, kind="plan", text=str(error))
        if isinstance(error, _native.NotAPair):
            text = f"{step_of(self.side.end)} needs pairs of a key and a value, and this record is {reprlib.repr(error.args[0])}"
            report.failed(error, kind="plan", text=text)
        if isinstance(error, keys.NoKey):
            report.failed(error, kind="plan", text=f"{step_of(self.side.end)}: {error}")
        if isinstance(error, _native.NoOrder):
            report.failed(error, kind="type", text=str(error))


class Task:
    """Work as Spark calls it: a function of Arrow batches."""

    def __init__(self, work: Work, told: Accumulator[Told], job: str) -> None:
        self.number, self.skip, self.told, self.job = work.number, work.skip, told, job
        # Spark's own cloudpickle knows another copy of each class of the program than ours.
        self.work = pickles.dumps((work, keys.registered()))
        self.path, self.folder = list(sys.path), os.getcwd()

    def run(self, batches: Batches) -> Batches:
        """The rows that become of rows."""
        _as_in_the_program(self.path, self.folder)
        report = Report(self.told, self.job, self.number, self.skip)
        try:
            work, registered = pickle.loads(self.work)
            keys.adopt(registered)
            yield from work.run(batches, report)
        except Stop:
            pass
        report.end()


def _as_in_the_program(path: Sequence[str], folder: str) -> None:
    """Modules and files are found where the program finds them, if this machine has them there."""
    if os.path.isdir(folder):
        os.chdir(folder)
    sys.path += [each for each in path if each not in sys.path and os.path.exists(each or folder)]


# Feeds: from sources.


@dataclass
class FromBlocks:
    """Records that the program or another stage made, as blocks."""

    is_read: bool = False

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]:
        for block in _column(batches, "block"):
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

    def chunks(self, batches: Batches, report: Report) -> Iterator[Chunk]:
        for number in _column(batches, "id"):
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
                for table in parquet_tables(part, source.options.get("columns")):
                    yield Chunk(Batch(table), functools.partial(_in, part.path))
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


# Feeds: from shuffles.


@dataclass
class FromShuffle:
    """What a stage makes of the rows that Spark brought together."""

    #: Of the stage that ends with the shuffle.
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


@dataclass
class FromKeys:
    """One record for each row: a key, and how often it occurs if that is wanted."""

    with_count: bool

    def __call__(self, batches: Batches, report: Report) -> Iterator[list[Any]]:
        for batch in batches:
            made: Iterable[Any] = map(_native.decode_key, *(_list(batch, column) for column in _KEY))
            yield list(zip(made, _list(batch, "n")) if self.with_count else made)


class FromValues:
    """One record for each row: its value."""

    def __call__(self, batches: Batches, report: Report) -> Iterator[list[Any]]:
        for batch in batches:
            yield _native.decode(b"".join(_list(batch, "value")))


class FromPairs:
    """One record for each row: a key and two values of a join."""

    def __init__(self, is_anti: bool) -> None:
        self.is_anti = is_anti

    def __call__(self, batches: Batches, report: Report) -> Iterator[list[Any]]:
        for batch in batches:
            of = list(map(_native.decode_key, *(_list(batch, column) for column in _KEY)))
            ones = _values_or_none(_list(batch, "one"))
            yield list(zip(of, ones if self.is_anti else zip(ones, _values_or_none(_list(batch, "other")))))


def _values_or_none(values: list[bytes | None]) -> list[Any]:
    return _native.decode(b"".join(_NONE if value is None else value for value in values))


_NONE = _native.encode_value(None)


@dataclass
class FromGroups:
    """What a function makes of each key and its values. Rows come in the order of their keys."""

    end: Shuffle
    reduce: Reduce
    #: Makes values of the columns of a row.
    columns: Sequence[str] = ("value",)
    values: Callable[[Iterator[tuple[Any, ...]]], list[Any]] = field(default=lambda rows: _decoded(rows))

    def __call__(self, batches: Batches, report: Report) -> Iterator[list[Any]]:
        rows = itertools.chain.from_iterable(
            zip(*(_list(batch, column) for column in (*_KEY, *self.columns))) for batch in batches
        )
        for coded, group in itertools.groupby(rows, lambda row: row[0]):
            shown = _Shown()
            values = self.values(map(shown.see, group))
            key = _native.decode_key(coded, shown.types, shown.odd or b"")
            try:
                yield list(self.reduce(key, values))
            except _RAISED as error:
                failed_group(error, self.end, key, values, report)


#: The columns of a key; see `encode_key` in crates/python/src/lib.rs.
_KEY = ("key", "types", "odd_key")


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


def failed_group(error: BaseException, end: Shuffle, key: Any, values: Any, report: Report) -> None:
    """Ends the job because a function failed on a group, or leaves the group out."""
    error = raised(error)
    if report.skip:
        return report.set_aside(key, one_line(error))
    step: Step
    if end.kind == "reduce":
        assert end.reducer is not None
        said, step = f"reduce_by_key {name(end.reducer)}", ("reduce", end.reducer)
    else:
        assert end.function is not None
        said, step = f"map_groups {name(end.function)}", ("groups", end.function)
    report.failed(error, step=said, record=key, call=Call([step], (key, values)).pickled())


# Sinks.


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


class ToPairs:
    """A row for each pair of a key and a value."""

    schema = "key binary, types int, odd_key binary, value binary"

    def add(self, records: Sequence[Any]) -> Batches:
        keyed = [_native.encode_key(pair(record)[0]) for record in records]
        values = [_native.encode_value(value) for _, value in records]
        yield key_rows(keyed, value=binary(values))

    def end(self) -> Batches:
        return iter(())


class ToSorted:
    """A row for each pair of a key, by whose order records are sorted, and a record."""

    schema = "key binary, value binary"

    def __init__(self, descending: bool) -> None:
        self.descending = descending

    def add(self, records: Sequence[Any]) -> Batches:
        keys = [_native.encode_sorted(key, self.descending) for key, _ in records]
        values = [_native.encode_value(record) for _, record in records]
        yield pyarrow.record_batch({"key": binary(keys), "value": binary(values)})

    def end(self) -> Batches:
        return iter(())


class ToTop:
    """A row for each of the greatest records; of equal ones the smaller come first."""

    schema = ToSorted.schema

    def __init__(self, count: int) -> None:
        self.count = count
        self.best: list[tuple[bytes, bytes]] = []

    def add(self, records: Sequence[Any]) -> Batches:
        self.best += [(_rank(key, record), _native.encode_value(record)) for key, record in records]
        if len(self.best) > max(2 * self.count, _CHUNK):
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
    """A key of a `dict` that is different for keys that differ. The same key may have several. Bytes are those of an int."""
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


def _list(batch: pyarrow.RecordBatch, column: str) -> list[Any]:
    return batch.column(column).to_pylist()


def _column(batches: Batches, column: str) -> Iterator[Any]:
    for batch in batches:
        yield from _list(batch, column)
