"""Attempts: the ways in which the native engine may end a stage, the fastest first."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..._native import Code, End, Form, How, Partitions, Reducers
from ...plan.nodes import Join, JoinKind, Narrow, Shuffle, Source
from ...plan.orders import Order
from ...plan.reducers import Reducer
from ...plan.stages import Stage
from ...records.batches import OnArrays, OnTables, Pluck
from ..formats import file_bytes
from ..functions import Reduce, reduced_by

#: Known reducers whose values combine natively, as ints or as floats.
_REDUCERS: Mapping[str, Callable[[], End]] = {"sum": End.Sum, "mean": End.Mean, "min": End.Min, "max": End.Max}
_HOWS: Mapping[JoinKind, How] = {"inner": How.INNER, "left": How.LEFT, "right": How.RIGHT, "full": How.FULL, "anti": How.ANTI}
#: Forms of keys that are shown as more than their bytes say, and the same forms of other keys.
_SHOWN = {Form.COUNT_SHOWN: Form.COUNT, Form.INT_SHOWN: Form.INT, Form.FLOAT_SHOWN: Form.FLOAT}
#: The bytes of Parquet for each partition of columns, and the logarithm (base 2) of the least number of partitions.
_PARTITION_BYTES, _PARTITION_BITS = 1 << 20, 8


@dataclass(frozen=True)
class Attempt:
    """A way to end a stage natively, and the form of its values."""

    stage: Stage
    end: End
    form: Form = Form.ANY
    reduce: Reduce | None = None
    #: The k of a top-k over counts.
    limit: int | None = None


def attempts(stage: Stage) -> list[Attempt]:
    """Returns the ways to end a stage: fast ones that hold for most records, and at last one that holds for all."""
    match stage.end:
        case None:
            return [Attempt(stage, End.Gather())]
        case Join(how=how):
            return [Attempt(stage, End.Join(_HOWS[how]))]
        case Shuffle(kind="count_by_value"):
            return _counting(stage)
        case Shuffle(kind="distinct"):
            if _is_lines(stage):
                return [Attempt(stage, End.Lines(distinct=True), Form.COUNT)]
            return [Attempt(stage, End.Distinct(), form) for form in (Form.COUNT, Form.COUNT_SHOWN)]
        case Shuffle(kind="sort", descending=descending):
            return [Attempt(stage, End.Sort(descending))]
        case Shuffle(kind="top", count=count):
            # The native engine knows the greatest counts before any becomes an object.
            counted = _counted(stage)
            fast = [] if counted is None else [dataclasses.replace(_counting(counted)[0], limit=count)]
            return [*fast, Attempt(stage, End.Top(count))]
        case Shuffle(kind="reduce", reducer=Reducer(name="several") as reducer) if (several := _several(reducer)) is not None:
            combined = Attempt(stage, End.Several(several), Form.SEVERAL)
            return [combined, Attempt(stage, End.Groups(arrays=False), reduce=reduced_by(stage.end))]
        case Shuffle(kind="reduce", reducer=Reducer(name=name)) if name in _REDUCERS:
            forms = (Form.INT, Form.FLOAT, Form.INT_SHOWN, Form.FLOAT_SHOWN)
            known = [Attempt(stage, _REDUCERS[name](), form) for form in forms]
            return [*known, Attempt(stage, End.Groups(arrays=False), reduce=reduced_by(stage.end))]
        case end:
            arrays, reduce = isinstance(end.function, OnArrays), reduced_by(end)
            partitions = [Partitions(_partition_bits(stage))] if _may_be_columns(stage) else []
            columns = [Attempt(stage, End.Columns(arrays, each), reduce=reduce) for each in partitions]
            return [*columns, Attempt(stage, End.Groups(arrays), reduce=reduce)]


def may_fit(form: Form, failed: Form, code: int | None) -> bool:
    """Whether a form may hold what another did not: other values, or keys that need a header."""
    if code == Code.UNFIT:
        return form == Form.ANY or _SHOWN.get(form, form) != _SHOWN.get(failed, failed)
    return code == Code.UNFIT_KEY and (form == Form.ANY or form in _SHOWN)


def _several(reducer: Reducer) -> Reducers | None:
    """Several reducers as the native engine combines them, if it does."""
    parts = [reducer] if reducer.of_fields else reducer.parts
    named = [[one.name for one in part.parts] if part.of_fields else part.name for part in parts]
    known = {*_REDUCERS, "count"}
    leaves = list(itertools.chain.from_iterable([part] if isinstance(part, str) else part for part in named))
    return Reducers(named) if known.issuperset(leaves) and len(leaves) <= Reducers.MOST else None


def _may_be_columns(stage: Stage) -> bool:
    """Whether the pairs that a stage groups are fields plucked from tables, whose types only reading tells."""
    source, functions = stage.inputs[0], [narrow.function for narrow in stage.narrows[0]]
    before = list(itertools.dropwhile(lambda function: isinstance(function, Pluck), reversed(functions)))
    if len(before) == len(functions):
        return False
    return isinstance(before[0], OnTables) if before else isinstance(source, Source) and source.kind == "parquet"


def _partition_bits(stage: Stage) -> int:
    """The logarithm of the number of partitions that columns are grouped in."""
    source = stage.inputs[0]
    files = source.data if isinstance(source, Source) and source.kind == "parquet" else []
    return max((sum(map(file_bytes, files)) // _PARTITION_BYTES).bit_length(), _PARTITION_BITS)


def _counting(stage: Stage) -> list[Attempt]:
    source, counts = stage.inputs[0], [Attempt(stage, End.Count(), form) for form in (Form.COUNT, Form.COUNT_SHOWN)]
    if _is_lines(stage):
        return [Attempt(stage, End.Lines(distinct=False), Form.COUNT)]
    if isinstance(source, Source) and is_strict_text(source):
        match stage.narrows[0]:
            case [Narrow(kind="flat_map", function=function)] if function is str.split:
                return [Attempt(stage, End.Words(), Form.COUNT), counts[1]]
    return counts


def _is_lines(stage: Stage) -> bool:
    """Whether the records of a stage are lines of text, which no function has changed."""
    source = stage.inputs[0]
    return isinstance(source, Source) and is_strict_text(source) and not stage.narrows[0]


def is_strict_text(source: Source) -> bool:
    """Whether the native engine decodes the lines: bytes that are not UTF-8 are then an error."""
    return source.kind == "text" and source.options.get("errors", "strict") == "strict"


def _counted(stage: Stage) -> Stage | None:
    """Returns the stage that counts, if `stage` only wants the greatest counts of it."""
    source, end = stage.inputs[0], stage.end
    assert isinstance(end, Shuffle)
    if end.function != Order("value") or stage.narrows[0] or not isinstance(source, Stage):
        return None
    return source if isinstance(source.end, Shuffle) and source.end.kind == "count_by_value" else None
