"""Libraries that not everybody needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import PlanError


def library(name: str, function: str) -> Any:
    """Imports a library for a function of this package.

    Raises an error that says how to install it if it is missing.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise PlanError(f"{function} needs {name}: pip install {name}") from error
