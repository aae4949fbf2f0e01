"""Cancelling: a token that a job looks at while it runs, and that any thread may cancel."""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .errors import Cancelled

T = TypeVar("T")


class Token:
    """A sign that a job is cancelled. Ends the waits for it."""

    def __init__(self) -> None:
        # It may be cancelled by a signal handler that interrupts `cancel`.
        self._lock = threading.RLock()
        self._ends: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()
        self.is_cancelled = False
        #: Set when the job has a process.
        self.has_begun = threading.Event()

    def cancel(self) -> None:
        """Cancels the job, and calls what :meth:`on_cancel` was given."""
        with self._lock:
            self.is_cancelled = True
            for end in self._ends.values():
                end()

    def check(self) -> None:
        """Raises :class:`gristmill.Cancelled` if the job is cancelled."""
        if self.is_cancelled:
            raise Cancelled("the job was cancelled")

    @contextmanager
    def on_cancel(self, end: Callable[[], None]) -> Iterator[None]:
        """Calls `end`, which must not wait, if the job is cancelled inside the block, or has been before.

        After it, never.
        """
        number = next(self._numbers)
        with self._lock:
            self._ends[number] = end
            if self.is_cancelled:
                end()
        self.has_begun.set()
        try:
            yield
        finally:
            with self._lock:
                del self._ends[number]

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function whose jobs have this token."""
        context = contextvars.copy_context()
        context.run(_current.set, self)
        return context.run(function, *arguments)


_current: contextvars.ContextVar[Token] = contextvars.ContextVar("gristmill token")


def current() -> Token:
    """Returns the token of a job that starts here: a new one if nothing around it has one."""
    return _current.get(None) or Token()
