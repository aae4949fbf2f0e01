"""The values that settings take: how each is written, what it may be, and how it is listed for people.

The engine's own table says what its options are called, take and do. This module has the settings of the package, and words for both.
"""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_BYTES = {
    "": 1,
    "b": 1,
    **{unit: 1 << 10 * power for power, letter in enumerate("kmgt", 1) for unit in (letter, f"{letter}ib")},
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
}
_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "usec", "µs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
#: The longest time that a setting takes. It is a guard against a wrong unit.
_SECONDS_MAX = 10**9
#: The numbers of workers that a job has room for.
_WORKERS = range(1, 1025)
_ANY = range(2**32)


@dataclass(frozen=True)
class Kind:
    """The values that a setting takes."""

    #: For people, after "give".
    words: str
    #: Turns a given value into one of the setting's unit. Raises `ValueError`, `TypeError` or `KeyError` for other
    #: values.
    of: Callable[[Any], Any]
    #: The value without the setting, for people.
    default: str


def seconds(value: Any) -> float:
    """Returns a time in seconds. A number is seconds already; text is as the command takes it.

    >>> seconds(2), seconds("1.5"), seconds("500ms"), seconds("1min 30s")
    (2.0, 1.5, 0.5, 90.0)
    """
    if isinstance(value, bool):
        raise ValueError("this is no time")
    if isinstance(value, str):
        parts = re.findall(r"(\d+(?:\.\d+)?|\.\d+)\s*([a-zµ]*)\s*", value.strip())
        if not parts or not re.fullmatch(r"(?:(?:\d+(?:\.\d+)?|\.\d+)\s*[a-zµ]*\s*)+", value.strip()):
            raise ValueError("this is no time")
        if len(parts) > 1 and any(not unit for _, unit in parts):
            raise ValueError("which unit?")
        found = math.fsum(float(number) * _SECONDS.get(unit, math.nan) for number, unit in parts)
    else:
        found = float(value)
    if not 1e-9 <= found <= _SECONDS_MAX:
        raise ValueError("this is no time, or too long a one")
    return found


def size(value: Any) -> int:
    """Returns a size in bytes. A whole number is bytes already; text is as the command takes it.

    >>> size(512), size("64KiB"), size("1.5 GiB"), size("64kB")
    (512, 65536, 1610612736, 64000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)\s*", value.lower()) if isinstance(value, str) else None
    if found is not None:
        return int(float(found[1]) * _BYTES[found[2]]) if "." in found[1] else int(found[1]) * _BYTES[found[2]]
    return count(value, range(2**63))


def count(value: Any, among: range = _ANY) -> int:
    """Returns a whole number within bounds. Text is its digits.

    >>> count(3), count("4")
    (3, 4)
    """
    if isinstance(value, bool):
        raise ValueError("this is no number")
    found = int(value) if isinstance(value, str) else operator.index(value)
    if found not in among:
        raise ValueError("this is too small or too large")
    return found


def _switch(value: Any) -> bool:
    return {"True": True, "False": False, "true": True, "false": False}[str(value)]


def _whole_number(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise TypeError
    return int(value)


def folder(value: Any) -> str:
    """Returns the name of a folder as text."""
    found = os.fsdecode(value)
    if not found:
        raise ValueError("this is no name")
    return found


def _counts(default: str, among: range = _ANY) -> Kind:
    bounds = "" if among == _ANY else f" from {among.start} to {among.stop - 1}"
    return Kind(f"a whole number{bounds}", lambda value: count(value, among), default)


def _seconds(default: str) -> Kind:
    return Kind('seconds, a number greater than 0, or text such as "500ms", "2s" or "2m"', seconds, default)


def _one_of(default: str, *names: str) -> Kind:
    """A setting that takes one of some names."""
    words = ", ".join(f'"{name}"' for name in names[:-1]) + f' or "{names[-1]}"'
    return Kind(words, {name: name for name in names}.__getitem__, default)


#: The settings of this package, with what they do. Those of :class:`gristmill.Settings`, in its order.
OWN: dict[str, tuple[Kind, str]] = {
    "workers": (
        _counts("one for each processor, fewer for short jobs", _WORKERS),
        "The number of processes that run your functions at the same time",
    ),
    "memory": (
        Kind('bytes, or text such as "512MiB" or "2GiB"', size, "half of what is available"),
        "The memory of all workers together; what does not fit goes to disk",
    ),
    "spill_dir": (Kind("the name of a folder", folder, "TMPDIR, or else /tmp"), "The folder for what does not fit into memory"),
    "progress": (Kind("True, False or None", _switch, "in terminals and notebooks"), "Whether a long job shows a bar"),
    "on_error": (
        _one_of("raise", "raise", "skip"),
        "Whether a record on which a function fails ends the job, or is set aside as a bad record",
    ),
    "deadline": (_seconds("no limit"), "The time after which a job ends with an error"),
    "seed": (
        Kind("a whole number or None", _whole_number, "other random numbers for each job"),
        "The number from which the random numbers of a job follow, for any number of workers",
    ),
    "engine": (
        Kind('"machine", "spark", a session of Spark, or "local"', lambda value: value, "machine"),
        "Where jobs run: on this machine, on Spark, or in this process in plain Python",
    ),
}
#: Options of the engine that are settings of this package, with the same name or another.
_OURS = ("workers", "memory", "spill-dir", "skip-bad-records", "deadline")
#: Defaults of options for which the engine has no words, or which this package chooses.
_DEFAULTS = {"map_at_once": "the number of workers, or of processors if that is not set", "combine_after": "no limit"}


def _engine() -> Iterator[tuple[str, tuple[Kind, str]]]:
    """The options of the engine, as its own table has them; none if the native part is missing."""
    try:
        from .. import _native
    except ImportError:
        return
    for option, takes, words, about in _native.options():
        name = option.replace("-", "_")
        default = _DEFAULTS.get(name, words)
        match takes:
            case "switch", [default]:
                # The help of the command describes a switch by its change.
                kind = Kind("True or False", _switch, default.capitalize())
                about = f"False: {about[0].lower()}{about[1:]}" if default == "true" else about
            case "count", [least, most]:
                kind = _counts(default, range(int(least), int(most) + 1))
            case "one of", names:
                kind = _one_of(default, *names)
            case "bytes", _:
                kind = Kind('bytes, or text such as "64KiB" or "2GiB"', size, default)
            case _:
                kind = _seconds(default)
        if option not in _OURS:
            yield name, (kind, about)


#: The other options of the engine, with what they do.
ENGINE: dict[str, tuple[Kind, str]] = dict(_engine())


def checked(name: str, value: Any) -> Any:
    """Returns the value of a setting in its unit: seconds, bytes, a number, a name.

    Raises `ValueError` with what the setting takes.

    >>> checked("task_timeout", "500ms"), checked("retries", 3)
    (0.5, 3)
    """
    kind, _ = OWN[name] if name in OWN else ENGINE[name]
    try:
        return kind.of(value)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ValueError(f"{name}={value!r}: give {kind.words}") from None


def text(name: str, value: Any) -> str:
    """Returns a checked value of an option as the engine and the command read it.

    >>> text("task_timeout", 0.5), text("sample", False), text("retries", 3)
    ('500000000ns', 'false', '3')
    """
    if ENGINE[name][0].of is seconds:
        return duration(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def duration(value: float) -> str:
    """Returns seconds as the engine and the command read them, which take no fractions."""
    return f"{round(value * 1e9)}ns"


def listed() -> list[tuple[str, str, str, str]]:
    """Returns the name of each setting, what it takes, its default, and what it does."""
    return [(name, kind.words, kind.default, about) for name, (kind, about) in (OWN | ENGINE).items()]
