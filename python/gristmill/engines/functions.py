"""The functions of a stage, applied to the records of an input, and one that failed."""

from __future__ import annotations

import functools
import hashlib
import itertools
import pickle
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..base import pickles
from ..base.errors import PairsNeeded, one_line, user_traceback
from ..base.keys.forms import NoKey
from ..plan.describe import name, step_of
from ..plan.nodes import Narrow, Shuffle, Source
from ..plan.reducers import Reducer
from ..records.batches import Pluck, natively
from .csv_pieces import Pieces, Rows
from .formats import NOWHERE, Place, Placed, Refuse, parquet_batches, read
from .replays import Step, applied, made_of_group, results, steps_of

Chain = Callable[[Iterable[Any]], Iterable[Any]]
#: Makes records of a key and its values.
Reduce = Callable[[Any, list[Any]], Iterable[Any]]


@dataclass(frozen=True)
class Failure:
    """An exception of a function, as the job's process gets it."""

    #: The exception in one line.
    text: str
    traceback_text: str
    #: The pickled exception, if it can be rebuilt.
    error: bytes | None
    #: `function`, `input`, `plan` or `type`: what is at fault.
    kind: str = "function"
    step: str = ""
    #: The pickled record, if it is known.
    record: bytes | None = None
    shown: str = ""
    #: Where the record is, if the engine cannot know.
    place: Place = NOWHERE
    #: The function and the record, for :func:`gristmill.replay`.
    call: bytes | None = None

    @staticmethod
    def from_error(error: BaseException, *, text: str = "", step: str = "", record: Any = None, **others: Any) -> Failure:
        """Makes a failure of an exception in a worker. `others` are further fields."""
        shown = reprlib.repr(record) if step else ""
        lines, bytes_ = user_traceback(error), pickled(record)
        return Failure(text or one_line(error), lines, rebuildable(error), step=step, record=bytes_, shown=shown, **others)

    def as_error(self, place: Place = NOWHERE) -> tuple[str, str, dict[str, Any], bytes | None]:
        """The error that the program raises: its class, text and fields, and its cause.

        `place` is what the engine knows.
        """
        if self.place.file is not None:
            place = self.place
        if self.kind != "function":
            name = {"plan": "PlanError", "type": "TypeError", "input": "InputError"}[self.kind]
            return name, place.before(self.text) if self.kind == "input" else self.text, {}, None
        where = f"\n  {place}" if place.file else ""
        in_step = f"\n  in {self.step}, on {self.shown}" if self.step else ""
        fields = {
            "record": pickle.loads(self.record) if self.record is not None else None,
            **place._asdict(),
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
    #: It is cut, and what the engine has for one record is a piece.
    pieces: Pieces | None = None
    #: The records are those of another stage.
    is_made: bool = False
    #: Those that became of one key of it come as a list.
    is_each: bool = False
    chain: Chain = field(init=False)
    #: The same without the first function.
    rest: Chain = field(init=False)

    def __post_init__(self) -> None:
        self.chain, self.rest = _composed(self.narrows, self.end), _composed(self.narrows[1:], self.end)

    def records(self, given: Any) -> Iterable[Any]:
        """Turns what the engine gives into the records that it stands for."""
        if self.pieces is not None:
            return self.pieces.records(Rows(*given))
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
            columns, fields = self.source.options.get("columns"), fields_of(self.narrows)
            batches = (parquet_batches(share, columns, fields) for share in self._data(given))
            return itertools.chain.from_iterable(natively(self.chain(batch)) for batch in itertools.chain.from_iterable(batches))
        if self.pieces is not None and (pluck := _first_pluck(self.narrows)) is not None and self.pieces.has(Rows(*given), pluck.names()):
            return natively(self.rest(self.pieces.records(Rows(*given), pluck)))
        records = self.records(given)
        if seed is not None and self.source is not None and not self.is_opened:
            records = seeded(records, seed, given)
        elif seed is not None and self.is_made:
            records = seeded(records, seed)
        return natively(self.chain(records))

    def functions(self) -> Iterator[Any]:
        """The user's functions."""
        yield from (narrow.function for narrow in self.narrows)
        if self.end is not None:
            yield from (self.end.function, self.end.reducer)

    def _data(self, given: range) -> Any:
        assert self.source is not None
        return self.source.data[given.start : given.stop]

    def placed(self, given: Any, refuse: Refuse | None = None) -> Iterator[Placed]:
        """The records of files, each with its place."""
        if self.pieces is not None:
            return self.pieces.placed(Rows(*given), refuse or _refuse)
        assert self.source is not None
        return read(Source(self.source.kind, self._data(given), self.source.options), refuse or _refuse)


def fields_of(narrows: Sequence[Narrow]) -> Set[Any] | None:
    """The fields that functions need of the records of a source, if they say so."""
    pluck = _first_pluck(narrows)
    return None if pluck is None else pluck.names()


def _first_pluck(narrows: Sequence[Narrow]) -> Pluck | None:
    first = narrows[0].function if narrows else None
    return first if isinstance(first, Pluck) else None


def seeded(records: Iterable[Any], seed: Callable[..., object], numbers: Iterable[int] | None = None) -> Iterator[Any]:
    """Records, before each of which generators are seeded: with its number, or with its content if it has none."""
    for number, record in zip(itertools.repeat(None) if numbers is None else numbers, records):
        seed(number_of(record) if number is None else number)
        yield record


def number_of(value: object) -> int:
    """A number that is the same, in all processes, for equal keys and for records of equal content."""
    try:
        content = _native.encode_key(value)[0]
    except Exception:
        content = pickles.dumps(value)
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def rebuildable(error: BaseException) -> bytes | None:
    """The pickled exception; `None` if it cannot be pickled, or its class cannot make it again."""
    try:
        pickled = pickles.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return None
    return pickled


def pickled(record: Any) -> bytes | None:
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


def first_failing(side: Side, record: Any) -> tuple[str, list[Step]]:
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
    """Returns the function that makes records of a key and its values."""
    if end.kind == "groups":
        assert end.function is not None
        return functools.partial(made_of_group, end.function)
    reducer = end.reducer
    if isinstance(reducer, Reducer):
        return lambda key, values: [(key, reducer.of(values))]
    assert reducer is not None
    return lambda key, values: [(key, functools.reduce(reducer, values))]


def fault_of_plan(error: BaseException, end: Shuffle | None) -> dict[str, str] | None:
    """The fields of a :class:`Failure` if the plan is at fault, and not the record."""
    if isinstance(error, PairsNeeded):
        return {"kind": "plan", "text": str(error)}
    if isinstance(error, _native.NotAPair):
        text = f"{step_of(end)} needs pairs of a key and a value, and this record is {reprlib.repr(error.args[0])}"
        return {"kind": "plan", "text": text}
    if isinstance(error, NoKey):
        return {"kind": "plan", "text": f"{step_of(end)}: {error}"}
    return {"kind": "type", "text": str(error)} if isinstance(error, _native.NoOrder) else None
