"""Canonical forms of keys: their kinds, in the order of keys, and the errors for keys without one."""

from __future__ import annotations

from typing import Any, NamedTuple

RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 1, float: 1, str: 2, bytes: 3, tuple: 4}
OTHER = 5
#: Kinds of forms that crates/python/src/keys.rs knows, too. The key is a plain value and is shown as that; it
#: equals a plain value, but is shown as it is; it is a number between two floats; its parts have no order.
PLAIN, EQUAL, NUMBER, SET, DICT = range(5)
#: Other kinds, in the order of their keys. Their parts are written one after the other.
(
    LIST, DEQUE, DATE, DATETIME, AWARE_DATETIME, TIME, AWARE_TIME, TIMEDELTA, MONTHS, NAT, UUID, PATH, WINDOWS_PATH, IP_ADDRESS,
    IP_NETWORK, IP_INTERFACE, DATACLASS, ATTRS, REGISTERED, ENUM, COMPLEX, RANGE, NAMED, PATTERN, SINGLETON, MISSING,
) = range(16, 42)  # fmt: skip
#: Forms in forms that lie deeper are refused: a list may contain itself.
DEPTH = 100


class NoKey(TypeError):
    """A key of a type of which nobody has said when its objects are equal."""

    def __init__(self, kind: type, why: str) -> None:
        name = kind.__name__
        super().__init__(
            f"keys of the type {name} {why}: register with gm.register_key({name}, function), where function(key) is a key of a known type"
        )
        #: The error for records that are sorted by such keys.
        self.as_order = no_order(kind)


class NoOrder(TypeError):
    """A key by which records cannot be sorted."""


def no_order(kind: type) -> str:
    """Returns the error for keys by which records cannot be sorted."""
    name = kind.__name__
    return f"keys of the type {name} have no order; sort by something that has one, or register with gm.register_key({name}, function)"


class Form(NamedTuple):
    """The canonical form of a key that is not plain."""

    kind: int
    #: A plain value, or a tuple of parts that are keys. For a number: whether it is negative, the float towards
    #: zero from it, and what is left as a continued fraction, whose terms are bytes.
    value: Any
    #: Whether keys of this kind have an order.
    is_ordered: bool = True


class KeyFunctionFailed(Exception):
    """A function that a user has registered has failed on a key. Its cause is what the function raised."""

    def __init__(self, kind: type, key: Any) -> None:
        super().__init__(kind, key)
        self.kind, self.key = kind, key
