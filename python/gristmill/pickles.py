"""Pickles of any object, functions included, for workers and for errors."""

from __future__ import annotations

import functools
import io
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, ClassVar

import cloudpickle


def dumps(value: object) -> bytes:
    """Pickles a value, with functions and classes that cannot be imported.

    >>> import pickle
    >>> function = pickle.loads(dumps(lambda n: n + 1))
    >>> function(1), function.__code__.co_filename.startswith("<doctest")
    (2, True)
    """
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def _code(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    made, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _named, (made, arguments, code.co_filename)


def _named(made: Callable[..., CodeType], arguments: tuple[Any, ...], filename: str) -> CodeType:
    return made(*arguments).replace(co_filename=filename)


def _cached(function: Any) -> Any:
    """A function with a cache: by name if it can be imported, otherwise by value, and with an empty cache."""
    found: Any = sys.modules.get(function.__module__) if function.__module__ != "__main__" else None
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is function:
        return function.__qualname__
    return _with_cache, (function.__wrapped__, function.cache_parameters())


def _with_cache(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that keeps the file name of each function, which cloudpickle leaves out since 3.1.3.

    Without it a traceback cannot show the user's lines.
    """

    dispatch_table: ClassVar[Mapping[type, Any]] = ChainMap(
        {CodeType: _code, type(functools.cache(len)): _cached}, cloudpickle.Pickler.dispatch_table
    )
