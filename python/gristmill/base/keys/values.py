"""The order of values, for reducers, and whole numbers of any type."""

from __future__ import annotations

import contextlib
import operator
import sys
from typing import Any


class ValueKey:
    """A value that compares as Python's `<` compares, but NaN is greater than all other numbers, in tuples too.

    A comparison may raise `TypeError`, as in Python.

    >>> import datetime
    >>> max([datetime.date(2024, 5, 1), datetime.date(2025, 1, 1)], key=ValueKey)
    datetime.date(2025, 1, 1)
    >>> max([(1.0, 2), (float("nan"), 1)], key=ValueKey)
    (nan, 1)
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        # A whole number of NumPy cannot be compared with all that its value can be compared with, such as a Decimal.
        self.value = whole(value)

    def __lt__(self, other: ValueKey) -> bool:
        return _is_less(self.value, other.value)

    def __gt__(self, other: ValueKey) -> bool:
        return _is_less(other.value, self.value)


_SEQUENCES = {tuple.__lt__: tuple, list.__lt__: list}


def _is_less(a: Any, b: Any) -> bool:
    kind = _SEQUENCES.get(type(a).__lt__)
    if kind is not None and isinstance(b, kind) and type(b).__lt__ is kind.__lt__:
        for one, other in zip(a, b):
            if one is not other and not _is_one(one, other):
                return _is_less(one, other)
        return len(a) < len(b)
    if _is_nan(a) or _is_nan(b):
        # Decimal's NaN has no order; a number and a text are Python's error.
        with contextlib.suppress(ArithmeticError):
            operator.lt(a, b)
        return not _is_nan(a) and _is_nan(b)
    return bool(a < b)


def _is_one(a: Any, b: Any) -> bool:
    if a == b or (_is_nan(a) and _is_nan(b)):
        return True
    return type(a) is type(b) and type(a) in (tuple, list) and len(a) == len(b) and all(map(_is_one, a, b))


_NEVER_NAN = frozenset((int, str, bytes, bool, type(None), tuple, list))


def _is_nan(value: Any) -> bool:
    if type(value) in _NEVER_NAN:
        return False
    try:
        return bool(value != value)
    except Exception:
        return False


def whole(value: Any) -> Any:
    """The `int` that a whole number of another type is, so that sums are exact; any other value is returned as it is.

    >>> import enum
    >>> whole(enum.IntEnum("Size", {"SMALL": 3}).SMALL), whole(True), whole(1.5)
    (3, 1, 1.5)
    """
    kind = type(value)
    if kind is int or kind is float:
        return value
    if isinstance(value, int):
        return int.__int__(value) if kind.__add__ is int.__add__ and kind.__radd__ is int.__radd__ else value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.integer, numpy.bool_)) and not isinstance(value, numpy.timedelta64):
        return int(value)
    return value
