"""Stages of a pipeline: each reads inputs, applies functions to records, and ends with at most one shuffle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..records.batches import OnArrays, OnTables, Pluck
from .nodes import Join, Narrow, Node, Shuffle, Source, Uses
from .shared import SharedArray


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


def sources(last: Stage) -> Iterator[Source]:
    """The sources of a stage and of those before it."""
    return (source for stage in stages(last) for source in stage.inputs if isinstance(source, Source))


def without_fields(node: Node) -> Node:
    """A node with as many records, for a job that only counts them: rows of tables need no fields then."""
    match node:
        case Source(kind="parquet" | "csv") | Narrow(function=OnTables() | Pluck()):
            return Narrow(node, "map", Pluck())
    return node


def functions(last: Stage) -> Iterator[tuple[str, Any]]:
    """The program's functions of a stage and those before it, each with what applies it."""
    for stage in stages(last):
        found: list[tuple[str, Any]] = [(narrow.kind, narrow.function) for narrows in stage.narrows for narrow in narrows]
        end = stage.end
        if isinstance(end, Shuffle):
            found += ("reduce_by_key", end.reducer), ("map_groups" if end.kind == "groups" else end.kind, end.function)
        for said, function in found:
            if function is not None:
                yield said, function.function if isinstance(function, (OnTables, OnArrays)) else function
