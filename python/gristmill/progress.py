"""A bar for long jobs, on standard error: bytes read, rate, remaining time, dead workers."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

#: Shorter jobs show nothing.
_PATIENCE_SECONDS = 0.5
_WIDTH = 30


class Bar:
    """Shows how far a job is. `wanted` is `None` for: if standard error is a terminal."""

    def __init__(self, wanted: bool | None) -> None:
        self.wanted = sys.stderr.isatty() if wanted is None else wanted
        self.began = time.monotonic()
        self.shown = False

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.shown:
            self._write("")

    def show(self, now: dict[str, Any]) -> None:
        """Shows a report of the engine."""
        seconds = time.monotonic() - self.began
        if not self.wanted or seconds < _PATIENCE_SECONDS:
            return
        done = now["done"] / max(now["total"], 1)
        filled = round(done * _WIDTH)
        left = "making the result" if now["finishing"] else f"{seconds / done - seconds:.0f} s left" if done else ""
        deaths = f", {now['deaths']} workers died" if now["deaths"] else ""
        self._write(f"{'█' * filled}{'░' * (_WIDTH - filled)} {done:4.0%}  {left}{deaths}")
        self.shown = True

    def say(self, news: str) -> None:
        """Shows a sentence above the bar."""
        if self.wanted:
            self._write(news + "\n")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
