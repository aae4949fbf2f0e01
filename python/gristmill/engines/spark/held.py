"""Records of a job that stay on the cluster."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from ...base.errors import GristmillError

#: Results of at most so many bytes come at once, larger ones partition by partition.
_FEW_BYTES = 64 << 20
#: Frames to unpersist. The next job does it, because a finalizer must not call Spark.
left: deque[DataFrame] = deque()


@dataclass
class Held:
    """The records of a job on the cluster, as blocks in their order."""

    #: The job that made them.
    job: str
    #: The frame that Spark keeps, and one of the same rows for other jobs.
    kept: DataFrame
    frame: DataFrame
    records: int
    size: int
    #: Whether somebody else keeps it.
    is_lent: bool = False

    def __post_init__(self) -> None:
        if not self.is_lent:
            self._leave = weakref.finalize(self, left.append, self.kept)

    def __len__(self) -> int:
        return self.records

    def blocks(self) -> Iterator[bytes]:
        """All blocks: a few at once, or those of one partition after the other."""
        rows: Any
        if self.size <= _FEW_BYTES:
            rows = self.frame.toArrow().to_pylist()
        else:
            rows = self.frame.toLocalIterator(prefetchPartitions=True)
        records = 0
        for row in rows:
            records += row["n"]
            yield bytes(row["block"])
        if records != self.records:
            # A function failed that had not, when Spark ran it again for records that it had lost.
            raise GristmillError(f"Spark lost an executor, and made {records} records anew that were {self.records} before")

    def leave(self) -> None:
        """Frees what Spark keeps, unless it is lent."""
        if not self.is_lent and self._leave.detach():
            self.kept.unpersist()
