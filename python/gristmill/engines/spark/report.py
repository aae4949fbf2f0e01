"""Reports of tasks to the driver: what they did and what went wrong."""

from __future__ import annotations

import itertools
from typing import Any, NoReturn

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from ...base import pickles
from ...base.errors import one_line
from ...plan.nodes import Shuffle
from ...records.runs import BadRecord
from ..formats import NOWHERE, Place
from ..functions import Failure
from ..replays import Call, group_step, raised

#: The exceptions that user code may raise; all others are of the worker.
RAISED = (Exception, SystemExit)
#: Reports to the driver: for each job, entries whose keys are the same when a task runs again.
Told = dict[str, dict[Any, Any]]


class Telling(AccumulatorParam[Told]):
    """Merges what tasks tell."""

    def zero(self, value: Told) -> Told:
        return {}

    def addInPlace(self, value1: Told, value2: Told) -> Told:
        for job, entries in value2.items():
            value1.setdefault(job, {}).update(entries)
        return value1


class Stop(BaseException):
    """The task has told what failed and ends. It does not fail, or Spark would try it again.

    No `except Exception` hides it.
    """


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
        """Ends the job with an error, with what :meth:`Failure.from_error` takes."""
        self._tell({("failure", self.number, self.partition): Failure.from_error(error, **about)})
        raise Stop

    def set_aside(self, record: Any, error: str, place: Place = NOWHERE) -> None:
        """Leaves a record out, and says so."""
        key = ("bad", self.number, self.partition, next(self.entries))
        self._tell({key: pickles.dumps(BadRecord(record, error, *place))})

    def _tell(self, entries: dict[Any, Any]) -> None:
        self.told.add({self.job: entries})


def failed_group(error: BaseException, end: Shuffle, key: Any, values: Any, report: Report) -> None:
    """Ends the job because a function failed on a group, or leaves the group out."""
    error = raised(error)
    if report.skip:
        return report.set_aside(key, one_line(error))
    said, step = group_step(end)
    report.failed(error, step=said, record=key, call=Call([step], (key, values)).pickled())
