"""Reducers: what becomes of the values of one key.

Their names are those of Python's functions (`gm.sum`, `gm.min`): import the package, not the names.
"""

from __future__ import annotations

import builtins
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from .keys import ValueKey

ReducerName = Literal["sum", "min", "max", "mean", "count", "list", "first", "top"]


@dataclass(frozen=True)
class Reducer:
    """A reducer that the engine knows: its values need not enter Python."""

    name: ReducerName
    #: How many values `top` keeps.
    k: int = 0

    def of(self, values: Iterable[Any]) -> Any:
        """What becomes of values, of which there is at least one.

        `min`, `max` and `top` compare values as keys are ordered: NaN is greater than all other numbers.

        >>> mean.of([1, 2]), count.of("abc"), max.of([float("nan"), 1.0])
        (1.5, 3, nan)
        """
        found = builtins.list(values)
        match self.name:
            case "sum":
                return builtins.sum(found)
            case "min":
                return builtins.min(found, key=ValueKey)
            case "max":
                return builtins.max(found, key=ValueKey)
            case "mean":
                return builtins.sum(found) / len(found)
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


#: The sum of the values; of whole numbers exactly, of any size.
sum = Reducer("sum")
#: The smallest value.
min = Reducer("min")
#: The greatest value.
max = Reducer("max")
#: The mean of the values, as a float.
mean = Reducer("mean")
#: The number of values.
count = Reducer("count")
#: All values as a list, in no certain order.
list = Reducer("list")
#: One of the values, whichever comes first.
first = Reducer("first")


def top(k: int) -> Reducer:
    """The `k` greatest values as a list, descending.

    >>> top(2).of([3, 1, 2])
    [3, 2]
    """
    if k < 1:
        raise ValueError(f"top({k}): at least 1")
    return Reducer("top", k)
