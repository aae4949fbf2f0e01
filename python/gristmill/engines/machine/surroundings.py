"""State of the interpreter that functions depend on, besides variables of modules.

Workers that a program forks have it already. The workers of a program with threads are other processes: they get it with the job.
"""

from __future__ import annotations

import csv
import decimal
import locale
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def state() -> dict[str, Any]:
    """Returns the state of this process, for :func:`adopt` in another."""
    found: dict[str, Any] = {}
    for name, (get, _) in _PARTS.items():
        # What a library of the user's version does not have stays as it is there.
        with suppress(Exception):
            found[name] = get()
    return found


def adopt(state: dict[str, Any]) -> None:
    """Gives this process the state of another.

    Libraries get theirs by :func:`adopt_libraries`, once they are imported.
    """
    _waiting.update((name, value) for name, value in state.items() if name in _LIBRARIES)
    for name, value in state.items():
        if value is not None and name not in _LIBRARIES:
            with suppress(Exception):
                _PARTS[name][1](value)


def adopt_libraries() -> None:
    """Gives libraries that are imported now the state that :func:`adopt` was given."""
    for name, library in _LIBRARIES.items():
        if library in sys.modules and (value := _waiting.pop(name, None)) is not None:
            with suppress(Exception):
                _PARTS[name][1](value)


#: The state of libraries that are not imported yet.
_waiting: dict[str, Any] = {}
#: The parts of the state that belong to libraries.
_LIBRARIES = {"errors of NumPy": "numpy", "printing of NumPy": "numpy", "options of pandas": "pandas"}


def _umask() -> int:
    # It can be read otherwise only by setting it, which other threads would see.
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1], 8) for line in status if line.startswith("Umask"))


def _decimal() -> dict[str, Any]:
    context = decimal.getcontext()
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
    return {name: getattr(context, name) for name in names} | {"traps": [each for each, is_set in context.traps.items() if is_set]}


def _numpy(name: str) -> Any:
    """A function of NumPy, if the program has imported that."""
    numpy = sys.modules.get("numpy")
    return getattr(numpy, name, None) and getattr(numpy, name)()


def _set_numpy(name: str) -> Callable[[Any], object]:
    def put(value: Any) -> None:
        import numpy

        value = {key: each for key, each in value.items() if each is not None}
        getattr(numpy, name)(**value)

    return put


def _pandas() -> Any:
    """The options of pandas that are not the default."""
    options = getattr(getattr(sys.modules.get("pandas"), "_config", None), "config", None)
    if options is None:
        return None
    every = {name: options.get_option(name) for name in options._registered_options if name not in options._deprecated_options}
    return {name: value for name, value in every.items() if value != options._registered_options[name].defval and not callable(value)}


def _set_pandas(chosen: dict[str, Any]) -> None:
    if not chosen:
        return
    import pandas

    for name, value in chosen.items():
        pandas.set_option(name, value)


#: The parts of the state: how each is found, and how it is set.
_PARTS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "umask": (_umask, os.umask),
    "time zone": (lambda: os.environ.get("TZ", ""), lambda _: time.tzset()),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), lambda found: locale.setlocale(locale.LC_ALL, found)),
    "decimals": (_decimal, lambda found: decimal.setcontext(decimal.Context(**found))),
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "digits": (
        lambda: getattr(sys, "get_int_max_str_digits", lambda: None)(),
        lambda found: getattr(sys, "set_int_max_str_digits")(found),  # noqa: B009  # not in every 3.10
    ),
    "sockets": (socket.getdefaulttimeout, socket.setdefaulttimeout),
    "csv": (csv.field_size_limit, csv.field_size_limit),
    "errors of NumPy": (lambda: _numpy("geterr"), _set_numpy("seterr")),
    "printing of NumPy": (lambda: _numpy("get_printoptions"), _set_numpy("set_printoptions")),
    "options of pandas": (_pandas, _set_pandas),
}
