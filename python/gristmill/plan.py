"""What a dataset is made of: sources, functions applied record by record, and shuffles, as plain data.

A pipeline is cut into *stages*: each reads its inputs, applies functions to records, and ends with at most one shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from .base.printable import printable
from .reducers import Reducer
from .shared import SharedArray

SourceKind = Literal["text", "files", "bytes", "csv", "jsonl", "parquet", "iterable", "range"]
NarrowKind = Literal["map", "filter", "flat_map", "map_batches"]
ShuffleKind = Literal["reduce", "groups", "distinct", "sort", "top", "count_by_value"]
JoinKind = Literal["inner", "left", "right", "full", "anti"]


# Nodes compare by identity: a dataset that is used twice is the same node.


@dataclass(frozen=True, eq=False)
class Source:
    """Where records come from: paths, or what the program made.

    Options are the named arguments of the function that made it, such as `errors` of :func:`gristmill.read_text`.
    """

    kind: SourceKind
    data: Any
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Narrow:
    """A function of one record (or of a batch of them), applied where the record is."""

    parent: Node
    kind: NarrowKind
    function: Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Shuffle:
    """Brings records with equal keys together, or all records in order."""

    parent: Node
    kind: ShuffleKind
    #: Of `reduce`.
    reducer: Reducer | Callable[[Any, Any], Any] | None = None
    #: Of `groups`: what becomes of a key and its values. Of `sort` and `top`: the key of a record.
    function: Callable[..., Any] | None = None
    #: Of `sort`.
    descending: bool = False
    #: Of `top`: how many records are kept.
    count: int = 0


@dataclass(frozen=True, eq=False)
class Join:
    """Pairs of values whose keys are equal."""

    left: Node
    right: Node
    how: JoinKind


@dataclass(frozen=True, eq=False)
class Uses:
    """Lets the functions of a stage write shared arrays."""

    parent: Node
    arrays: Sequence[SharedArray]


Node = Union[Source, Narrow, Shuffle, Join, Uses]


@dataclass(frozen=True, eq=False)
class Stage:
    """Inputs, the functions applied to the records of each, and the shuffle at the end.

    A join has two inputs. Without an end the records keep the order of the input.
    """

    inputs: Sequence[Source | Stage]
    narrows: Sequence[Sequence[Narrow]]
    end: Shuffle | Join | None
    #: The shared arrays that the functions use.
    arrays: Sequence[SharedArray] = ()


def stage_of(node: Node) -> Stage:
    """Cuts the pipeline that ends in `node` into stages; returns the last one, which holds the others.

    A shuffle that is used twice is one stage, held twice.
    """
    return _stage_of(node, {})


def _stage_of(node: Node, stages: dict[Node, Stage]) -> Stage:
    if node in stages:
        return stages[node]
    end = node if isinstance(node, (Shuffle, Join)) else None
    match end:
        case Shuffle():
            parents = [end.parent]
        case Join():
            parents = [end.left, end.right]
        case _:
            parents = [node]
    inputs: list[Source | Stage] = []
    narrows: list[list[Narrow]] = []
    arrays: dict[SharedArray, None] = {}
    for parent in parents:
        chain: list[Narrow] = []
        while isinstance(parent, (Narrow, Uses)):
            if isinstance(parent, Uses):
                arrays |= dict.fromkeys(parent.arrays)
            else:
                chain.append(parent)
            parent = parent.parent
        narrows.append(chain[::-1])
        inputs.append(parent if isinstance(parent, Source) else _stage_of(parent, stages))
    return stages.setdefault(node, Stage(inputs, narrows, end, list(arrays)))


def stages(last: Stage) -> set[Stage]:
    """A stage and all that it needs."""
    return {last}.union(*(stages(source) for source in last.inputs if isinstance(source, Stage)))


def describe(stage: Stage) -> Iterator[str]:
    """Lines that describe a stage and those before it, the last one first."""
    return _described(stage, "", set())


def _described(stage: Stage, indent: str, before: set[Stage]) -> Iterator[str]:
    yield indent + title(stage) + (" (the same as above)" if stage in before else "")
    if stage in before:
        return
    before.add(stage)
    for source, narrows in zip(stage.inputs, stage.narrows):
        for narrow in reversed(narrows):
            yield f"{indent}  {narrow.kind} {name(narrow.function)}"
        if isinstance(source, Stage):
            yield from _described(source, indent + "  ", before)
        else:
            yield f"{indent}  {_source(source)}"


def title(stage: Stage) -> str:
    """The end of a stage in a few words."""
    match stage.end:
        case Shuffle() as end:
            by = end.reducer if end.reducer is not None else end.function
            count = f" {end.count}" if end.count else ""
            order = ", descending" if end.descending else ""
            return end.kind + count + (f" by {name(by)}" if by is not None else "") + order
        case Join(how=how):
            return f"{how} join"
        case None:
            return "records in the order of the input"


def _source(source: Source) -> str:
    match source.kind:
        case "range":
            return str(source.data)
        case "iterable":
            return "cached records" if source.options.get("cached") else counted(len(source.data), "record")
        case kind:
            files = len(source.data)
            return f"{kind} of {printable(source.data[0])}" if files == 1 else f"{kind} of {files} files"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "record"), counted(2, "record")
    ('1 record', '2 records')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def step_of(end: Shuffle | Join | None) -> str:
    """The method that a shuffle comes from; without one it is a join."""
    kind = end.kind if isinstance(end, Shuffle) else "join"
    return {"reduce": "reduce_by_key", "groups": "group_by_key", "sort": "sort_by"}.get(kind, kind)


def name(function: object) -> str:
    """The name of a function or reducer, for people."""
    if isinstance(function, Reducer):
        return str(function)
    return str(getattr(function, "__qualname__", None) or function).removeprefix("_")
