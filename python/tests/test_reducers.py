"""Several reducers at once give what each of them gives alone, in one pass."""

import fractions
import statistics
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm

RERUN = settings(max_examples=60, deadline=None)
#: Halves are exact as floats, so their sums do not depend on the order.
HALVES = st.integers(-(2**30), 2**30).map(lambda number: number / 2)
#: Numbers of one kind, as most columns are; too large for 64 bits; and mixed.
NUMBERS = st.sampled_from([st.integers(-9, 9), HALVES, st.integers(2**62, 2**65), st.integers(-9, 9) | HALVES, st.booleans()])
PLAIN: dict[Any, Any] = {
    gm.sum: sum,
    gm.min: min,
    gm.max: max,
    gm.count: len,
    gm.mean: lambda values: float(statistics.mean(map(fractions.Fraction, values))),
}


@RERUN
@given(NUMBERS.flatmap(lambda numbers: st.lists(st.tuples(st.sampled_from("ab") | st.integers(0, 1), numbers), max_size=20)), st.data())
def test_several_reducers_of_a_value(pairs: list[tuple[Any, Any]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(list(PLAIN)), min_size=2, max_size=14))
    expected: dict[Any, list[Any]] = {}
    for key, value in pairs:
        expected.setdefault(key, []).append(value)
    found = gm.from_iterable(pairs).reduce_by_key(*chosen).to_dict()
    assert found == {key: tuple(PLAIN[each](values) for each in chosen) for key, values in expected.items()}


@RERUN
@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(st.integers(-9, 9), HALVES, st.text(max_size=2))), max_size=20))
def test_a_reducer_for_each_field(pairs: list[tuple[int, tuple[int, float, str]]]) -> None:
    expected: dict[int, list[tuple[int, float, str]]] = {}
    for key, value in pairs:
        expected.setdefault(key, []).append(value)
    data = gm.from_iterable(pairs)
    first = {key: tuple(zip(*values)) for key, values in expected.items()}
    assert data.reduce_by_key((gm.sum, gm.max, gm.count)).to_dict() == {k: (sum(a), max(b), len(c)) for k, (a, b, c) in first.items()}
    # Least text is no native reducer.
    found = data.reduce_by_key(gm.count, (gm.max, gm.min, gm.min)).to_dict()
    assert found == {key: (len(a), (max(a), min(b), min(c))) for key, (a, b, c) in first.items()}


def test_columns_are_reduced_without_objects(tmp_path: Path) -> None:
    rows = [{"shop": n % 7, "item": f"item {n % 3}", "cents": n, "kilos": n / 4} for n in range(1000)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    read = gm.read_parquet(tmp_path / "a.parquet").pluck(("shop", "item"), ("cents", "kilos"))
    expected: dict[Any, list[Any]] = {}
    for row in rows:
        expected.setdefault((row["shop"], row["item"]), []).append((row["cents"], row["kilos"]))
    columns = {key: tuple(zip(*values)) for key, values in expected.items()}
    found = read.reduce_by_key((gm.sum, gm.mean), gm.count).to_dict()
    assert found == {key: ((sum(cents), sum(kilos) / len(kilos)), len(cents)) for key, (cents, kilos) in columns.items()}


def test_what_follows_several_reducers_sees_tuples() -> None:
    totals = gm.range(100).key_by(lambda n: n % 3).reduce_by_key(gm.count, gm.sum)
    assert totals.map(lambda pair: pair[1][1] / pair[1][0]).collect() == [49.5, 49.0, 50.0]
    assert totals.top(1, by="value").collect() == [(0, (34, 1683))]
    assert totals.join(totals).count() == 3


def test_values_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(gm.JobError, match=r"3 reducers in a tuple reduce the fields of tuples of 3, and this value is \(1, 2\)"):
        gm.from_iterable([("a", (1, 2))]).reduce_by_key((gm.sum, gm.sum, gm.sum)).collect()
    with pytest.raises(gm.JobError, match="TypeError"):
        gm.from_iterable([("a", "text"), ("a", "more")]).reduce_by_key(gm.count, gm.sum).collect()
    pairs = gm.from_iterable([("a", 1)])
    with pytest.raises(gm.PlanError, match="needs a reducer"):
        pairs.reduce_by_key()
    with pytest.raises(gm.PlanError, match="several reducers at once are those of Gristmill"):
        pairs.reduce_by_key(gm.sum, max)  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(gm.PlanError, match="neither a reducer"):
        pairs.reduce_by_key(gm.sum, 3)  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(gm.PlanError, match="neither a reducer"):
        pairs.reduce_by_key(())


def test_results_of_several_reducers_keep_their_types_in_tables() -> None:
    """`to_polars` made text of counts and rounded sums, `to_arrow` refused, and made floats of counts."""
    pairs = gm.from_iterable([("a", 2**60 + 1), ("a", 0)])
    for reducers, value in [((gm.sum, gm.mean), {"0": 2**60 + 1, "1": (2**60 + 1) / 2}), ((gm.sum, gm.count), [2**60 + 1, 2])]:
        found = pairs.reduce_by_key(*reducers)
        assert found.to_arrow().to_pylist() == found.to_polars().to_dicts() == [{"key": "a", "value": value}]
        plain = tuple(value.values()) if isinstance(value, dict) else tuple(value)
        assert found.to_pandas()["value"].tolist() == [plain]
    texts = gm.from_iterable([("a", ("x", 1.5)), ("a", ("b", 2.5))]).reduce_by_key((gm.min, gm.max), gm.count)
    assert texts.to_polars().to_dicts() == texts.to_arrow().to_pylist() == [{"key": "a", "value": {"0": {"0": "b", "1": 2.5}, "1": 2}}]


@pytest.mark.parametrize("values", [[1, "a"], [2**53 + 1, 0.5], [b"a", "a"], [[("a", 1)]], [{"a": 1}, {"a": "x"}]])
def test_values_that_polars_would_change_are_an_error(values: list[Any]) -> None:
    """Numbers became text, and whole numbers were rounded, without a word."""
    data = gm.from_iterable([(number, value) for number, value in enumerate(values)])
    for export in (data.to_polars, data.to_arrow) if values != [b"a", "a"] else (data.to_polars,):
        with pytest.raises(gm.PlanError, match="the values of column 'value' are none of one type of"):
            export()
    assert data.to_pandas()["value"].tolist() == values


def test_whole_numbers_are_not_rounded_in_pandas() -> None:
    """A missing value beside them made floats of whole numbers, of which those beyond 2^53 were rounded."""
    values = [None, 2**53 + 1, 10**400]
    assert gm.from_iterable(list(enumerate(values))).to_pandas()["value"].tolist() == values


@pytest.mark.parametrize("values", [[1, 0.5], [None, 3], [True, False], [float("inf"), 1], [[1, 2], [0.5]], [{"a": 1}, {"b": 2}]])
def test_values_that_are_equal_as_one_type_become_a_column_of_polars(values: list[Any]) -> None:
    found = gm.from_iterable([(0, value) for value in values]).to_polars()["value"].to_list()
    if isinstance(values[0], dict):
        assert found == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    else:
        assert found == values


def test_a_reducer_that_lacks_its_number_is_an_error_of_the_plan() -> None:
    for reducers in ((gm.top,), (gm.sum, gm.top)):
        with pytest.raises(gm.PlanError, match=r"as in gm.top\(3\)"):
            gm.from_iterable([("a", 1)]).reduce_by_key(*reducers)


def test_a_sum_of_negative_zeros_is_that_of_python() -> None:
    (found,) = gm.from_iterable([("a", -0.0), ("a", -0.0)]).reduce_by_key(gm.sum).collect()
    assert str(found[1]) == str(sum([-0.0, -0.0]))
