"""Replays: a function that failed in a worker runs again in the program's own process, under a debugger."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import pickles
from .batches import Batch, OnTables, Pluck
from .errors import GristmillError, JobError
from .plan import Narrow, NarrowKind
from .reducers import Reducer

#: A function and how it is called: as :class:`gristmill.plan.Narrow` has it, or with a key and its values.
Step = tuple[Literal[NarrowKind, "groups", "reduce"], Callable[..., Any] | Reducer]


def replay(error: JobError) -> list[Any]:
    """Runs the function that failed again, in this process, on the record of the error.

    It raises what the function raises, so a debugger (`python -m pdb`, or `%debug` in a notebook) stops in the function. If the
    function succeeds this time, the records that it made are returned. Raises :class:`gristmill.GristmillError` if the error has no
    function, because a worker died or because the function or its record cannot be pickled.

    >>> import gristmill as gm
    >>> try:
    ...     gm.from_iterable(["1", "two"]).map(str.strip).map(int).collect()
    ... except gm.JobError as error:
    ...     failed = error
    >>> gm.replay(failed)
    Traceback (most recent call last):
    ValueError: invalid literal for int() with base 10: 'two'
    """
    if error.call is None:
        raise GristmillError(
            "this error has no function to run again: a worker died, or the function or its record cannot be pickled"
        ) from error
    call: Call = pickle.loads(error.call)
    return call.run()


@dataclass(frozen=True)
class Call:
    """A record, or a key and its values, and the functions through which it goes."""

    steps: Sequence[Step]
    #: For `groups` and `reduce`, a key and its values.
    given: Any

    @property
    def record(self) -> Any:
        """What an error names: the record, or the key of the group."""
        return self.given[0] if self.steps[-1][0] in ("groups", "reduce") else self.given

    def run(self) -> list[Any]:
        """What becomes of the record.

        >>> Call([("map", str.split), ("flat_map", reversed)], "a b").run()
        ['b', 'a']
        """
        records = [self.given]
        try:
            for step in self.steps:
                records = list(applied(step, records))
        except FunctionStopped as stopped:
            raise raised(stopped) from None
        return records

    def pickled(self) -> bytes | None:
        """This call as bytes; `None` if a function or the record cannot be pickled."""
        try:
            return pickles.dumps(self)
        except Exception:
            return None


def steps_of(narrows: Iterable[Narrow]) -> list[Step]:
    """Functions as steps."""
    return [(narrow.kind, narrow.function) for narrow in narrows]


def applied(step: Step, records: Iterable[Any]) -> Iterable[Any]:
    """Applies one function to records, as they are asked for."""
    kind, function = step
    if isinstance(function, Reducer):
        return [(key, function.of(values)) for key, values in records]
    match kind:
        case "map" if isinstance(function, Pluck) and isinstance(records, Batch):
            return records.plucked(function)
        case "map":
            return results(function, records)
        case "filter":
            return _kept(function, records)
        case "flat_map":
            return itertools.chain.from_iterable(results(function, records))
        case "map_batches":
            found: Iterable[Any] = function(records if isinstance(function, OnTables) else list(records))
            return found
        case "groups":
            return itertools.chain.from_iterable(results(lambda group: function(*group), records))
        case "reduce":
            return [(key, functools.reduce(function, values)) for key, values in records]


# Python's own `map` and `filter` end without a word when their function raises StopIteration, as if there were no more records.


class FunctionStopped(Exception):
    """A function raised `StopIteration`, which is the cause of this exception."""


def raised(error: BaseException) -> BaseException:
    """The exception that a function raised."""
    return error.__cause__ or error if isinstance(error, FunctionStopped) else error


def results(function: Callable[[Any], Any], records: Iterable[Any]) -> Iterator[Any]:
    """What a function returns for each record."""
    try:
        for record in records:
            yield function(record)
    except StopIteration as error:
        raise FunctionStopped from error


def _kept(function: Callable[[Any], Any], records: Iterable[Any]) -> Iterator[Any]:
    """The records for which a function is true."""
    try:
        for record in records:
            if function(record):
                yield record
    except StopIteration as error:
        raise FunctionStopped from error
