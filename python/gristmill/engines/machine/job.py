"""The engine: worker processes with native shuffles. This module is the side of the program that asks for a job.

::

    the program                    a process for the job                 its workers
    run(stage) ---- the plan --->  coordinator.work(stage) -- forks -->  workers.Functions.map, .reduce
    Run.records <-- frames ------  records, progress, errors

The job's process has one thread, so it may fork workers; the program may have any number. See `starter`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from ... import _native
from ...base import cancel
from ...base.blocks import decoded
from ...base.errors import ResourceError, WorkerDied, raise_as
from ...base.progress import Bar
from ...base.settings import Settings
from ...plan.stages import Stage, sources
from ...records.runs import BadRecord, Kept, Run
from ...records.timeline import StageTimeline
from . import starter
from .pipes import Pipe, Readable, wait
from .streams import Stream
from .words import in_words_of_python

#: The engine ends a job at its deadline. It cannot while it waits for a file, such as a FIFO that nobody writes.
_GRACE_SECONDS = 1.0


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """Makes a job; it starts when its records, or their number, are asked for."""
    job = _Job(stage, settings)
    blocks = job.blocks()
    records = itertools.chain.from_iterable(map(decoded, blocks))
    return Run(records, job.bad_records, job.stats, blocks, decoded, job.timelines, job.count)


class _Job:
    """A job, and what it tells while it runs."""

    def __init__(self, stage: Stage, settings: Settings) -> None:
        self.stage, self.settings, self.token = stage, settings, cancel.current()
        self.bad_records: list[BadRecord] = []
        self.stats: dict[str, Any] = {"engine": "machine"}
        self.timelines: list[StageTimeline] = []
        #: The number of records that came through a stream.
        self.streamed = 0

    def blocks(self) -> Iterator[bytes]:
        """Runs the job; gives its records."""
        # A later stage reads partitions, which are not in the order of the result. And a worker that waits for a
        # slow program must not be late.
        streams = self.stage.end is None and not isinstance(self.stage.inputs[0], Stage) and "task_timeout" not in self.settings.others
        return self._run(functools.partial(self._stream, live=self.settings.live) if streams else None)

    def count(self) -> int:
        """Runs the job; returns the number of its records, which stay where they are made if no shuffle follows."""
        if self.stage.end is not None:
            return sum(map(_native.count, self.blocks()))
        for _ in self._run(functools.partial(self._stream, count=True)):
            pass
        return self.streamed

    def _stream(self, *, live: bool = False, count: bool = False) -> Stream:
        skip = self.settings.on_error == "skip"
        return Stream(live=live, count=count, skip=skip, spill_dir=self.settings.spill_dir)

    def _run(self, make_stream: Callable[[], Stream] | None) -> Iterator[bytes]:
        began = time.monotonic()
        with ExitStack() as stack:
            stream = None if make_stream is None else stack.enter_context(contextlib.closing(make_stream()))
            self.token.check()
            for source in sources(self.stage):
                if isinstance(source.data, Kept):
                    # In this process, which keeps the records for other jobs.
                    self.token.run(source.data.make)
            job = starter.start(self.stage, self.settings, stream)
            has_ended = False
            stack.callback(lambda: job.close(killed=not has_ended))
            stack.enter_context(self.token.on_cancel(job.kill))
            pipe = stack.enter_context(Pipe(job.pipe))
            bar = stack.enter_context(Bar(self.settings.progress))
            deadline = self.settings.deadline_seconds()
            readable: list[Readable] = [pipe] if stream is None else [pipe, stream]
            while not has_ended:
                job.entries.emit()
                is_ready = stream is not None and stream.receive()
                if stream is not None and is_ready:
                    yield from stream.ready()
                for kind, frame in pipe.frames():
                    if kind == b"B":
                        yield frame
                    else:
                        has_ended = kind in (b"E", b"D")
                        if kind == b"E" and stream is not None:
                            # The records before the one that failed.
                            yield from stream.rest()
                        self._hear(kind, frame, bar)
                if pipe.is_closed and not has_ended:
                    self.token.check()
                    raise WorkerDied(f"the process of the job ended before the job did: {job.ending()}")
                if deadline is not None and time.monotonic() > began + deadline + _GRACE_SECONDS:
                    raise ResourceError(f"the job did not end within {deadline:g} s")
                if not has_ended and not is_ready:
                    wait(readable)
                if stream is not None:
                    stream.look()
            job.entries.emit()
            if stream is not None:
                # All that its tasks have sent was sent before the job ended.
                yield from stream.rest()
                stream.ended(self.stats["stages"][-1]["tasks"])
                self.streamed = stream.records

    def _hear(self, kind: bytes, frame: bytes, bar: Bar) -> None:
        """Takes a frame that has no records."""
        match kind:
            case b"P":
                bar.show(json.loads(frame))
            case b"S":
                bar.begin(json.loads(frame))
            case b"W":
                bar.say(in_words_of_python(frame.decode()))
            case b"E":
                raise_as(*pickle.loads(frame))
            case b"D":
                found, told, drawn = pickle.loads(frame)
                self.bad_records += found
                self.stats.update(told)
                self.timelines += drawn
