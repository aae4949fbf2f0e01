"""Results: the records of a job, and how it ran."""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from .base.errors import PlanError
from .base.stats import Stats, html_table
from .engines.formats import Place
from .exports import Exports
from .plan.describe import counted
from .records.runs import BadRecord, Run
from .records.tables import columns
from .records.timeline import StageTimeline, Timeline

T_co = TypeVar("T_co", covariant=True)

#: The number of records that a notebook shows.
_SHOWN = 20


class Result(Exports[T_co], Sequence[T_co]):
    """The records of a job that has run, as a sequence, with its bad records and statistics.

    >>> import gristmill as gm
    >>> result = gm.range(3).run()
    >>> len(result), result[1], list(result)
    (3, 1, [0, 1, 2])
    >>> gm.from_iterable("aba").count_by_value().run().to_dict()
    {'a': 2, 'b': 1}
    """

    def __init__(
        self,
        records: Sequence[T_co],
        bad_records: Sequence[BadRecord],
        stats: Mapping[str, Any],
        timelines: Sequence[StageTimeline] = (),
        pairs: bool = False,
    ) -> None:
        self._records = records
        #: The records on which a function failed; empty unless `on_error="skip"`.
        self.bad_records = bad_records
        #: How the job ran, as a mapping. It is printed as a table of the job's stages.
        self.stats = Stats(stats)
        self._timelines = timelines
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Sequence[T_co]:
        return self._records[index]

    def _run(self) -> Run[T_co]:
        return Run(iter(self._records), pairs=self._pairs)

    def __repr__(self) -> str:
        aside = f", {len(self.bad_records)} set aside" if self.bad_records else ""
        return f"<Result: {counted(len(self), 'record')}{aside}>"

    def timeline(self) -> Timeline:
        """Returns a picture of the phases of each worker over time, with deaths and redone work. A notebook shows it.

        >>> import gristmill as gm
        >>> with gm.configure(engine="machine", workers=2):
        ...     gm.from_iterable("abab").count_by_value().run().timeline()
        <Timeline: 1 stage; a notebook shows it, and write(path) makes a page of it>
        """
        if not self._timelines:
            engine = self.stats.get("engine")
            raise PlanError(f'a job of the engine "{engine}" has no timeline: only the engine "machine" has workers that record one')
        return Timeline(self._timelines)

    def _repr_html_(self) -> str:
        """The first records, the bad records, and the statistics."""
        shown = columns(self[:_SHOWN])
        more = f"<p>and {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        parts = [f"<p>{html.escape(repr(self)[1:-1])}</p>", html_table(shown, zip(*(map(repr, column) for column in shown.values()))), more]
        if self.bad_records:
            bad = ([repr(bad.record), bad.error, str(Place(bad.file, bad.line, bad.byte))] for bad in itertools.islice(self.bad_records, _SHOWN))
            parts.append(f"<details><summary>set aside</summary>{html_table(['record', 'error', 'place'], bad)}</details>")
        parts.append(f"<details><summary>statistics</summary>{self.stats._repr_html_()}</details>")
        return "".join(parts)
