"""What workers do with records: the functions of a stage, and what is known of one that failed."""

from __future__ import annotations

import faulthandler
import fcntl
import functools
import itertools
import os
import pickle
import reprlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .. import _native, randoms
from ..base import pickles
from ..base.errors import PACKAGE, InputError, PairsNeeded, user_traceback
from ..base.keys import KeyFunctionFailed, NoKey
from ..deferred import Deferred
from ..formats import NOWHERE, Place, Placed, Refuse, parquet_tables, read
from ..plan.describe import name, step_of
from ..plan.nodes import Narrow, Shuffle, Source
from ..plan.reducers import Reducer
from ..plan.shared import SharedArray
from ..randoms import Generators
from ..records.batches import Batch, natively
from ..records.runs import BadRecord
from ..replays import Call, Step, applied, made_of_group, raised, results, steps_of

Chain = Callable[[Iterable[Any]], Iterable[Any]]
#: Makes records of a key and its values.
Reduce = Callable[[Any, list[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Failure:
    """An exception of a function, as the job's process gets it."""

    #: `function`, `input`, `plan` or `type`: what is at fault.
    kind: str
    #: The exception in one line.
    text: str
    traceback_text: str
    #: The pickled exception, if it can be rebuilt.
    error: bytes | None
    step: str = ""
    #: The pickled record, if it is known.
    record: bytes | None = None
    shown: str = ""
    #: Where the record is, if the engine cannot know.
    place: Place = NOWHERE
    #: The function and the record, for :func:`gristmill.replay`.
    call: bytes | None = None

    @staticmethod
    def of(
        error: BaseException,
        *,
        kind: str = "function",
        text: str = "",
        step: str = "",
        record: Any = None,
        place: Place = NOWHERE,
        call: bytes | None = None,
    ) -> Failure:
        """What is known of an exception of a worker."""
        shown = reprlib.repr(record) if step else ""
        lines, pickled = user_traceback(error), _pickled(record)
        return Failure(kind, text or one_line(error), lines, rebuildable(error), step, pickled, shown, place, call)

    def as_error(self, place: Place = NOWHERE) -> tuple[str, str, dict[str, Any], bytes | None]:
        """The error that the program raises: its class, text and fields, and its cause. `place` is what the engine knows."""
        if self.place.file is not None:
            place = self.place
        match self.kind:
            case "plan":
                return "PlanError", self.text, {}, None
            case "type":
                return "TypeError", self.text, {}, None
            case "input":
                return "InputError", place.before(self.text), {}, None
        where = f"\n  {place}" if place.file else ""
        in_step = f"\n  in {self.step}, on {self.shown}" if self.step else ""
        fields = {
            "record": pickle.loads(self.record) if self.record is not None else None,
            "file": place.file,
            "line": place.line,
            "byte": place.byte,
            "attempt": 1,
            "traceback_text": self.traceback_text,
            "call": self.call,
        }
        return "JobError", f"{self.text}{in_step}{where}", fields, self.error


@dataclass
class Side:
    """An input of a stage, with the functions that are applied to its records."""

    source: Source | None
    narrows: Sequence[Narrow]
    end: Shuffle | None
    #: A file is one record for the engine, and many here.
    is_opened: bool = False
    #: The records are those of another stage.
    is_made: bool = False
    #: Those that became of one key of it come as a list.
    is_each: bool = False
    chain: Chain = field(init=False)

    def __post_init__(self) -> None:
        self.chain = _composed(self.narrows, self.end)

    def records(self, given: Any) -> Iterable[Any]:
        """The records that what the engine gives stands for."""
        if self.source is None:
            found: list[Any] = given
        elif self.is_opened:
            return (record for record, _ in self.placed(given))
        else:
            found = self._data(given)
        return found

    def outputs(self, given: Any, seed: Callable[..., object] | None = None) -> Iterable[Any]:
        """Applies the functions to the records of a chunk; columns stay columns if they can.

        `seed` is called before each record that has a place, or a content, which is the same for any number of workers.
        """
        if self.source is not None and self.source.kind == "parquet":
            tables = (parquet_tables(share, self.source.options.get("columns")) for share in self._data(given))
            return itertools.chain.from_iterable(
                natively(self.chain(Batch(table))) for table in itertools.chain.from_iterable(tables)
            )
        records = self.records(given)
        if seed is not None and self.source is not None and not self.is_opened:
            records = _seeded(records, seed, given)
        elif seed is not None and self.is_made:
            records = _seeded(records, seed)
        return natively(self.chain(records))

    def functions(self) -> Iterator[Any]:
        """The user's functions."""
        yield from (narrow.function for narrow in self.narrows)
        if self.end is not None:
            yield from (self.end.function, self.end.reducer)

    def _data(self, given: range) -> Any:
        assert self.source is not None
        return self.source.data[given.start : given.stop]

    def placed(self, given: range, refuse: Refuse | None = None) -> Iterator[Placed]:
        """The records of files, each with its place."""
        assert self.source is not None
        return read(Source(self.source.kind, self._data(given), self.source.options), refuse or _refuse)


class Functions:
    """The functions of a stage, as the native engine calls them."""

    def __init__(
        self,
        sides: Sequence[Side],
        reduce: Reduce | None,
        log: Log,
        skip: bool,
        arrays: Sequence[SharedArray] = (),
        *,
        seed: int,
        is_seeded: bool = False,
    ) -> None:
        self.sides, self.log, self.skip, self._reduce, self._arrays = sides, log, skip, reduce, arrays
        #: Of the stage; `is_seeded` if it is the user's, and numbers are the same for any number of workers.
        self.seed, self.is_seeded = seed, is_seeded

    def lend(self, addresses: Sequence[int]) -> None:
        """Lets functions write the shared arrays, of which this worker has views at these addresses."""
        for array, address in zip(self._arrays, addresses):
            array.lend(address)

    def take_back(self) -> None:
        """Ends what :meth:`lend` began."""
        for array in self._arrays:
            array.take_back()

    def map(self, tag: int, given: Any, source: int, offset: int) -> Iterable[Any]:
        """The outputs for the records of a chunk."""
        side = self.sides[tag]
        self._seed(tag, source, offset)
        if self.skip and side.is_opened:
            return self._map_opened(side, given)
        if self.skip and side.is_made:
            return self._map_made(side, given, (tag, source, offset))
        return side.outputs(given, functools.partial(self._seed, tag) if self.is_seeded else None)

    def map_each(self, tag: int, given: list[list[Any]], source: int, offset: int) -> list[list[Any]]:
        """The outputs for each of some lists of records."""
        chain = self.sides[tag].chain
        self._seed(tag, source, offset)
        if self.skip:
            return [self._map_made(self.sides[tag], records, (tag, source, offset, number)) for number, records in enumerate(given)]
        lists: list[Iterable[Any]] = list(given)
        if self.is_seeded:
            lists = [_seeded(records, functools.partial(self._seed, tag)) for records in given]
        return [list(chain(records)) for records in lists]

    def reduce(self, key: Any, given: Any) -> Iterable[Any]:
        """The records that become of a key and its values."""
        assert self._reduce is not None
        if self.is_seeded or self.generators.are_used:
            self._seed(len(self.sides), randoms.number_of(key))
        return self._reduce(key, _values(given))

    def failed(self, error: BaseException, tag: int, given: Any, count: int) -> tuple[str, bool]:
        """Logs an exception of :meth:`map`. Returns its number, and whether the records are at fault and not the pipeline."""
        side, error = self.sides[tag], raised(error)
        if isinstance(error, KeyFunctionFailed):
            step = f"the key function of {error.kind.__qualname__}"
            return self.log.failure(error.__cause__ or error, step=step, record=error.key), True
        if isinstance(error, PairsNeeded):
            return self.log.failure(error, kind="plan", text=str(error)), False
        if isinstance(error, _native.NotAPair):
            text = f"{step_of(side.end)} needs pairs of a key and a value, and this record is {reprlib.repr(error.args[0])}"
            return self.log.failure(error, kind="plan", text=text), False
        if isinstance(error, NoKey):
            return self.log.failure(error, kind="plan", text=f"{step_of(side.end)}: {error}"), False
        if isinstance(error, _native.NoOrder):
            return self.log.failure(error, kind="type", text=str(error)), False
        if isinstance(error, InputError):
            record = given[0] if count == 1 and isinstance(given, list) else None
            # A file that cannot be read is no bad record: with all of its records, too many would be set aside.
            return self.log.failure(error, kind="input", text=str(error), record=record), not side.is_opened
        # What the engine takes for one record of another stage may be many.
        if count == 1 or side.is_made:
            for record, place in self._singly(side, given):
                step, steps = _first_failing(side, record)
                if step:
                    call = Call(steps, record).pickled() if steps else None
                    error = raised(error, steps[-1][0] if steps else "")
                    return self.log.failure(error, step=step, record=record, place=place, call=call), not side.is_made
        return self.log.failure(error), True

    def failed_group(self, error: BaseException, key: Any, given: Any) -> str | None:
        """Logs an exception of :meth:`reduce`. Returns its number, unless the group is set aside."""
        error = raised(error)
        if self.skip and isinstance(error, Exception):
            self.log.bad(("group", _pickled(key)), BadRecord(key, one_line(error)))
            return None
        end = self.sides[0].end
        assert end is not None
        step: Step
        if end.kind == "reduce":
            assert end.reducer is not None
            said, step = f"reduce_by_key {name(end.reducer)}", ("reduce", end.reducer)
        else:
            assert end.function is not None
            said, step = f"map_groups {name(end.function)}", ("groups", end.function)
        call = Call([step], (key, _values(given))).pickled() if given is not None else None
        return self.log.failure(error, step=said, record=key, call=call)

    def _singly(self, side: Side, given: Any) -> Iterator[Placed]:
        """The records of what the engine takes for one record, each with its place if only this side knows it."""
        if side.is_opened:
            return side.placed(given)
        records = side.records(given)
        if side.is_each:
            # As `map_each` gets them.
            records = itertools.chain.from_iterable(records)
        return ((record, NOWHERE) for record in records)

    def _map_opened(self, side: Side, given: range) -> Iterator[Any]:
        """The outputs for the records of files, without those that fail."""

        def refuse(record: Any, place: Place, error: Exception) -> None:
            self.log.bad(place, BadRecord(record, str(error), place.file, place.line, place.byte))

        for number, (record, place) in enumerate(side.placed(given, refuse)):
            try:
                outputs = list(side.chain([record]))
            except Exception as error:
                _, steps = _first_failing(side, record)
                found = raised(error, steps[-1][0] if steps else "")
                bad = BadRecord(record, one_line(found), place.file, place.line, place.byte)
                self.log.bad((place, number), bad)
                continue
            yield from outputs

    def _map_made(self, side: Side, records: list[Any], place: tuple[int, ...]) -> list[Any]:
        """The outputs for the records of another stage, without those that fail.

        The engine would set aside a key with all that became of it. `place` is that of the records, for the log.
        """

        def made(records: Iterable[Any]) -> list[Any]:
            return list(side.chain(_seeded(records, functools.partial(self._seed, place[0])) if self.is_seeded else records))

        with suppress(Exception):
            return made(records)
        outputs: list[Any] = []
        for number, record in enumerate(records):
            try:
                outputs += made([record])
            except PairsNeeded:
                raise
            except Exception as error:
                _, steps = _first_failing(side, record)
                bad = BadRecord(record, one_line(raised(error, steps[-1][0] if steps else "")))
                self.log.bad((self.seed, *place, number), bad)
        return outputs

    def _seed(self, *place: int) -> None:
        """Draws of random numbers differ from job to job, but not when a worker does again what another had begun."""
        self.generators.seed(self.seed, *place)

    @functools.cached_property
    def generators(self) -> Generators:
        """The generators of random numbers that functions draw from, of each worker its own."""
        functions = itertools.chain.from_iterable(side.functions() for side in self.sides)
        found = Generators(each.itself() if isinstance(each, Deferred) else each for each in functions)
        # For draws in libraries, of a worker that only reduces.
        found.seed(self.seed, os.getpid())
        return found


def _seeded(records: Iterable[Any], seed: Callable[..., object], numbers: Iterable[int] | None = None) -> Iterator[Any]:
    """Records, before each of which generators are seeded: with its number, or with its content if it has none."""
    for number, record in zip(itertools.repeat(None) if numbers is None else numbers, records):
        seed(randoms.number_of(record) if number is None else number)
        yield record


class Log:
    """Files in memory, to which workers add what went wrong. The job's process reads them at the end."""

    def __init__(self) -> None:
        self.file, self.crashes = _appended("gristmill log"), _appended("gristmill crashes")
        self.count = itertools.count()
        faulthandler.enable(self.crashes, all_threads=False)

    def failure(self, error: BaseException, **about: Any) -> str:
        """Adds an exception, with what :meth:`Failure.of` takes; returns its number."""
        number = f"{os.getpid()}-{next(self.count)}"
        os.write(self.file, pickle.dumps(("failure", number, Failure.of(error, **about))))
        return number

    def bad(self, key: Any, record: BadRecord) -> None:
        """Adds a record that is set aside. A task that is done again adds it again, with the same key."""
        try:
            entry = pickle.dumps(("bad", key, record))
        except Exception:
            entry = pickles.dumps(("bad", key, record))
        os.write(self.file, entry)

    def crash(self) -> str:
        """The lines of the user's functions in which a worker crashed last; empty if none did."""
        with open(f"/proc/self/fd/{self.crashes}", encoding="utf-8", errors="replace") as file:
            last = file.read().rpartition("Fatal Python error: ")[2].splitlines()
        lines = itertools.takewhile(lambda line: f'"{PACKAGE}' not in line, last)
        return "\n".join(line for line in lines if line and not line.startswith("Current thread"))

    def read(self) -> tuple[dict[str, Failure], dict[Any, BadRecord]]:
        """All failures by number, and all records that were set aside."""
        failures: dict[str, Failure] = {}
        bad: dict[Any, BadRecord] = {}
        with open(f"/proc/self/fd/{self.file}", "rb") as file:
            while file.peek(1):
                kind, key, entry = pickle.load(file)
                if kind == "failure":
                    failures[key] = entry
                else:
                    bad[key] = entry
        return failures, bad


def _values(given: Any) -> Any:
    """The values of a group: a list, or an array of the numbers that the engine gives as a type and bytes."""
    if isinstance(given, list):
        return given
    import numpy

    kind, numbers = given
    return numpy.frombuffer(numbers, kind)


def _appended(name: str) -> int:
    file = os.memfd_create(name, os.MFD_CLOEXEC)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file


def one_line(error: BaseException) -> str:
    """An exception without its traceback."""
    return "".join(traceback.format_exception_only(error)).strip()


def rebuildable(error: BaseException) -> bytes | None:
    """The pickled exception; `None` if it cannot be pickled, or its class cannot make it again."""
    try:
        pickled = pickles.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return None
    return pickled


def _pickled(record: Any) -> bytes | None:
    try:
        return pickles.dumps(record)
    except Exception:
        return None


def _refuse(record: Any, place: Place, error: Exception) -> None:
    raise error


def _composed(narrows: Sequence[Narrow], end: Shuffle | None) -> Chain:
    """One function of many records: all that is applied to them, and what the end of the stage needs of them."""
    steps: list[Chain] = [functools.partial(applied, step) for step in steps_of(narrows)]
    if end is not None and end.kind in ("sort", "top"):
        by = end.function
        assert by is not None
        steps.append(functools.partial(results, lambda record: (by(record), record)))
    if not steps:
        return lambda records: records
    if len(steps) == 1:
        return steps[0]
    return lambda records: functools.reduce(lambda made, step: step(made), steps, records)


def _first_failing(side: Side, record: Any) -> tuple[str, list[Step]]:
    """The function that fails on a record, in words, and as the steps up to it; nothing if none does."""
    steps = steps_of(side.narrows)
    said = [f"{narrow.kind} {name(narrow.function)}" for narrow in side.narrows]
    if side.end is not None and side.end.kind in ("sort", "top") and side.end.function is not None:
        steps.append(("map", side.end.function))
        said.append(f"the key of {side.end.kind}, {name(side.end.function)}")
    records = [record]
    for number, step in enumerate(steps):
        try:
            records = list(applied(step, records))
        except BaseException:
            return said[number], steps[: number + 1]
    try:
        pickles.dumps(records)
    except Exception:
        return "what became of it", steps
    if side.end is not None:
        for record in records:
            try:
                _native.encode_key(record if side.end.kind in ("distinct", "count_by_value") else record[0])
            except Exception:
                return f"the key of {step_of(side.end)}", steps
    return "", []


def reduced_by(end: Shuffle) -> Reduce:
    """What becomes of a key and its values."""
    if end.kind == "groups":
        assert end.function is not None
        return functools.partial(made_of_group, end.function)
    reducer = end.reducer
    if isinstance(reducer, Reducer):
        return lambda key, values: [(key, reducer.of(values))]
    assert reducer is not None
    return lambda key, values: [(key, functools.reduce(reducer, values))]
