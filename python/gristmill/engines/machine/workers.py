"""Workers: the functions of a stage as the native engine calls them, and a log of what went wrong."""

from __future__ import annotations

import faulthandler
import fcntl
import functools
import itertools
import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...base import pickles
from ...base.errors import PACKAGE, InputError, PairsNeeded, one_line
from ...base.keys.forms import KeyFunctionFailed
from ...plan.shared import SharedArray
from ...records.runs import BadRecord
from ..formats import NOWHERE, Place, Placed
from ..functions import Failure, Reduce, Side, fault_of_plan, first_failing, number_of, pickled, seeded
from ..randoms import Generators
from ..replays import Call, group_step, raised
from .parcel import Deferred


@dataclass
class Functions:
    """The functions of a stage, as the native engine calls them."""

    sides: Sequence[Side]
    reducer: Reduce | None
    log: Log
    #: Whether bad records are set aside.
    skip: bool
    arrays: Sequence[SharedArray]
    #: The seed of the stage; `is_seeded` if it is the user's, and numbers are the same for any number of workers.
    seed: int
    is_seeded: bool

    def lend(self, addresses: Sequence[int]) -> None:
        """Lets functions write the shared arrays, of which this worker has views at these addresses."""
        for array, address in zip(self.arrays, addresses):
            array.lend(address)

    def take_back(self) -> None:
        """Ends what :meth:`lend` began."""
        for array in self.arrays:
            array.take_back()

    def map(self, tag: int, given: Any, source: int, offset: int) -> Iterable[Any]:
        """The outputs for the records of a chunk."""
        side = self.sides[tag]
        self._seed(tag, source, offset)
        if self.skip and side.is_opened:
            return self._map_opened(side, given)
        if self.skip and side.is_made:
            return self._map_made(side, given, (tag, source, offset))
        return side.outputs(given, functools.partial(self._seed, tag) if self.is_seeded else None)

    def map_each(self, tag: int, given: list[list[Any]], source: int, offset: int) -> list[list[Any]]:
        """The outputs for each of some lists of records."""
        chain = self.sides[tag].chain
        self._seed(tag, source, offset)
        if self.skip:
            return [self._map_made(self.sides[tag], records, (tag, source, offset, number)) for number, records in enumerate(given)]
        lists: list[Iterable[Any]] = list(given)
        if self.is_seeded:
            lists = [seeded(records, functools.partial(self._seed, tag)) for records in given]
        return [list(chain(records)) for records in lists]

    def reduce(self, key: Any, given: Any) -> Iterable[Any]:
        """The records that become of a key and its values."""
        assert self.reducer is not None
        if self.is_seeded or self.generators.are_used:
            self._seed(len(self.sides), number_of(key))
        return self.reducer(key, _values(given))

    def failed(self, error: BaseException, tag: int, given: Any, count: int) -> tuple[str, bool]:
        """Logs an exception of :meth:`map`.

        Returns its number, and whether the records are at fault and not the pipeline.
        """
        side, error = self.sides[tag], raised(error)
        if isinstance(error, KeyFunctionFailed):
            step = f"the key function of {error.kind.__qualname__}"
            return self.log.failure(error.__cause__ or error, step=step, record=error.key), True
        if (fault := fault_of_plan(error, side.end)) is not None:
            return self.log.failure(error, **fault), False
        if isinstance(error, InputError):
            record = given[0] if count == 1 and isinstance(given, list) else None
            # A file that cannot be read is no bad record: with all of its records, too many would be set aside.
            return self.log.failure(error, kind="input", text=str(error), record=record), not side.is_opened
        # What the engine takes for one record of another stage may be many.
        if count == 1 or side.is_made:
            for record, place in self._singly(side, given):
                step, steps = first_failing(side, record)
                if step:
                    call = Call(steps, record).pickled() if steps else None
                    error = raised(error, steps[-1][0] if steps else "")
                    return self.log.failure(error, step=step, record=record, place=place, call=call), not side.is_made
        return self.log.failure(error), True

    def failed_group(self, error: BaseException, key: Any, given: Any) -> str | None:
        """Logs an exception of :meth:`reduce`. Returns its number, unless the group is set aside."""
        error = raised(error)
        if self.skip and isinstance(error, Exception):
            self.log.bad(("group", pickled(key)), BadRecord(key, one_line(error)))
            return None
        end = self.sides[0].end
        assert end is not None
        said, step = group_step(end)
        call = Call([step], (key, _values(given))).pickled() if given is not None else None
        return self.log.failure(error, step=said, record=key, call=call)

    def _singly(self, side: Side, given: Any) -> Iterator[Placed]:
        """The records of what the engine takes for one record, each with its place if only this side knows it."""
        if side.is_opened:
            return side.placed(given)
        records = side.records(given)
        if side.is_each:
            # As `map_each` gets them.
            records = itertools.chain.from_iterable(records)
        return ((record, NOWHERE) for record in records)

    def _map_opened(self, side: Side, given: Any) -> Iterable[Any]:
        """The outputs for the records of files, without those that fail."""
        if side.pieces is not None:
            with suppress(Exception):
                return list(side.outputs(given))
        return self._map_placed(side, given)

    def _map_placed(self, side: Side, given: Any) -> Iterator[Any]:
        def refuse(record: Any, place: Place, error: Exception) -> None:
            self.log.bad(place, BadRecord(record, str(error), *place))

        for number, (record, place) in enumerate(side.placed(given, refuse)):
            try:
                outputs = list(side.chain([record]))
            except PairsNeeded:
                raise
            except Exception as error:
                _, steps = first_failing(side, record)
                found = raised(error, steps[-1][0] if steps else "")
                self.log.bad((place, number), BadRecord(record, one_line(found), *place))
                continue
            yield from outputs

    def _map_made(self, side: Side, records: list[Any], place: tuple[int, ...]) -> list[Any]:
        """The outputs for the records of another stage, without those that fail.

        The engine would set aside a key with all that became of it. `place` is that of the records, for the log.
        """

        def outputs_of(records: Iterable[Any]) -> list[Any]:
            return list(side.chain(seeded(records, functools.partial(self._seed, place[0])) if self.is_seeded else records))

        with suppress(Exception):
            return outputs_of(records)
        outputs: list[Any] = []
        for number, record in enumerate(records):
            try:
                outputs += outputs_of([record])
            except PairsNeeded:
                raise
            except Exception as error:
                _, steps = first_failing(side, record)
                bad = BadRecord(record, one_line(raised(error, steps[-1][0] if steps else "")))
                self.log.bad((self.seed, *place, number), bad)
        return outputs

    def _seed(self, *place: int) -> None:
        """Draws of random numbers differ from job to job, but not when a worker does again what another had begun."""
        self.generators.seed(self.seed, *place)

    @functools.cached_property
    def generators(self) -> Generators:
        """The generators of random numbers that functions draw from, of each worker its own."""
        functions = itertools.chain.from_iterable(side.functions() for side in self.sides)
        found = Generators(each.itself() if isinstance(each, Deferred) else each for each in functions)
        # For draws in libraries, of a worker that only reduces.
        found.seed(self.seed, os.getpid())
        return found


class Log:
    """Files in memory, to which workers add what went wrong. The job's process reads them at the end."""

    def __init__(self) -> None:
        self.file, self.crashes = _appended("gristmill log"), _appended("gristmill crashes")
        self.count = itertools.count()
        faulthandler.enable(self.crashes, all_threads=False)

    def failure(self, error: BaseException, **about: Any) -> str:
        """Adds an exception, with what :meth:`Failure.from_error` takes; returns its number."""
        number = f"{os.getpid()}-{next(self.count)}"
        os.write(self.file, pickle.dumps(("failure", number, Failure.from_error(error, **about))))
        return number

    def bad(self, key: Any, record: BadRecord) -> None:
        """Adds a record that is set aside. A task that is done again adds it again, with the same key."""
        try:
            entry = pickle.dumps(("bad", key, record))
        except Exception:
            entry = pickles.dumps(("bad", key, record))
        os.write(self.file, entry)

    def crash(self) -> str:
        """The lines of the user's functions in which a worker crashed last; empty if none did."""
        with open(f"/proc/self/fd/{self.crashes}", encoding="utf-8", errors="replace") as file:
            last = file.read().rpartition("Fatal Python error: ")[2].splitlines()
        lines = itertools.takewhile(lambda line: f'"{PACKAGE}' not in line, last)
        return "\n".join(line for line in lines if line and not line.startswith("Current thread"))

    def read(self) -> tuple[dict[str, Failure], dict[Any, BadRecord]]:
        """All failures by number, and all records that were set aside."""
        failures: dict[str, Failure] = {}
        bad: dict[Any, BadRecord] = {}
        with open(f"/proc/self/fd/{self.file}", "rb") as file:
            while file.peek(1):
                kind, key, entry = pickle.load(file)
                if kind == "failure":
                    failures[key] = entry
                else:
                    bad[key] = entry
        return failures, bad


def _values(given: Any) -> Any:
    """The values of a group: a list, or an array of the numbers that the engine gives as a type and bytes."""
    if isinstance(given, list):
        return given
    import numpy

    kind, numbers = given
    return numpy.frombuffer(numbers, kind)


def _appended(name: str) -> int:
    file = os.memfd_create(name, os.MFD_CLOEXEC)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file
