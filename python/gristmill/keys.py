"""When keys are equal, and how they are ordered; the same in every engine.

Keys are equal if a `dict` takes them for equal; unlike there, NaN equals NaN. `None`, numbers (`bool`, `int`, `float`), text, bytes
and tuples of these have an order: `None`, then numbers with NaN behind all others, text by code points, bytes, and tuples item by
item. Keys of other types, subclasses of these among them, can be grouped but not sorted: they are equal if their pickles are.
"""

from __future__ import annotations

import math
import pickle
from functools import total_ordering
from typing import Any

_RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 1, float: 1, str: 2, bytes: 3, tuple: 4}
_OTHER = 5


def group_key(key: Any) -> Any:
    """A key of a `dict` that is the same for equal keys.

    >>> group_key(float("nan")) == group_key(-float("nan")), group_key(True) == group_key(1.0), group_key([1]) == group_key((1,))
    (True, True, False)
    """
    kind = type(key)
    if kind is tuple:
        return (tuple, *map(group_key, key))
    if kind is float and math.isnan(key):
        return (float, "nan")
    return key if kind in _RANKS else (object, pickle.dumps(key, protocol=5))


def is_ordered(key: Any) -> bool:
    """Whether a key has an order.

    >>> is_ordered((1, "a")), is_ordered((1, ["a"]))
    (True, False)
    """
    return all(map(is_ordered, key)) if type(key) is tuple else type(key) in _RANKS


@total_ordering
class SortKey:
    """A key that compares as keys are ordered.

    >>> sorted(["b", (1, None), b"a", 2, None, float("nan"), True], key=SortKey)
    [None, True, 2, nan, 'b', b'a', (1, None)]
    """

    __slots__ = ("key", "rank")

    def __init__(self, key: Any) -> None:
        self.rank = self._rank(key)
        self.key = tuple(map(type(self), key)) if self.rank == _RANKS[tuple] else key

    @staticmethod
    def _rank(key: Any) -> int:
        if type(key) not in _RANKS:
            raise TypeError(
                f"keys of the type {type(key).__name__} have no order; sort by numbers, text, bytes or tuples of these"
            )
        return _RANKS[type(key)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortKey) and not self < other and not other < self

    def __lt__(self, other: SortKey) -> bool:
        if self.rank != other.rank:
            return self.rank < other.rank
        if self.rank == _RANKS[type(None)]:
            return False
        if self.rank == _RANKS[int] and (self.key != self.key or other.key != other.key):
            return bool(self.key == self.key)
        return bool(self.key < other.key)


class ValueKey(SortKey):
    """A value that compares as keys do; values of types without an order follow all others and compare as Python has it.

    >>> import datetime
    >>> max([datetime.date(2024, 5, 1), datetime.date(2025, 1, 1)], key=ValueKey)
    datetime.date(2025, 1, 1)
    """

    __slots__ = ()

    @staticmethod
    def _rank(key: Any) -> int:
        return _RANKS.get(type(key), _OTHER)
