"""The engine: worker processes with native shuffles. This module is the side of the program that asks for a job.

::

    the program                    a process for the job                 its workers
    run(stage) ---- the plan --->  coordinator.work(stage) -- forks -->  functions.Functions.map, .reduce
    Run.records <-- frames ------  records, progress, errors

The job's process has one thread, so it may fork workers; the program may have any number. See :mod:`gristmill._starter`.
"""

from __future__ import annotations

import itertools
import json
import pickle
from collections.abc import Iterator
from typing import IO, Any

from .. import _native, _starter
from ..errors import WorkerDied, raise_as
from ..plan import Stage
from ..progress import Bar
from ..runs import BadRecord, Kept, Run, keeping_all
from ..settings import Settings
from ..timeline import StageTimeline

# What the process of a job needs is imported once, here, and not after each fork.
from . import coordinator as coordinator

#: Of a frame: its kind and the length of what follows.
_HEAD = 5


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """Starts a job; its records come as they are asked for."""
    bad_records: list[BadRecord] = []
    stats: dict[str, Any] = {"engine": "machine"}
    timelines: list[StageTimeline] = []
    blocks = _blocks(stage, settings, bad_records, stats, timelines)
    return Run(itertools.chain.from_iterable(map(decoded, blocks)), bad_records, stats, blocks, decoded, timelines)


def _blocks(
    stage: Stage,
    settings: Settings,
    bad_records: list[BadRecord],
    stats: dict[str, Any],
    timelines: list[StageTimeline],
) -> Iterator[bytes]:
    _make_cached(stage)
    job = _starter.start(stage, settings)
    ended = False
    try:
        with open(job.pipe, "rb", buffering=1 << 20) as pipe, Bar(settings.progress) as bar:
            for kind, frame in _frames(pipe):
                job.entries.emit()
                match kind:
                    case b"B":
                        yield frame
                    case b"P":
                        bar.show(json.loads(frame))
                    case b"S":
                        bar.begin(json.loads(frame))
                    case b"W":
                        bar.say(coordinator.in_words_of_python(frame.decode()))
                    case b"E":
                        ended = True
                        raise_as(*pickle.loads(frame))
                    case b"D":
                        ended = True
                        found, told, drawn = pickle.loads(frame)
                        bad_records += found
                        stats.update(told)
                        timelines += drawn
        if not ended:
            raise WorkerDied(f"the process of the job ended before the job did: {job.ending()}")
    finally:
        job.close(killed=not ended)


def decoded(frame: bytes) -> list[Any]:
    """The records of a block."""
    with keeping_all():
        return _native.decode(frame)


def _make_cached(stage: Stage) -> None:
    """Makes cached records in this process, which keeps them for other jobs."""
    for source in stage.inputs:
        if isinstance(source, Stage):
            _make_cached(source)
        elif isinstance(source.data, Kept):
            source.data.make()


def _frames(pipe: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    while len(head := pipe.read(_HEAD)) == _HEAD:
        size = int.from_bytes(head[1:], "little")
        frame = pipe.read(size)
        if len(frame) < size:
            return
        yield head[:1], frame
