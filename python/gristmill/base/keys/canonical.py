"""The canonical form of a key, by the rule of its type or the function that the program has registered for it.

Plain keys, such as 1, 1.0 and True, need none: the encoder in crates/python/src/keys.rs makes them equal, and `order` here.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .forms import ATTRS, DATACLASS, ENUM, MISSING, NAT, PLAIN, RANKS, REGISTERED, SINGLETON, Form, KeyFunctionFailed, NoKey
from .rules import RULES, Rule, complex_form, float_form, name_of, named_form
from .times import instant64_form, span64_form, timedelta_form, timestamp_form

T = TypeVar("T")
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
    if not isinstance(type, _type) or type in RANKS:
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


# The rule of a type.


def _rule_of(kind: type) -> Rule:
    """The rule for the objects of a type."""
    for base in kind.__mro__:
        if base in _registered:
            return _of_registered(base, _registered[base])
        if base in RULES:
            # An `__eq__`, `__hash__` or `__lt__` of its own knows more than the rule.
            if not _inherits("__eq__", kind, base) or not _inherits("__hash__", kind, base):
                break
            rule = RULES[base]
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


def _of_registered(kind: type, function: Callable[[Any], Any]) -> Rule:
    def rule(key: Any) -> Form:
        try:
            return Form(REGISTERED, (*name_of(kind), function(key)))
        except Exception as error:
            raise KeyFunctionFailed(kind, key) from error

    return rule


def _of_numpy(kind: type) -> Rule | None:
    numpy = sys.modules.get("numpy")
    if kind.__module__ != "numpy" or not issubclass(kind, getattr(numpy, "generic", ())):
        return None
    assert numpy is not None
    if kind is numpy.datetime64:
        return lambda key: Form(NAT, ()) if numpy.isnat(key) else instant64_form(numpy, key)
    if kind is numpy.timedelta64:
        return lambda key: Form(NAT, ()) if numpy.isnat(key) else span64_form(numpy, key)
    if kind is numpy.longdouble:
        return float_form
    if issubclass(kind, numpy.complexfloating):
        return complex_form if kind is not numpy.clongdouble else None
    if issubclass(kind, (numpy.bool_, numpy.number, numpy.character)):
        return lambda key: Form(PLAIN, key.item())
    return None


def _of_pandas(kind: type) -> Rule | None:
    pandas = sys.modules.get("pandas")
    if kind.__module__.partition(".")[0] != "pandas":
        return None
    if kind is getattr(pandas, "Timestamp", None):
        return timestamp_form
    if kind is getattr(pandas, "Timedelta", None):
        return timedelta_form
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
        return lambda key: Form(DATACLASS, (*name_of(kind), *(getattr(key, name) for name in names)), is_ordered)
    if "__attrs_attrs__" in vars(owner) and _is_of_attrs(owner, "__eq__"):
        fields = [(field.name, field.eq_key or _itself) for field in vars(owner)["__attrs_attrs__"] if field.eq]
        others = [(field.name, field.order_key or _itself) for field in vars(owner)["__attrs_attrs__"] if field.order]
        is_ordered = is_ordered and fields == others and _is_of_attrs(owner, "__lt__")
        return lambda key: Form(ATTRS, (*name_of(kind), *(part(getattr(key, name)) for name, part in fields)), is_ordered)
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
        return lambda key: Form(ENUM, (*name_of(kind), key._value_), False)
    if issubclass(kind, enum.Enum):
        return lambda key: Form(ENUM, (*name_of(kind), key._name_), False)
    if issubclass(kind, (type, types.FunctionType)):
        return named_form
    if kind in (type(...), type(NotImplemented)):
        return lambda key: Form(SINGLETON, (repr(key),), False)
    return None


def _itself(value: T) -> T:
    return value
