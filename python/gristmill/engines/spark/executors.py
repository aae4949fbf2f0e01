"""The work of Spark's executors: from the rows that Spark brings, through functions, to the rows that it takes away.

::

    Arrow --[Feed]--> chunks of records --[the user's functions]--> records --[sink]--> Arrow

Rows are made so that Spark itself can group, sort, join and add up: keys are the bytes of crates/python/src/keys.rs, whose order
and equality are those of keys. Values are bytes too, except numbers that Spark adds up or compares.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pyarrow import RecordBatch
from pyspark.accumulators import Accumulator

from ...base import pickles
from ...base.errors import InputError, one_line
from ...base.keys.canonical import adopt, registered
from ...base.keys.forms import KeyFunctionFailed
from ...records.batches import Batch
from ..formats import Place
from ..functions import Side, fault_of_plan, first_failing
from ..randoms import Generators
from ..replays import Call, raised
from .feeds import Chunk, Feed
from .report import RAISED, GroupFailed, Report, Stop, Told, failed_group
from .rows import Batches
from .sinks import Sink


@dataclass
class Work:
    """The part of a stage that runs in Python between two exchanges of Spark."""

    #: The number of this work in the job.
    number: int
    feed: Feed
    side: Side
    sink: Sink
    skip: bool
    #: The seed of the job, for draws of random numbers.
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
        """Yields the rows for a chunk. If it fails, its records are tried one by one, to find the one at fault."""
        try:
            rows = self._rows(chunk.records, sink, report)
        except RAISED as error:
            found = error
            if isinstance(error, InputError) and isinstance(chunk.records, Batch):
                # A row that cannot become an object is found by its column.
                report.failed(error, kind="input", text=str(error))
        else:
            yield from rows
            return
        failed = False
        for number, record in enumerate(chunk.records):
            try:
                rows = self._rows([record], sink, report)
            except RAISED as error:
                failed = True
                self.failed(error, record, chunk.place(number), report)
            else:
                yield from rows
        if not failed and not report.skip:
            report.failed(raised(found))

    def _rows(self, records: Iterable[Any], sink: Sink, report: Report) -> list[RecordBatch]:
        """The rows for records, which are counted if no function fails."""
        try:
            made = list(self.side.chain(records))
            rows = list(sink.add(made))
        except GroupFailed as early:
            self.failed_early(early, report)
        if self.counts is not None:
            report.count(self.counts, len(made))
        return rows

    def failed(self, error: BaseException, record: Any, place: Place, report: Report) -> None:
        """Ends the job because of a record, or leaves it out."""
        error = raised(error)
        self._is_at_fault(error, report)
        if isinstance(error, InputError):
            text = place.before(str(error))
            if report.skip:
                return report.set_aside(record, text, place)
            report.failed(error, kind="input", text=text, record=record, place=place)
        step, steps = first_failing(self.side, record)
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

    def _is_at_fault(self, error: BaseException, report: Report) -> None:
        """Ends the job if the plan is at fault, not the record."""
        if isinstance(error, KeyFunctionFailed) and not report.skip:
            report.failed(error.__cause__ or error, step=f"the key function of {error.kind.__qualname__}", record=error.key)
        if (fault := fault_of_plan(error, self.side.end)) is not None:
            report.failed(error, **fault)


class Task:
    """Work as Spark calls it: a function of Arrow batches."""

    def __init__(self, work: Work, told: Accumulator[Told], job: str) -> None:
        self.number, self.skip, self.told, self.job = work.number, work.skip, told, job
        # Spark's own cloudpickle knows another copy of each class of the program than ours.
        self.work = pickles.dumps((work, registered()))
        self.path, self.folder = list(sys.path), os.getcwd()

    def run(self, batches: Batches) -> Batches:
        """The rows that become of rows."""
        _as_in_the_program(self.path, self.folder)
        report = Report(self.told, self.job, self.number, self.skip)
        try:
            work, functions = pickle.loads(self.work)
            adopt(functions)
            yield from work.run(batches, report)
        except Stop:
            pass
        report.end()


def _as_in_the_program(path: Sequence[str], folder: str) -> None:
    """Modules and files are found where the program finds them, if this machine has them there."""
    if os.path.isdir(folder):
        os.chdir(folder)
    sys.path += [each for each in path if each not in sys.path and os.path.exists(each or folder)]
