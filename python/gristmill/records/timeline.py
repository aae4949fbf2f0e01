"""The timeline of a job: which phase each worker was in, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.files.paths import AnyPath, text_of
from ..base.files.whole_file import whole_file

#: The title of a stage, the seconds from the start of the job to its own, and what the native engine recorded.
StageTimeline = tuple[str, float, Any]


class Timeline:
    """A picture of the workers of a job over time, coloured by phase; see docs/statistics.md for the phases."""

    def __init__(self, stages: Sequence[StageTimeline]) -> None:
        self._stages = stages

    def __repr__(self) -> str:
        count = len(self._stages)
        stages = "1 stage" if count == 1 else f"{count} stages"
        return f"<Timeline: {stages}; a notebook shows it, and write(path) makes a page of it>"

    def _repr_html_(self) -> str:
        return self._drawn(None)

    def page(self) -> str:
        """The timeline as a page of HTML that needs nothing else."""
        return self._drawn("A job in Python")

    def write(self, path: AnyPath) -> None:
        """Writes the page to a file, which appears whole or not at all."""
        with whole_file(text_of(path)) as file:
            file.write(self.page().encode())

    def _drawn(self, title: str | None) -> str:
        from .. import _native  # the local engine does without it

        count = len(self._stages)
        names = [f"Stage {number} of {count}: {name}" for number, (name, _, _) in enumerate(self._stages, 1)]
        return _native.timeline(title, [(name, began, told) for name, (_, began, told) in zip(names, self._stages)])
