"""An engine of one process and plain Python: for debugging, and where the native part is missing."""

from __future__ import annotations

import functools
import heapq
import itertools
import operator
import reprlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, NoReturn, TypeVar

from ..base import cancel
from ..base.errors import JobError, PairsNeeded, PlanError, ResourceError, one_line, user_traceback
from ..base.keys.forms import KeyFunctionFailed, NoKey, NoOrder
from ..base.keys.order import SortKey, group_key, is_ordered, is_plain
from ..base.settings import Settings
from ..plan.describe import name, step_of, title
from ..plan.nodes import Join, Narrow, Shuffle, Source
from ..plan.orders import is_pair
from ..plan.stages import Stage, functions, stages
from ..records.runs import BadRecord, Run
from .formats import NOWHERE, Place, Placed, read
from .functions import fields_of
from .randoms import Generators
from .replays import Call, Step, applied, group_step, raised, steps_of

T = TypeVar("T")

#: The records that a function of `map_batches` gets at once.
_BATCH = 1024


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """Runs a stage and those before it."""
    job = _Job(settings)
    return Run(job.records_of(stage), job.bad_records, job.stats)


class _Job:
    """A job: where its errors and the results of its stages are kept."""

    def __init__(self, settings: Settings) -> None:
        self.skip = settings.on_error == "skip"
        self.token = cancel.current()
        self.deadline, self.seed = settings.deadline_seconds(), settings.seed
        self.began = time.monotonic()
        self.bad_records: list[BadRecord] = []
        self.stats: dict[str, Any] = {"engine": "local", "records_read": 0, "stages": []}
        self.shuffled: dict[Stage, list[Placed]] = {}

    def records_of(self, stage: Stage) -> Iterator[Any]:
        """The records of the last stage."""
        if self.seed is not None:
            Generators(function for _, function in functions(stage)).seed(self.seed)
        before = [(array, array[:].copy()) for array in {array for part in stages(stage) for array in part.arrays}]
        try:
            yield from (record for record, _ in self.stage(stage))
        except BaseException:
            for array, elements in before:
                array[:] = elements
            raise
        self.stats["seconds"] = time.monotonic() - self.began

    def stage(self, stage: Stage) -> Iterator[Placed]:
        """The records of a stage, each with its place."""
        if stage.end is None:
            told: dict[str, Any] = {"step": title(stage), "records": 0}
            self.stats["stages"].append(told)
            for placed in self.inputs(stage)[0]:
                told["records"] += 1
                yield placed
            return
        if stage not in self.shuffled:
            inputs = [self.keyable(map(operator.itemgetter(0), placed), stage.end) for placed in self.inputs(stage)]
            end = stage.end
            found = self.join(inputs[0], inputs[1], end.how) if isinstance(end, Join) else self.shuffle(inputs[0], end)
            self.shuffled[stage] = [(record, NOWHERE) for record in found]
            self.stats["stages"].append({"step": title(stage), "records": len(self.shuffled[stage])})
        yield from self.shuffled[stage]

    # Step 1: the records of the inputs pass through the functions.

    def inputs(self, stage: Stage) -> list[Iterator[Placed]]:
        return [
            self.narrowed(self.source(source, fields_of(narrows)) if isinstance(source, Source) else self.stage(source), narrows, stage.end)
            for source, narrows in zip(stage.inputs, stage.narrows)
        ]

    def source(self, source: Source, fields: Set[Any] | None) -> Iterator[Placed]:
        for placed in read(source, self.failed_on_input, fields):
            self.stats["records_read"] += 1
            self.token.check()
            if self.deadline is not None and time.monotonic() - self.began > self.deadline:
                raise ResourceError(f"the job did not end within {self.deadline:g} s")
            yield placed

    def narrowed(self, placed: Iterator[Placed], narrows: Sequence[Narrow], end: Shuffle | Join | None) -> Iterator[Placed]:
        if self.skip:
            return self.good(placed, narrows, end)
        if any(narrow.kind == "map_batches" for narrow in narrows):
            return self.batches(placed, narrows)
        return self.records(placed, narrows)

    def records(self, placed: Iterable[Placed], narrows: Sequence[Narrow]) -> Iterator[Placed]:
        steps = steps_of(narrows)
        chains = [(steps[: number + 1], f"{narrow.kind} {name(narrow.function)}") for number, narrow in enumerate(narrows)]
        for record, place in placed:
            outputs: Iterable[Any] = [record]
            for chain, said in chains:
                outputs = _streamed(said, chain, record, place, outputs)
            yield from ((output, place) for output in outputs)

    def batches(self, placed: Iterator[Placed], narrows: Sequence[Narrow]) -> Iterator[Placed]:
        """Applies functions to many records at once.

        If one fails, the records are tried one by one, to find the bad one.
        """
        steps, said = steps_of(narrows), [f"{narrow.kind} {name(narrow.function)}" for narrow in narrows]
        while batch := list(itertools.islice(placed, _BATCH)):
            records = [record for record, _ in batch]
            found: Iterable[Any] = records
            try:
                for step in steps:
                    found = applied(step, found)
                yield from ((output, NOWHERE) for output in found)
            except (Exception, SystemExit) as error:
                for record, place in batch:
                    outputs: Iterable[Any] = [record]
                    for number in range(len(steps)):
                        given = functools.partial(applied, steps[number], outputs)
                        outputs = self.guarded(said[number], steps[: number + 1], record, place, given)
                _raise_job_error(raised(error), said[-1], Call(steps, records), NOWHERE)

    def good(self, placed: Iterator[Placed], narrows: Sequence[Narrow], end: Shuffle | Join | None) -> Iterator[Placed]:
        """Applies functions to records, and sets aside those on which one fails, with all that became of them."""
        steps = steps_of(narrows)
        by = end.function if isinstance(end, Shuffle) and end.kind in ("sort", "top") else None
        if not steps and by is None:
            yield from placed
            return

        def outputs_of(record: Any) -> list[Any]:
            found = Call(steps, record).run()
            if by is not None:
                for _ in applied(("map", by), found):
                    pass
            return found

        for record, place in placed:
            outputs = self.guarded("", steps or [("map", by or outputs_of)], record, place, functools.partial(outputs_of, record))
            yield from ((output, place) for output in outputs)

    # Step 2: the shuffle.

    def shuffle(self, records: Iterator[Any], end: Shuffle) -> Iterator[Any]:
        match end.kind:
            case "reduce" | "groups":
                (said, step), method = group_step(end), step_of(end)
                for group in _grouped(_pairs(records, method), method):
                    yield from self.guarded(said, [step], group)
            case "distinct":
                yield from (key for key, _ in _grouped(((record, None) for record in records), "distinct"))
            case "count_by_value":
                yield from ((key, len(values)) for key, values in _grouped(((record, None) for record in records), end.kind))
            case "sort":
                keyed = self.keyed(records, end)
                yield from (record for _, record in sorted(keyed, key=operator.itemgetter(0), reverse=end.descending))
            case "top":
                yield from (record for _, record in heapq.nsmallest(end.count, self.keyed(records, end), _Greatest))

    def keyable(self, records: Iterator[Any], end: Shuffle | Join) -> Iterator[Any]:
        """The records, without those whose key has no form if bad records are set aside."""
        if not self.skip or (isinstance(end, Shuffle) and end.kind in ("sort", "top")):
            return records
        whole = isinstance(end, Shuffle) and end.kind in ("distinct", "count_by_value")
        return (record for record in records if self.has_form(record, whole, step_of(end)))

    def has_form(self, record: Any, whole: bool, step: str) -> bool:
        """Whether the key of a record has a form. If not, the record is set aside."""
        if not whole and not is_pair(record):
            return True  # Another error.
        try:
            _form(group_key, record if whole else record[0], step)
        except JobError as error:
            self.bad_records.append(BadRecord(record, str(error).partition("\n")[0]))
            return False
        return True

    def keyed(self, records: Iterator[Any], end: Shuffle) -> Iterator[tuple[SortKey, Any]]:
        """Records with the keys by which they are ordered."""
        of = end.function
        assert of is not None
        for record in records:
            for key in self.guarded(f"the key of {end.kind}, {name(of)}", [("map", of)], record):
                try:
                    found = _form(SortKey, key, end.kind)
                except JobError as error:
                    if not self.skip:
                        raise
                    self.bad_records.append(BadRecord(record, str(error).partition("\n")[0]))
                else:
                    yield found, record

    def join(self, left: Iterator[Any], right: Iterator[Any], how: str) -> Iterator[Any]:
        tagged = itertools.chain(
            ((key, (0, value)) for key, value in _pairs(left, "join")),
            ((key, (1, value)) for key, value in _pairs(right, "join")),
        )
        for key, values in _grouped(tagged, "join"):
            sides: tuple[list[Any], list[Any]] = ([], [])
            for side, value in values:
                sides[side].append(value)
            lefts, rights = sides
            if how == "anti":
                yield from ((key, value) for value in lefts if not rights)
                continue
            if not lefts and how in ("right", "full"):
                lefts = [None]
            if not rights and how in ("left", "full"):
                rights = [None]
            yield from ((key, (a, b)) for a in lefts for b in rights)

    # What goes wrong.

    def guarded(
        self,
        said: str,
        steps: Sequence[Step],
        given: Any,
        place: Place = NOWHERE,
        function: Callable[[], Iterable[Any]] | None = None,
    ) -> list[Any]:
        """Applies functions to a record. If one fails, the job ends with an error, or sets the record aside.

        `function` is the last step alone, if those before it have been done.
        """
        self.token.check()
        call = Call(steps, given)
        try:
            return list(function()) if function is not None else call.run()
        except (Exception, SystemExit) as found:
            error = raised(found, steps[-1][0])
            if isinstance(error, PairsNeeded):
                raise
            if not self.skip:
                _raise_job_error(error, said, call, place)
            self.bad_records.append(BadRecord(call.record, one_line(error), *place))
            return []

    def failed_on_input(self, record: Any, place: Place, error: Exception) -> None:
        if not self.skip:
            raise error
        self.bad_records.append(BadRecord(record, str(error), *place))


def _streamed(said: str, steps: Sequence[Step], given: Any, place: Place, records: Iterable[Any]) -> Iterator[Any]:
    """Applies the last step to records, one by one.

    If it fails, the job ends with an error that names the record `given`.
    """
    try:
        yield from applied(steps[-1], records)
    except JobError:
        # An earlier step has failed.
        raise
    except (Exception, SystemExit) as error:
        _raise_job_error(raised(error, steps[-1][0]), said, Call(steps, given), place)


def _raise_job_error(error: BaseException, said: str, call: Call, place: Place) -> NoReturn:
    where = f"\n  {place}" if place.file else ""
    raise JobError(
        f"{one_line(error)}\n  in {said}, on {reprlib.repr(call.record)}{where}",
        record=call.record,
        **place._asdict(),
        attempt=1,
        traceback_text=user_traceback(error),
        call=call.pickled(),
    ) from error


def _pairs(records: Iterable[Any], step: str) -> Iterator[tuple[Any, Any]]:
    for record in records:
        if not is_pair(record):
            raise PlanError(f"{step} needs pairs of a key and a value, and this record is {reprlib.repr(record)}")
        yield record[0], record[1]


def _grouped(pairs: Iterable[tuple[Any, Any]], step: str) -> list[tuple[Any, list[Any]]]:
    """Values by key, in the order of the keys."""
    groups: dict[Any, tuple[Any, list[Any]]] = {}
    for key, value in pairs:
        slot = _form(group_key, key, step)
        shown, values = groups.setdefault(slot, (key, []))
        values.append(value)
        if shown is not key and is_plain(key) and not is_plain(shown):
            groups[slot] = key, values
    return sorted(groups.values(), key=lambda group: SortKey(group[0], lenient=True))


def _form(function: Callable[[Any], T], key: Any, step: str) -> T:
    """Applies a function of :mod:`gristmill.keys` to a key."""
    try:
        return function(key)
    except NoKey as error:
        raise PlanError(f"{step}: {error}") from error
    except NoOrder as error:
        raise TypeError(str(error)) from None
    except KeyFunctionFailed as error:
        said = f"the key function of {error.kind.__qualname__}"
        _raise_job_error(error.__cause__ or error, said, Call([("map", function)], error.key), NOWHERE)
    except Exception as error:
        _raise_job_error(error, step, Call([("map", function)], key), NOWHERE)


class _Greatest:
    """Orders records by key, descending, then by the records themselves if they have an order."""

    def __init__(self, keyed: tuple[SortKey, Any]) -> None:
        self.key, record = keyed
        self.tie = SortKey(record) if is_ordered(record) else None

    def __lt__(self, other: _Greatest) -> bool:
        if self.key < other.key or other.key < self.key:
            return other.key < self.key
        return self.tie is not None and other.tie is not None and self.tie < other.tie
