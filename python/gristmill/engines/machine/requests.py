"""Requests: what the native engine is asked to run, as `Request` in crates/python/src/stage.rs reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._native import Array, End, Form, Made
from .streams import Wanted
from .workers import Functions

#: Files of lines, as text or as bytes; files of CSV, behind their delimiter and the most bytes of a row; or objects
#: that the workers have: their number, and how many a task maps.
Given = tuple[bool, Sequence[str]] | tuple[int, int, Sequence[str]] | tuple[int, int] | Made


@dataclass
class Request:
    """A stage, and how the engine runs it."""

    sides: Sequence[Given]
    functions: Functions
    end: End
    form: Form
    #: The k of a top-k over counts.
    limit: int | None
    #: Options of the engine by name.
    options: Sequence[tuple[str, str]]
    arrays: Sequence[Array]
    stream: Wanted | None
    #: Whether bad records are set aside.
    skip: bool
    #: Seconds.
    deadline: float | None
    timeline: bool
    #: The descriptor for frames.
    pipe: int
    #: The pairs of the result that earlier runs of the stage have sent.
    sent: int
    #: Whether another stage reads the result.
    keep: bool
