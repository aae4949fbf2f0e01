"""When keys are equal, and how they are ordered; the same in every engine.

Two keys are one exactly when `a == b` in Python and a `dict` would find one for the other; unlike there, NaN equals NaN. A shuffle compares
bytes, so each key has a *canonical form*, which is the same for equal keys:

1. `None`, `bool`, `int`, `float`, `str`, `bytes` and tuples of these are *plain*: they are their own form, and the native code never asks.
2. Every other key gets its form from :func:`canonical`: a plain value that the key equals (an `IntEnum` is an int), or a kind and parts that are
   keys again (a date is its day). Rules of common types are in `rules`, those of dataclasses, enums and libraries in `canonical`.
3. A rule holds for a subclass as long as it inherits `__eq__`. A class that has one of its own, or none, must be registered
   (:func:`register_key`); else the job is refused, because nobody can tell from outside which of its objects are equal.

The order of keys is Python's within a type. Across types it is `None`, numbers, text, bytes, tuples, and then the kinds of `forms` in their order.
crates/python/src/keys.rs writes forms as bytes.
"""
