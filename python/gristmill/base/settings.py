"""Settings of jobs, and how a program changes them."""

from __future__ import annotations

import contextvars
import dataclasses
import functools
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal

from . import options
from .known_as import known_as

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

known_as(__name__, "gristmill.settings")


def current_folder() -> str:
    """The current folder; nothing if it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


#: The folder in which the program was when it imported this package: modules may have come from there.
FOLDER = current_folder()


@dataclass(frozen=True)
class Settings:
    """How jobs run; :func:`configure` changes it. `None` leaves the choice to the engine.

    Times are seconds, and sizes are bytes; both may be text as the command takes it, such as `"500ms"` or `"2GiB"`. A value that a
    setting does not take is a `ValueError` when it is set. The engine `local` runs in one process, and on Spark the session says
    where jobs run: both ignore `workers`, `memory` and `spill_dir`.

    >>> import gristmill as gm
    >>> with gm.configure(workers=2, memory="1GiB") as settings:
    ...     settings.workers, settings.memory_bytes()
    (2, 1073741824)
    """

    #: The number of processes that run your functions at the same time; by default one for each processor, and
    #: fewer for short jobs. A long job with a known reducer such as `gm.sum` has half as many others, which only
    #: reduce and run none of your functions.
    workers: int | None = None
    #: The memory of all workers together, in bytes or as text: `"2GiB"`.
    memory: int | str | None = None
    #: The folder for what does not fit into memory; by default `TMPDIR`.
    spill_dir: str | os.PathLike[str] | None = None
    #: Whether to show a bar; by default in terminals and notebooks.
    progress: bool | None = None
    #: Whether a record on which a function fails ends the job, or is set aside as a bad record.
    on_error: Literal["raise", "skip"] = "raise"
    #: The time after which a job ends with an error: seconds, or text such as `"500ms"` or `"2m"`.
    deadline: float | str | None = None
    #: `"machine"`; `"spark"`, or a session of Spark; or `"local"`: one process and plain Python, for debugging.
    engine: Literal["machine", "spark", "local"] | SparkSession = "machine"
    #: A whole number from which the random numbers of a job follow, for any number of workers; by default each job
    #: has other numbers.
    seed: int | None = None
    #: Whether the job records a timeline. :meth:`Dataset.run` sets it, and not the program.
    timeline: bool = False
    #: Whether records reach the program before their task has ended: :meth:`Dataset.take` and iteration set it, the
    #: program does not.
    live: bool = False
    #: Other options of the engine, such as `retries`; :func:`configure` takes them by name.
    others: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.engine not in ("machine", "spark", "local") and not hasattr(self.engine, "createDataFrame"):
            raise ValueError(f"engine={self.engine!r}: give {options.OWN['engine'][0].words}")
        for name in ("workers", "spill_dir", "progress", "on_error", "deadline", "seed"):
            if (value := getattr(self, name)) is not None or name == "on_error":
                object.__setattr__(self, name, options.checked(name, value))
        others = {name: options.checked(name, value) for name, value in self.others.items() if value is not None}
        object.__setattr__(self, "others", others)
        for name in ("map_workers", "reduce_workers"):
            if self.workers is not None and name in self.others:
                raise ValueError(f"workers={self.workers} and {name}={self.others[name]} exclude each other: set one of them to None")
        self.memory_bytes()

    def memory_bytes(self) -> int | None:
        """Returns the memory as a number of bytes, or `None`.

        >>> Settings(memory="1.5 GiB").memory_bytes()
        1610612736
        """
        if self.memory is None:
            return None
        if not (memory_bytes := options.checked("memory", self.memory)):
            raise ValueError(f"memory={self.memory!r}: give {options.OWN['memory'][0].words}")
        return int(memory_bytes)

    def deadline_seconds(self) -> float | None:
        """Returns the deadline as seconds, or `None`.

        >>> Settings(deadline="1m 30s").deadline_seconds()
        90.0
        """
        return None if self.deadline is None else options.seconds(self.deadline)

    def changed(self, changes: Mapping[str, Any]) -> Settings:
        """Returns these settings with some changed. Raises `TypeError` if there is no setting of that name.

        >>> Settings(workers=2).changed({"workers": 4}).workers
        4
        """
        names = {field.name for field in dataclasses.fields(self)} - {"others", "timeline", "live"}
        others = {name: value for name, value in changes.items() if name not in names}
        for name in others:
            if name not in options.ENGINE:
                every = ", ".join(sorted({*names, *options.ENGINE}))
                raise TypeError(f"there is no setting {name!r}; there are {every}")
        own = {name: value for name, value in changes.items() if name in names}
        return dataclasses.replace(self, **own, others={**self.others, **others})


def shared_options(settings: Settings) -> Iterator[tuple[str, str]]:
    """Settings that the engine and the command take alike, as options."""
    if settings.workers is not None:
        yield "workers", str(settings.workers)
    if (memory_bytes := settings.memory_bytes()) is not None:
        yield "memory", str(memory_bytes)
    if settings.spill_dir is not None:
        yield "spill-dir", os.fspath(settings.spill_dir)


#: The settings of the program, for all its threads.
_program = Settings()
#: The changes that make them, in their order. Threads may make and undo some at the same time.
_changes: list[configure] = []
_changing = threading.Lock()
#: The settings of a job that was started, and so of all that it runs; see :func:`fix`.
_fixed: contextvars.ContextVar[Settings | None] = contextvars.ContextVar("gristmill settings of a job", default=None)
#: The changes of the blocks around this code. A thread that starts in a block is not in it.
_blocks: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("gristmill settings", default=MappingProxyType({}))


def current() -> Settings:
    """The settings of a job that starts now."""
    return _fixed.get() or _program.changed(_blocks.get())


def fix(settings: Settings) -> None:
    """Lets these be the settings in the context that is current, whatever the program changes later."""
    _fixed.set(settings)


class configure:
    """Changes the settings for the rest of the program, or, after `with`, for a block.

    `None` leaves a choice to the engine. Times are seconds, and sizes are bytes; both may be text, such as `"500ms"` or `"2GiB"`.
    Raises `TypeError` if there is no such setting, and `ValueError` if a setting does not take the value.

    >>> import gristmill as gm
    >>> with gm.configure(engine="local", workers=2):
    ...     gm.range(3).collect()
    [0, 1, 2]
    """

    def __init__(self, **changes: Any) -> None:
        global _program
        # They must fit the blocks around this code, too.
        current().changed(changes)
        self._changes = changes
        with _changing:
            _program = _program.changed(changes)
            _changes.append(self)

    def undo(self) -> None:
        """Takes the change back. Later changes of the program stay.

        >>> import gristmill as gm
        >>> change = gm.configure(workers=2)
        >>> change.undo()
        """
        global _program
        with _changing:
            if self in _changes:
                _changes.remove(self)
                _program = functools.reduce(Settings.changed, (change._changes for change in _changes), Settings())

    def __enter__(self) -> Settings:
        self.undo()
        self._token = _blocks.set({**_blocks.get(), **self._changes})
        return current()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _blocks.reset(self._token)


def _listing() -> str:
    """The settings, for `help(gm.configure)`."""
    rows = options.listed()
    return "\n".join(f"    {name}: {takes} [default: {default}]\n        {about}." for name, takes, default, about in rows)


configure.__doc__ = f"{configure.__doc__}\n    The settings:\n\n{_listing()}\n    "
