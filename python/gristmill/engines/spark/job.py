"""The same jobs on Apache Spark. This module is the side of the program: it makes a plan of Spark, and runs it.

::

    source ── mapInArrow ── exchange of Spark ── mapInArrow ── ... ── blocks of records ── the program
              functions     by the bytes of      functions
              of a stage    keys; sums, joins    of the next

Python runs between two exchanges, once: what a stage makes of groups goes through the functions of the next without leaving the
process. Results have the order of their keys, for which Spark draws a sample of them; what it draws from is kept until the
end of the job, so that no function runs twice.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import pickle
import sys
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ... import _native
from ...base import cancel
from ...base.errors import PlanError, ResourceError, raise_as
from ...base.progress import Bar
from ...base.settings import Settings
from ...plan.describe import title
from ...plan.nodes import Join, Narrow, Shuffle, Source
from ...plan.reducers import Reducer
from ...plan.stages import Stage, stages
from ...records.runs import BadRecord, Kept, Run
from ..formats import json_values
from ..functions import Side, fields_of, reduced_by
from . import executors, feeds, partials, report, sinks
from .faults import error_of, stuck
from .held import Held, left
from .parts import parts_of

T = TypeVar("T")
N = TypeVar("N", Narrow, Shuffle)
_NOBODY = Source("range", range(0))
#: Parts of the input for each processor.
_PARTS = 4
#: Records of the program in a block.
_BLOCK = 1024
#: How often the driver looks whether a task has failed.
_LOOK_SECONDS = 0.1
#: The accumulator to which tasks report, for each context of Spark.
_told: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """A job; it runs when its records, or their number, are asked for."""
    session = _session(settings)
    _refuse(stage, settings)
    job = _Job(session, settings)

    def blocks() -> Iterator[bytes]:
        held = job.hold(stage)
        for block in held.blocks():
            job.token.check()
            yield block
        held.leave()

    def count() -> int:
        held = job.hold(stage, only_count=True)
        held.leave()
        return held.records

    made = blocks()
    records = itertools.chain.from_iterable(map(_native.decode, made))
    return Run(records, job.bad_records, job.stats, made, _native.decode, count=count, hold=lambda: job.hold(stage))


# Step 0: what is there, and what cannot run.


def _session(settings: Settings) -> SparkSession:
    session: Any = settings.engine
    if isinstance(session, str):
        session = SparkSession.getActiveSession()
        if session is None:
            # Else Spark runs the python3 that it finds first.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            session = SparkSession.builder.appName("gristmill").getOrCreate()
    if not hasattr(session, "_jsparkSession"):
        raise PlanError("this session is one of Spark Connect, which has no accumulators; give a session that runs in this program")
    while left:
        with suppress(Exception):
            left.popleft().unpersist()
    return session  # type: ignore[no-any-return]


def _refuse(last: Stage, settings: Settings) -> None:
    for array in itertools.chain.from_iterable(stage.arrays for stage in stages(last)):
        raise PlanError(f"{array!r} is in the memory of this machine, so jobs that use it cannot run on Spark")
    for option in settings.others:
        raise PlanError(f"{option} is an option of the engine for one machine; on Spark, the session's settings decide")


# Step 1: the plan.


@dataclass
class _Rows:
    """A frame, and how its rows are read as the records of a source or stage."""

    frame: DataFrame
    feed: Any


class _Job:
    """A job: what it has told so far, and the frames that are kept until it ends."""

    def __init__(self, session: SparkSession, settings: Settings) -> None:
        self.session, self.settings, self.context = session, settings, session.sparkContext
        self.token = cancel.current()
        self.processors = self.context.defaultParallelism
        self.name = f"gristmill {uuid.uuid4().hex}"
        self.seed = uuid.uuid4().int >> 66 if settings.seed is None else settings.seed
        self.skip = settings.on_error == "skip"
        self.deadline = settings.deadline_seconds()
        self.ends = None if self.deadline is None else time.monotonic() + self.deadline
        #: This job, and those that made what it reads: Spark runs their tasks again if it loses an executor.
        self.jobs = [self.name]
        self.kept: list[DataFrame] = []
        self.made: dict[Stage, _Rows] = {}
        self.numbers: dict[Stage, int] = {}
        self.uses: Counter[Stage] = Counter()
        self.works = itertools.count()
        self.bad_records: list[BadRecord] = []
        self.stats: dict[str, Any] = {"engine": "spark"}
        if self.context not in _told:
            _told[self.context] = self.context.accumulator({}, report.Telling())
        self.told = _told[self.context]

    def hold(self, stage: Stage, only_count: bool = False) -> Held:
        """Runs the job; its records stay on the cluster."""
        began = time.monotonic()
        self._number(stage)
        try:
            held = self._hold(stage, only_count)
        finally:
            for frame in self.kept:
                with suppress(Exception):
                    frame.unpersist()
            entries = self.told.value.pop(self.name, {})
        self.bad_records += [pickle.loads(entries[key]) for key in sorted(key for key in entries if key[0] == "bad")]
        counts: Counter[Any] = Counter()
        for (kind, of, *_), entry in entries.items():
            if kind == "count":
                counts[of] += entry
        self.stats["records_read"] = counts["read"]
        self.stats["stages"] = [{"step": title(each), "records": counts[number]} for each, number in self.numbers.items()]
        self.stats["seconds"] = time.monotonic() - began
        return held

    def _number(self, stage: Stage) -> None:
        """Numbers the stages, the first ones first."""
        self.uses[stage] += 1
        if stage in self.numbers:
            return
        for source in stage.inputs:
            if isinstance(source, Stage):
                self._number(source)
        self.numbers[stage] = len(self.numbers)

    def _hold(self, stage: Stage, only_count: bool) -> Held:
        source = stage.inputs[0]
        if stage.end is None and not stage.narrows[0] and isinstance(source, Source) and (held := self._held(source)):
            return dataclasses.replace(held, is_lent=True)
        if stage.end is None:
            frame = self.mapped(stage, 0, sinks.ToBlocks(), ordered=True)
        else:
            frame = self.blocks(self.of(stage, ordered=True))
        if not only_count:
            frame = frame.persist()
        totals = frame.selectExpr("sum(n)", "sum(length(block))")
        try:
            ((records, size),) = self.act(stage, totals.collect)
        except BaseException:
            frame.unpersist()
            raise
        return Held(self.name, frame, frame if only_count else self._short(frame), records or 0, size or 0)

    def _short(self, kept: DataFrame) -> DataFrame:
        """The same rows without the plan that made them.

        Else each step of a loop would plan all steps before it again.
        """
        jvm: Any = self.session._jsparkSession
        return DataFrame(jvm.createDataFrame(kept._jdf.toJavaRDD(), kept._jdf.schema()), self.session)

    def of(self, stage: Stage, ordered: bool) -> _Rows:
        """The records of a stage, in order if they must be. Those of a stage that is used twice are made once."""
        if self.uses[stage] == 1:
            return self.shuffled(stage, ordered)
        if stage not in self.made:
            frame = self.keep(self.blocks(self.shuffled(stage, ordered=True)))
            self.made[stage] = _Rows(frame, feeds.FromBlocks())
        return self.made[stage]

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows; the functions that make them run once."""
        self.kept.append(frame.persist())
        return self.kept[-1]

    def blocks(self, rows: _Rows) -> DataFrame:
        """The records as blocks."""
        return self.task(rows, [], None, sinks.ToBlocks())

    def mapped(self, stage: Stage, side: int, sink: sinks.Sink, ordered: bool = False) -> DataFrame:
        """The rows that become of an input of a stage."""
        source, narrows = stage.inputs[side], list(stage.narrows[side])
        if isinstance(source, Stage):
            rows = self.of(source, ordered)
        else:
            rows = self.source(source, fields_of(narrows))
            if source.kind == "jsonl":
                narrows.insert(0, Narrow(source, "flat_map", json_values))
        return self.task(rows, narrows, stage, sink)

    def task(self, rows: _Rows, narrows: Sequence[Narrow], stage: Stage | None, sink: sinks.Sink) -> DataFrame:
        """The rows that become of rows in Python: of the records of `stage`, if it is given."""
        self.token.check()
        end = _alone(stage.end) if stage is not None and isinstance(stage.end, Shuffle) else None
        counts = self.numbers[stage] if stage is not None and stage.end is None else None
        side = Side(None, list(map(_alone, narrows)), end)
        work = executors.Work(next(self.works), rows.feed, side, sink, self.skip, self.seed, counts)
        try:
            task = executors.Task(work, self.told, self.name)
        except Exception as error:
            raise PlanError(f"{stuck(work)} cannot travel to the executors of Spark: {error}") from error
        return rows.frame.mapInArrow(task.run, sink.schema)

    def source(self, source: Source, fields: Set[Any] | None) -> _Rows:
        """The rows from which executors make the records of a source, or some fields of each."""
        if held := self._held(source):
            return _Rows(held.frame, feeds.FromBlocks(is_read=True))
        if source.kind == "iterable":
            blocks = pyarrow.table({"block": pyarrow.array(self._coded(source.data), pyarrow.binary())})
            return _Rows(self.session.createDataFrame(blocks), feeds.FromBlocks(is_read=True))
        parts = list(parts_of(source, self.processors * _PARTS))
        # One row for each partition of the frame.
        frame = self.session.range(0, len(parts), 1, max(1, len(parts)))
        known = Source(source.kind, (), source.options)
        return _Rows(frame, feeds.FromParts(known, parts, fields))

    def _held(self, source: Source) -> Held | None:
        """The records of a source, if they are kept on the cluster."""
        if not isinstance(source.data, Kept):
            return None
        source.data.make()
        held = source.data.held
        if not isinstance(held, Held) or held.frame.sparkSession.sparkContext is not self.context:
            return None
        self.jobs.append(held.job)
        return held

    def _coded(self, records: Sequence[Any]) -> Iterator[bytes]:
        step = max(1, min(_BLOCK, -(-len(records) // (self.processors * _PARTS))))
        for start in range(0, len(records), step):
            try:
                yield b"".join(map(_native.encode_value, records[start : start + step]))
            except Exception as error:
                raise PlanError(f"a record of the program cannot travel to the executors of Spark: {error}") from error

    def shuffled(self, stage: Stage, ordered: bool) -> _Rows:
        """Returns the rows that the end of a stage makes of its records."""
        end = _alone(stage.end) if isinstance(stage.end, Shuffle) else stage.end
        make: Any
        match end:
            case Join():
                frame, make = self.joined(stage, end, ordered)
            case Shuffle(kind="count_by_value" | "distinct") | Shuffle(kind="reduce", reducer=Reducer(name="count")):
                sink = partials.ToCounts(of_pairs=end.kind == "reduce")
                frame = self.mapped(stage, 0, sink).groupBy("key").agg(*_shown(), F.sum("n").alias("n"))
                frame = self.together(frame) if ordered else frame
                make = functools.partial(feeds.from_keys, end.kind != "distinct")
            case Shuffle(kind="reduce", reducer=Reducer(name="sum" | "mean" as known)):
                sums = [F.sum(column).alias(column) for column in ("times", "n", "low", "high", "real")]
                frame = self.added_up(self.mapped(stage, 0, partials.ToSums()), sums, ordered)
                reduce = partials.mean if known == "mean" else reduced_by(end)
                columns = ("odd", "times", "n", "low", "high", "real")
                make = feeds.FromGroups(end, reduce, columns, partials.totals)
            case Shuffle(kind="reduce", reducer=Reducer(name="min" | "max") as known):
                of = F.min if known.name == "min" else F.max
                best = [of(column).alias(column) for column in ("whole", "real")]
                frame = self.added_up(self.mapped(stage, 0, partials.ToExtremes(known)), best, ordered)
                make = feeds.FromGroups(end, reduced_by(end), ("odd", "whole", "real"), partials.extremes)
            case Shuffle(kind="reduce" | "groups"):
                frame = self.mapped(stage, 0, self.combining(end))
                frame = self.together(self.keep(frame)) if ordered else frame.repartition("key").sortWithinPartitions("key")
                make = feeds.FromGroups(end, reduced_by(end))
            case Shuffle(kind="sort"):
                frame = self.mapped(stage, 0, sinks.ToSorted(end.descending))
                frame = self.together(self.keep(frame)) if ordered else frame
                make = feeds.from_values
            case Shuffle(kind="top"):
                frame = self.mapped(stage, 0, sinks.ToTop(end.count)).orderBy("key").limit(end.count)
                make = feeds.from_values
            case _:
                raise AssertionError(f"{title(stage)} is no shuffle")
        return _Rows(frame, feeds.FromShuffle(self.numbers[stage], make))

    def combining(self, end: Shuffle) -> sinks.Sink:
        """The sink for a reducer of which Spark knows nothing."""
        match end.reducer:
            case Reducer(name="top"):
                return partials.ToTops(end.reducer)
            case Reducer(name="first"):
                return partials.ToReduced(partials.first)
            case Reducer() | None:
                return sinks.ToPairs()
            case function if not self.skip:
                return partials.ToReduced(function)
        # A key whose values make the function fail is left out as a whole.
        return sinks.ToPairs()

    def together(self, frame: DataFrame) -> DataFrame:
        """Rows in the order of their keys, those of a key in one partition."""
        return frame.repartitionByRange("key").sortWithinPartitions("key")

    def added_up(self, frame: DataFrame, columns: Sequence[Any], ordered: bool) -> DataFrame:
        """One row for each key, and one for each odd value."""
        rows = frame if ordered else frame.repartition("key")
        rows = rows.groupBy("key", "odd").agg(*_shown(), *columns)
        return self.together(rows) if ordered else rows.sortWithinPartitions("key")

    def joined(self, stage: Stage, end: Join, ordered: bool) -> tuple[DataFrame, Any]:
        names = ("key", "types", "odd_key")
        ones = self.mapped(stage, 0, sinks.ToPairs()).toDF(*names, "one")
        others = self.mapped(stage, 1, sinks.ToPairs()).toDF(*(f"other_{each}" for each in names), "other")
        frame = ones.join(others, ones["key"] == others["other_key"], "left_anti" if end.how == "anti" else end.how)
        if end.how != "anti":
            types = F.coalesce("types", F.lit(0)).bitwiseOR(F.coalesce("other_types", F.lit(0))).alias("types")
            odd = F.least("odd_key", "other_odd_key").alias("odd_key")
            frame = frame.select(F.coalesce("key", "other_key").alias("key"), types, odd, "one", "other")
        return self.together(self.keep(frame)) if ordered else frame, functools.partial(feeds.from_pairs, end.how == "anti")

    # Step 2: the run.

    def act(self, stage: Stage, action: Callable[[], T]) -> T:
        """Lets Spark run, and looks whether it should go on."""
        found: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            self.context.setJobGroup(self.name, title(stage))
            try:
                found.append(action())
            except BaseException as error:
                errors.append(error)

        thread = InheritableThread(target=run, daemon=True)
        thread.start()
        try:
            with Bar(self.settings.progress) as bar:
                bar.begin({"number": 1, "count": 1, "title": title(stage), "unit": "tasks"})
                while thread.is_alive():
                    thread.join(_LOOK_SECONDS)
                    self._look()
                    self.token.check()
                    if self.ends is not None and time.monotonic() > self.ends:
                        raise ResourceError(f"the job did not end within {self.deadline:g} s")
                    if bar.screen is not None:
                        bar.show(self._progress())
        except BaseException:
            self.context.cancelJobGroup(self.name)
            raise
        if errors:
            raise error_of(errors[0], self.context) from errors[0]
        return found[0]

    def _look(self) -> None:
        """Raises what a task has told of a function that failed."""
        for job in self.jobs:
            for key, entry in list(self.told.value.get(job, {}).items()):
                if key[0] == "failure":
                    raise_as(*entry.as_error())

    def _progress(self) -> dict[str, Any]:
        tracker = self.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.name)]
        found = [tracker.getStageInfo(each) for job in jobs if job for each in job.stageIds]
        done = sum(each.numCompletedTasks for each in found if each)
        return {"done": done, "total": sum(each.numTasks for each in found if each), "deaths": 0, "finishing": False}


def _shown() -> list[Any]:
    """The key that stands for equal ones; see `encode_key` in crates/python/src/lib.rs."""
    return [F.bit_or("types").alias("types"), F.min("odd_key").alias("odd_key")]


def _alone(node: N) -> N:
    """A function or shuffle without the plan before it, which stays here."""
    return dataclasses.replace(node, parent=_NOBODY)
