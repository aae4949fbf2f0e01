"""Forms of dates and times, and of spans of time."""

from __future__ import annotations

import datetime
from typing import Any

from .forms import AWARE_DATETIME, AWARE_TIME, DATETIME, MONTHS, TIME, TIMEDELTA, Form

_DAY_US = 86_400 * 10**6


def _day_us(key: Any) -> int:
    return int(((key.hour * 60 + key.minute) * 60 + key.second) * 10**6 + key.microsecond)


def _span_us(span: datetime.timedelta) -> int:
    return span.days * _DAY_US + span.seconds * 10**6 + span.microseconds


def datetime_form(key: datetime.datetime) -> Form:
    """A point in time: microseconds since the year 1 and attoseconds, which pandas and NumPy have.

    Times that a clock shows twice, or never, equal none of another zone, and in their own zone those that the clock shows alike (PEP 495).
    """
    early, late = key.replace(fold=0).utcoffset(), key.replace(fold=1).utcoffset()
    form = _at(key, early)
    if early == late:
        return form
    return form._replace(value=(*form.value, str(key.tzinfo), key.toordinal() * _DAY_US + _day_us(key)))


def timestamp_form(key: Any) -> Form:
    return _at(key, key.utcoffset())


def _at(key: Any, offset: datetime.timedelta | None) -> Form:
    clock_us = key.toordinal() * _DAY_US + _day_us(key)
    rest = getattr(key, "nanosecond", 0) * 10**9
    return Form(DATETIME, (clock_us, rest)) if offset is None else Form(AWARE_DATETIME, (clock_us - _span_us(offset), rest))


def time_form(key: datetime.time) -> Form:
    offset = (key.replace(fold=0) if key.fold else key).utcoffset()
    return Form(TIME, (_day_us(key),)) if offset is None else Form(AWARE_TIME, (_day_us(key) - _span_us(offset),))


def timedelta_form(key: Any) -> Form:
    return Form(TIMEDELTA, (_span_us(key), getattr(key, "nanoseconds", 0) * 10**9))


#: Attoseconds of the units of NumPy.
_UNITS = {name: seconds * 10**18 for name, seconds in {"W": 7 * 86_400, "D": 86_400, "h": 3600, "m": 60, "s": 1}.items()}
_UNITS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
#: 1970 in microseconds since the year 1.
_EPOCH_US = datetime.date(1970, 1, 1).toordinal() * _DAY_US


def instant64_form(numpy: Any, key: Any) -> Form:
    unit, count = numpy.datetime_data(key.dtype)
    if unit in ("Y", "M"):
        key, unit, count = key.astype("datetime64[D]"), "D", 1
    since_us, rest = divmod(int(key.astype(numpy.int64)) * count * _UNITS[unit], 10**12)
    return Form(DATETIME, (_EPOCH_US + since_us, rest))


def span64_form(numpy: Any, key: Any) -> Form:
    """A span of time. Months are no number of days, so they are apart, as is a number without a unit."""
    unit, count = numpy.datetime_data(key.dtype)
    number = int(key.astype(numpy.int64)) * count
    if unit in _UNITS:
        return Form(TIMEDELTA, divmod(number * _UNITS[unit], 10**12))
    return Form(MONTHS, (unit == "generic", number * (12 if unit == "Y" else 1)))
