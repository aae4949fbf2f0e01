"""Imports in the process of a job: those that start threads, after which it could fork no workers."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from ...base.errors import ResourceError
from ...plan.nodes import Shuffle, Source
from ...plan.stages import Stage, stages
from ...records.batches import OnArrays, OnTables

#: Keeps libraries from starting threads when they are imported.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    # The allocator in pyarrow.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:
        raise ResourceError("/proc is not mounted, where processes are watched: mount -t proc proc /proc") from None


def import_for_workers(stage: Stage) -> None:
    """Imports what each worker of a job would import, unless it would start threads here, as the user has asked for."""
    if all(os.environ.get(name) == value for name, value in ONE_THREAD.items()):
        for name in _modules(stage):
            # Where one is missing, what needs it says so.
            with suppress(Exception):
                import_module(name)


def _modules(stage: Stage) -> set[str]:
    """The libraries that the workers of a job need, apart from the user's functions."""
    found = set[str]()
    for part in stages(stage):
        if any(isinstance(source, Source) and source.kind == "parquet" for source in part.inputs):
            found.add("pyarrow.parquet")
        functions = [narrow.function for narrows in part.narrows for narrow in narrows]
        formats = [function.format for function in functions if isinstance(function, OnTables)]
        if formats:
            found.add("pyarrow")
        if "numpy" in formats:
            # To turn a column into an array, or an array into a column, pyarrow imports it if it is there.
            found.add("pandas")
        if isinstance(part.end, Shuffle) and isinstance(part.end.function, OnArrays):
            found.add("numpy")
    return found


class Imports:
    """A context that notes which packages start threads when they are imported, and refuses those of `refused`."""

    def __init__(self, refused: set[str], threads: Callable[[], int]) -> None:
        self.started: set[str] = set()
        self._refused, self._threads = refused, threads
        #: For each import under way, the threads that imports in it have started.
        self._inner = [0]

    def __enter__(self) -> Imports:
        self._import = builtins.__import__
        builtins.__import__ = self._watched
        return self

    def __exit__(self, *error: object) -> None:
        builtins.__import__ = self._import

    def _watched(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if not level and name.partition(".")[0] in self._refused:
            raise Refused(name)
        before = self._threads()
        self._inner.append(0)
        try:
            found = self._import(name, globals, locals, fromlist, level)
        finally:
            risen, inner = self._threads() - before, self._inner.pop()
            self._inner[-1] += risen
            if risen > inner:
                whole = name if not level else str((globals or {}).get("__package__", name))
                self.started.add(whole.partition(".")[0])
        return found


class Refused(BaseException):
    """The import of a package that starts threads. No `except Exception` hides it."""
