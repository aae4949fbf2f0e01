"""The process of a job: runs stage after stage on the native engine, and tells the program what comes of them."""

from __future__ import annotations

import functools
import json
import os
import pickle
import reprlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ... import _native
from ..._native import Code, End, Fault
from ...base import pickles
from ...base.errors import InputError
from ...base.files.paths import is_regular
from ...base.options import text as option_text
from ...base.settings import Settings, shared_options
from ...plan import shared
from ...plan.describe import title
from ...plan.nodes import Narrow, Shuffle, Source
from ...plan.shared import SharedArray
from ...plan.stages import Stage, stages
from ...records.runs import BadRecord
from ..csv_pieces import Pieces, are_cut, first_error, row_bytes_max
from ..formats import NOWHERE, Place, json_values, shares
from ..functions import Side
from .attempts import Attempt, attempts, is_strict_text, may_fit
from .requests import Given, Request
from .streams import Wanted
from .words import in_words_of_python
from .workers import Functions, Log

#: The classes of errors of the program.
_ERRORS = {Fault.INPUT: "InputError", Fault.RESOURCE: "ResourceError", Fault.CANCELLED: "Cancelled", Fault.SETTING: "PlanError"}
#: Sources that Python reads; a file is read by one worker, unless it is CSV that the engine cuts.
_OPENED = ("files", "csv", "parquet")
#: Sources whose lines the native engine reads.
_OF_LINES = ("text", "bytes", "jsonl")
#: A task of records that the program made has at most a twentieth of a worker's share, rounded up, and at most so many.
_SHARES, _MOST = 20, 16384
#: The bytes of a file that go through functions together if random numbers are seeded.
_CHUNK_BYTES = 64 << 10
#: Up to so many objects, each has a place of its own; see PLACES_MAX in crates/python/src/stage.rs.
_EACH_ITS_PLACE = 16 << 20


def work(stage: Stage, settings: Settings, pipe: int, wanted: Wanted | None) -> None:
    """Runs a job, and sends frames to the pipe until one with the end or the error.

    Records go to a stream, if one is `wanted`.
    """
    job = _Job(settings, pipe, wanted)
    try:
        job.final(stage)
        job.store_arrays()
    except _native.StageFailed as failed:
        frame = b"E", pickles.dumps(job.error(failed.args[0]))
    except InputError as error:
        frame = b"E", pickle.dumps(("InputError", str(error), {}, None))
    else:
        frame = b"D", pickles.dumps((job.bad_records(), job.stats, job.timelines))
    _send(pipe, *frame)


def _send(pipe: int, kind: bytes, content: bytes) -> None:
    with open(f"/proc/self/fd/{pipe}", "wb") as file:
        file.write(kind + len(content).to_bytes(4, "little") + content)


class _Job:
    def __init__(self, settings: Settings, pipe: int, wanted: Wanted | None) -> None:
        self.settings, self.pipe, self.wanted, self.log = settings, pipe, wanted, Log()
        self.made: dict[Stage, Any] = {}
        self.arrays: dict[SharedArray, _native.Array] = {}
        # Those of the program's own memory, which a fork has too.
        for array in shared.living():
            array.take_back()
        #: The inputs of the stage that runs.
        self.sides: list[Side] = []
        #: The number of stages, and those that have begun.
        self.count, self.begun = 1, set[Stage]()
        self.stats: dict[str, Any] = {"stages": []}
        #: For each stage its title, the seconds from the start of the job to its own, and its timeline.
        self.timelines: list[tuple[str, float, Any]] = []
        self.began = time.monotonic()
        self.deadline = settings.deadline_seconds()
        self.ends = None if self.deadline is None else time.monotonic() + self.deadline
        #: For random numbers.
        self.seed = int.from_bytes(os.urandom(8), "little") if settings.seed is None else settings.seed
        self.workers = settings.workers or _native.processors()

    def loaded(self, array: SharedArray) -> _native.Array:
        """A shared array as the native engine has it: at first, with the elements that the program put there."""
        if array not in self.arrays:
            self.arrays[array] = _native.Array(array.name, array.dtype.name, array.size)
            if not array.is_all_zeros():
                self.arrays[array].load(array.path())
        return self.arrays[array]

    def store_arrays(self) -> None:
        """Puts what functions wrote where the program reads it."""
        for array, native in self.arrays.items():
            native.store(array.path())

    def final(self, stage: Stage) -> None:
        """Runs the last stage, whose records go to the program."""
        self.count = len(stages(stage))
        self.run(stage, keep=False)

    def kept(self, stage: Stage) -> Any:
        """Returns the result of a stage, for the stages that read it."""
        if stage not in self.made:
            self.made[stage] = self.run(stage, keep=True)
        return self.made[stage]

    def run(self, stage: Stage, keep: bool) -> Any:
        """Runs a stage, with one form of values after the other until one holds all that the stage meets."""
        left = attempts(stage)
        if stage.end is None and self.wanted is not None:
            left = [Attempt(stage, End.Stream())]
        if any(isinstance(source, Source) and _is_of_pipes(source) for source in stage.inputs):
            # What a pipe has is there for one attempt.
            left = left[-1:]
        sent = 0
        while True:
            attempt, *left = left
            try:
                return self.attempt(attempt, keep, sent)
            except _native.StageFailed as failed:
                left = [other for other in left if may_fit(other.form, attempt.form, failed.args[0].get("code"))]
                if not left:
                    raise
                sent = failed.args[0]["sent"]

    def attempt(self, attempt: Attempt, keep: bool, sent: int) -> Any:
        stage = attempt.stage
        pairs = [self.side(source, narrows, attempt) for source, narrows in zip(stage.inputs, stage.narrows)]
        self.sides = [side for side, _ in pairs]
        self.tell(stage)
        skip, is_seeded = self.settings.on_error == "skip", self.settings.seed is not None
        # The same for all attempts, because records of one may be followed by those of another.
        seed = hash((self.seed, len(self.begun)))
        functions = Functions(self.sides, attempt.reduce, self.log, skip, stage.arrays, seed, is_seeded)
        began = time.monotonic() - self.began
        made, told = _native.run(
            Request(
                sides=[given for _, given in pairs],
                functions=functions,
                end=attempt.end,
                form=attempt.form,
                limit=attempt.limit,
                options=list(self.options()),
                arrays=[self.loaded(array) for array in stage.arrays],
                stream=self.wanted if isinstance(attempt.end, End.Stream) else None,
                skip=skip,
                deadline=None if self.ends is None else max(self.ends - time.monotonic(), 1e-3),
                timeline=self.settings.timeline,
                pipe=self.pipe,
                sent=sent,
                keep=keep,
            )
        )
        self.heed(stage, told, began)
        return made

    def side(self, source: Source | Stage, narrows: Sequence[Narrow], attempt: Attempt) -> tuple[Side, Given]:
        """An input of a stage as workers have it, and as the native engine is given it."""
        end = attempt.stage.end if isinstance(attempt.stage.end, Shuffle) else None
        if isinstance(source, Stage):
            return Side(None, narrows, end, is_made=True, is_each=isinstance(attempt.end, End.Gather)), self.kept(source)
        if source.kind in _OF_LINES:
            is_text = is_strict_text(source)
            steps: list[Narrow] = []
            if source.kind == "jsonl":
                steps = [Narrow(source, "flat_map", json_values)]
            elif source.kind == "text" and not is_text:
                steps = [Narrow(source, "map", functools.partial(_text, source.options["errors"]))]
            return Side(None, [*steps, *narrows], end), (is_text, source.data)
        if source.kind == "csv" and are_cut(options := source.options):
            given = ord(options["delimiter"]), row_bytes_max(options), source.data
            return Side(source, narrows, end, is_opened=True, pieces=Pieces(options)), given
        if source.kind == "parquet":
            source = Source(source.kind, list(shares(source.data)), source.options)
        count, is_opened = len(source.data), source.kind in _OPENED
        share = -(-count // (self.workers * _SHARES))
        return Side(source, narrows, end, is_opened=is_opened), (count, 1 if is_opened else max(1, min(share, _MOST)))

    def heed(self, stage: Stage, told: dict[str, Any], began: float) -> None:
        """Keeps what the native engine reports of a stage that has run."""
        told["bad_records"] = [
            (path, line, offset, self.object_at(offset) if _is_made(path) else record, cause)
            for path, line, offset, record, cause in told["bad_records"]
        ]
        told["deaths"] = [in_words_of_python(death) for death in told["deaths"]]
        if (timeline := told.pop("timeline")) is not None:
            *known, marks = timeline
            marks = [(*mark, in_words_of_python(text)) for *mark, text in marks]
            self.timelines.append((title(stage), began, (*known, marks)))
        if all(side.source and not side.is_opened for side in self.sides):
            # One byte stands for a record, or for several.
            del told["input_bytes"]
            told = {"input_records": sum(len(side.source.data) for side in self.sides if side.source)} | told
        self.stats["stages"].append({"step": title(stage)} | told)

    def tell(self, stage: Stage) -> None:
        """Says which stage begins, for the bar."""
        self.begun.add(stage)
        units = {"bytes" if side.pieces or not side.source else "" if side.is_opened else "records" for side in self.sides}
        told = {"number": len(self.begun), "count": self.count, "title": title(stage)}
        if units == {"records"}:
            told["records"] = sum(len(side.source.data) for side in self.sides if side.source)
        _send(self.pipe, b"S", json.dumps(told | {"unit": units.pop() if len(units) == 1 else ""}).encode())

    def options(self) -> Iterator[tuple[str, str]]:
        settings = self.settings
        yield from shared_options(settings)
        # Functions of Python may wait for other machines: as many workers as the program asks for run them at the
        # same time.
        if "map_at_once" not in settings.others and (at_once := settings.workers or settings.others.get("map_workers")) is not None:
            yield "map-at-once", str(at_once)
        others = dict(settings.others)
        if settings.seed is not None:
            # The input is cut in the same way for any number of workers.
            others = {"deterministic": True, "chunk_bytes": _CHUNK_BYTES, "split_bytes": _CHUNK_BYTES} | others
        for name, value in others.items():
            yield name.replace("_", "-"), option_text(name, value)

    # What is told at the end.

    def bad_records(self) -> list[BadRecord]:
        failures, bad = self.log.read()
        found = sorted(bad.values(), key=lambda each: (each.file or "", each.line or 0, each.byte or 0))
        for told in self.stats["stages"]:
            for path, line, offset, record, cause in told.pop("bad_records"):
                place = _place(path, line, offset)
                failure = failures.get(cause.rpartition(" ")[2])
                if failure is None:
                    # The engine itself refused it, or its worker died.
                    found.append(BadRecord(record, f"{place}: {cause}" if place.file else cause, *place))
                elif failure.kind == "input":
                    found.append(BadRecord(record, place.before(failure.text), *place))
                else:
                    value = pickle.loads(failure.record) if failure.record is not None else None
                    found.append(BadRecord(value, failure.text, *place))
        return found

    def error(self, told: dict[str, Any]) -> tuple[str, str, dict[str, Any], bytes | None]:
        """The error that the program raises for one of the native engine: its class, text and fields, and its cause."""
        path, line, byte = told.get("place", (None, None, None))
        place = _place(path, line, byte)
        if told.get("code") == Code.NOT_UTF8:
            return "InputError", place.before(told["why"]), {}, None
        if told.get("code") == Code.FAILED:
            failure = self.log.read()[0][told["why"].rpartition(" ")[2]]
            return failure.as_error(place)
        if told["fault"] == Fault.INPUT and (found := self.first_error(str(path))) is not None:
            return "InputError", str(found), {}, None
        text = in_words_of_python(told["text"])
        if told["fault"] == Fault.DIED:
            fields = {**place._asdict(), "attempt": told.get("attempts")}
            if path is not None and (record := self.object_at(byte)) is not None:
                fields["record"], text = record, f"{text}\nThe record: {reprlib.repr(record)}"
            if crash := self.log.crash():
                text = f"{text}\n{crash}"
            return "WorkerDied", text, fields, None
        if told["fault"] == Fault.RESOURCE and self.deadline is not None and "Job::deadline" in told["text"]:
            text = f"the job did not end within {self.deadline:g} s"
        return _ERRORS.get(told["fault"], "GristmillError"), text, {}, None

    def first_error(self, path: str) -> InputError | None:
        """The first error of a CSV file, if the engine has found a quote in it that is not closed."""
        for side in self.sides:
            if side.pieces is not None and side.source is not None and path in side.source.data:
                return first_error(path, side.source.options, of_rows=self.settings.on_error != "skip")
        return None

    def object_at(self, offset: int) -> Any:
        """The object that the program made and that has this place, if only one input has such."""
        sources = [side.source for side in self.sides if side.source is not None and side.pieces is None]
        if len(sources) != 1 or len(sources[0].data) > _EACH_ITS_PLACE:
            return None
        return sources[0].data[offset]


def _is_of_pipes(source: Source) -> bool:
    return source.kind in _OF_LINES and not all(map(is_regular, source.data))


def _text(errors: str, line: bytes) -> str:
    return line.decode("utf-8", errors)


def _is_made(path: Any) -> bool:
    return str(path) in ("records of the program", "the result of another job")


def _place(path: Any, line: int | None, byte: int | None) -> Place:
    """The place that the native engine names; nowhere, if the record comes from no file."""
    return NOWHERE if path is None or _is_made(path) else Place(str(path), line, byte)
