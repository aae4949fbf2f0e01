"""Each function gives what a few lines of plain Python give, for records, keys and values of every type mixed.

The oracle knows nothing of the package: keys are compared two by two with `==`, and ordered by :func:`compare`. More types are in test_keys.py.
"""

import datetime
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gristmill as gm

NAN, BIG = math.nan, 2**53
NUMBERS = [False, True, 0, 1, 0.0, -0.0, 1.0, NAN, -NAN, math.inf, -math.inf, 5e-324]
NUMBERS += [BIG, BIG + 1, float(BIG), 2**63, -(2**63), 10**40, 1e40]
TEXTS = ["", "a", "a\0", "\0", "\x7f", "\u00e9", "\uffff", "\U0001f600", "\ud800", "\udfff"]
TUPLES: list[Any] = [(), ((),), (None,), (NAN,), ((-NAN,),), (1, "a"), (True, "a"), (1.0, "a"), (1, "a", 0), ("a", ""), ("a\0",), (b"", "")]
ODD = [None, *NUMBERS, *TEXTS, b"", b"\0", b"a", b"\xff\0", *TUPLES]

#: Numbers that are equal, or nearly so, though they are different objects.
FAMILIES: list[list[Any]] = [
    [False, 0, 0.0, -0.0],
    [True, 1, 1.0],
    [NAN, -NAN, float("nan")],
    [BIG, BIG + 1, float(BIG)],
    [10**40, 1e40, int(1e40)],
    [(True, "a"), (1, "a"), (1.0, "a"), (1, b"a")],
    [((-NAN,), 0), ((NAN,), -0.0), ((NAN,), 1)],
]

simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary()
ordered = st.sampled_from(ODD) | st.recursive(simple, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
#: Keys of other types; how they are ordered is not checked here.
others = st.sampled_from([[1], [1.0], [[]], {"a": 1}, datetime.date(2026, 11, 24), Decimal(1), Fraction(1, 2), frozenset({1}), (1, [Decimal("1.0")])])
keys = ordered | others
#: Values that Python can compare with each other.
COMPARABLE: list[list[Any]] = [NUMBERS, TEXTS, [b"", b"\0", b"a"], [(), (NAN,), (1.0, "a"), (-NAN, "b"), (1, "b"), (2**63,)]]
quarters = st.sampled_from([*range(-4, 5), 10**40, -(2**63), 2**63 - 1]) | st.integers(-40, 40).map(lambda n: n / 4)


def many(keys: st.SearchStrategy[Any], *values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists of keys, or of pairs of a key and a value; among the keys are some that are alike."""

    def lists(family: list[Any]) -> st.SearchStrategy[list[Any]]:
        some = st.sampled_from(family) | keys
        return st.lists(st.tuples(some, *values) if values else some, max_size=12)

    return st.sampled_from(FAMILIES).flatmap(lists)


def tries(count: int) -> settings:
    return settings(max_examples=count, deadline=None)


# The oracle.


def is_ordered(key: Any) -> bool:
    """Whether :func:`compare` knows the order of a key."""
    return all(map(is_ordered, key)) if type(key) is tuple else type(key) in (type(None), bool, int, float, str, bytes)


def equal(a: Any, b: Any) -> bool:
    """Whether two keys are one group."""
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b or (a != a and b != b))


def compare(a: Any, b: Any) -> int:
    """Below zero if `a` comes first: nothing, numbers, text, bytes, tuples; NaN behind all other numbers."""
    ranks = {type(None): 0, bool: 1, int: 1, float: 1, str: 2, bytes: 3, tuple: 4}
    if ranks[type(a)] != ranks[type(b)] or a is None:
        return ranks[type(a)] - ranks[type(b)]
    if type(a) is tuple:
        return next((order for order in map(compare, a, b) if order), len(a) - len(b))
    if a != a or b != b:
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


in_order = functools.cmp_to_key(compare)


def grouped(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[list[Any], list[Any]]]:
    """The keys of each group, which are equal, and its values."""
    groups: list[tuple[list[Any], list[Any]]] = []
    for key, value in pairs:
        for known, values in groups:
            if equal(known[0], key):
                known.append(key)
                values.append(value)
                break
        else:
            groups.append(([key], [value]))
    return groups


def exact(value: Any) -> str:
    """Tells all values apart that are not the same: `1`, `1.0` and `True`; `0.0` and `-0.0`."""
    return repr(value)


def exact_but_zero(key: Any) -> str:
    """As `exact`, with one zero for `-0.0` and `0.0`."""
    if type(key) is tuple:
        return f"({', '.join(map(exact_but_zero, key))})"
    return exact(0.0 if type(key) is float and key == 0 else key)


def exactly(records: Iterable[Any]) -> list[str]:
    """Records without an order."""
    return sorted(map(exact, records))


def check_groups(found: list[tuple[Any, Any]], pairs: list[tuple[Any, Any]], right: Callable[[list[Any], Any], bool]) -> None:
    """Checks a result with one record for each key: the key is one of those that are equal, and the value is right."""
    expected = grouped(pairs)
    assert len(found) == len(expected)
    for known, values in expected:
        (hit,) = [record for record in found if equal(record[0], known[0])]
        # A zero without its sign stands for both: `-0.0` may come back as `0.0`.
        assert exact_but_zero(hit[0]) in map(exact_but_zero, known)
        assert right(values, hit[1]), (hit, values)
    if all(is_ordered(key) for key, _ in pairs):
        assert all(compare(a, b) < 0 for (a, _), (b, _) in itertools.pairwise(found))


def check_order(found: list[Any], records: list[Any], by: Callable[[Any], Any], descending: bool) -> None:
    assert exactly(found) == exactly(records)
    sign = -1 if descending else 1
    assert all(sign * compare(by(a), by(b)) <= 0 for a, b in itertools.pairwise(found))


# The functions.


@tries(12)
@given(many(keys))
def test_records_pass_through_functions(records: list[Any]) -> None:
    data = gm.from_iterable(records)
    found = data.map(lambda r: [r]).filter(lambda r: exact(r[0]) > "1").flat_map(lambda r: (r[0], r)).key_by(exact).collect()
    expected = [(exact(each), each) for r in records if exact(r) > "1" for each in (r, [r])]
    assert list(map(exact, found)) == list(map(exact, expected))
    assert list(map(exact, data.map_batches(reversed).collect())) == list(map(exact, in_batches(data, records)))
    assert (data.count(), exact(data.take(2)), len(data.cache().collect())) == (len(records), exact(records[:2]), len(records))


def in_batches(data: gm.Dataset[Any], records: list[Any]) -> list[Any]:
    """The records reversed, batch by batch; how long a batch is, the engine decides."""
    sizes = data.map_batches(lambda batch: [len(batch)]).collect()
    assert sum(sizes) == len(records)
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [each for start, size in zip(starts, sizes) for each in reversed(records[start : start + size])]


@tries(30)
@given(many(keys), st.booleans())
def test_equal_records_are_one(records: list[Any], count: bool) -> None:
    data = gm.from_iterable(records)
    pairs = [(record, None) for record in records]
    if count:
        check_groups(data.count_by_value().collect(), pairs, lambda values, found: found == len(values))
    else:
        check_groups([(record, None) for record in data.distinct()], pairs, lambda values, found: True)


NUMERIC: list[tuple[gm.Reducer, Callable[[list[Any]], Any]]] = [(gm.sum, sum), (gm.mean, lambda values: sum(values) / len(values))]


@tries(40)
@given(many(keys, st.integers() | st.booleans() | quarters), st.sampled_from(NUMERIC))
@example([("a", 2**63 - 1), ("a", 1)], NUMERIC[0])
@example([("a", True), ("b", 0.25), ("b", 10**17)], NUMERIC[0])
def test_numbers_are_added_up(pairs: list[tuple[Any, Any]], way: tuple[gm.Reducer, Callable[[list[Any]], Any]]) -> None:
    reducer, plain = way
    # The sums of floats depend on the order beyond 53 bits; ints do not.
    if any(type(value) is float for _, value in pairs):
        pairs = [(key, value if abs(value) < 2**40 else 1) for key, value in pairs]
    found = gm.from_iterable(pairs).reduce_by_key(reducer).collect()
    check_groups(found, pairs, lambda values, got: (type(got), got) == (type(plain(values)), plain(values)))


ANY: list[tuple[Any, Callable[[list[Any], Any], bool]]] = [
    (gm.min, lambda values, got: compare(got, min(values, key=in_order)) == 0),
    (gm.max, lambda values, got: compare(got, max(values, key=in_order)) == 0),
    (gm.top(2), lambda values, got: not any(map(compare, got, sorted(values, key=in_order)[::-1][:2])) and len(got) == min(2, len(values))),
    (gm.count, lambda values, got: bool(got == len(values))),
    (gm.list, lambda values, got: exactly(got) == exactly(values)),
    (gm.first, lambda values, got: exact(got) in map(exact, values)),
    (lambda a, b: min(a, b, key=exact), lambda values, got: exact(got) == min(map(exact, values))),
]


@tries(70)
@given(st.sampled_from(COMPARABLE).flatmap(lambda values: many(keys, st.sampled_from(values))), st.sampled_from(ANY))
def test_values_of_every_type_are_reduced(pairs: list[tuple[Any, Any]], way: tuple[Any, Callable[[list[Any], Any], bool]]) -> None:
    reducer, right = way
    check_groups(gm.from_iterable(pairs).reduce_by_key(reducer).collect(), pairs, right)


@tries(25)
@given(many(keys, keys))
def test_groups_have_all_values(pairs: list[tuple[Any, Any]]) -> None:
    found = gm.from_iterable(pairs).group_by_key().map_groups(lambda key, values: iter([(key, values), (key, len(values))])).collect()
    check_groups(found[::2], pairs, lambda values, got: exactly(got) == exactly(values))
    assert [len(values) for _, values in found[::2]] == [count for _, count in found[1::2]]


few = many(keys, st.integers(0, 99))


@tries(50)
@given(few, few, st.sampled_from(["inner", "left", "right", "full", "anti"]))
def test_a_join_is_two_nested_loops(left: list[tuple[Any, int]], right: list[tuple[Any, int]], how: Any) -> None:
    found = gm.from_iterable(left).join(gm.from_iterable(right), how).collect()
    both = [(k, (v, w)) for k, v in left for other, w in right if equal(k, other)]
    lefts = [(k, v) for k, v in left if not any(equal(k, other) for other, _ in right)]
    rights = [(k, (None, w)) for k, w in right if not any(equal(k, other) for other, _ in left)]
    expected = {
        "inner": both,
        "left": both + [(k, (v, None)) for k, v in lefts],
        "right": both + rights,
        "full": both + [(k, (v, None)) for k, v in lefts] + rights,
        "anti": lefts,
    }[how]
    assert exactly(value for _, value in found) == exactly(value for _, value in expected)
    for key, value in expected:
        assert any(equal(key, other) and value == got for other, got in found)


@tries(40)
@given(many(ordered, keys), st.booleans(), st.booleans())
def test_records_are_sorted(pairs: list[tuple[Any, Any]], descending: bool, by_key: bool) -> None:
    data = gm.from_iterable(pairs)
    if by_key:
        check_order(data.sort_by_key(descending=descending).collect(), pairs, operator.itemgetter(0), descending)
    else:
        by = lambda pair: (pair[0], exact(pair[1]))
        check_order(data.sort_by(by, descending=descending).collect(), pairs, by, descending)


@tries(40)
@given(many(ordered, ordered), st.integers(1, 5), st.sampled_from([None, "key", "value", operator.itemgetter(1)]))
def test_the_greatest_are_kept(pairs: list[tuple[Any, Any]], count: int, by: Any) -> None:
    found = gm.from_iterable(pairs).top(count, by=by).collect()
    of = {None: lambda pair: pair, "key": operator.itemgetter(0)}.get(by, operator.itemgetter(1))
    # The smaller of equal records come first.
    ties = lambda a, b: compare(of(b), of(a)) or compare(a, b)
    expected = sorted(pairs, key=functools.cmp_to_key(ties))[:count]
    assert len(found) == len(expected) and not any(map(compare, found, expected))
    assert all(exact(pair) in map(exact, pairs) for pair in found)


@tries(20)
@given(many(ordered, keys))
def test_a_dictionary_has_the_last_value_of_each_key(pairs: list[tuple[Any, Any]]) -> None:
    # Whether a `dict` holds two NaN depends on whether they are one object.
    pairs = [pair for pair in pairs if "nan" not in exact(pair[0])]
    assert exact(gm.from_iterable(pairs).to_dict()) == exact(dict(pairs))


@pytest.mark.parametrize("odd", [{1}, {"a": 1}, (1, {2})], ids=repr)
def test_what_has_no_order_is_not_sorted(odd: Any) -> None:
    with pytest.raises(TypeError, match=f"keys of the type {type(odd[1] if type(odd) is tuple else odd).__name__} have no order"):
        gm.from_iterable([odd, odd]).sort_by(lambda record: record).collect()
