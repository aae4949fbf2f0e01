"""The equality and the order of keys in plain Python, as the native code has them."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import total_ordering
from typing import Any

from .canonical import canonical
from .forms import DEPTH, DICT, EQUAL, NUMBER, OTHER, PLAIN, RANKS, SET, Form, NoKey, NoOrder, no_order


def group_key(key: Any, depth: int = 0) -> Any:
    """A key of a `dict` that is the same for equal keys. Raises :class:`NoKey` as :func:`canonical` does.

    >>> group_key(float("nan")) == group_key(-float("nan")), group_key(True) == group_key(1.0), group_key([1]) == group_key((1,))
    (True, True, False)
    """
    if depth > DEPTH:
        raise ValueError(f"a key has keys in keys, more than {DEPTH} deep")
    kind = type(key)
    if kind is tuple:
        return (tuple, *(group_key(part, depth + 1) for part in key))
    if kind is float and math.isnan(key):
        return (float, "nan")
    if kind in RANKS:
        return key
    form = canonical(key)
    if form.kind in (PLAIN, EQUAL):
        return group_key(form.value, depth + 1)
    if form.kind == NUMBER:
        return (Form, NUMBER, form.value[:2], *form.value[2])
    parts = [group_key(part, depth + 1) for part in form.value]
    return (Form, form.kind, frozenset(Counter(parts).items())) if form.kind in (SET, DICT) else (Form, form.kind, *parts)


def is_plain(key: Any) -> bool:
    """Whether a key is its own form.

    >>> is_plain((1, "a")), is_plain((1, ["a"]))
    (True, False)
    """
    return all(map(is_plain, key)) if type(key) is tuple else type(key) in RANKS


def is_ordered(key: Any) -> bool:
    """Whether a key has an order.

    >>> is_ordered((1, "a")), is_ordered((1, {"a"}))
    (True, False)
    """
    try:
        SortKey(key)
    except NoOrder:
        return False
    return True


@total_ordering
class SortKey:
    """A key that compares as keys are ordered.

    Raises :class:`NoOrder` if it has none, unless it is `lenient`: then such keys are as one.

    >>> sorted(["b", (1, None), b"a", 2, None, float("nan"), True], key=SortKey)
    [None, True, 2, nan, 'b', b'a', (1, None)]
    """

    __slots__ = ("key", "rank")

    def __init__(self, key: Any, lenient: bool = False) -> None:
        kind, form = type(key), None
        while type(key) not in RANKS:
            try:
                form = canonical(key)
            except NoKey as error:
                raise NoOrder(error.as_order) from None
            if not form.is_ordered and not lenient:
                raise NoOrder(no_order(kind))
            if form.kind not in (PLAIN, EQUAL):
                break
            key = form.value
        else:
            form = None
        self.rank, self.key = RANKS.get(type(key), OTHER), key
        if form is not None and form.kind == NUMBER:
            self.rank, self.key = RANKS[int], _fraction(*form.value)
        elif form is not None:
            self.key = (form.kind, *(SortKey(part, lenient) for part in form.value if form.is_ordered))
        elif type(key) is tuple:
            self.key = tuple(SortKey(part, lenient) for part in key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortKey) and _order(self, other) == 0

    def __lt__(self, other: SortKey) -> bool:
        return _order(self, other) < 0


def _order(a: Any, b: Any) -> int:
    """Below zero if the first comes before the second, which are keys or kinds of keys.

    Each part is compared once, however deep.
    """
    if not isinstance(a, SortKey):
        return int(a > b) - int(a < b)
    if a.rank != b.rank:
        return int(a.rank - b.rank)
    if a.rank == RANKS[type(None)]:
        return 0
    one, other = a.key, b.key
    if type(one) is tuple:
        return next((order for order in map(_order, one, other) if order), len(one) - len(other))
    if a.rank == RANKS[int] and (one != one or other != other):
        return int(one != one) - int(other != other)
    return int(one > other) - int(one < other)


def _fraction(is_negative: bool, near: float, terms: list[bytes]) -> Fraction:
    """The number of a form."""
    left = Fraction(int.from_bytes(terms[-1], "big"))
    for term in terms[-2::-1]:
        left = int.from_bytes(term, "big") + 1 / left
    return Fraction(near) + (-left if is_negative else left)
