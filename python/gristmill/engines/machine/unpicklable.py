"""Names the function and the variable for which a plan cannot be pickled."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterator, Mapping
from typing import Any

from ...base import pickles
from ...plan.describe import name
from ...plan.stages import Stage, functions, sources
from ..own_modules import cell_content, names_in

#: Variables in variables are looked at to this depth, and containers up to this length.
_DEPTH, _ITEMS = 6, 10_000


def explained(stage: Stage, error: Exception) -> str:
    """Says which object cannot be pickled, where it is, and what to do."""
    for said, function in functions(stage):
        if (why := _why_not(function)) is not None:
            path = _path(function, "", _DEPTH, set())
            where = f": {path[0]} is {_shown(path[1])}" if path else ""
            return (
                f"workers cannot get the function of {said}, {name(function)}{_place(function)}{where}, which cannot be pickled ({why}). "
                "Make it inside the function, or in a variable of a module that the function sets when it first needs it"
            )
    for source in sources(stage):
        if source.kind == "iterable" and _why_not(source.data) is not None:
            for number, record in enumerate(source.data):
                if (why := _why_not(record)) is not None:
                    path = _path(record, f"record {number}", _DEPTH, set())
                    where, value = path or (f"record {number}", record)
                    return (
                        f"workers cannot get the records of the program: {where} is {_shown(value)}, which cannot be pickled "
                        f"({why}). Give them what it is made of, and make it in a function"
                    )
    return f"the pipeline cannot be sent to its workers: {error}"


def _why_not(value: Any) -> str | None:
    """The reason for which a value cannot be pickled, or `None`."""
    try:
        pickles.dumps(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _shown(value: Any) -> str:
    kind = type(value)
    return f"an object of type {kind.__qualname__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__qualname__}'}"


def _place(function: Any) -> str:
    """The file and line of a function."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""


def _path(value: Any, said: str, depth: int, seen: set[int]) -> tuple[str, Any] | None:
    """The innermost part of a value that cannot be pickled, with the way to it in words."""
    if not depth or id(value) in seen:
        return None
    seen.add(id(value))
    for way, part in _parts(value):
        if _why_not(part) is not None:
            whole = way.format(said)
            return _path(part, whole, depth - 1, seen) or (whole, part)
    return None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The values that are pickled with a value, each with its way from there: `{}` stands for the value."""
    if isinstance(value, types.MethodType):
        yield "its object", value.__self__
    elif isinstance(value, types.FunctionType):
        variables = zip(value.__code__.co_freevars, value.__closure__ or ())
        yield from (("its variable " + _plain(each), cell_content(cell)) for each, cell in variables)
        used = sorted(names_in(value.__code__) & value.__globals__.keys())
        yield from (("the global variable " + _plain(each), value.__globals__[each]) for each in used)
        signature = zip(reversed(value.__code__.co_varnames[: value.__code__.co_argcount]), reversed(value.__defaults__ or ()))
        defaults = [*signature, *(value.__kwdefaults__ or {}).items()]
        yield from (("the default of its argument " + _plain(each), held) for each, held in defaults)
    elif isinstance(value, functools.partial):
        yield "its function", value.func
        yield from ((f"its argument {number}", held) for number, held in enumerate(value.args))
        yield from (("its argument " + _plain(each), held) for each, held in value.keywords.items())
    elif isinstance(value, Mapping) and len(value) <= _ITEMS:
        yield from (("{}" + _plain(f"[{each!r}]"), held) for each, held in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)) and len(value) <= _ITEMS:
        yield from ((f"{{}}[{number}]", held) for number, held in enumerate(value))
    elif isinstance(value, type):
        yield from (("{}" + _plain(f".{each}"), held) for each, held in vars(value).items() if not each.startswith("__"))
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, types.ModuleType):
        yield from (("{}" + _plain(f".{each}"), held) for each, held in vars(value).items())


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
