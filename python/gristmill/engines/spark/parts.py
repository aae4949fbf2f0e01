"""Parts of a source, which tasks read apart."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

from ...base.files.compression import is_compressed
from ...plan.nodes import Source
from ..formats import Share, file_bytes
from .feeds import Piece

#: The bytes of a part.
_PART_BYTES = range(1 << 20, 64 << 20)


def parts_of(source: Source, wanted: int) -> Iterator[list[Any]]:
    """Yields the pieces that each of about `wanted` tasks reads."""
    if source.kind == "range":
        step = max(1, -(-len(source.data) // wanted))
        yield from ([source.data[start : start + step]] for start in range(0, len(source.data), step))
        return
    sizes = list(map(file_bytes, source.data))
    size = min(max(sum(sizes) // wanted, _PART_BYTES.start), _PART_BYTES.stop)
    part: list[Any] = []
    left = size
    for piece, bytes_ in itertools.chain.from_iterable(map(functools.partial(_pieces, source.kind, size), source.data, sizes)):
        if part and bytes_ > left:
            yield part
            part, left = [], size
        part.append(piece)
        left -= bytes_
    if part:
        yield part


def _pieces(kind: str, size: int, path: str, bytes_: int) -> Iterator[tuple[Any, int]]:
    """The parts of a file that can be read apart, and their sizes."""
    if kind == "parquet":
        count = max(1, bytes_ // size)
        yield from ((Share(path, number, count), bytes_ // count) for number in range(count))
    elif kind in ("text", "bytes", "jsonl") and os.path.isfile(path) and not is_compressed(path):
        yield from ((Piece(path, at, min(at + size, bytes_)), min(size, bytes_ - at)) for at in range(0, bytes_, size))
    else:
        yield path, bytes_
