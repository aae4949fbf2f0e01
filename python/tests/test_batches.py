"""Records in columns give what the same records give as objects."""

import datetime
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import gristmill as gm

NAN = float("nan")
DAY = datetime.date(2026, 1, 1)
#: Columns with what is hard in each type; `day` is of a type that the native engine does not read.
CHOICES: dict[str, list[Any]] = {
    "int": [None, 0, 1, -5, 2**60 + 1],
    "float": [None, NAN, 0.0, 1.0, 2.5, float("inf")],
    "text": [None, "", "a", "\xe9\0x", "zz"],
    "bool": [None, True, False],
    "bytes": [None, b"", b"\0", b"\xff"],
    "day": [None, DAY],
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    chance = random.Random(23)
    return [{**{name: chance.choice(of) for name, of in CHOICES.items()}, "n": n} for n in range(3000)]


@pytest.fixture(scope="module")
def folder(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in two files: one with several row groups, and one whose columns begin in the middle of others."""
    folder: Path = tmp_path_factory.mktemp("rows")
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table.slice(0, 2000), folder / "a.parquet", row_group_size=300)
    text = table.column("text").dictionary_encode()
    other = table.set_column(table.column_names.index("text"), "text", text).slice(2000)
    pyarrow.parquet.write_table(other, folder / "b.parquet")
    return folder


def shown(records: Any) -> Counter[str]:
    """Records to compare: NaN is equal to itself."""
    return Counter(map(repr, records))


@pytest.mark.parametrize("name", CHOICES)
def test_columns_of_each_type_are_keys_and_values(name: str, rows: list[dict[str, Any]], folder: Path) -> None:
    read = gm.read_parquet(folder)
    assert shown(read.pluck(name).collect()) == shown(row[name] for row in rows)
    assert shown(read.pluck("n", name).collect()) == shown((row["n"], row[name]) for row in rows)
    counts = Counter(repr(row[name]) for row in rows)
    assert {repr(key): count for key, count in read.pluck(name).count_by_value()} == counts
    sums: defaultdict[str, int] = defaultdict(int)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        sums[repr(row[name])] += row["n"]
        groups[repr(row[name])].append(row["n"])
    assert {repr(key): total for key, total in read.pluck(name, "n").reduce_by_key(gm.sum)} == sums
    found = read.pluck(name, "n").group_by_key().map_groups(lambda key, values: [(key, sorted(values))])
    assert {repr(key): values for key, values in found} == groups
    both = read.pluck(("bool", name), ("n", name)).group_by_key().map_groups(lambda key, values: [(key, v) for v in values])
    assert shown(both) == shown(((row["bool"], row[name]), (row["n"], row[name])) for row in rows)


@pytest.fixture(scope="module")
def keys() -> list[int]:
    """Many keys of few rows, one of very many, and some that share low or high bits."""
    chance = random.Random(7)
    return [chance.choice([chance.randrange(-3000, 3000), 0, chance.randrange(8) << 60, chance.randrange(99) << 32]) for _ in range(30_000)]


def grouped(keys: list[int]) -> dict[int, list[int]]:
    """The rows of each key."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        groups[key].append(row)
    return dict(sorted(groups.items()))


# With all kinds but the first, the second file has other types, so all rows are grouped in the general way.
@pytest.mark.parametrize("kinds", [("int64", "int64"), ("int64", "double"), ("int64", "string"), ("double", "int64")])
@pytest.mark.parametrize("format", ["list", "numpy"])
def test_numbers_of_many_rows_are_grouped_by_whole_keys(kinds: tuple[str, str], format: Any, keys: list[int], tmp_path: Path) -> None:
    columns = {"key": pyarrow.array(keys), "number": pyarrow.array(range(len(keys)))}
    table = pyarrow.table(columns)
    # All of these keys are floats without loss, which Arrow does not check.
    other = pyarrow.table([columns["key"].cast(kinds[0], safe=False), columns["number"].cast(kinds[1])], ["key", "number"])
    pyarrow.parquet.write_table(table.slice(0, 20_000), tmp_path / "a.parquet", row_group_size=3000)
    pyarrow.parquet.write_table(other.slice(20_000), tmp_path / "b.parquet")
    pairs = gm.read_parquet(tmp_path).pluck("key", "number")
    found = pairs.group_by_key().map_groups(lambda key, values: [(key, sorted(map(int, values)))], format=format).collect()
    assert [key for key, _ in found] == [*grouped(keys)]
    assert dict(found) == grouped(keys)


def test_a_function_may_make_the_columns_of_groups(keys: list[int]) -> None:
    read = gm.from_iterable({"key": key, "row": row} for row, key in enumerate(keys)).map_batches(lambda table: table, format="arrow")
    read = read.pluck("key", "row")
    assert read.group_by_key().map_groups(lambda key, rows: [(key, sorted(rows))]).to_dict() == grouped(keys)
    assert read.reduce_by_key(lambda a, b: max(a, b)).to_dict() == {key: max(rows) for key, rows in grouped(keys).items()}


def test_a_failing_group_of_columns_is_named_and_set_aside(keys: list[int], tmp_path: Path) -> None:
    def refuse(key: int, rows: list[int]) -> list[tuple[int, int]]:
        return [(key, len(rows) // (key - 17))]

    pyarrow.parquet.write_table(pyarrow.table({"key": [*keys, 17], "row": range(len(keys) + 1)}), tmp_path / "a.parquet")
    groups = gm.read_parquet(tmp_path).pluck("key", "row").group_by_key().map_groups(refuse)
    with pytest.raises(gm.JobError, match="map_groups .*refuse.*, on 17"):
        groups.collect()
    with gm.configure(on_error="skip"):
        result = groups.run()
    assert [bad.record for bad in result.bad_records] == [17]
    assert dict(result) == {key: len(rows) // (key - 17) for key, rows in grouped(keys).items() if key != 17}


@pytest.mark.parametrize("values", [[3, 1, 2], [0.5, NAN], [True, False], [1, 0.5], ["a", "b"], [2**70, 1], [1, None]])
def test_a_group_is_the_array_that_numpy_makes_of_its_values(values: list[Any]) -> None:
    def described(key: int, found: numpy.ndarray[Any, Any]) -> list[Any]:
        return [(str(found.dtype), sorted(map(repr, found.tolist())))]

    pairs = gm.from_iterable([(1, value) for value in values])
    expected = numpy.asarray(values)
    (found,) = pairs.group_by_key().map_groups(described, format="numpy").collect()
    assert found[1] == sorted(map(repr, expected.tolist()))
    assert found[0].rstrip("0123456789") == str(expected.dtype).rstrip("0123456789")


@pytest.mark.parametrize(
    "function",
    [
        lambda table: table.append_column("twice", pyarrow.array([2 * n for n in table.column("n").to_pylist()])),
        lambda table: table.append_column("twice", pyarrow.array([2 * n for n in table.column("n").to_pylist()])).to_batches()[0],
        lambda table: [{**row, "twice": 2 * row["n"]} for row in table.to_pylist()],
    ],
    ids=["table", "batch", "records"],
)
def test_functions_of_tables_may_return_tables_and_records(function: Callable[[Any], Any], rows: list[dict[str, Any]], folder: Path) -> None:
    for read in (gm.read_parquet(folder), gm.from_iterable(rows)):
        made = read.map_batches(function, format="arrow").cache()
        assert shown(made.pluck("n", "twice").collect()) == shown((row["n"], 2 * row["n"]) for row in rows)
        assert shown(made.collect()) == shown({**row, "twice": 2 * row["n"]} for row in rows)


@pytest.mark.parametrize("start, count", [(0, 9), (3, 4), (8, 1), (2, 0)])
def test_fields_of_a_part_of_a_table_are_those_of_its_rows(start: int, count: int, tmp_path: Path) -> None:
    every = {
        "text": ["", "a", None, "é", "long " * 9, "b", "c", None, "z"],
        "large": pyarrow.array(["", "a", None, "é", "long " * 9, "b", "c", None, "z"], pyarrow.large_string()),
        "bytes": [b"", b"a", None, b"\xff", b"b", b"c", b"d", None, b"z"],
        "whole": [0, 1, None, -3, 4, 5, 6, None, 8],
        "small": pyarrow.array([0, 1, None, -3, 4, 5, 6, None, 8], pyarrow.int16()),
        "real": [0.5, 1.5, None, -3.0, 4.0, 5.0, 6.0, None, 8.0],
        "truth": [True, False, None, True, False, True, True, None, False],
    }
    table = pyarrow.table(every)
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    read = gm.read_parquet(tmp_path).map_batches(lambda table: table.slice(start, count), format="arrow")
    rows = table.to_pylist()[start : start + count]
    assert read.pluck("whole", *every).collect() == [(row["whole"], *row.values()) for row in rows]


def test_what_a_dictionary_lacks_is_missing_in_arrays_too(tmp_path: Path) -> None:
    """A missing value became the last item of the dictionary."""
    column = pyarrow.array(["a", "b", None, "z"]).dictionary_encode()
    pyarrow.parquet.write_table(pyarrow.table({"c": column}), tmp_path / "a.parquet")
    read = gm.read_parquet(tmp_path)
    assert read.map_batches(lambda columns: columns["c"], format="numpy").collect() == ["a", "b", None, "z"]
    assert read.map_batches(lambda columns: columns, format="numpy").pluck("c").collect() == ["a", "b", None, "z"]


def test_data_frames_and_arrays_of_arrow_are_rows(tmp_path: Path) -> None:
    """A data frame became its names of columns, and an array of Arrow its scalars."""
    rows = [{"i": 1, "k": "a"}, {"i": 2, "k": None}, {"i": 3, "k": "c"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    read = gm.read_parquet(tmp_path)

    class Frame:
        """A data frame, as pandas and Polars have them."""

        def __init__(self, table: Any) -> None:
            self.table, self.columns = table, table.column_names

        def __arrow_c_stream__(self, schema: Any = None) -> Any:
            return self.table.__arrow_c_stream__(schema)

        def __iter__(self) -> Any:
            return iter(self.columns)

    framed = read.map_batches(Frame, format="arrow")
    assert (framed.collect(), framed.count(), framed.pluck("k", "i").collect()) == (rows, 3, [("a", 1), (None, 2), ("c", 3)])
    for column in (lambda table: table["k"], lambda table: table["k"].combine_chunks()):
        assert read.map_batches(column, format="arrow").collect() == ["a", None, "c"]
    with pytest.raises(gm.JobError, match="a table is no record. Return one table"):
        read.map_batches(lambda table: iter([table, table]), format="arrow").collect()


def test_digits_of_times_are_kept_or_refused(engine: str, tmp_path: Path) -> None:
    """Nanoseconds were cut to microseconds when records became a table, and in times of day."""
    instants = pyarrow.array([1646058685919897849, None], pyarrow.timestamp("ns", "UTC"))
    spans = pyarrow.array([1, 2_000_000_003], pyarrow.duration("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"at": instants, "for": spans}), tmp_path / "a.parquet")
    table = gm.read_parquet(tmp_path / "a.parquet").to_arrow()
    assert table.column("at").cast(pyarrow.int64()).to_pylist() == [1646058685919897849, None]
    assert table.column("for").cast(pyarrow.int64()).to_pylist() == [1, 2_000_000_003]
    times = pyarrow.array([1, 2], pyarrow.time64("ns"))
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2], "time": times}), tmp_path / "b.parquet")
    with pytest.raises(gm.InputError, match=r"b\.parquet, column 'time': a time64\[ns\] has no object in Python"):
        gm.read_parquet(tmp_path / "b.parquet").collect()
    if engine != "local":
        assert gm.read_parquet(tmp_path / "b.parquet").pluck("time").count() == 2


def test_a_column_that_arrow_cannot_hold_is_named() -> None:
    """It was an ArrowInvalid or OverflowError without the column."""
    assert gm.from_iterable([{"n": 2**64 - 1}, {"n": None}]).to_arrow().column("n").to_pylist() == [2**64 - 1, None]
    for values in ([1.5, "s"], [2**70], [-1, 2**64 - 1]):
        with pytest.raises(gm.PlanError, match="to_arrow: the values of column 'n' are none of one type of Arrow"):
            gm.from_iterable([{"a": 1, "n": value} for value in values]).to_arrow()


def test_functions_of_arrays_get_columns_by_name(rows: list[dict[str, Any]], folder: Path) -> None:
    def classes(columns: dict[str, numpy.ndarray[Any, Any]]) -> dict[str, numpy.ndarray[Any, Any]]:
        return {"class": columns["n"] % 7, "half": columns["n"] * 0.5}

    expected: defaultdict[int, float] = defaultdict(float)
    for row in rows:
        expected[row["n"] % 7] += row["n"] * 0.5
    for read in (gm.read_parquet(folder), gm.from_iterable(rows)):
        assert read.map_batches(classes, format="numpy").pluck("class", "half").reduce_by_key(gm.sum).to_dict() == expected


def test_rows_are_counted_without_their_fields(engine: str, tmp_path: Path) -> None:
    """`read_parquet(...).count()` made a dictionary of each row, and failed on a date that Python cannot have."""
    dates = pyarrow.array([0, 10**12, None], pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2, 3], "date": dates}), tmp_path / "1.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"a": [4], "date": dates[:1]}), tmp_path / "2.parquet", row_group_size=1)
    read = gm.read_parquet(tmp_path)
    assert read.count() == 4
    if engine != "local":
        assert read.map_batches(lambda table: table.slice(1), format="arrow").count() == 2
    read = gm.read_parquet(tmp_path, columns=["a"])
    assert read.map_batches(lambda table: table.column("a").to_pylist() * 2, format="arrow").count() == 8
    with pytest.raises(gm.JobError, match="KeyError: 'nope'"):
        read.pluck("nope").count()
    assert (read.count(), read.pluck("a").count(), read.filter(lambda row: row["a"] > 1).count()) == (4, 4, 3)


def test_a_value_that_python_cannot_have_is_an_error_that_names_its_column(tmp_path: Path) -> None:
    """It was an OverflowError that named neither file nor column."""
    dates = pyarrow.array([0, 10**12, None], pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2, 3], "date": dates}), tmp_path / "1.parquet")
    for read in (gm.read_parquet(tmp_path), gm.read_parquet(tmp_path).filter(lambda row: row["a"] > 1)):
        with pytest.raises(gm.InputError, match=r"1\.parquet, column 'date': a timestamp\[ms\] has no object in Python"):
            read.collect()
    with pytest.raises(gm.InputError, match="column 'date'"):
        gm.read_parquet(tmp_path).pluck("date").collect()
    assert gm.read_parquet(tmp_path).pluck("a").collect() == [1, 2, 3]


def test_columns_that_a_job_does_not_need_are_not_read(tmp_path: Path) -> None:
    """All columns were read for one of them; in a table with many, that is most of the time."""
    file = tmp_path / "a.parquet"
    rows = pyarrow.table({"a": range(1000), "b": [f"{number:100}" for number in range(1000)], "c": ["x", "y"] * 500})
    pyarrow.parquet.write_table(rows, file, compression="none", use_dictionary=False)
    of_b = pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(1)
    with open(file, "r+b") as opened:
        opened.seek(of_b.data_page_offset)
        opened.write(bytes(50))
    read = gm.read_parquet(file)
    assert read.pluck("c", "a").reduce_by_key(gm.sum).to_dict() == {"x": 249500, "y": 250000}
    assert (read.count(), read.pluck("c").collect()) == (1000, ["x", "y"] * 500)
    with pytest.raises(gm.InputError, match="a.parquet"):
        read.pluck("c", "b").collect()


def test_a_field_that_no_column_has_is_named(folder: Path) -> None:
    with pytest.raises(gm.JobError, match="KeyError: 'nope'") as failed:
        gm.read_parquet(folder).pluck("nope").collect()
    assert str(failed.value.file).startswith(str(folder))


def test_rows_that_are_no_pairs_are_shown(folder: Path) -> None:
    with pytest.raises(gm.PlanError, match="reduce_by_key needs pairs of a key and a value, and this record is [0-9]+$"):
        gm.read_parquet(folder).pluck("n").reduce_by_key(gm.sum).collect()


def test_a_failing_function_of_tables_is_named_and_its_rows_can_be_set_aside(folder: Path) -> None:
    def refuse(table: Any) -> Any:
        if 1234 in table.column("n").to_pylist():
            raise ValueError("not this one")
        return table

    made = gm.read_parquet(folder).map_batches(refuse, format="arrow").pluck("n")
    with pytest.raises(gm.JobError, match="not this one"):
        made.collect()
    with gm.configure(on_error="skip"):
        result = made.run()
    assert sorted(result) == [n for n in range(3000) if n != 1234]
    assert [bad.record["n"] for bad in result.bad_records] == [1234]


def test_unknown_formats_are_refused() -> None:
    with pytest.raises(gm.PlanError, match="list, arrow and numpy"):
        gm.range(1).map_batches(list, format="pandas")  # type: ignore[arg-type]
    with pytest.raises(gm.PlanError, match="list and numpy"):
        gm.range(1).key_by(str).group_by_key().map_groups(lambda key, values: [key], format="arrow")  # type: ignore[arg-type]
