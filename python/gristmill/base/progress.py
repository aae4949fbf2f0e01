"""A bar for long jobs, on a terminal or in a notebook: stage, part done, rate, remaining time, dead workers."""

from __future__ import annotations

import html
import shutil
import sys
import time
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol

from .stats import bytes_text

#: Shorter jobs show nothing.
_PATIENCE_SECONDS = 0.5
_WIDTH = 30


class Bar:
    """Shows how far a job is. `wanted` is `None` for: in notebooks, and if standard error is a terminal."""

    def __init__(self, wanted: bool | None) -> None:
        self.screen = _screen(wanted)
        self.began = self.stage_began = time.monotonic()
        self.stage: dict[str, Any] = {}
        self.is_shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.screen is not None and self.is_shown:
            ended = "done in" if error is None else "ended after"
            self.screen.end(f"{ended} {time.monotonic() - self.began:.1f} s")

    def begin(self, stage: dict[str, Any]) -> None:
        """Begins a stage, given its `number`, `count`, `title`, the `unit` of its input, and the `records` in that."""
        self.stage, self.stage_began = stage, time.monotonic()

    def show(self, now: dict[str, Any]) -> None:
        """Shows a report of the engine."""
        if self.screen is not None and time.monotonic() - self.began >= _PATIENCE_SECONDS:
            self.screen.draw(now["done"] / max(now["total"], 1), self._text(now))
            self.is_shown = True

    def say(self, news: str) -> None:
        """Shows a sentence above the bar."""
        if self.screen is not None:
            self.screen.say(news)

    def _text(self, now: dict[str, Any]) -> str:
        seconds = time.monotonic() - self.stage_began
        done, total = now["done"], now["total"]
        parts = []
        if self.stage.get("count", 1) > 1:
            parts.append(f"stage {self.stage['number']} of {self.stage['count']}: {self.stage['title']}")
        if unit := self.stage.get("unit"):
            # What the engine counts as one may stand for several records.
            size = self.stage.get("records", total)
            part = size * done / max(total, 1)
            rate = part / seconds if seconds else 0.0
            if unit == "bytes":
                parts.append(f"{bytes_text(int(part))} of {bytes_text(size)}, {bytes_text(int(rate))}/s")
            else:
                parts.append(f"{part:,.0f} of {size:,} {unit if size != 1 else unit.removesuffix('s')}, {rate:,.0f}/s")
        if now.get("round"):
            parts.append("mapping again what a dead worker lost")
        if now["finishing"]:
            parts.append("making the result")
        elif done:
            parts.append(f"{seconds * (total - done) / done:.0f} s left")
        if deaths := now["deaths"]:
            parts.append("1 worker died" if deaths == 1 else f"{deaths} workers died")
        return ", ".join(parts)


class _Screen(Protocol):
    def draw(self, done: float, text: str) -> None: ...

    def say(self, text: str) -> None: ...

    def end(self, text: str) -> None: ...


def _screen(wanted: bool | None) -> _Screen | None:
    if wanted is not False and _is_notebook():
        return _Notebook()
    return _Terminal() if wanted or (wanted is None and sys.stderr.isatty()) else None


def _is_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class _Terminal:
    """The last line of standard error; nothing is left of it at the end."""

    def draw(self, done: float, text: str) -> None:
        filled = round(done * _WIDTH)
        line = f"{'█' * filled}{'░' * (_WIDTH - filled)} {done:4.0%}  {text}"
        self._write(line[: shutil.get_terminal_size().columns - 1])

    def say(self, text: str) -> None:
        self._write(text + "\n")

    def end(self, text: str) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


class _Notebook:
    """An output of the cell, which is changed in place."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.news: list[str] = []

    def draw(self, done: float, text: str) -> None:
        self._show(f'<progress value="{done:.3f}" max="1"></progress> {done:.0%}&emsp;{html.escape(text)}')

    def say(self, text: str) -> None:
        self.news.append(f"<div>{html.escape(text)}</div>")
        self._show("")

    def end(self, text: str) -> None:
        self._show(html.escape(text))

    def _show(self, line: str) -> None:
        display = import_module("IPython.display")
        shown = display.HTML(f"<div>{''.join(self.news)}{line}</div>")
        if self.handle is None:
            self.handle = display.display(shown, display_id=True)
        else:
            self.handle.update(shown)
