"""Reducers: what becomes of the values of one key.

Their names are those of Python's functions (`gm.sum`, `gm.min`): import the package, not the names.
"""

from __future__ import annotations

import builtins
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..base.errors import PlanError
from ..base.keys.values import ValueKey, whole
from ..base.known_as import known_as

known_as(__name__, "gristmill.reducers")

ReducerName = Literal["sum", "min", "max", "mean", "count", "list", "first", "top", "several"]


@dataclass(frozen=True)
class Reducer:
    """A reducer that the engine computes in native code. Use `gm.sum` and the others; :func:`top` makes one.

    >>> import gristmill as gm
    >>> gm.from_iterable([("a", 1), ("a", 2)]).reduce_by_key(gm.mean).collect()
    [('a', 1.5)]
    """

    #: The name of the reducer in this package.
    name: ReducerName
    #: How many values `top` keeps.
    k: int = 0
    #: The reducers of `several`, whose results are a tuple. Each reduces the values, or one field of them.
    parts: tuple[Reducer, ...] = ()
    of_fields: bool = False

    def of(self, values: Iterable[Any]) -> Any:
        """Reduces some values here, in plain Python. There must be at least one.

        `min`, `max` and `top` compare values by `<`, which raises `TypeError` for a number and a text; NaN is greater than all other numbers.

        >>> mean.of([1, 2]), count.of("abc"), max.of([float("nan"), 1.0])
        (1.5, 3, nan)
        """
        found = builtins.list(values)
        match self.name:
            case "sum":
                return builtins.sum(map(whole, found))
            case "min":
                return builtins.min(found, key=ValueKey)
            case "max":
                return builtins.max(found, key=ValueKey)
            case "mean":
                return builtins.sum(map(whole, found)) / len(found)
            case "count":
                return len(found)
            case "list":
                return found
            case "first":
                return found[0]
            case "top":
                return heapq.nlargest(self.k, found, ValueKey)
            case "several" if self.of_fields:
                return tuple(part.of(values) for part, values in zip(self.parts, _fields(found, len(self.parts))))
            case "several":
                return tuple(part.of(found) for part in self.parts)

    def __str__(self) -> str:
        if self.parts:
            named = ", ".join(map(str, self.parts))
            return f"({named})" if self.of_fields else named
        return f"gm.{self.name}({self.k})" if self.k else f"gm.{self.name}"


def _fields(values: Iterable[Any], count: int) -> builtins.list[tuple[Any, ...]]:
    """The values as columns: the first field of all, the second, and so on."""
    for value in values:
        if not isinstance(value, (tuple, builtins.list)) or len(value) != count:
            raise TypeError(f"{count} reducers in a tuple reduce the fields of tuples of {count}, and this value is {value!r}")
    return builtins.list(zip(*values))


def reducer_of(given: Sequence[Any]) -> Reducer | Callable[[Any, Any], Any]:
    """The reducer that `reduce_by_key` was given. Raises :class:`gristmill.PlanError` if it is none."""
    if len(given) == 1 and callable(given[0]) and not isinstance(given[0], Reducer) and given[0] is not top:
        function: Callable[[Any, Any], Any] = given[0]
        return function
    parts = tuple(map(_part, given))
    return parts[0] if len(parts) == 1 else Reducer("several", parts=parts)


def _part(given: Any) -> Reducer:
    if isinstance(given, Reducer):
        return given
    if isinstance(given, tuple) and given:
        return Reducer("several", parts=tuple(map(_part, given)), of_fields=True)
    if given is top:
        raise PlanError("gm.top needs to know how many values it keeps, as in gm.top(3)")
    if callable(given):
        raise PlanError(f"{given!r} is a function: several reducers at once are those of Gristmill, such as gm.sum")
    raise PlanError(f"{given!r} is neither a reducer such as gm.sum nor a function of two values")


#: The sum of the values. Sums of whole numbers are exact, however large they are.
#:
#: >>> gm.from_iterable([("a", 1), ("a", 2)]).reduce_by_key(gm.sum).collect()
#: [('a', 3)]
sum = Reducer("sum")
#: The least value. Values compare by `<` as in Python, whatever their type.
#:
#: >>> gm.from_iterable([("a", 3), ("a", 2)]).reduce_by_key(gm.min).collect()
#: [('a', 2)]
min = Reducer("min")
#: The greatest value. Values compare by `<` as in Python, whatever their type; NaN is the greatest number.
#:
#: >>> gm.from_iterable([("a", 3), ("a", 2)]).reduce_by_key(gm.max).collect()
#: [('a', 3)]
max = Reducer("max")
#: The mean of the values, as a float.
#:
#: >>> gm.from_iterable([("a", 1), ("a", 2)]).reduce_by_key(gm.mean).collect()
#: [('a', 1.5)]
mean = Reducer("mean")
#: The number of values.
#:
#: >>> gm.from_iterable([("a", "x"), ("a", None)]).reduce_by_key(gm.count).collect()
#: [('a', 2)]
count = Reducer("count")
#: All values as a list, in any order.
#:
#: >>> gm.from_iterable([("a", 1), ("a", 2)]).reduce_by_key(gm.list).map(lambda pair: sorted(pair[1])).collect()
#: [[1, 2]]
list = Reducer("list")
#: One of the values, whichever arrives first.
#:
#: >>> gm.from_iterable([("a", 1), ("a", 1)]).reduce_by_key(gm.first).collect()
#: [('a', 1)]
first = Reducer("first")


def top(k: int) -> Reducer:
    """Makes a reducer that keeps the `k` greatest values as a list, the greatest first.

    Raises `ValueError` if `k` is not a whole number from 1.

    >>> import gristmill as gm
    >>> gm.from_iterable([("a", 3), ("a", 1), ("a", 2)]).reduce_by_key(gm.top(2)).collect()
    [('a', [3, 2])]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"top({k!r}): give a whole number, at least 1")
    return Reducer("top", k)
