"""A plan in words: for people who read it, and in errors."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.printable import printable
from .nodes import Join, Shuffle, Source
from .reducers import Reducer
from .stages import Stage


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
