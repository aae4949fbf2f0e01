"""Random numbers of workers: which generators a job's functions draw from, and how they are seeded."""

from __future__ import annotations

import functools
import random
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

from .own_modules import cell_content, is_own

#: Values in values are looked at to this depth, containers up to this length, and objects up to this number.
_DEPTH, _ITEMS, _OBJECTS = 8, 100, 10_000
#: Names of modules and functions that draw random numbers.
_DRAWING = frozenset(("random", "randint", "randrange", "shuffle", "choice", "choices", "sample", "uniform", "gauss", "normal"))
_ATOMS = (str, int, float, bytes, bool, type(None))


class Generators:
    """The generators of random numbers that functions draw from: those of libraries, and those that they carry.

    A function carries what is in its closure, in its global variables and those of the user's modules, in the defaults of its
    arguments, and in the attributes of its object.

    >>> import random
    >>> own = random.Random(0)
    >>> found = Generators([lambda record, own=own: own.random()])
    >>> found.seed(7, 1); first = own.random()
    >>> found.seed(7, 1); first == own.random()
    True
    >>> found.seed(7, 2); first == own.random()
    False
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        search = _Search()
        for function in functions:
            search.look(function, 0)
        self.carried = search.found
        #: Whether the code of the functions seems to draw random numbers.
        self.are_used = bool(search.found) or not _DRAWING.isdisjoint(search.names)

    def seed(self, *numbers: int) -> None:
        """Seeds all generators, each differently, so that their numbers follow from `numbers`."""
        seed = hash(numbers)
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None and hasattr(numpy, "random"):
            numpy.random.seed(seed & 0xFFFF_FFFF)
        for number, generator in enumerate(self.carried):
            _seed(generator, hash((seed, number)) & 0xFFFF_FFFF_FFFF_FFFF)


def _seed(generator: Any, seed: int) -> None:
    if isinstance(generator, random.Random):
        generator.seed(seed)
        return
    bits = getattr(generator, "bit_generator", None) or getattr(generator, "_bit_generator", generator)
    with bits.lock:
        bits.state = type(bits)(seed).state


def _is_generator(value: Any) -> bool:
    if isinstance(value, random.Random):
        return not isinstance(value, random.SystemRandom)
    numpy = sys.modules.get("numpy.random")
    return numpy is not None and isinstance(value, (numpy.Generator, numpy.RandomState, numpy.BitGenerator))


class _Search:
    def __init__(self) -> None:
        self.found: list[Any] = []
        self.names = set[str]()
        # Kept, so that no other value gets its address.
        self._seen: dict[int, Any] = {}

    def look(self, value: Any, depth: int) -> None:
        if type(value) in _ATOMS or depth > _DEPTH or id(value) in self._seen or len(self._seen) > _OBJECTS:
            return
        self._seen[id(value)] = value
        # Proxies may raise anything when they are looked at.
        with suppress(Exception):
            if _is_generator(value):
                self.found.append(value)
            else:
                for part in self._parts(value):
                    self.look(part, depth + 1)

    def _parts(self, value: Any) -> Iterator[Any]:
        """The values that code may draw from if it has this one."""
        if isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, (types.MethodType, types.BuiltinMethodType)):
            yield getattr(value, "__func__", None)
            yield value.__self__
        elif isinstance(value, functools.partial):
            yield from (value.func, *value.args, *value.keywords.values())
        elif isinstance(value, (list, tuple, dict)):
            if len(value) <= _ITEMS:
                yield from list(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, types.ModuleType):
            if is_own(value.__name__, value):
                yield from (held for name, held in list(vars(value).items()) if name in self.names)
        elif isinstance(value, type):
            if value.__module__ == "__main__" or is_own(value.__module__, sys.modules.get(value.__module__)):
                yield from list(vars(value).values())
        elif isinstance(value, (staticmethod, classmethod)):
            yield value.__func__
        elif isinstance(getattr(value, "__dict__", None), dict):
            yield type(value)
            yield from list(vars(value).values())

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        names = list(_names(function.__code__))
        self.names.update(names)
        if not (function.__module__ == "__main__" or is_own(function.__module__, sys.modules.get(function.__module__))):
            names = []
        yield from map(cell_content, function.__closure__ or ())
        yield from (function.__globals__[name] for name in names if name in function.__globals__)
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        yield function.__dict__


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
