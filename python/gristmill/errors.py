"""Errors of jobs, as exceptions. They mirror the errors of the engine."""

from __future__ import annotations

from typing import Any


class GristmillError(Exception):
    """Any error of this package."""


class PlanError(GristmillError):
    """The pipeline cannot run as it was written."""


class InputError(GristmillError):
    """An input cannot be read, or is not of the format that was asked for."""


class ResourceError(GristmillError):
    """Memory, disk or time did not suffice."""


class Cancelled(GristmillError):
    """The job was cancelled."""


class RemoteError(GristmillError):
    """An exception of a worker that cannot be rebuilt here. Its text is the traceback that the worker wrote."""


class JobError(GristmillError):
    """A function of the program failed. `__cause__` is its own exception, or a :class:`RemoteError`.

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
        #: The line of the record, from 1.
        self.line = line
        #: Where the record begins, in bytes; in a compressed file, of its content.
        self.byte = byte
        #: The number of the worker, from 0, and how often the record had been tried.
        self.worker, self.attempt = worker, attempt
        #: The traceback as the worker would have printed it.
        self.traceback_text = traceback_text
        #: The function and the record, pickled, for :func:`gristmill.replay`.
        self.call = call


class WorkerDied(JobError):
    """A worker died again and again on the same record, or with no record at all."""
