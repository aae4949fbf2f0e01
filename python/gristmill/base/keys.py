"""When keys are equal, and how they are ordered; the same in every engine.

Two keys are one exactly when `a == b` in Python and a `dict` would find one for the other; unlike there, NaN equals NaN. A shuffle compares
bytes, so each key has a *canonical form*, which is the same for equal keys:

1. `None`, `bool`, `int`, `float`, `str`, `bytes` and tuples of these are *plain*: they are their own form, and the native code never asks.
2. Of every other key :func:`canonical` gives the form: a plain value that the key equals (an `IntEnum` is an int), or a kind and parts that are
   keys again (a date is its day). Rules for types are in `_RULES`, of the common ones by class, and in `_rule_of`, of dataclasses and enums.
3. A rule holds for a subclass as long as it inherits `__eq__`. A class that has one of its own, or none, must be registered
   (:func:`register_key`); else the job is refused, because nobody can tell from outside which of its objects are equal.

The order of keys is Python's within a type. Across types it is `None`, numbers, text, bytes, tuples, and then the kinds below in their order.
crates/python/src/keys.rs writes forms as bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import math
import operator
import pathlib
import re
import sys
import types
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import total_ordering
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

_RANKS: dict[type, int] = {type(None): 0, bool: 1, int: 1, float: 1, str: 2, bytes: 3, tuple: 4}
_OTHER = 5

#: Kinds of forms that crates/python/src/keys.rs knows, too. The key is a plain value and is shown as that; it equals a plain value, but is shown as
#: it is; it is a number between two floats; its parts have no order.
PLAIN, EQUAL, NUMBER, SET, DICT = range(5)
#: Other kinds, in the order of their keys. Their parts are written one after the other.
(
    LIST, DEQUE, DATE, DATETIME, AWARE_DATETIME, TIME, AWARE_TIME, TIMEDELTA, MONTHS, NAT, UUID, PATH, WINDOWS_PATH, IP_ADDRESS,
    IP_NETWORK, IP_INTERFACE, DATACLASS, ATTRS, REGISTERED, ENUM, COMPLEX, RANGE, NAMED, PATTERN, SINGLETON, MISSING,
) = range(16, 42)  # fmt: skip

#: Forms in forms that lie deeper are refused: a list may contain itself.
_DEPTH = 100
#: Numbers with a decimal exponent beyond, or a denominator of more bits, would cost more memory than they are worth as keys.
_EXPONENT_MAX, _DENOMINATOR_BITS_MAX = 5000, 20_000


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
    #: A plain value, or a tuple of parts that are keys. Of a number: whether it is negative, the float towards zero from it, and what is left
    #: as a continued fraction, whose terms are bytes.
    value: Any
    #: Whether keys of this kind have an order.
    is_ordered: bool = True


Rule = Callable[[Any], Form]

#: The key functions that users have registered.
_registered: dict[type, Callable[[Any], Any]] = {}
#: The rules of the types that were met.
_rules: dict[type, Rule] = {}


def register_key(type: type[T], function: Callable[[T], Any]) -> None:
    """Says when objects of a type are equal as keys, and how they are ordered: as `function(object)` is.

    The function returns a key of a known type, such as a tuple of the fields that count. It holds for subclasses, too. Objects of two
    registered types are never equal. Register before the job starts. Raises `TypeError` if `type` is no class, or one of those that need no
    function (numbers, text, bytes, tuples, `None`).

    >>> import gristmill as gm
    >>> class Name:
    ...     def __init__(self, text):
    ...         self.text = text
    ...     def __eq__(self, other):
    ...         return self.text.lower() == other.text.lower()
    >>> gm.register_key(Name, lambda name: name.text.lower())
    >>> gm.from_iterable([Name("Ann"), Name("ann"), Name("Bob")]).distinct().count()
    2
    """
    if not isinstance(type, _type) or type in _RANKS:
        raise TypeError(f"register_key({type!r}, ...): it must be a class of your own")
    if not callable(function):
        raise TypeError(f"register_key({type.__name__}, {function!r}): the function must be callable")
    _registered[type] = function
    _rules.clear()


_type = type


def registered() -> Mapping[type, Callable[[Any], Any]]:
    """Returns the registered key functions, for workers."""
    return dict(_registered)


def adopt(found: Mapping[type, Callable[[Any], Any]]) -> None:
    """Registers what the program of a job has registered, and nothing else."""
    _registered.clear()
    _registered.update(found)
    _rules.clear()


def canonical(key: Any) -> Form:
    """The form of a key that is not plain. Raises :class:`NoKey` if nobody has said when such keys are equal.

    >>> import datetime
    >>> canonical(datetime.timedelta(seconds=1)).value, canonical(bytearray(b"a")).value
    ((1000000, 0), b'a')
    """
    kind = type(key)
    rule = _rules.get(kind)
    if rule is None:
        if len(_rules) > 1000:
            _rules.clear()
        rule = _rules[kind] = _rule_of(kind)
    return rule(key)


# Rules.


def _rule_of(kind: type) -> Rule:
    """The rule for the objects of a type."""
    for base in kind.__mro__:
        if base in _registered:
            return _of_registered(base, _registered[base])
        if base in _RULES:
            # An `__eq__`, `__hash__` or `__lt__` of its own knows more than the rule.
            if not _inherits("__eq__", kind, base) or not _inherits("__hash__", kind, base):
                break
            rule = _RULES[base]
            return rule if _inherits("__lt__", kind, base) else _without_order(rule)
    return _of_numpy(kind) or _of_pandas(kind) or _of_fields(kind) or _of_identity(kind) or _refuse(kind)


def _inherits(method: str, kind: type, base: type) -> bool:
    return getattr(kind, method, None) is getattr(base, method, None)


def _without_order(rule: Rule) -> Rule:
    return lambda key: rule(key)._replace(is_ordered=False)


def _refuse(kind: type) -> Rule:
    why = "are equal only to themselves" if _inherits("__eq__", kind, object) else "have an __eq__ that is not known here"

    def rule(key: Any) -> Form:
        raise NoKey(kind, why)

    return rule


class KeyFunctionFailed(Exception):
    """A function that a user has registered has failed on a key. Its cause is what the function raised."""

    def __init__(self, kind: type, key: Any) -> None:
        super().__init__(kind, key)
        self.kind, self.key = kind, key


def _of_registered(kind: type, function: Callable[[Any], Any]) -> Rule:
    def rule(key: Any) -> Form:
        try:
            return Form(REGISTERED, (*_name(kind), function(key)))
        except Exception as error:
            raise KeyFunctionFailed(kind, key) from error

    return rule


def _of_numpy(kind: type) -> Rule | None:
    numpy = sys.modules.get("numpy")
    if kind.__module__ != "numpy" or not issubclass(kind, getattr(numpy, "generic", ())):
        return None
    assert numpy is not None
    if kind is numpy.datetime64:
        return lambda key: Form(NAT, ()) if numpy.isnat(key) else _instant64(numpy, key)
    if kind is numpy.timedelta64:
        return lambda key: Form(NAT, ()) if numpy.isnat(key) else _span64(numpy, key)
    if kind is numpy.longdouble:
        return _float
    if issubclass(kind, numpy.complexfloating):
        return _complex if kind is not numpy.clongdouble else None
    if issubclass(kind, (numpy.bool_, numpy.number, numpy.character)):
        return lambda key: Form(PLAIN, key.item())
    return None


def _of_pandas(kind: type) -> Rule | None:
    pandas = sys.modules.get("pandas")
    if kind.__module__.partition(".")[0] != "pandas":
        return None
    if kind is getattr(pandas, "Timestamp", None):
        return _timestamp
    if kind is getattr(pandas, "Timedelta", None):
        return _timedelta
    if kind is type(getattr(pandas, "NaT", None)):
        return lambda key: Form(NAT, ())
    return (lambda key: Form(MISSING, (), False)) if kind is type(getattr(pandas, "NA", None)) else None


def _of_fields(kind: type) -> Rule | None:
    """The rule of dataclasses, and of classes of attrs, whose `__eq__` compares fields."""
    owner = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    is_ordered = next((base for base in kind.__mro__ if "__lt__" in vars(base)), None) is owner
    if _compares_fields(owner):
        names = [field.name for field in dataclasses.fields(owner) if field.compare]
        is_ordered = is_ordered and vars(owner)["__dataclass_params__"].order
        return lambda key: Form(DATACLASS, (*_name(kind), *(getattr(key, name) for name in names)), is_ordered)
    if "__attrs_attrs__" in vars(owner) and _is_of_attrs(owner, "__eq__"):
        fields = [(field.name, field.eq_key or _itself) for field in vars(owner)["__attrs_attrs__"] if field.eq]
        others = [(field.name, field.order_key or _itself) for field in vars(owner)["__attrs_attrs__"] if field.order]
        is_ordered = is_ordered and fields == others and _is_of_attrs(owner, "__lt__")
        return lambda key: Form(ATTRS, (*_name(kind), *(part(getattr(key, name)) for name, part in fields)), is_ordered)
    return None


def _compares_fields(kind: type) -> bool:
    """Whether `dataclass` made the `__eq__` of a class: its code is that of another class with these fields."""
    parameters = vars(kind).get("__dataclass_params__")
    code = getattr(vars(kind)["__eq__"], "__code__", None)
    if parameters is None or not parameters.eq or code is None:
        return False
    fields = [(field.name, object, dataclasses.field(compare=field.compare)) for field in dataclasses.fields(kind)]
    other: Any = vars(dataclasses.make_dataclass("Other", fields))["__eq__"].__code__
    return bool((code.co_code, code.co_names) == (other.co_code, other.co_names))


def _is_of_attrs(kind: type, method: str) -> bool:
    code = getattr(vars(kind)[method], "__code__", None)
    return code is not None and code.co_filename.startswith("<attrs generated")


def _of_identity(kind: type) -> Rule | None:
    """The rule of objects that are equal only to themselves, and have a name by which every process knows them."""
    if not _inherits("__eq__", kind, object):
        return None
    if issubclass(kind, enum.Flag):
        return lambda key: Form(ENUM, (*_name(kind), key._value_), False)
    if issubclass(kind, enum.Enum):
        return lambda key: Form(ENUM, (*_name(kind), key._name_), False)
    if issubclass(kind, (type, types.FunctionType)):
        return _named
    if kind in (type(...), type(NotImplemented)):
        return lambda key: Form(SINGLETON, (repr(key),), False)
    return None


def _name(kind: Any) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _named(key: Any) -> Form:
    """A class or function that can be imported by its name."""
    found: Any = sys.modules.get(key.__module__)
    for name in key.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not key:
        raise NoKey(type(key), f"can be told apart only if they can be imported, and {key.__qualname__} cannot")
    return Form(NAMED, _name(key), False)


def _itself(value: T) -> T:
    return value


def _float(key: Any) -> Form:
    """A float of more bits than Python's."""
    # Infinity and NaN less themselves are NaN. `math.isinf` would round to a float first.
    return _rational(*key.as_integer_ratio()) if key - key == 0 else Form(EQUAL, float(key))


def _complex(key: Any) -> Form:
    return Form(EQUAL, float(key.real), False) if key.imag == 0 else Form(COMPLEX, (float(key.real), float(key.imag)), False)


def _decimal(key: decimal.Decimal) -> Form:
    if not key.is_finite():
        return Form(EQUAL, math.nan if key.is_nan() else math.copysign(math.inf, key))
    if key and abs(key.adjusted()) > _EXPONENT_MAX:
        raise OverflowError(f"the exponent of a {type(key).__name__} is beyond {_EXPONENT_MAX}, which is too large for a key: round it first")
    return _rational(*key.as_integer_ratio())


def _rational(above: int, below: int) -> Form:
    """A number: an int or a float if it equals one, else where it lies between two floats.

    What lies between is a continued fraction: each term but the first counts the other way, so comparing terms in turn compares numbers.
    """
    if below == 1:
        return Form(EQUAL, above)
    if below.bit_length() > _DENOMINATOR_BITS_MAX:
        raise OverflowError(f"a fraction has a denominator of {below.bit_length()} bits, which is too large for a key: round it first")
    try:
        near = above / below
    except OverflowError:
        near = sys.float_info.max if above > 0 else -sys.float_info.max
    a, b = near.as_integer_ratio()
    if (a, b) == (above, below):
        return Form(EQUAL, near)
    if abs(a) * below > abs(above) * b:
        near = math.nextafter(near, 0.0)
        a, b = near.as_integer_ratio()
    left, unit = abs(above) * b - abs(a) * below, b * below
    terms = []
    while unit:
        whole, rest = divmod(left, unit)
        terms.append(whole.to_bytes((whole.bit_length() + 7) // 8, "big"))
        left, unit = unit, rest
    return Form(NUMBER, (above < 0, near, terms))


def _day_us(key: Any) -> int:
    return int(((key.hour * 60 + key.minute) * 60 + key.second) * 10**6 + key.microsecond)


_DAY_US = 86_400 * 10**6


def _span_us(span: datetime.timedelta) -> int:
    return span.days * _DAY_US + span.seconds * 10**6 + span.microseconds


def _datetime(key: datetime.datetime) -> Form:
    """A point in time: microseconds since the year 1 and attoseconds, which pandas and NumPy have.

    Times that a clock shows twice, or never, equal none of another zone, and in their own zone those that the clock shows alike (PEP 495).
    """
    early, late = key.replace(fold=0).utcoffset(), key.replace(fold=1).utcoffset()
    form = _at(key, early)
    if early == late:
        return form
    return form._replace(value=(*form.value, str(key.tzinfo), key.toordinal() * _DAY_US + _day_us(key)))


def _timestamp(key: Any) -> Form:
    return _at(key, key.utcoffset())


def _at(key: Any, offset: datetime.timedelta | None) -> Form:
    clock_us = key.toordinal() * _DAY_US + _day_us(key)
    rest = getattr(key, "nanosecond", 0) * 10**9
    return Form(DATETIME, (clock_us, rest)) if offset is None else Form(AWARE_DATETIME, (clock_us - _span_us(offset), rest))


def _time(key: datetime.time) -> Form:
    offset = (key.replace(fold=0) if key.fold else key).utcoffset()
    return Form(TIME, (_day_us(key),)) if offset is None else Form(AWARE_TIME, (_day_us(key) - _span_us(offset),))


def _timedelta(key: Any) -> Form:
    return Form(TIMEDELTA, (_span_us(key), getattr(key, "nanoseconds", 0) * 10**9))


#: Attoseconds of the units of NumPy.
_UNITS = {"W": 7 * 86_400, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_UNITS = {name: seconds * 10**18 for name, seconds in _UNITS.items()}
_UNITS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}


#: 1970 in microseconds since the year 1.
_EPOCH_US = datetime.date(1970, 1, 1).toordinal() * _DAY_US


def _instant64(numpy: Any, key: Any) -> Form:
    unit, count = numpy.datetime_data(key.dtype)
    if unit in ("Y", "M"):
        key, unit, count = key.astype("datetime64[D]"), "D", 1
    since_us, rest = divmod(int(key.astype(numpy.int64)) * count * _UNITS[unit], 10**12)
    return Form(DATETIME, (_EPOCH_US + since_us, rest))


def _span64(numpy: Any, key: Any) -> Form:
    """A span of time. Months are no number of days, so they are apart, as is a number without a unit."""
    unit, count = numpy.datetime_data(key.dtype)
    number = int(key.astype(numpy.int64)) * count
    if unit in _UNITS:
        return Form(TIMEDELTA, divmod(number * _UNITS[unit], 10**12))
    return Form(MONTHS, (unit == "generic", number * (12 if unit == "Y" else 1)))


def _range(key: range) -> Form:
    count = len(key)
    return Form(RANGE, (count, key.start if count else None, key.step if count > 1 else None), False)


def _memory(key: memoryview) -> Form:
    if key.ndim != 1 or key.format != "B":
        raise NoKey(memoryview, "are known only if they are of bytes")
    return Form(PLAIN, key.tobytes(), False)


def _network(key: Any) -> Form:
    return Form(IP_NETWORK, _parts_of_network(key))


def _parts_of_path(key: pathlib.PurePath, text: str, separator: str) -> tuple[str, ...]:
    """The parts by which paths are ordered. Before Python 3.12 the root is one of them."""
    if sys.version_info >= (3, 12):
        return tuple(text.split(separator))
    return key.parts if separator == "/" else tuple(part.lower() for part in key.parts)


def _parts_of_network(key: Any) -> tuple[Any, ...]:
    return key.version, int(key.network_address), int(key.netmask)


def _address(key: Any) -> Form:
    return Form(IP_ADDRESS, (key.version, int(key), getattr(key, "scope_id", None)))


def _interface(key: Any) -> Form:
    return Form(IP_INTERFACE, (*_parts_of_network(key.network), int(key.ip), getattr(key, "scope_id", None)))


#: Of types, and of subclasses that inherit their `__eq__`.
_RULES: dict[type, Rule] = {
    int: lambda key: Form(EQUAL, int.__int__(key)),
    float: lambda key: Form(EQUAL, float.__float__(key)),
    str: lambda key: Form(EQUAL, str.__str__(key)),
    bytes: lambda key: Form(EQUAL, bytes.__getitem__(key, slice(None))),
    tuple: lambda key: Form(EQUAL, tuple.__getitem__(key, slice(None))),
    bytearray: lambda key: Form(EQUAL, bytes(memoryview(key))),
    memoryview: _memory,
    complex: _complex,
    decimal.Decimal: _decimal,
    Fraction: lambda key: _rational(key.numerator, key.denominator),
    list: lambda key: Form(LIST, tuple(list.__iter__(key))),
    deque: lambda key: Form(DEQUE, tuple(deque.__iter__(key))),
    set: lambda key: Form(SET, tuple(set.__iter__(key)), False),
    frozenset: lambda key: Form(SET, tuple(frozenset.__iter__(key)), False),
    dict: lambda key: Form(DICT, tuple(dict.items(key)), False),
    range: _range,
    datetime.date: lambda key: Form(DATE, (key.toordinal(),)),
    datetime.datetime: _datetime,
    datetime.time: _time,
    datetime.timedelta: _timedelta,
    uuid.UUID: lambda key: Form(UUID, (key.int,)),
    pathlib.PurePosixPath: lambda key: Form(PATH, _parts_of_path(key, str(key), "/")),
    pathlib.PureWindowsPath: lambda key: Form(WINDOWS_PATH, _parts_of_path(key, str(key).lower(), "\\")),
    ipaddress.IPv4Address: _address,
    ipaddress.IPv6Address: _address,
    ipaddress.IPv4Network: _network,
    ipaddress.IPv6Network: _network,
    ipaddress.IPv4Interface: _interface,
    ipaddress.IPv6Interface: _interface,
    re.Pattern: lambda key: Form(PATTERN, (key.pattern, key.flags), False),
    types.BuiltinFunctionType: _named,
}


# The same in plain Python.


def group_key(key: Any, depth: int = 0) -> Any:
    """A key of a `dict` that is the same for equal keys. Raises :class:`NoKey` as :func:`canonical` does.

    >>> group_key(float("nan")) == group_key(-float("nan")), group_key(True) == group_key(1.0), group_key([1]) == group_key((1,))
    (True, True, False)
    """
    if depth > _DEPTH:
        raise ValueError(f"a key has keys in keys, more than {_DEPTH} deep")
    kind = type(key)
    if kind is tuple:
        return (tuple, *(group_key(part, depth + 1) for part in key))
    if kind is float and math.isnan(key):
        return (float, "nan")
    if kind in _RANKS:
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
    return all(map(is_plain, key)) if type(key) is tuple else type(key) in _RANKS


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
    """A key that compares as keys are ordered. Raises :class:`NoOrder` if it has none, unless it is `lenient`: then such keys are as one.

    >>> sorted(["b", (1, None), b"a", 2, None, float("nan"), True], key=SortKey)
    [None, True, 2, nan, 'b', b'a', (1, None)]
    """

    __slots__ = ("key", "rank")

    def __init__(self, key: Any, lenient: bool = False) -> None:
        kind, form = type(key), None
        while type(key) not in _RANKS:
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
        self.rank, self.key = _RANKS.get(type(key), _OTHER), key
        if form is not None and form.kind == NUMBER:
            self.rank, self.key = _RANKS[int], _fraction(*form.value)
        elif form is not None:
            self.key = (form.kind, *(SortKey(part, lenient) for part in form.value if form.is_ordered))
        elif type(key) is tuple:
            self.key = tuple(SortKey(part, lenient) for part in key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortKey) and _order(self, other) == 0

    def __lt__(self, other: SortKey) -> bool:
        return _order(self, other) < 0


def _order(a: Any, b: Any) -> int:
    """Below zero if the first comes before the second, which are keys or kinds of keys. Each part is compared once, however deep."""
    if not isinstance(a, SortKey):
        return int(a > b) - int(a < b)
    if a.rank != b.rank:
        return int(a.rank - b.rank)
    if a.rank == _RANKS[type(None)]:
        return 0
    one, other = a.key, b.key
    if type(one) is tuple:
        return next((order for order in map(_order, one, other) if order), len(one) - len(other))
    if a.rank == _RANKS[int] and (one != one or other != other):
        return int(one != one) - int(other != other)
    return int(one > other) - int(one < other)


def _fraction(is_negative: bool, near: float, terms: list[bytes]) -> Fraction:
    """The number of a form."""
    left = Fraction(int.from_bytes(terms[-1], "big"))
    for term in terms[-2::-1]:
        left = int.from_bytes(term, "big") + 1 / left
    return Fraction(near) + (-left if is_negative else left)


# Values.


class ValueKey:
    """A value that compares as Python's `<` compares, which may raise `TypeError`; but NaN is greater than all other numbers, in tuples too.

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
