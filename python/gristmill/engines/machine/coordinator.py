"""The process of a job: runs stage after stage on the native engine, and tells the program what comes of them."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pickle
import re
import reprlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ... import _native
from ...base import pickles
from ...base.errors import InputError
from ...base.files.paths import is_regular
from ...base.options import text as option_text
from ...base.printable import printable
from ...base.settings import Settings
from ...plan import shared
from ...plan.describe import title
from ...plan.nodes import Join, Narrow, Shuffle, Source
from ...plan.orders import Order
from ...plan.reducers import Reducer
from ...plan.shared import SharedArray
from ...plan.stages import Stage, stages
from ...records.batches import OnArrays, OnTables, Pluck
from ...records.runs import BadRecord
from ..formats import NOWHERE, Place, Share, json_values
from ..functions import Reduce, Side, reduced_by
from .streams import Wanted
from .workers import Functions, Log

#: The codes of errors; see crates/python/src/program.rs.
_FAILED, _UNFIT, _NOT_UTF8, _UNFIT_KEY = 1, 2, 3, 4
#: Sources whose files are read whole by one worker each.
_OPENED = ("files", "csv", "parquet")
#: Sources whose lines the native engine reads.
_OF_LINES = ("text", "bytes", "jsonl")
#: Known reducers whose values combine natively, as ints or as floats.
_REDUCERS = ("sum", "mean", "min", "max")
#: A task of records that the program made has at most a twentieth of a worker's share, rounded up, and at most so many.
_SHARES, _MOST = 20, 16384
#: A Parquet file has a share for each so many bytes.
_SHARE_BYTES = 8 << 20
#: Groups of columns: the bytes of Parquet for which there is one partition, and the logarithm (base 2) of the least number of partitions.
_PARTITION_BYTES, _PARTITION_BITS = 1 << 20, 8
#: Of files, the bytes that go through functions together if random numbers are seeded.
_CHUNK_BYTES = 64 << 10
#: Up to so many objects, each has a place of its own; see PLACES_MAX in crates/python/src/stage.rs.
_EACH_ITS_PLACE = 16 << 20


def work(stage: Stage, settings: Settings, pipe: int, wanted: Wanted | None) -> None:
    """Runs a job, and sends frames to the pipe until one with the end or the error. Records go to a stream, if one is `wanted`."""
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


@dataclass(frozen=True)
class _Attempt:
    """How the native engine ends a stage."""

    end: str
    form: str
    reduce: Reduce | None = None


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
        #: Of each stage its title, the seconds from the start of the job to its own, and its timeline.
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
        """What a stage has made, for the stages that read it."""
        if stage not in self.made:
            self.made[stage] = self.run(stage, keep=True)
        return self.made[stage]

    def run(self, stage: Stage, keep: bool) -> Any:
        """Runs a stage, with one form of values after the other until one holds all that the stage meets."""
        options: dict[str, Any] = {}
        attempts = [(stage, attempt, options) for attempt in _attempts(stage)]
        match stage.end:
            case None if self.wanted is not None:
                attempts = [(stage, _Attempt("stream", "any"), {"stream": self.wanted})]
            case Shuffle(kind="top", count=count):
                options["count"] = count
                if (counted := _counts(stage)) is not None:
                    # The native engine knows the greatest counts before any becomes an object.
                    attempts.insert(0, (counted, _counting(counted)[0], {"limit": count}))
            case Shuffle(kind="sort", descending=descending):
                options["descending"] = descending
            case Join(how=how):
                options["how"] = how
            case Shuffle(kind="groups" | "reduce") if len(attempts) == 1 and _may_be_columns(stage):
                groups = attempts[0][1]
                columns = _Attempt("column-arrays" if groups.end == "arrays" else "columns", "any", groups.reduce)
                attempts.insert(0, (stage, columns, {"count": _partition_bits(stage)}))
        if any(isinstance(source, Source) and _is_of_pipes(source) for source in stage.inputs):
            # What a pipe has is there for one attempt.
            attempts = attempts[-1:]
        sent = 0
        while True:
            attempt, *attempts = attempts
            try:
                return self.attempt(*attempt, keep, sent)
            except _native.StageFailed as failed:
                attempts = [other for other in attempts if _may_fit(other[1].form, attempt[1].form, failed.args[0].get("code"))]
                if not attempts:
                    raise
                sent = failed.args[0]["sent"]

    def attempt(self, stage: Stage, attempt: _Attempt, options: dict[str, Any], keep: bool, sent: int) -> Any:
        sides, given = [], []
        for source, narrows in zip(stage.inputs, stage.narrows):
            end = stage.end if isinstance(stage.end, Shuffle) else None
            if isinstance(source, Stage):
                given.append(self.kept(source))
                sides.append(Side(None, narrows, end, is_made=True, is_each=attempt.end == "gather"))
                continue
            steps: list[Narrow] = []
            match source.kind:
                case kind if kind in _OF_LINES:
                    is_text = _is_strict_text(source)
                    given.append((is_text, source.data))
                    if source.kind == "jsonl":
                        steps = [Narrow(source, "flat_map", json_values)]
                    elif source.kind == "text" and not is_text:
                        steps = [Narrow(source, "map", functools.partial(_text, source.options["errors"]))]
                    sides.append(Side(None, [*steps, *narrows], end))
                case kind:
                    if kind == "parquet":
                        source = Source(kind, list(_shares(source.data)), source.options)
                    count = len(source.data)
                    share = -(-count // (self.workers * _SHARES))
                    given.append((count, 1 if kind in _OPENED else max(1, min(share, _MOST))))
                    sides.append(Side(source, narrows, end, is_opened=kind in _OPENED))
        self.sides = sides
        self.tell(stage)
        skip, is_seeded = self.settings.on_error == "skip", self.settings.seed is not None
        # The same for all attempts, because records of one may be followed by those of another.
        seed = hash((self.seed, len(self.begun)))
        functions = Functions(sides, attempt.reduce, self.log, skip, stage.arrays, seed=seed, is_seeded=is_seeded)
        began = time.monotonic() - self.began
        made, told = _native.run(
            given,
            functions,
            self.pipe,
            keep,
            end=attempt.end,
            form=attempt.form,
            options=list(self.options()),
            skip=skip,
            deadline=None if self.ends is None else max(self.ends - time.monotonic(), 1e-3),
            sent=sent,
            arrays=[self.loaded(array) for array in stage.arrays],
            timeline=self.settings.timeline,
            **options,
        )
        told["bad_records"] = [
            (path, line, offset, self.object_at(offset) if _is_made(path) else record, cause)
            for path, line, offset, record, cause in told["bad_records"]
        ]
        told["deaths"] = [in_words_of_python(death) for death in told["deaths"]]
        if (timeline := told.pop("timeline")) is not None:
            *known, marks = timeline
            marks = [(*mark, in_words_of_python(text)) for *mark, text in marks]
            self.timelines.append((title(stage), began, (*known, marks)))
        if all(side.source and not side.is_opened for side in sides):
            # One byte stands for a record, or for several.
            del told["input_bytes"]
            told = {"input_records": sum(len(side.source.data) for side in sides if side.source)} | told
        self.stats["stages"].append({"step": title(stage)} | told)
        return made

    def tell(self, stage: Stage) -> None:
        """Says which stage begins, for the bar."""
        self.begun.add(stage)
        units = {"records" if side.source and not side.is_opened else "" if side.is_opened else "bytes" for side in self.sides}
        told = {"number": len(self.begun), "count": self.count, "title": title(stage)}
        if units == {"records"}:
            told["records"] = sum(len(side.source.data) for side in self.sides if side.source)
        _send(self.pipe, b"S", json.dumps(told | {"unit": units.pop() if len(units) == 1 else ""}).encode())

    def options(self) -> Iterator[tuple[str, str]]:
        settings = self.settings
        if settings.workers is not None:
            yield "workers", str(settings.workers)
        # Functions of Python may wait for other machines: as many workers as the program asks for run them at the same time.
        if "map_at_once" not in settings.others and (at_once := settings.workers or settings.others.get("map_workers")) is not None:
            yield "map-at-once", str(at_once)
        if (memory_bytes := settings.memory_bytes()) is not None:
            yield "memory", str(memory_bytes)
        if settings.spill_dir is not None:
            yield "spill-dir", os.fspath(settings.spill_dir)
        others = dict(settings.others)
        if settings.seed is not None:
            # The input is cut in the same way for any number of workers.
            others = {"deterministic": True, "chunk_bytes": _CHUNK_BYTES, "split_bytes": _CHUNK_BYTES} | others
        for name, value in others.items():
            yield name.replace("_", "-"), option_text(name, value)

    # What is told at the end.

    def bad_records(self) -> list[BadRecord]:
        failures, bad = self.log.read()
        found = list(bad.values())
        for told in self.stats["stages"]:
            for path, line, offset, record, cause in told.pop("bad_records"):
                place = _place(path, line, offset)
                where = (place.file, place.line, place.byte)
                failure = failures.get(cause.rpartition(" ")[2])
                if failure is None:
                    # The engine itself refused it, or its worker died.
                    found.append(BadRecord(record, f"{place}: {cause}" if place.file else cause, *where))
                elif failure.kind == "input":
                    found.append(BadRecord(record, place.before(failure.text), *where))
                else:
                    value = pickle.loads(failure.record) if failure.record is not None else None
                    found.append(BadRecord(value, failure.text, *where))
        return found

    def error(self, told: dict[str, Any]) -> tuple[str, str, dict[str, Any], bytes | None]:
        """The error that the program raises for one of the native engine: its class, text and fields, and its cause."""
        path, line, byte = told.get("place", (None, None, None))
        place = _place(path, line, byte)
        if told.get("code") == _NOT_UTF8:
            return "InputError", place.before(told["why"]), {}, None
        if told.get("code") == _FAILED:
            failure = self.log.read()[0][told["why"].rpartition(" ")[2]]
            return failure.as_error(place)
        text = in_words_of_python(told["text"])
        match told["kind"]:
            case "died":
                fields = {"file": place.file, "line": place.line, "byte": place.byte, "attempt": told.get("attempts")}
                if path is not None and (record := self.object_at(byte)) is not None:
                    fields["record"], text = record, f"{text}\nThe record: {reprlib.repr(record)}"
                if crash := self.log.crash():
                    text = f"{text}\n{crash}"
                return "WorkerDied", text, fields, None
            case "input" | "rejected":
                return "InputError", text, {}, None
            case "resource":
                if self.deadline is not None and "Job::deadline" in told["text"]:
                    text = f"the job did not end within {self.deadline:g} s"
                return "ResourceError", text, {}, None
            case "cancelled":
                return "Cancelled", text, {}, None
            case "setting":
                return "PlanError", text, {}, None
        return "GristmillError", text, {}, None

    def object_at(self, offset: int) -> Any:
        """The object that the program made and that has this place, if only one input has such."""
        sources = [side.source for side in self.sides if side.source is not None]
        if len(sources) != 1 or len(sources[0].data) > _EACH_ITS_PLACE:
            return None
        return sources[0].data[offset]


def in_words_of_python(text: str) -> str:
    """What the engine says, with the settings of this package."""

    def setting(found: re.Match[str]) -> str:
        name = {"skip_bad_records": 'on_error="skip"', "spill_dirs": "spill_dir=..."}.get(found[1], f"{found[1]}=...")
        return f"gm.configure({name})"

    # Names of files may have characters that steer a terminal.
    text = printable(text).replace("the shared output ", "the shared array ")
    text = text.replace("Raise the limit with Job::record_bytes_max", "gm.read_files reads whole files, of any record length")
    text = re.sub(r"records of the program bytes (\d+)\.\.(\d+)", r"records \1 to \2 of the program", text)
    return re.sub(r"Job::(\w+)(?:\([^)]*\))?", setting, text)


def _shares(paths: list[str]) -> Iterator[Share]:
    """Parts of Parquet files, so that several workers read a large one."""
    for path in paths:
        count = max(1, _file_bytes(path) // _SHARE_BYTES)
        yield from (Share(path, number, count) for number in range(count))


def _file_bytes(path: str) -> int:
    """The size of a file; nothing if there is none, which its reader says."""
    return os.path.getsize(path) if os.path.exists(path) else 0


def _attempts(stage: Stage) -> list[_Attempt]:
    """The ways to end a stage: fast ones that hold for most records, and at last one that holds for all."""
    match stage.end:
        case None:
            return [_Attempt("gather", "any")]
        case Join():
            return [_Attempt("join", "any")]
        case Shuffle(kind="count_by_value"):
            return _counting(stage)
        case Shuffle(kind="distinct"):
            if _is_lines(stage):
                return [_Attempt("distinct-lines", "count")]
            return [_Attempt("distinct", form) for form in ("count", "count-shown")]
        case Shuffle(kind="sort" | "top" as kind):
            return [_Attempt(kind, "any")]
        case Shuffle(kind="reduce", reducer=Reducer(name=name)) if name in _REDUCERS:
            forms = [_Attempt(name, form) for form in ("int", "float", "int-shown", "float-shown")]
            return [*forms, _Attempt("groups", "any", reduced_by(stage.end))]
        case end:
            wants = "arrays" if isinstance(end.function, OnArrays) else "groups"
            return [_Attempt(wants, "any", reduced_by(end))]


def _may_fit(form: str, failed: str, code: int | None) -> bool:
    """Whether a form may hold what another did not: values of another type, or keys that are shown as more than their bytes say."""
    if code == _UNFIT:
        return form == "any" or form.partition("-")[0] != failed.partition("-")[0]
    return code == _UNFIT_KEY and (form == "any" or form.endswith("-shown"))


def _may_be_columns(stage: Stage) -> bool:
    """Whether the pairs that a stage groups are fields plucked from tables. What types these have is known only when they are read."""
    source, functions = stage.inputs[0], [narrow.function for narrow in stage.narrows[0]]
    before = list(itertools.dropwhile(lambda function: isinstance(function, Pluck), reversed(functions)))
    if len(before) == len(functions):
        return False
    return isinstance(before[0], OnTables) if before else isinstance(source, Source) and source.kind == "parquet"


def _partition_bits(stage: Stage) -> int:
    """The logarithm of the number of partitions that columns are grouped in."""
    source = stage.inputs[0]
    files = source.data if isinstance(source, Source) and source.kind == "parquet" else []
    return max((sum(map(_file_bytes, files)) // _PARTITION_BYTES).bit_length(), _PARTITION_BITS)


def _counting(stage: Stage) -> list[_Attempt]:
    source = stage.inputs[0]
    if _is_lines(stage):
        return [_Attempt("lines", "count")]
    if isinstance(source, Source) and _is_strict_text(source):
        match stage.narrows[0]:
            case [Narrow(kind="flat_map", function=function)] if function is str.split:
                return [_Attempt("words", "count"), _Attempt("count", "count-shown")]
    return [_Attempt("count", "count"), _Attempt("count", "count-shown")]


def _is_lines(stage: Stage) -> bool:
    """Whether the records of a stage are lines of text, which no function has changed."""
    source = stage.inputs[0]
    return isinstance(source, Source) and _is_strict_text(source) and not stage.narrows[0]


def _is_strict_text(source: Source) -> bool:
    """Whether the native engine decodes the lines: bytes that are not UTF-8 are then an error."""
    return source.kind == "text" and source.options.get("errors", "strict") == "strict"


def _is_of_pipes(source: Source) -> bool:
    return source.kind in _OF_LINES and not all(map(is_regular, source.data))


def _counts(stage: Stage) -> Stage | None:
    """The stage that counts, if `stage` only wants the greatest counts of it."""
    source, end = stage.inputs[0], stage.end
    assert isinstance(end, Shuffle)
    if end.function != Order("value") or stage.narrows[0] or not isinstance(source, Stage):
        return None
    return source if isinstance(source.end, Shuffle) and source.end.kind == "count_by_value" else None


def _text(errors: str, line: bytes) -> str:
    return line.decode("utf-8", errors)


def _is_made(path: Any) -> bool:
    return str(path) in ("records of the program", "the result of another job")


def _place(path: Any, line: int | None, byte: int | None) -> Place:
    """The place that the native engine tells of; nowhere, if the record is of no file."""
    return NOWHERE if path is None or _is_made(path) else Place(str(path), line, byte)
