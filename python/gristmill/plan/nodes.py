"""The nodes of a dataset: sources, functions applied record by record, and shuffles, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

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
    #: The reducer of `reduce`.
    reducer: Reducer | Callable[[Any, Any], Any] | None = None
    #: Makes records of a key and its values (`groups`), or takes out of a record the key that orders it (`sort` and
    #: `top`).
    function: Callable[..., Any] | None = None
    #: Whether `sort` puts the greatest first.
    descending: bool = False
    #: The number of records that `top` keeps.
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


Node = Source | Narrow | Shuffle | Join | Uses


def makes_pairs(node: Node) -> bool:
    """Whether all records of a node are pairs, as far as the plan tells, without a look at one."""
    while True:
        match node:
            case Shuffle(kind="reduce" | "count_by_value") | Join():
                return True
            case Source(options={"pairs": pairs}):
                return bool(pairs)
            case Shuffle(kind="distinct" | "sort" | "top") | Narrow(kind="filter") | Uses():
                node = node.parent
            case _:
                return False
