"""A job under way, as an engine returns it, and records that are kept."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from ..base.blocks import decode_into
from ..base.known_as import known_as
from .timeline import StageTimeline

known_as(__name__, "gristmill.runs")

T = TypeVar("T")


@dataclass(frozen=True)
class BadRecord:
    """A record that was set aside because a function failed on it (`on_error="skip"`).

    >>> import gristmill as gm
    >>> with gm.configure(on_error="skip"):
    ...     bad = gm.from_iterable(["1", "two"]).map(int).run().bad_records
    >>> bad[0].record, bad[0].error
    ('two', "ValueError: invalid literal for int() with base 10: 'two'")
    """

    #: The record, or the key of the group.
    record: Any
    #: The exception, as text.
    error: str
    #: The file that the record is from, or `None`.
    file: str | None = None
    #: The line of the record, from 1, or `None`.
    line: int | None = None
    #: The offset of the record in bytes, as in :class:`gristmill.JobError`, or `None`.
    byte: int | None = None


@dataclass
class Run(Generic[T]):
    """A job under way: what an engine returns. Everything else is complete when `records` has ended."""

    records: Iterator[T]
    bad_records: list[BadRecord] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    #: The records as the native engine has them, for callers that need no objects; they must not ask for `records` too.
    blocks: Iterator[bytes] | None = None
    #: Makes the records of a block.
    decode: Callable[[bytes], list[T]] | None = None
    #: For each stage, if the engine records such.
    timelines: list[StageTimeline] = field(default_factory=list)
    #: The number of records, for callers that need no more; they must not ask for `records` too.
    count: Callable[[], int] | None = None
    #: Makes the records where they can stay: on a cluster. Returns what knows their number (`len`) and has them as
    #: blocks.
    hold: Callable[[], Any] | None = None
    #: Whether the records are pairs even if there are none.
    pairs: bool = False
    #: The kept datasets that the job reads.
    kept: Sequence[Kept[Any]] = ()

    def all_bad_records(self) -> list[BadRecord]:
        """The bad records of this job, and of those that made the kept records that it has read."""
        return [bad for each in self.kept for bad in each.bad_records] + self.bad_records

    def to_dict(self) -> dict[Any, Any]:
        """The records, which are pairs, as a dictionary."""
        if self.blocks is None:
            return dict(self.records)  # type: ignore[arg-type]
        found: dict[Any, Any] = {}
        for block in self.blocks:
            decode_into(found, block)
        return found


class Kept(Sequence[T]):
    """The records of a dataset, made when they are first asked for, and kept.

    They stay where the engine can hold them, or are kept as blocks, if it makes such.
    """

    def __init__(self, make: Callable[[], Run[T]]) -> None:
        self._make: Callable[[], Run[T]] | None = make
        #: Those that were set aside when they were made.
        self.bad_records: list[BadRecord] = []
        #: Held while they are made: two threads of the program may ask for them.
        self._lock = threading.RLock()
        #: The records where the engine holds them, until somebody asks for them here; see :class:`Run`.
        self.held: Any = None
        self._is_here = False
        self._records: list[T] = []
        self._blocks: list[bytes] = []
        #: For each block, the number of records up to its end.
        self._ends: list[int] = []
        self._decode: Callable[[bytes], list[T]] | None = None
        #: The block that was decoded last.
        self._last: tuple[int, list[T]] = (-1, [])

    def make(self) -> None:
        """Runs the job, if it has not run yet."""
        if self._make is None:
            return
        with self._lock:
            if self._make is None:
                return
            run = self._make()
            if run.hold is not None:
                self.held, self._decode = run.hold(), run.decode
            else:
                self._take(run)
            self.bad_records = run.all_bad_records()
            self._make = None

    def _bring(self) -> None:
        """Brings the records here."""
        self.make()
        with self._lock:
            if not self._is_here:
                self._take(Run(iter(()), blocks=self.held.blocks(), decode=self._decode))

    def _take(self, run: Run[T]) -> None:
        if run.blocks is None or run.decode is None:
            self._records = list(run.records)
        else:
            # A job that fails leaves nothing of it here.
            blocks, ends, count = list[bytes](), list[int](), 0
            for block in run.blocks:
                if records := run.decode(block):
                    count += len(records)
                    blocks.append(block)
                    ends.append(count)
            self._decode, self._blocks, self._ends = run.decode, blocks, ends
        self._is_here = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    def __len__(self) -> int:
        self.make()
        if not self._is_here:
            return len(self.held)
        return self._ends[-1] if self._ends else len(self._records)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        self._bring()
        chosen = range(len(self))[index]
        if isinstance(chosen, int):
            return self._from(chosen, chosen + 1)[0]
        if chosen.step == 1:
            return self._from(chosen.start, chosen.stop)
        return [self[position] for position in chosen]

    def __iter__(self) -> Iterator[T]:
        self._bring()
        if self._decode is None:
            return iter(self._records)
        return itertools.chain.from_iterable(map(self._decode, self._blocks))

    def _from(self, start: int, stop: int) -> list[T]:
        if self._decode is None:
            return self._records[start:stop]
        found: list[T] = []
        while start < stop:
            number = bisect.bisect_right(self._ends, start)
            # Another thread may put its own block there meanwhile.
            last = self._last
            if last[0] != number:
                self._last = last = number, self._decode(self._blocks[number])
            records = last[1]
            before = self._ends[number] - len(records)
            found += records[start - before : stop - before]
            start = self._ends[number]
        return found
