"""Replays: a function that failed in a worker runs again in the program's own process, under a debugger."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..base import pickles
from ..base.errors import PACKAGE, GristmillError, JobError
from ..base.known_as import known_as
from ..plan.describe import name
from ..plan.nodes import Narrow, NarrowKind, Shuffle
from ..plan.reducers import Reducer
from ..records.batches import Batch, OnTables, Pluck

known_as(__name__, "gristmill.replays")

#: A function and how it is called: as a node of the plan has it, or with a key and its values.
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
        raise GristmillError("this error has no function to run again: a worker died, or the function or its record cannot be pickled") from error
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
        """The record, or the key of the group, for an error."""
        return self.given[0] if self.steps[-1][0] in ("groups", "reduce") else self.given

    def run(self) -> list[Any]:
        """Returns what the functions make of the record.

        >>> Call([("map", str.split), ("flat_map", reversed)], "a b").run()
        ['b', 'a']
        """
        records = [self.given]
        for step in self.steps:
            try:
                records = list(applied(step, records))
            except Exception as error:
                if (meant := raised(error, step[0])) is error:
                    raise
                raise meant from None
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


def group_step(end: Shuffle) -> tuple[str, Step]:
    """The function that makes records of a group, in words and as a step."""
    if end.kind == "reduce":
        assert end.reducer is not None
        return f"reduce_by_key {name(end.reducer)}", ("reduce", end.reducer)
    assert end.function is not None
    return f"map_groups {name(end.function)}", ("groups", end.function)


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
            return _made_of_many(function, function(records if isinstance(function, OnTables) else list(records)))
        case "groups":
            return itertools.chain.from_iterable(results(lambda group: made_of_group(function, *group), records))
        case "reduce":
            return [(key, functools.reduce(function, values)) for key, values in records]


def made_of_group(function: Callable[[Any, Any], Any], key: Any, values: Any) -> Iterable[Any]:
    """The records that a function makes of a group.

    A tuple is an error: it would become as many records as it has items.
    """
    made = function(key, values)
    if isinstance(made, tuple):
        raise TypeError(f"the function returned a tuple, which is not one record but {len(made)} records: yield it, or return a list with it")
    return _made_of_many(function, made)


def _made_of_many(function: Callable[..., Any], made: Any) -> Iterable[Any]:
    """The records that a function of a batch or group returned, if it is a collection of them."""
    if made is None:
        raise TypeError(_NOTHING)
    if isinstance(made, (str, bytes, bytearray)) or (isinstance(made, dict) and not isinstance(function, OnTables)):
        kind = type(made).__name__
        raise TypeError(f"the function returned a {kind}, whose items are hardly records: yield it, or return a list of records")
    records: Iterable[Any] = made
    return records


_NOTHING = "the function returned None, and not records: is a `return` or `yield` missing?"


def raised(error: BaseException, kind: str = "") -> BaseException:
    """Returns the exception of a function.

    If `flat_map` got None, of which Python says little, it is one that says so.
    """
    if isinstance(error, FunctionStopped):
        return error.__cause__ or error
    is_flat = kind == "flat_map" and type(error) is TypeError and str(error) == "'NoneType' object is not iterable"
    return TypeError(_NOTHING) if is_flat and _is_raised_here(error) else error


def _is_raised_here(error: BaseException) -> bool:
    """Whether the exception is of this package and not of a function that it called."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    return frames is None or frames.tb_frame.f_code.co_filename.startswith(PACKAGE)


# Python's own `map` and `filter` end without a word when their function raises StopIteration, as if there were no
# more records.


class FunctionStopped(Exception):
    """A function raised `StopIteration`, which is the cause of this exception."""


def results(function: Callable[[Any], Any], records: Iterable[Any]) -> Iterator[Any]:
    """Yields the result of a function for each record."""
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
