"""Statistics of a job, and tables that show them and records to people."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .known_as import known_as

known_as(__name__, "gristmill.stats")

#: The longest text in a cell of a table; the rest is cut.
_CELL_CHARACTERS = 200


class Stats(dict[str, Any]):
    """How a job ran. Printed, or in a notebook, it is a table of the job's stages, the first one first.

    Its content depends on the engine: time, memory, workers, dead workers.

    >>> stats = Stats({"engine": "machine", "stages": [{"step": "distinct", "seconds": 1.25, "input_bytes": 3 << 20, "deaths": []}]})
    >>> stats["engine"]
    'machine'
    >>> print(stats)
    engine: machine
    step      seconds  input    deaths
    distinct     1.25  3.0 MiB       0
    """

    def __repr__(self) -> str:
        header, rows = self._stages()
        return "\n".join([*self._job(), *text_table(header, rows)])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(', '.join(self._job()))}</p>{html_table(*self._stages())}"

    def _job(self) -> list[str]:
        """Lines about the job as a whole."""
        return [f"{_title(name)}: {_cell(name, value)}" for name, value in self.items() if name != "stages"]

    def _stages(self) -> tuple[list[str], list[list[str]]]:
        stages: Sequence[Mapping[str, Any]] = self.get("stages", ())
        names = list(dict.fromkeys(name for stage in stages for name in stage))
        rows = [[_cell(name, stage[name]) if name in stage else "" for name in names] for stage in stages]
        return list(map(_title, names)), rows


def _title(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _cell(name: str, value: Any) -> str:
    """The text of a cell: a number with its unit, or the length of a list, such as that of dead workers."""
    if name.endswith("_bytes") and isinstance(value, int):
        return bytes_text(value)
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(len(value)) if isinstance(value, (list, tuple)) else str(value)


def bytes_text(count: int) -> str:
    """Returns a number of bytes as text, in the unit that suits it.

    >>> bytes_text(300), bytes_text(3 << 29)
    ('300 B', '1.5 GiB')
    """
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table. Columns of numbers are aligned to the right.

    >>> text_table(["name", "age"], [["ann", "31"], ["bob", "7"]])
    ['name  age', 'ann    31', 'bob     7']
    """
    rows = list(rows)
    columns = list(zip(header, *rows))
    widths = [max(map(len, column)) for column in columns]
    numbers = [bool(rows) and all(cell[-1:].isdigit() for cell in column[1:]) for column in columns]
    lines = ["  ".join(cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(row, widths, numbers)) for row in [header, *rows]]
    return [line.rstrip() for line in lines] if columns else []


def html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table of text for notebooks.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """

    def line(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(_cut(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"


def _cut(text: str) -> str:
    return text if len(text) <= _CELL_CHARACTERS else text[: _CELL_CHARACTERS - 1] + "…"
