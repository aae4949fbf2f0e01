"""Pickles of any object, functions included, for workers and for errors."""

from __future__ import annotations

import functools
import io
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
        Pickler(file).dump(value)
        return file.getvalue()


def _code(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    made, arguments = cloudpickle.Pickler.dispatch_table[CodeType](code)
    return _named, (made, arguments, code.co_filename)


def _named(made: Callable[..., CodeType], arguments: tuple[Any, ...], filename: str) -> CodeType:
    return made(*arguments).replace(co_filename=filename)


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that keeps the file name of each function, which cloudpickle leaves out since 3.1.3.

    Without it a traceback cannot show the user's lines.
    """

    dispatch_table: ClassVar[Mapping[type, Any]] = ChainMap({CodeType: _code}, cloudpickle.Pickler.dispatch_table)

    def reducer_override(self, value: Any) -> Any:
        if type(value) is _Cached and self.is_by_value(value):
            return _cached, (value.cache_parameters(), value.__wrapped__)
        return super().reducer_override(value)

    def is_by_value(self, value: Any) -> bool:
        """Whether a cached function is pickled with its code, as no other process can import it."""
        return cloudpickle.cloudpickle._lookup_module_and_qualname(value) is None


_Cached = functools._lru_cache_wrapper


def _cached(parameters: dict[str, Any], function: Callable[..., Any]) -> Any:
    return functools.lru_cache(**parameters)(function)
