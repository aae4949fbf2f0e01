"""Digests of variables, by which two processes compare their modules."""

from __future__ import annotations

import enum
import hashlib
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...own_modules import OF_IMPORTS, cell_content, is_own

#: For each module, its variables and those of its classes (`"Class.name"`), each with a digest of its value.
Digests = dict[str, dict[str, bytes]]
#: Plain values, which `marshal` writes in one way.
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type(...), list, tuple, dict))
ABSENT = object()


def digests(wanted: Mapping[str, Iterable[str]]) -> Digests:
    """Digests of variables of modules, as they are in this process."""
    return {module: dict(_digests(module, names)) for module, names in wanted.items()}


def _digests(module: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    space = vars(sys.modules[module])
    own = is_own(module, sys.modules[module])
    for name in names:
        value = space.get(name, ABSENT)
        if value is ABSENT:
            yield name, b""
        elif not own:
            yield name, _digest_of_library(value)
        elif _is_space(value, module, name):
            shape = [type(value), *value.__mro__[1:], vars(value).get("__slots__")]
            yield name, digest(shape)
            for attribute, each in list(vars(value).items()):
                if attribute not in OF_IMPORTS and not isinstance(each, types.MemberDescriptorType):
                    yield f"{name}.{attribute}", digest(each)
        elif issubclass(type(value), enum.EnumMeta):
            members: dict[str, enum.Enum] = dict(value.__members__)
            yield name, digest([value, [(each, member.value) for each, member in members.items()]])
        else:
            yield name, digest(value)


def _is_space(value: Any, module: str, name: str) -> bool:
    """Whether a class can be compared and changed attribute by attribute."""
    kind = type(value)
    return issubclass(kind, type) and not issubclass(kind, enum.EnumMeta) and (value.__module__, value.__qualname__) == (module, name)


def _digest_of_library(value: Any) -> bytes:
    """Tells a library's own function or class from one that a test put in its place, and a constant from another."""
    if issubclass(type(value), (type, FunctionType, types.BuiltinFunctionType)):
        code = getattr(value, "__code__", None)
        return repr((value.__module__, value.__qualname__, code and code.co_firstlineno)).encode()
    if type(value) in _PLAIN and not isinstance(value, (list, dict, tuple)):
        return repr(value).encode()
    return repr((type(value).__module__, type(value).__qualname__)).encode()


def digest(value: Any) -> bytes:
    """Bytes that are equal, in all processes, for values that are built alike.

    >>> digest([1, {"a"}]) == digest([1, {"a"}]), digest([1]) == digest([1.0])
    (True, False)
    """
    hashed = hashlib.blake2b(digest_size=16)
    try:
        _feed(value, hashed.update, {})
    except Exception:
        return f"{type(value).__module__}.{type(value).__qualname__}".encode()
    return hashed.digest()


def _feed(value: Any, put: Callable[[Any], object], seen: dict[int, tuple[int, Any]]) -> None:
    kind = type(value)
    if kind in _PLAIN or kind is CodeType:
        try:
            put(marshal.dumps(value, 0))
            return
        except ValueError:
            pass
    if id(value) in seen:
        put(b"again %d" % seen[id(value)][0])
        return
    # Kept, so that no other value gets its address.
    seen[id(value)] = len(seen), value
    put(f"({kind.__module__}.{kind.__qualname__} ".encode())
    if kind is FunctionType:
        own = value.__module__ == "__main__" or is_own(value.__module__, sys.modules.get(value.__module__))
        code = value.__code__
        parts: Iterable[Any] = (value.__module__, value.__qualname__, code if own else code.co_firstlineno)
        if own:
            cells = [cell_content(cell) for cell in value.__closure__ or ()]
            parts = *parts, value.__defaults__, value.__kwdefaults__, cells, value.__dict__
    elif isinstance(value, type):
        parts = value.__module__, value.__qualname__
    elif kind is ModuleType:
        parts = (value.__name__,)
    elif kind in (set, frozenset):
        parts = sorted(map(digest, value))
    elif kind is dict:
        parts = (part for item in value.items() for part in item)
    elif kind in (list, tuple):
        parts = value
    elif kind in (staticmethod, classmethod):
        parts = (value.__func__,)
    elif kind is property:
        parts = value.fget, value.fset, value.fdel
    elif kind is pickle.PickleBuffer:
        put(value.raw())
        parts = ()
    elif (wrapped := getattr(value, "__wrapped__", None)) is not None:
        parts = (wrapped,)
    else:
        parts = _reduced(value)
    for part in parts:
        _feed(part, put, seen)
    put(b")")


def _reduced(value: Any) -> Iterator[Any]:
    """The parts of an object, as they are pickled."""
    try:
        made = value.__reduce_ex__(5)
    except Exception:
        return
    if isinstance(made, str):
        yield made
    else:
        for number, part in enumerate(made):
            yield list(part) if number in (3, 4) and part is not None else part
