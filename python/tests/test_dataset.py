"""Each function gives what a few lines of plain Python give, with keys of every type mixed."""

import functools
import math
import operator
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.keys import SortKey, group_key

simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary()
keys = st.recursive(simple, lambda inner: st.tuples(inner) | st.tuples(inner, inner), max_leaves=4)
values = st.integers(-1000, 1000)


def groups(pairs):
    found = {}
    for key, value in pairs:
        found.setdefault(group_key(key), []).append(value)
    return found


def same(found, expected):
    """Compares pairs without an order. Which of some equal keys stands for them is not promised: `1`, `1.0` or `True`."""
    assert sorted(repr((plain(group_key(k)), v)) for k, v in found) == sorted(repr((plain(k), v)) for k, v in expected)


def plain(key):
    """A key whose numbers are ints if they are whole."""
    if isinstance(key, tuple):
        return tuple(map(plain, key))
    return int(key) if isinstance(key, (bool, float)) and math.isfinite(key) and key == int(key) else key


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(keys, values)))
def test_values_are_reduced_by_key(pairs):
    data = gm.from_iterable(pairs)
    expected = groups(pairs)
    same(data.reduce_by_key(gm.sum), ((k, sum(v)) for k, v in expected.items()))
    same(data.reduce_by_key(gm.max), ((k, max(v)) for k, v in expected.items()))
    same(data.reduce_by_key(gm.count), ((k, len(v)) for k, v in expected.items()))
    same(data.reduce_by_key(lambda a, b: a + b), ((k, sum(v)) for k, v in expected.items()))
    same(data.reduce_by_key(gm.top(2)), ((k, sorted(v, reverse=True)[:2]) for k, v in expected.items()))
    same(
        data.group_by_key().map_groups(lambda key, values: [(key, sorted(values))]),
        ((k, sorted(v)) for k, v in expected.items()),
    )
    same(data.map(lambda pair: pair[0]).count_by_value(), ((k, len(v)) for k, v in expected.items()))
    assert data.map(lambda pair: pair[0]).distinct().count() == len(expected)


@settings(max_examples=20, deadline=None)
@given(st.lists(keys))
def test_sorted_keys_ascend(found):
    result = gm.from_iterable(found).sort_by(lambda key: key).collect()
    assert sorted(map(repr, result)) == sorted(map(repr, found))
    assert all(not SortKey(b) < SortKey(a) for a, b in zip(result, result[1:]))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(keys, values), max_size=12), st.lists(st.tuples(keys, values), max_size=12))
def test_joins_are_two_nested_loops(left, right):
    a, b = gm.from_iterable(left), gm.from_iterable(right)
    inner = [(k, (v, w)) for k, v in left for other, w in right if group_key(k) == group_key(other)]
    alone = [(k, v) for k, v in left if group_key(k) not in groups(right)]
    other = [(k, v) for k, v in right if group_key(k) not in groups(left)]
    expect = lambda pairs: ((group_key(k), v) for k, v in pairs)
    left_only, right_only = [(k, (v, None)) for k, v in alone], [(k, (None, v)) for k, v in other]
    same(a.join(b), expect(inner))
    same(a.join(b, "left"), expect(inner + left_only))
    same(a.join(b, "right"), expect(inner + right_only))
    same(a.join(b, "full"), expect(inner + left_only + right_only))
    same(a.join(b, "anti"), expect(alone))


@given(keys, keys)
def test_keys_that_are_equal_in_a_dict_are_one_group(a, b):
    if a == b and not any(isinstance(key, float) and math.isnan(key) for key in (a, b)):
        assert group_key(a) == group_key(b)


def test_words_are_counted_in_files(tmp_path):
    texts = ["a b\r\nc\n", "", "b \u00e9\nlast"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    words = gm.read_text(tmp_path).flat_map(str.split).count_by_value()
    assert dict(words) == Counter(word for text in texts for word in text.split())
    assert gm.read_text([tmp_path / "0.txt"]).collect() == ["a b", "c"]
    assert gm.read_files(tmp_path / "0.txt").collect() == [(str(tmp_path / "0.txt"), texts[0].encode())]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-50, 50)))
def test_functions_are_applied_in_turn(numbers):
    data = gm.from_iterable(numbers)
    assert data.map(abs).collect() == [abs(n) for n in numbers]
    assert data.filter(lambda n: n % 3).collect() == [n for n in numbers if n % 3]
    assert data.flat_map(lambda n: range(n)).map(str).collect() == [str(m) for n in numbers for m in range(n)]
    assert data.map_batches(lambda batch: (n + 1 for n in batch)).collect() == [n + 1 for n in numbers]
    assert data.key_by(abs).collect() == [(abs(n), n) for n in numbers]
    assert data.count() == len(numbers)
    assert data.take(3) == numbers[:3]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-50, 50))))
def test_reducers_are_the_functions_of_python(pairs):
    data, expected = gm.from_iterable(pairs), groups(pairs)
    for reducer, function in [(gm.min, min), (gm.mean, lambda v: sum(v) / len(v)), (gm.sum, sum), (operator.or_, None)]:
        function = function or (lambda v: functools.reduce(operator.or_, v))
        assert data.reduce_by_key(reducer).to_dict() == {k: function(v) for k, v in expected.items()}
    assert {k: sorted(v) for k, v in data.reduce_by_key(gm.list)} == {k: sorted(v) for k, v in expected.items()}
    assert all(v in expected[k] for k, v in data.reduce_by_key(gm.first))
    assert data.sort_by_key(descending=True).map(lambda p: p[0]).collect() == sorted((k for k, _ in pairs), reverse=True)
    greatest = sorted(pairs, key=lambda pair: (-pair[1], pair))[:4]
    assert data.top(4, by="value").collect() == data.top(4, by=lambda pair: pair[1]).collect() == greatest
    assert data.top(4).collect() == sorted(pairs, reverse=True)[:4]
    assert data.top(2, by="key").map(lambda pair: pair[0]).collect() == sorted((k for k, _ in pairs), reverse=True)[:2]


def test_sums_are_exact_and_nan_is_the_greatest_number():
    pairs = gm.from_iterable([("a", 10**40), ("a", 1), ("b", math.nan), ("b", 1.0)])
    assert pairs.reduce_by_key(gm.sum).to_dict()["a"] == 10**40 + 1
    assert math.isnan(pairs.reduce_by_key(gm.max).to_dict()["b"])
    assert pairs.reduce_by_key(gm.min).to_dict()["b"] == 1.0


def test_stages_follow_each_other():
    lengths = gm.from_iterable(["a b", "bb a", "ccc"]).flat_map(str.split).count_by_value().map(lambda p: (len(p[0]), p[1]))
    assert lengths.reduce_by_key(gm.sum).sort_by_key(descending=True).collect() == [(3, 1), (2, 1), (1, 3)]


def test_a_dataset_can_be_used_twice_and_joined_with_itself():
    counts = gm.from_iterable("abca").count_by_value()
    assert counts.join(counts.map(lambda pair: (pair[0], -pair[1]))).collect() == [("a", (2, -2)), ("b", (1, -1)), ("c", (1, -1))]
    assert counts.collect() == counts.collect()


def test_cached_records_are_made_once_and_only_when_needed():
    cached = gm.range(3).map(lambda n: random.random()).cache()
    fails = gm.range(1).map(lambda n: 1 // n).cache()
    assert "cached records" in fails.map(str).explain()
    assert cached.collect() == cached.map(lambda number: number).collect()


def test_results_and_plans_show_themselves():
    result = gm.from_iterable(["<b>"]).run()
    assert (repr(result), result[0], len(result)) == ("<Result: 1 records>", "<b>", 1)
    assert "&lt;b&gt;" in result._repr_html_() and "<b>" not in result._repr_html_()
    assert gm.range(2).map(str)._repr_html_() == "<pre>records in the order of the input\n  map str\n  range(0, 2)</pre>"


@settings(max_examples=20, deadline=None)
@given(st.one_of(*(st.lists(kind) for kind in (st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(allow_nan=False), simple))))
def test_tables_hold_what_lists_hold(records):
    """Columns are made without objects if all records are of one kind."""
    if any(isinstance(record, str) and not record.isprintable() for record in records) or len(set(map(type, records))) > 1:
        return  # Arrow has neither lone surrogates nor columns of several types.
    data = gm.from_iterable(records)
    assert repr(data.to_arrow()["value"].to_pylist()) == repr(records)
    counted = data.count_by_value()
    assert counted.to_arrow().num_rows == len(counted.collect())
    if records:
        assert [(row["key"], row["value"]) for row in counted.to_arrow().to_pylist()] == counted.collect()


def test_means_and_sums_become_columns():
    pairs = gm.from_iterable([("a", 1), ("b", 2), ("b", 5)])
    assert pairs.reduce_by_key(gm.mean).to_arrow().to_pydict() == {"key": ["a", "b"], "value": [1.0, 3.5]}
    assert pairs.reduce_by_key(gm.sum).to_arrow().to_pydict() == {"key": ["a", "b"], "value": [1, 7]}
