"""How a result of an engine differs from the answer of plain Python, up to what the documents leave free.

Imports nothing of the package.
"""

import operator
from collections.abc import Callable
from typing import Any

from oracle import Answer, Fault, Job, Open, Program, classes, is_nan, is_pair, left_over, outcome, same


def difference(program: Program, found: Any, error: Exception | None = None, bad: list[Any] | None = None) -> str | None:
    """Tells how a result or an error differs from the answer, if it does. `bad` are the bad records of `run()`."""
    answer, (end, *counts) = Job(program).answer, program.end
    records = [record for _, record in answer.each()]
    if end == "to_dict" and not answer.errors:
        check_keys(answer, records)
    if error is not None or (answer.errors and end != "take"):
        fine = error is not None and any(fits(fault, error) for fault in answer.errors)
        return None if fine else f"{error!r:.300} on {getattr(error, 'record', None)!r}, {found!r} in place of {answer.errors or records!r}"
    if end == "count":
        return None if found == len(records) else f"count {found} in place of {len(records)}"
    if end == "to_dict":
        expected = classes((record[0], (place, record[1])) for place, record in answer.each())
        right = len(found) == len(expected) and all(any(same(key, keys[0]) and is_last(v, vs) for keys, vs in expected) for key, v in found.items())
        return None if right else f"{found!r} in place of {expected!r}"
    equal = lambda a, b: same(a, b) and (not answer.is_exact or (type(a) is type(b) and repr(a) == repr(b)))
    wanted = min(counts[0], len(records)) if end == "take" else len(records)
    if len(left_over(records, found, equal)) != len(records) - len(found) or (len(found) != wanted and not answer.errors):
        return f"{found!r} in place of {wanted} of {records!r}"
    if not is_in_order(answer, found, equal):
        return f"{found!r} in another order than {[row.place for row in answer.rows]} of {records!r}"
    if bad is not None and (len(bad) != len(answer.bad) or left_over(answer.bad, bad, fits_bad)):
        return f"bad records {bad!r} in place of {answer.bad!r}"
    return None


def fits(fault: Fault, error: Exception) -> bool:
    """Whether an error names the record and has what the function raised as its cause."""
    cause = error.__cause__
    if fault.kind == "pair":
        return type(error).__name__ == "PlanError"
    if fault.kind == "order":
        return isinstance(error, TypeError) or isinstance(cause, TypeError)
    right = isinstance(cause, fault.error) or (type(cause).__name__ == "RemoteError" and fault.error.__name__ in str(cause))
    return type(error).__name__ == "JobError" and right and same(fault.record, getattr(error, "record", None))


def fits_bad(fault: Fault, bad: Any) -> bool:
    return bool(bad.error.split(":")[0] == fault.error.__name__) and same(fault.record, bad.record)


def is_in_order(answer: Answer, found: list[Any], equal: Callable[[Any, Any], bool]) -> bool:
    """Whether places do not fall, and no record is left out before the last."""
    last, left = 0, list(answer.each())
    anywhere = [record for place, record in left if place is None]
    for record in found:
        hits = [hit for hit in left if equal(hit[1], record)]
        if hits and not any(equal(other, record) for other in anywhere):
            hit = min(hits, key=operator.itemgetter(0))
            left = [other for other in left if other is not hit]
            if hit[0] < last:
                return False
            last = hit[0]
    return bool(answer.errors or anywhere) or all(place >= last for place, _ in left)


def check_keys(answer: Answer, records: list[Any]) -> None:
    """Keys that no dictionary takes are an error."""
    if not all(map(is_pair, records)):
        raise Open("a dictionary of records that are not pairs")
    failed = [outcome(hash, key)[1] for key, _ in records]
    if sum(map(is_nan, (key for key, _ in records))) > 1 or (any(failed) and not answer.is_exact):
        raise Open("NaN, or a key that stands for equal keys that no dictionary takes")
    answer.errors += [Fault("order", None, error) for error in failed if error]


def is_last(value: Any, placed: list[tuple[int | None, Any]]) -> bool:
    """A dictionary has the last value of a key that occurs twice, if there is a last one."""
    places = [place for place, _ in placed]
    return any(same(other, value) for place, other in placed if None in places or place == max(places))
