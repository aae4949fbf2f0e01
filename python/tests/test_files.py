"""Files are read as Python reads them, and what is wrong in them is named."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gristmill as gm

#: Records of one kind.
KINDS = (st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(allow_nan=False), st.none() | st.booleans())
RERUN = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@RERUN
@given(st.lists(st.text(st.sampled_from("ab\r\u0085\u2028\x0c\xe9 ")), max_size=6), st.booleans())
def test_lines_end_at_line_feeds_only(tmp_path: Path, lines: list[str], last: bool) -> None:
    content = ("\n".join(lines) + ("\n" if last else "")).encode()
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    expected = [line.removesuffix(b"\r") if b"\n" in content[at:] else line for at, line in starts(content)]
    for path in (tmp_path / "a", tmp_path / "a.gz"):
        assert gm.read_bytes(path).collect() == expected
        assert gm.read_text(path).collect() == [line.decode() for line in expected]


def starts(content: bytes) -> list[tuple[int, bytes]]:
    """Lines, and where they begin."""
    lines, at = [], 0
    for line in content.split(b"\n"):
        lines.append((at, line))
        at += len(line) + 1
    return lines if lines[-1][1] else lines[:-1]


@RERUN
@given(st.lists(st.tuples(st.text(st.sampled_from('ab,"\n\r;')), st.text(st.sampled_from("xy \xe9"), min_size=1)), max_size=5))
def test_csv_is_read_as_it_was_written(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    with open(tmp_path / "a.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([("first", "second"), *rows])
    assert gm.read_csv(tmp_path / "a.csv", delimiter=";").collect() == [{"first": a, "second": b} for a, b in rows]


@RERUN
@given(st.lists(st.recursive(st.none() | st.integers() | st.text(), st.lists)))
def test_json_lines_come_back(tmp_path: Path, values: list[object]) -> None:
    assert gm.from_iterable(values).write_jsonl(tmp_path / "a.jsonl") == len(values)
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines()] == values
    assert gm.read_jsonl(tmp_path / "a.jsonl").collect() == values


def test_tables_come_back(tmp_path: Path) -> None:
    rows = [{"name": "ann", "age": 31}, {"name": "b,o\nb", "age": 27}]
    people = gm.from_iterable(rows)
    assert people.write_parquet(tmp_path / "a.parquet") == people.write_csv(tmp_path / "a.csv") == 2
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == rows
    assert gm.read_parquet(tmp_path / "a.parquet").collect() == rows
    assert gm.read_csv(tmp_path / "a.csv").collect() == [{"name": row["name"], "age": str(row["age"])} for row in rows]
    assert people.to_arrow().to_pylist() == people.to_pandas().to_dict("records") == rows


def test_folders_and_patterns_stand_for_their_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.log", "below/d.txt", ".hidden", "below/.git/e.txt", "[odd].txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert gm.read_text(tmp_path).collect() == ["[odd].txt", "a.txt", "b.txt", "below/d.txt", "c.log"]
    assert gm.read_text(str(tmp_path / "*.log")).collect() == ["c.log"]
    assert gm.read_text(tmp_path / "[odd].txt").collect() == ["[odd].txt"]
    assert gm.read_text([tmp_path / "c.log", tmp_path / "**" / "d.txt"]).collect() == ["c.log", "below/d.txt"]


def test_bytes_that_are_not_text_are_named_or_replaced(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"good\nba\xffd\n")
    with pytest.raises(gm.InputError, match="bad, line 2, byte 7: this is not UTF-8"):
        gm.read_text(tmp_path / "bad").collect()
    assert gm.read_text(tmp_path / "bad", errors="replace").collect() == ["good", "ba\ufffdd"]
    assert gm.read_text(tmp_path / "bad", errors="surrogateescape").collect() == ["good", "ba\udcffd"]
    with pytest.raises(gm.PlanError, match="errors='rigid'"):
        gm.read_text(tmp_path / "bad", errors="rigid")


@pytest.mark.parametrize(
    ("name", "content", "read", "message"),
    [
        ("a.jsonl", b'{"a": 1}\n{"a"\n', gm.read_jsonl, "a.jsonl, line 2, byte 9: this is not JSON"),
        ("a.csv", b"a,b\n1,2\n3\n", gm.read_csv, "a.csv, line 3: this row has 1 fields, and the header has 2"),
        ("a.csv", b'a,b\n1,"2"x\n', gm.read_csv, "a.csv, line 2: this is not CSV"),
        ("a.csv", b"a,b\n1,\xff\n", gm.read_csv, "a.csv.*this is not UTF-8"),
        ("a.gz", b"plain", gm.read_text, "cannot read .*a.gz"),
        ("a.gz", gzip.compress(b"cut short")[:-9], gm.read_text, "cannot read .*a.gz"),
        ("a.parquet", b"plain", gm.read_parquet, "cannot read .*a.parquet"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, content: bytes, read: object, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert callable(read)
    with pytest.raises(gm.InputError, match=message):
        read(tmp_path / name).collect()


def test_a_missing_file_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(gm.InputError, match="there is no file .*none"):
        gm.read_text(tmp_path / "none")
    with pytest.raises(gm.InputError, match=r"there is no file .*\*.txt"):
        gm.read_text(tmp_path / "*.txt")


def test_a_file_is_complete_or_not_there(tmp_path: Path) -> None:
    assert gm.range(3).write_text(tmp_path / "numbers") == 3
    assert (tmp_path / "numbers").read_text() == "0\n1\n2\n"
    failing = gm.range(3).map(lambda n: 1 // (2 - n))
    for write in (failing.write_text, failing.write_jsonl, failing.write_csv, failing.write_parquet):
        with pytest.raises(gm.JobError):
            write(tmp_path / "halves")
    assert [path.name for path in tmp_path.iterdir()] == ["numbers"]


def test_a_file_that_cannot_be_written_is_an_error_before_the_job_runs(tmp_path: Path) -> None:
    data = gm.range(3).map(lambda n: (tmp_path / "ran").touch() or n)
    for write in (data.write_text, data.write_jsonl, data.write_csv, data.write_parquet):
        with pytest.raises(FileNotFoundError, match="none/file'$"):
            write(tmp_path / "none" / "file")
        with pytest.raises(IsADirectoryError):
            write(tmp_path)
    assert not list(tmp_path.iterdir())


@RERUN
@given(st.one_of(*map(st.lists, KINDS)))
def test_tables_hold_what_lists_hold(records: list[object]) -> None:
    """Columns are made without objects if all records are of one kind."""
    data = gm.from_iterable(records)
    assert repr(data.to_arrow()["value"].to_pylist()) == repr(records)
    counted = data.count_by_value()
    assert counted.to_arrow().num_rows == len(counted.collect())
    if records:
        assert [(row["key"], row["value"]) for row in counted.to_arrow().to_pylist()] == counted.collect()


def test_means_and_sums_become_columns() -> None:
    pairs = gm.from_iterable([("a", 1), ("b", 2), ("b", 5)])
    assert pairs.reduce_by_key(gm.mean).to_arrow().to_pydict() == {"key": ["a", "b"], "value": [1.0, 3.5]}
    assert pairs.reduce_by_key(gm.sum).to_arrow().to_pydict() == {"key": ["a", "b"], "value": [1, 7]}
