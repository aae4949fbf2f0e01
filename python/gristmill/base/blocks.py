"""Blocks: records as the bytes in which the native engine gives them."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

from .errors import JobError

# The native module is imported by who has blocks of it: the local engine does without it.


def decoded(block: bytes) -> list[Any]:
    """Returns the records of a block."""
    from .. import _native

    try:
        with _keeping_all():
            return _native.decode(block)
    except Exception as error:
        raise JobError(f"a record that a function has made cannot be unpickled here: {type(error).__name__}: {error}") from error


def decode_into(found: dict[Any, Any], block: bytes) -> None:
    """Puts the records of a block, which are pairs, into a dictionary."""
    from .. import _native

    with _keeping_all():
        _native.decode_into(found, block)


@contextlib.contextmanager
def _keeping_all() -> Iterator[None]:
    """Turns garbage collection off while records are made: all of them are in use."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
