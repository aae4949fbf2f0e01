"""The version of this package."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path


def version() -> str:
    """Returns the version of the source tree that this package is in, or else of the installed package.

    >>> version()[0].isdigit()
    True
    """
    tree = Path(__file__).parents[2] / "Cargo.toml"
    if tree.is_file() and (found := re.search(r'^version = "(.+)"', tree.read_text(encoding="utf-8"), re.M)):
        return found[1]
    return importlib.metadata.version("gristmill")
