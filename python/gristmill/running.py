"""Jobs that run while the program does something else, and records that somebody else may stop."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextvars
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from .base.cancel import Token
from .base.errors import Cancelled, PlanError
from .records.runs import Run
from .results import Result

T = TypeVar("T")
W = TypeVar("W")

#: The threads of cancelled jobs get so long to end.
_ENDING_SECONDS = 2.0
#: The jobs of this process that have not ended.
_running: set[RunningJob[Any]] = set()
os.register_at_fork(after_in_child=_running.clear)


class RunningJob(Generic[T]):
    """A job that runs beside the program. Made by :meth:`Dataset.start`.

    Its methods are those of the class `Future` in `concurrent.futures`. In asyncio, `await` it; if the task that waits is cancelled, so is
    the job. As a context manager it cancels the job at the end of the block, unless the job has ended. A program that ends
    cancels its jobs.

    >>> import gristmill as gm
    >>> job = gm.range(3).map(lambda n: n * n).start()
    >>> list(job.result(timeout=60))
    [0, 1, 4]
    >>> job.done(), job
    (True, <RunningJob: done>)
    """

    def __init__(self, run: Callable[[], Result[T]], begins: bool) -> None:
        self._token = Token()
        self._pid = os.getpid()
        self._future: concurrent.futures.Future[Result[T]] = concurrent.futures.Future()
        self._future.set_running_or_notify_cancel()
        self._future.add_done_callback(lambda _: self._token.has_begun.set())
        _running.add(self)
        context = contextvars.copy_context()
        # Threads that are left do not keep a program from ending.
        self._thread = threading.Thread(target=context.run, args=(self._work, run), name="gristmill job", daemon=True)
        self._thread.start()
        if begins:
            # The job sees the program as it is now.
            self._wait(lambda: self._token.has_begun.wait())

    def _work(self, run: Callable[[], Result[T]]) -> None:
        try:
            found = self._token.run(run)
        except BaseException as error:
            self._fail(Cancelled("the job was cancelled") if self._token.is_cancelled else error)
        else:
            with suppress(concurrent.futures.InvalidStateError):
                self._future.set_result(found)
        finally:
            _running.discard(self)

    def _fail(self, error: BaseException) -> None:
        with suppress(concurrent.futures.InvalidStateError):
            self._future.set_exception(error)

    def result(self, timeout: float | None = None) -> Result[T]:
        """Waits for the job and returns its :class:`gristmill.Result`, as :meth:`Dataset.run` does.

        Raises `TimeoutError` after `timeout` seconds, and the job goes on; :class:`gristmill.Cancelled` if it was cancelled; and
        the error with which it ended. An interrupt of the wait, such as Ctrl-C, cancels the job.

        >>> import gristmill as gm
        >>> gm.from_iterable("aba").count_by_value().start().result().to_dict()
        {'a': 2, 'b': 1}
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._future.result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the job and returns the error with which it ended, or `None`.

        Raises `TimeoutError` as :meth:`result` does.

        >>> import gristmill as gm
        >>> gm.range(3).map(lambda n: 1 // n).start().exception().record
        0
        """
        if os.getpid() != self._pid:
            raise PlanError("this job was started by another process, which has its result")
        try:
            return self._wait(lambda: self._future.exception(timeout))
        except concurrent.futures.TimeoutError:
            raise TimeoutError(f"the job has not ended within {timeout} s. It goes on; cancel() ends it") from None

    def _wait(self, wait: Callable[[], W]) -> W:
        try:
            return wait()
        except concurrent.futures.TimeoutError:
            raise
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> bool:
        """Ends the job and its processes at once, from any thread. Returns false if the job has ended without it.

        Whoever waits for the job gets :class:`gristmill.Cancelled`. The engine `local` ends at the next record, because your function
        runs in this process.

        >>> import gristmill as gm
        >>> job = gm.range(10**9).map(str).start()
        >>> job.cancel(), job.cancelled()
        (True, True)
        >>> job.result()
        Traceback (most recent call last):
        gristmill.errors.Cancelled: the job was cancelled
        """
        if not self._future.done():
            self._token.cancel()
            self._fail(Cancelled("the job was cancelled"))
        return self.cancelled()

    def cancelled(self) -> bool:
        """Returns whether the job was cancelled.

        >>> import gristmill as gm
        >>> job = gm.range(3).start()
        >>> _ = job.result()
        >>> job.cancelled()
        False
        """
        return self._future.done() and isinstance(self._future.exception(), Cancelled)

    def running(self) -> bool:
        """Returns whether the job has not ended.

        >>> import gristmill as gm
        >>> with gm.range(10**9).map(str).start() as job:
        ...     job.running()
        True
        """
        return not self._future.done()

    def done(self) -> bool:
        """Returns whether the job has ended: with a result, with an error, or because it was cancelled.

        >>> import gristmill as gm
        >>> with gm.range(10**9).map(str).start() as job:
        ...     job.done()
        False
        """
        return self._future.done()

    def add_done_callback(self, function: Callable[[RunningJob[T]], object]) -> None:
        """Calls `function(job)` when the job has ended, in the thread that ended it, or now if it has ended.

        >>> import gristmill as gm
        >>> job = gm.range(3).start()
        >>> _ = job.result()
        >>> job.add_done_callback(print)
        <RunningJob: done>
        """
        self._future.add_done_callback(lambda _: function(self))

    def __await__(self) -> Generator[Any, None, Result[T]]:
        import asyncio  # takes longer than the rest of `import gristmill`

        try:
            return (yield from asyncio.wrap_future(self._future).__await__())
        except BaseException:
            self.cancel()
            raise

    def __enter__(self) -> RunningJob[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.cancel()
        self._thread.join(_ENDING_SECONDS)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a running job stays in the program that started it: use its result")

    def __repr__(self) -> str:
        if not self.done():
            return "<RunningJob: running>"
        error = self._future.exception()
        if error is None:
            return "<RunningJob: done>"
        return "<RunningJob: cancelled>" if self.cancelled() else f"<RunningJob: failed, {type(error).__name__}>"


def _end_all() -> None:
    """Cancels the jobs that still run when the program ends."""
    jobs = list(_running)
    for job in jobs:
        job.cancel()
    until = time.monotonic() + _ENDING_SECONDS
    for job in jobs:
        job._thread.join(max(0.0, until - time.monotonic()))


atexit.register(_end_all)


class Records(Iterator[T]):
    """The records of a job as they arrive. Made by `iter(dataset)`."""

    def __init__(self, run: Callable[[], Run[T]]) -> None:
        self._token = Token()
        self._run = self._token.run(run)
        #: The records that have arrived last.
        self._arrived: list[list[T]] = [[]]
        self._records = self._run.records if self._run.blocks is None else _records(self._run, self._arrived)

    def __iter__(self) -> Iterator[T]:
        return self._records

    def __next__(self) -> T:
        return next(self._records)

    def close(self) -> None:
        """Ends the job and its processes at once.

        Any thread may call it: one that waits for a record gets :class:`gristmill.Cancelled`.

        >>> import gristmill as gm
        >>> records = iter(gm.range(1000).map(str))
        >>> next(records)
        '0'
        >>> records.close()
        >>> list(records)
        []
        """
        self._token.cancel()
        for made in (self._run.blocks, self._run.records):
            # One that another thread is in ends there.
            with suppress(AttributeError, ValueError):
                made.close()  # type: ignore[union-attr]
        self._arrived[0].clear()


def _records(run: Run[T], arrived: list[list[T]]) -> Iterator[T]:
    """The records of each block. It does not know its :class:`Records`, so that the job ends as soon as these are left.

    A generator, because two threads that use one get an error, where an iterator of itertools may crash.
    """
    assert run.blocks is not None and run.decode is not None
    for block in run.blocks:
        arrived[0] = run.decode(block)
        yield from arrived[0]
