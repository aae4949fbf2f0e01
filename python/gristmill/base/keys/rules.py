"""Rules: the form of a key of each common type."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import math
import pathlib
import re
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from . import forms
from .forms import Form, NoKey
from .times import datetime_form, time_form, timedelta_form

#: Numbers with a decimal exponent beyond, or a denominator of more bits, would cost more memory than they are worth
#: as keys.
_EXPONENT_MAX, _DENOMINATOR_BITS_MAX = 5000, 20_000
Rule = Callable[[Any], Form]


def name_of(kind: Any) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def named_form(key: Any) -> Form:
    """A class or function that can be imported by its name."""
    found: Any = sys.modules.get(key.__module__)
    for name in key.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not key:
        raise NoKey(type(key), f"can be told apart only if they can be imported, and {key.__qualname__} cannot")
    return Form(forms.NAMED, name_of(key), False)


def float_form(key: Any) -> Form:
    """A float of more bits than Python's."""
    # Infinity and NaN less themselves are NaN. `math.isinf` would round to a float first.
    return _rational(*key.as_integer_ratio()) if key - key == 0 else Form(forms.EQUAL, float(key))


def complex_form(key: Any) -> Form:
    return Form(forms.EQUAL, float(key.real), False) if key.imag == 0 else Form(forms.COMPLEX, (float(key.real), float(key.imag)), False)


def _decimal(key: decimal.Decimal) -> Form:
    if not key.is_finite():
        return Form(forms.EQUAL, math.nan if key.is_nan() else math.copysign(math.inf, key))
    if key and abs(key.adjusted()) > _EXPONENT_MAX:
        raise OverflowError(f"the exponent of a {type(key).__name__} is beyond {_EXPONENT_MAX}, which is too large for a key: round it first")
    return _rational(*key.as_integer_ratio())


def _rational(above: int, below: int) -> Form:
    """A number: an int or a float if it equals one, else where it lies between two floats.

    What lies between is a continued fraction: each term but the first counts the other way, so comparing terms in turn compares numbers.
    """
    if below == 1:
        return Form(forms.EQUAL, above)
    if below.bit_length() > _DENOMINATOR_BITS_MAX:
        raise OverflowError(f"a fraction has a denominator of {below.bit_length()} bits, which is too large for a key: round it first")
    try:
        near = above / below
    except OverflowError:
        near = sys.float_info.max if above > 0 else -sys.float_info.max
    a, b = near.as_integer_ratio()
    if (a, b) == (above, below):
        return Form(forms.EQUAL, near)
    if abs(a) * below > abs(above) * b:
        near = math.nextafter(near, 0.0)
        a, b = near.as_integer_ratio()
    left, unit = abs(above) * b - abs(a) * below, b * below
    terms = []
    while unit:
        whole, rest = divmod(left, unit)
        terms.append(whole.to_bytes((whole.bit_length() + 7) // 8, "big"))
        left, unit = unit, rest
    return Form(forms.NUMBER, (above < 0, near, terms))


def _range(key: range) -> Form:
    count = len(key)
    return Form(forms.RANGE, (count, key.start if count else None, key.step if count > 1 else None), False)


def _memory(key: memoryview) -> Form:
    if key.ndim != 1 or key.format != "B":
        raise NoKey(memoryview, "are known only if they are of bytes")
    return Form(forms.PLAIN, key.tobytes(), False)


def _network(key: Any) -> Form:
    return Form(forms.IP_NETWORK, _parts_of_network(key))


def _parts_of_path(key: pathlib.PurePath, text: str, separator: str) -> tuple[str, ...]:
    """The parts by which paths are ordered. Before Python 3.12 the root is one of them."""
    if sys.version_info >= (3, 12):
        return tuple(text.split(separator))
    return key.parts if separator == "/" else tuple(part.lower() for part in key.parts)


def _parts_of_network(key: Any) -> tuple[Any, ...]:
    return key.version, int(key.network_address), int(key.netmask)


def _address(key: Any) -> Form:
    return Form(forms.IP_ADDRESS, (key.version, int(key), getattr(key, "scope_id", None)))


def _interface(key: Any) -> Form:
    return Form(forms.IP_INTERFACE, (*_parts_of_network(key.network), int(key.ip), getattr(key, "scope_id", None)))


#: The rules of types, and of their subclasses that inherit `__eq__`.
RULES: dict[type, Rule] = {
    int: lambda key: Form(forms.EQUAL, int.__int__(key)),
    float: lambda key: Form(forms.EQUAL, float.__float__(key)),
    str: lambda key: Form(forms.EQUAL, str.__str__(key)),
    bytes: lambda key: Form(forms.EQUAL, bytes.__getitem__(key, slice(None))),
    tuple: lambda key: Form(forms.EQUAL, tuple.__getitem__(key, slice(None))),
    bytearray: lambda key: Form(forms.EQUAL, bytes(memoryview(key))),
    memoryview: _memory,
    complex: complex_form,
    decimal.Decimal: _decimal,
    Fraction: lambda key: _rational(key.numerator, key.denominator),
    list: lambda key: Form(forms.LIST, tuple(list.__iter__(key))),
    deque: lambda key: Form(forms.DEQUE, tuple(deque.__iter__(key))),
    set: lambda key: Form(forms.SET, tuple(set.__iter__(key)), False),
    frozenset: lambda key: Form(forms.SET, tuple(frozenset.__iter__(key)), False),
    dict: lambda key: Form(forms.DICT, tuple(dict.items(key)), False),
    range: _range,
    datetime.date: lambda key: Form(forms.DATE, (key.toordinal(),)),
    datetime.datetime: datetime_form,
    datetime.time: time_form,
    datetime.timedelta: timedelta_form,
    uuid.UUID: lambda key: Form(forms.UUID, (key.int,)),
    pathlib.PurePosixPath: lambda key: Form(forms.PATH, _parts_of_path(key, str(key), "/")),
    pathlib.PureWindowsPath: lambda key: Form(forms.WINDOWS_PATH, _parts_of_path(key, str(key).lower(), "\\")),
    ipaddress.IPv4Address: _address,
    ipaddress.IPv6Address: _address,
    ipaddress.IPv4Network: _network,
    ipaddress.IPv6Network: _network,
    ipaddress.IPv4Interface: _interface,
    ipaddress.IPv6Interface: _interface,
    re.Pattern: lambda key: Form(forms.PATTERN, (key.pattern, key.flags), False),
    types.BuiltinFunctionType: named_form,
}
