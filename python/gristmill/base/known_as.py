"""The name by which users' pickles and tracebacks know a module, wherever it lies."""

from __future__ import annotations

import sys


def known_as(module: str, name: str) -> None:
    """Gives a module, before it defines its classes, the name under which users' pickles have these."""
    found = sys.modules[name] = sys.modules[module]
    found.__name__ = name
    setattr(sys.modules[name.partition(".")[0]], name.rpartition(".")[2], found)
