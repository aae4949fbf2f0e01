"""The variables of modules that the functions of a job may use, by the names in their code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...own_modules import OF_IMPORTS, PACKAGE_NAME, cell_content, names_in, own_modules

#: For each module, names of variables: of those whose values differ.
Names = dict[str, list[str]]
#: Names in code that may reach any variable.
_REACH_ALL = frozenset(("globals", "vars", "eval", "exec", "__dict__"))
#: Modules that are another in every process.
_NOT_COMPARED = frozenset((PACKAGE_NAME, "__main__", "__mp_main__", "sys", "builtins"))
_ITEMS_MAX = 1000


class Roots:
    """Modules, and names in code, that a pickle refers to: see :class:`gristmill.engines.machine.parcel.Recorder`."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.names: set[str] = set()

    def add(self, value: FunctionType | type | ModuleType) -> None:
        """Adds a function, class or module that a pickle has."""
        if isinstance(value, ModuleType):
            self.modules[value.__name__] = None
            return
        module = value.__module__
        if isinstance(module, str):
            self.modules[module] = None
        self.names |= _holder_of(value)
        if isinstance(value, FunctionType) and (module == "__main__" or "<" in value.__qualname__ or module in own_modules()):
            self.names |= names_in(value.__code__)


def used(roots: Roots) -> tuple[Names, dict[str, set[str]]]:
    """For each module, its variables that functions of a job may use; and for the user's modules, all variables."""
    search = _Search(roots)
    found = search.found()
    return found, {name: set(space) for name, space in search.modules.items() if name in search.own}


class _Search:
    """Follows names in code from function to function."""

    def __init__(self, roots: Roots) -> None:
        self.names, self.code = set(roots.names), set[CodeType]()
        self.modules: dict[str, dict[str, Any]] = {}
        self.own = own_modules()
        self.seen = set[int]()
        self.reached: dict[str, dict[str, None]] = {}
        for name in roots.modules:
            self._module(name)

    def found(self) -> Names:
        before = (-1, -1, -1)
        while before != (now := (len(self.names), len(self.modules), len(self.seen))):
            before = now
            for name in self.names & self.own.keys():
                self._module(name)
            for module, space in list(self.modules.items()):
                if module in self.own:
                    self._own(module, space)
                elif space:
                    self.reached[module] = dict.fromkeys(self.names & space.keys() - OF_IMPORTS)
        return {name: list(keys) for name, keys in self.reached.items() if keys or name in self.own}

    def _module(self, name: str) -> None:
        if name not in self.modules and name.partition(".")[0] not in _NOT_COMPARED:
            module = sys.modules.get(name)
            self.modules[name] = vars(module) if isinstance(module, ModuleType) else {}

    def _own(self, module: str, space: dict[str, Any]) -> None:
        reached = self.reached.setdefault(module, {})
        names = space.keys() if self.names & _REACH_ALL else self.names & space.keys()
        for name in sorted(names - OF_IMPORTS - reached.keys()):
            reached[name] = None
            self._value(space[name])
        package = module if "__path__" in space else module.rpartition(".")[0]
        if package:
            for name in self.own.keys() - self.modules.keys():
                if name.rpartition(".")[0] == package and name.rpartition(".")[2] in self.names:
                    self._module(name)

    def _value(self, value: Any, depth: int = 0) -> None:
        if type(value) not in (str, int, float, bytes, bool, type(None)) and id(value) not in self.seen:
            self.seen.add(id(value))
            # Proxies may raise anything when they are looked at.
            with suppress(Exception):
                self._object(value, depth)

    def _object(self, value: Any, depth: int) -> None:
        if isinstance(value, ModuleType):
            self._module(value.__name__)
            return
        value = getattr(value, "__wrapped__", value) if not isinstance(value, type) else value
        kind = value if isinstance(value, (type, FunctionType)) else type(value)
        if (module := getattr(kind, "__module__", None)) in self.own:
            self._module(module)
            self.names |= _holder_of(kind)
        if isinstance(value, FunctionType):
            self.names |= names_in(value.__code__)
            for cell in value.__closure__ or ():
                self._value(cell_content(cell), depth)
        elif isinstance(value, type) and module in self.own:
            for base in value.__mro__[1:]:
                self._value(base)
            for each in list(vars(value).values()):
                for function in _functions(each):
                    self._value(function)
        elif depth < 3 and isinstance(value, (dict, list, tuple, set, frozenset)) and len(value) <= _ITEMS_MAX:
            for each in list(value.values() if isinstance(value, dict) else value):
                self._value(each, depth + 1)


def _holder_of(value: FunctionType | type) -> set[str]:
    """The variable of its module in which a function or class can be found; none for what a function has made."""
    name = value.__qualname__
    return set() if "<locals>" in name else {name.partition(".")[0]}


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions of an attribute of a class."""
    for function in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "fset", "fdel", "__wrapped__"))):
        if isinstance(function, FunctionType):
            yield function
