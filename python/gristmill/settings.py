"""Settings of jobs, and how a program changes them."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The folder in which the program was when it imported this package: modules may have come from there.
FOLDER = os.getcwd()

#: Options of the engine that fields of :class:`Settings` set.
_HAVE_FIELDS = ("workers", "memory", "spill-dir", "skip-bad-records", "deadline")

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


@dataclass(frozen=True)
class Settings:
    """How jobs run. `None` leaves the choice to the engine. :func:`configure` changes the settings.

    The engine `local` runs in one process, and on Spark the session says where jobs run: they ignore `workers`, `memory` and
    `spill_dir`. A value that makes no sense is a `ValueError`.

    >>> import gristmill as gm
    >>> with gm.configure(workers=2, memory="1GiB") as settings:
    ...     settings.workers, settings.memory_bytes()
    (2, 1073741824)
    """

    #: The number of workers that run your functions; by default one for each processor. Long jobs with known reducers have half as many
    #: others, which only reduce.
    workers: int | None = None
    #: The memory of all workers together, in bytes or as text: `"2GiB"`.
    memory: int | str | None = None
    #: The folder for what does not fit into memory; by default `TMPDIR`.
    spill_dir: str | None = None
    #: Whether to show a bar; by default in terminals and notebooks.
    progress: bool | None = None
    #: Whether a record on which a function fails ends the job, or is set aside as a bad record.
    on_error: Literal["raise", "skip"] = "raise"
    #: The seconds after which a job ends with an error.
    deadline: float | None = None
    #: `"machine"`; `"spark"`, or a session of Spark; or `"local"`: one process and plain Python, for debugging.
    engine: Literal["machine", "spark", "local"] | SparkSession = "machine"
    #: A whole number from which the random numbers of a job follow, for any number of workers; by default each job has other numbers.
    seed: int | None = None
    #: Whether the job records when its workers did what: :meth:`Dataset.run` sets it, the program does not.
    timeline: bool = False
    #: Other options of the engine, such as `retries`; :func:`configure` takes them by name.
    others: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.workers is not None and (isinstance(self.workers, bool) or self.workers < 1):
            raise ValueError(f"workers={self.workers!r}: there must be at least 1")
        if self.on_error not in ("raise", "skip"):
            raise ValueError(f'on_error={self.on_error!r}: it is "raise" or "skip"')
        if self.deadline is not None and not self.deadline > 0:
            raise ValueError(f"deadline={self.deadline!r}: it must be greater than 0 seconds")
        if self.seed is not None and (isinstance(self.seed, bool) or not isinstance(self.seed, int)):
            raise ValueError(f"seed={self.seed!r}: it is a whole number")
        if self.engine not in ("machine", "spark", "local") and not hasattr(self.engine, "createDataFrame"):
            raise ValueError(f'engine={self.engine!r}: it is "machine", "spark", a session of Spark, or "local"')
        self.memory_bytes()

    def memory_bytes(self) -> int | None:
        """Returns the memory as a number of bytes, or `None`.

        >>> Settings(memory="1.5 GiB").memory_bytes()
        1610612736
        """
        if self.memory is None:
            return None
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", str(self.memory).lower())
        memory_bytes = int(float(found[1]) * _UNITS[found[2] or ""]) if found else 0
        if not memory_bytes:
            raise ValueError(f'memory={self.memory!r}: give bytes, or text such as "512MiB" or "2GiB"')
        return memory_bytes

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """Returns these settings with some changed. Raises `TypeError` if there is no setting of that name.

        >>> Settings(workers=2).changed({"workers": 4}).workers
        4
        """
        names = {field.name for field in dataclasses.fields(self)} - {"others", "timeline"}
        others = {name: value for name, value in changes.items() if name not in names}
        for name in others:
            if name not in _engine_options():
                every = ", ".join(sorted({*names, *_engine_options()}))
                raise TypeError(f"there is no setting {name!r}; there are {every}")
        own = {name: value for name, value in changes.items() if name in names}
        return dataclasses.replace(self, **own, others={**self.others, **others})


@functools.cache
def _engine_options() -> Mapping[str, str]:
    """The options of the engine that are no field of :class:`Settings`, each with what it does."""
    try:
        from . import _native
    except ImportError:
        return {}
    return {name.replace("-", "_"): about for name, about in _native.options() if name not in _HAVE_FIELDS}


#: What the program set, for all its threads.
_program = Settings()
#: What the blocks around this code set. A thread that starts in a block is not in it.
_blocks: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("gristmill settings", default={})


def current() -> Settings:
    """The settings of a job that starts now."""
    return _program.changed(_blocks.get())


class configure:
    """Changes the settings for the rest of the program, or, after `with`, for a block.

    Its keywords are the fields of :class:`Settings` and the options of the engine, with underscores for hyphens. Raises `TypeError` if
    there is no such setting, and `ValueError` if a value makes no sense.

    >>> import gristmill as gm
    >>> with gm.configure(engine="local", workers=2):
    ...     gm.range(3).collect()
    [0, 1, 2]
    """

    def __init__(self, **changes: Any) -> None:
        global _program
        self._changes, self._before = changes, _program
        _program = _program.changed(changes)

    def undo(self) -> None:
        """Restores the settings that the program had before.

        >>> import gristmill as gm
        >>> change = gm.configure(workers=2)
        >>> change.undo()
        """
        global _program
        _program = self._before

    def __enter__(self) -> Settings:
        self.undo()
        self._token = _blocks.set({**_blocks.get(), **self._changes})
        return current()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _blocks.reset(self._token)
