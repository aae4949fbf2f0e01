"""Errors of jobs, as exceptions. They mirror the errors of the engine."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from traceback import TracebackException, format_exception_only
from types import TracebackType
from typing import Any, NoReturn

from .known_as import known_as

known_as(__name__, "gristmill.errors")

#: Where the lines of this package are.
PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class GristmillError(Exception):
    """Any error of this package.

    >>> import gristmill as gm
    >>> try:
    ...     gm.read_text("no such file").count()
    ... except gm.GristmillError as error:
    ...     print(error)
    there is no file no such file
    """

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows."""
        return user_traceback(self).splitlines()


class PlanError(GristmillError):
    """The pipeline cannot run as it was written.

    >>> import gristmill as gm
    >>> gm.range(1).reduce_by_key(gm.sum).collect()
    Traceback (most recent call last):
    gristmill.errors.PlanError: reduce_by_key needs pairs of a key and a value, and this record is 0
    """


class PairsNeeded(PlanError):
    """A record has no key or value to order it by.

    Raised in workers, where a function's own :class:`PlanError` is another error.
    """


class InputError(GristmillError):
    """An input cannot be read, or is not in the format that was asked for.

    >>> import gristmill as gm
    >>> gm.read_csv("sales-*.csv")
    Traceback (most recent call last):
    gristmill.errors.InputError: there is no file sales-*.csv
    """


class ResourceError(GristmillError):
    """There was not enough memory, disk or time.

    >>> import gristmill as gm
    >>> with gm.configure(deadline=0.05):
    ...     gm.range(10**9).count()
    Traceback (most recent call last):
    gristmill.errors.ResourceError: ...
    """


class InputWarning(UserWarning):
    """Some paths below a folder, or of a pattern, are left out: hidden names, links, FIFOs.

    It is shown once for each line of a program. `warnings.simplefilter("error", gm.InputWarning)` makes it an error.

    >>> import gristmill as gm, pathlib, tempfile, warnings
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("one"), (folder / ".b.txt").write_text("two")
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     gm.read_text(folder).collect()
    ['one']
    >>> str(told[0].message).replace(str(folder), "folder")
    '1 hidden name was left out: folder/.b.txt'
    """


class Cancelled(GristmillError):
    """The job was cancelled.

    >>> import gristmill as gm
    >>> job = gm.range(10**9).map(str).start()
    >>> job.cancel()
    True
    >>> job.result()
    Traceback (most recent call last):
    gristmill.errors.Cancelled: the job was cancelled
    """


class RemoteError(GristmillError):
    """Stands for an exception of a worker that cannot be rebuilt in this process.

    Its text is the traceback in the worker. It is the `__cause__` of a :class:`JobError`, for example if the class of the exception
    cannot be pickled.

    >>> import gristmill as gm
    >>> try:
    ...     gm.range(3).count()
    ... except gm.JobError as error:
    ...     if isinstance(error.__cause__, gm.RemoteError):
    ...         print(error.__cause__)
    3
    """


class JobError(GristmillError):
    """A function of the program raised an exception.

    `__cause__` is that exception, or a :class:`RemoteError`. Uncaught, the error shows the lines of your program only.

    >>> import gristmill as gm
    >>> try:
    ...     gm.range(3).map(lambda n: 1 // n).collect()
    ... except gm.JobError as error:
    ...     error.record, type(error.__cause__)
    (0, <class 'ZeroDivisionError'>)
    """

    def __init__(
        self,
        message: str,
        *,
        record: Any = None,
        file: str | None = None,
        line: int | None = None,
        byte: int | None = None,
        worker: int | None = None,
        attempt: int | None = None,
        traceback_text: str | None = None,
        call: bytes | None = None,
    ) -> None:
        super().__init__(message)
        #: The record, or the key of the group, on which the function failed.
        self.record = record
        #: The file that the record is from, or `None`.
        self.file = file
        #: The line of the record, from 1, or `None`.
        self.line = line
        #: The offset of the record in bytes, from 0, or `None`. In a compressed file, it is the offset in the content.
        self.byte = byte
        #: The number of the worker, from 0, or `None`.
        self.worker = worker
        #: How often the record has been tried, or `None`.
        self.attempt = attempt
        #: The traceback in the worker, as text, or `None`.
        self.traceback_text = traceback_text
        #: The function and the record, pickled, for :func:`gristmill.replay`; `None` if they cannot be pickled.
        self.call = call


class WorkerDied(JobError):
    """A worker died each time it was given the same record, or without any record.

    >>> import gristmill as gm
    >>> try:
    ...     gm.range(3).count()
    ... except gm.WorkerDied as error:
    ...     print("no worker survives", error.record)
    3
    """


class _Traceback(Exception):
    """The traceback in the worker, shown above the exception that came from there."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def raise_as(kind: str, message: str, fields: dict[str, Any], cause: bytes | None) -> NoReturn:
    """Raises the error of a job as this process has it: its class, text and fields, and its pickled cause."""
    if kind == "TypeError":
        raise TypeError(message)
    made: type[GristmillError] = globals()[kind]
    error = made(message, **fields)
    text = fields.get("traceback_text")
    if text is None:
        raise error
    origin: BaseException = RemoteError(text)
    with suppress(Exception):
        origin = pickle.loads(cause or b"")
        origin.__cause__ = _Traceback(text)
    raise error from origin


# What people see.


def one_line(error: BaseException) -> str:
    """Returns an exception without its traceback."""
    return "".join(format_exception_only(error)).strip()


def user_traceback(error: BaseException) -> str:
    """Returns the user's lines of a traceback, in the worker and in the program, without those of this package."""
    if isinstance(error, JobError) and error.traceback_text:
        here = _of_user(TracebackException.from_exception(error, compact=True)).format(chain=False)
        return f"{error.traceback_text.rstrip()}\n\n{_THEN}\n\n{''.join(here)}"
    return "".join(_of_user(TracebackException.from_exception(error, compact=True)).format())


_THEN = "The above exception was the direct cause of the following exception:"


def _of_user(found: TracebackException) -> TracebackException:
    """The same without frames of this package, and of the shell that runs a cell."""
    shell = getattr(sys.modules.get("IPython"), "__file__", None)
    theirs = (PACKAGE,) if shell is None else (PACKAGE, os.path.dirname(shell) + os.sep)
    chain: list[TracebackException | None] = [found]
    for link in chain:
        if link is not None:
            link.stack[:] = [frame for frame in link.stack if not frame.filename.startswith(theirs)]
            chain += [link.__cause__, link.__context__]
    return found


def install() -> None:
    """Lets Python show uncaught errors as :func:`user_traceback` does, unless the program has its own way."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    if isinstance(error, GristmillError) and sys.stderr is not None:
        with suppress(Exception):
            sys.stderr.write(user_traceback(error))
            return
    sys.__excepthook__(kind, error, frames)
