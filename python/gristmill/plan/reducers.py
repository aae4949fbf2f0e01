"""Reducers: what becomes of the values of one key.

Their names are those of Python's functions (`gm.sum`, `gm.min`): import the package, not the names.
"""

from __future__ import annotations

import builtins
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ..base.keys.values import ValueKey, whole
from ..base.known_as import known_as

known_as(__name__, "gristmill.reducers")

ReducerName = Literal["sum", "min", "max", "mean", "count", "list", "first", "top"]


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

    def __str__(self) -> str:
        return f"gm.{self.name}({self.k})" if self.k else f"gm.{self.name}"


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
