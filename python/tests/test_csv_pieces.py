"""Several workers read one CSV file, and what they find is what Python's own `csv` finds in all of it."""

import csv
import gzip
import io
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gristmill as gm

RERUN = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
#: A file is cut wherever it can be, if the engine cuts files.
FINELY = {"workers": 2, "chunk_bytes": 1, "split_bytes": 1}


def finely(engine: str) -> dict[str, int]:
    return FINELY if engine == "machine" else {}


def rows_of(text: str) -> list[list[str]] | None:
    """The rows as Python reads them, the header first, without empty ones; nothing if there is an error."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        return None
    if rows and len(set(rows[0])) < len(rows[0]):
        return None
    for row in rows[1:]:
        if len(row) == len(rows[0]) + 1 and not row[-1]:
            row.pop()
    return rows


@RERUN
@given(st.text(st.sampled_from('ab,"\n\r\xe9'), max_size=40), st.sampled_from(["", "\ufeff"]), st.booleans())
def test_any_text_gives_the_rows_that_python_reads(tmp_path: Path, engine: str, text: str, mark: str, packed: bool) -> None:
    """One CSV file was read by one worker, however large it was. Now a row must not be lost where the file is cut."""
    content = (mark + text).encode()
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    rows = rows_of(text)
    with gm.configure(**finely(engine)):
        if rows is None or any(len(row) != len(rows[0]) for row in rows):
            with pytest.raises(gm.InputError, match="a.csv"):
                gm.read_csv(path).collect()
        else:
            assert gm.read_csv(path).collect() == [dict(zip(rows[0], row)) for row in rows[1:]]


@RERUN
@given(st.lists(st.lists(st.sampled_from(["x", "y\n", '"', "\r\n,", ""]), min_size=1, max_size=3), max_size=12))
def test_rows_that_do_not_fit_are_set_aside_each_with_its_line(tmp_path: Path, engine: str, rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["first", "second"], *rows])
    (tmp_path / "a.csv").write_text(text.getvalue(), newline="")
    good, bad, line = [], [], 2
    for row in rows:
        if len(row) == 2 or (len(row) == 3 and not row[-1]):
            good.append({"first": row[0], "second": row[1]})
        else:
            bad.append((line, row))
        written = io.StringIO()
        csv.writer(written).writerow(row)
        line += len(re.findall("\r\n|\r|\n", written.getvalue()))
    with gm.configure(on_error="skip", **finely(engine)):
        result = gm.read_csv(tmp_path / "a.csv").run()
    assert list(result) == good
    assert sorted((bad.line, bad.record) for bad in result.bad_records) == bad


def large(path: Path, **changed: str) -> list[dict[str, str]]:
    """Writes 60,000 rows, some with line ends in quotes, and other text in `changed` lines; returns the records."""
    records = [{"number": str(number), "text": 'a\n"b"' if number % 7 == 0 else "c" * (number % 40)} for number in range(60_000)]
    text = io.StringIO()
    rows = csv.DictWriter(text, ["number", "text"], lineterminator="\n")
    rows.writeheader()
    rows.writerows(records)
    lines = text.getvalue().split("\n")
    for number, line in changed.items():
        assert lines[int(number.removeprefix("line_")) - 1].partition(",")[0].isdigit(), "a row must begin in this line"
        lines[int(number.removeprefix("line_")) - 1] = line
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogateescape")
    return records


@pytest.mark.parametrize("end", ["", ".gz"])
def test_all_workers_read_one_file(tmp_path: Path, engine: str, end: str) -> None:
    records = large(tmp_path / "a.csv")
    if end:
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    with gm.configure(workers=2, **({"split_bytes": 65536} if engine == "machine" else {})):
        result = gm.read_csv(tmp_path / f"a.csv{end}").run()
    assert list(result) == records
    if engine == "machine" and not end:
        assert result.stats["stages"][0]["tasks"] > 10
        assert result.stats["stages"][0]["input_bytes"] == os.path.getsize(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", "a.csv, line 50000: this row has 3 fields, and the header has 2"),
        ('1,"2"x', "a.csv, line 50000: this is not CSV"),
        ("1,\udcff", "a.csv, line 50000: this is not UTF-8"),
        ("1," + "x" * 200_000, "line 50000: this is not CSV: a field is longer than 131072 characters"),
    ],
)
def test_an_error_far_down_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    large(tmp_path / "a.csv", line_50000=line)
    with pytest.raises(gm.InputError, match=message):
        gm.read_csv(tmp_path / "a.csv").collect()


def test_a_quote_that_is_not_closed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 50_000 + '3,"4\n5,6\n')
    with pytest.raises(gm.InputError, match=r"a\.csv.*line 50002"):
        gm.read_csv(tmp_path / "a.csv").collect()


def test_what_a_function_fails_on_is_named(tmp_path: Path) -> None:
    large(tmp_path / "a.csv", line_50000="none,at all")
    numbers = gm.read_csv(tmp_path / "a.csv").map(lambda row: int(row["number"]))
    with pytest.raises(gm.JobError, match="a.csv, line 50000") as raised:
        numbers.collect()
    assert (raised.value.line, raised.value.record) == (50_000, {"number": "none", "text": "at all"})
    with gm.configure(on_error="skip"):
        result = numbers.run()
    assert len(list(result)) == 59_999
    (bad,) = result.bad_records
    assert (bad.line, bad.record, bad.file) == (50_000, {"number": "none", "text": "at all"}, str(tmp_path / "a.csv"))


def test_a_row_that_kills_its_worker_is_named(tmp_path: Path, engine: str) -> None:
    if engine != "machine":
        return
    large(tmp_path / "a.csv", line_50000="none,at all")

    def die(row: dict[str, str]) -> Any:
        if row["number"] == "none":
            os.kill(os.getpid(), signal.SIGKILL)
        return row["number"]

    with pytest.raises(gm.WorkerDied, match="a.csv") as raised:
        gm.read_csv(tmp_path / "a.csv").map(die).collect()
    assert raised.value.line == 50_000


def test_a_file_whose_delimiter_is_not_ascii_is_read_by_one_worker(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a\xa6b\n1\xa6"2\n\xa6"\n', encoding="utf-8")
    assert gm.read_csv(tmp_path / "a.csv", delimiter="\xa6").collect() == [{"a": "1", "b": "2\n\xa6"}]


def test_columns_of_many_files_are_each_their_own(tmp_path: Path, engine: str) -> None:
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text(f"n,c{number}\n" + f"{number},x\n" * number)
    with gm.configure(**finely(engine)):
        found = gm.read_csv(tmp_path / "*.csv").collect()
    assert found == [{"n": str(number), f"c{number}": "x"} for number in range(5) for _ in range(number)]


@RERUN
@given(st.text(st.sampled_from('ab,"\n\r\xe9'), max_size=40))
def test_fields_are_plucked_and_rows_counted_as_from_records(tmp_path: Path, engine: str, text: str) -> None:
    content = f"first,second\n{text}"
    (tmp_path / "a.csv").write_text(content, newline="", encoding="utf-8")
    rows = rows_of(content)
    data = gm.read_csv(tmp_path / "a.csv")
    with gm.configure(**finely(engine)):
        if rows is None or any(len(row) != 2 for row in rows):
            for job in (data.count, data.pluck("first").collect):
                with pytest.raises(gm.InputError, match="a.csv"):
                    job()
            return
        assert data.count() == len(rows) - 1
        assert data.pluck("second").map(lambda text: [text]).collect() == [[second] for _, second in rows[1:]]
        assert data.pluck("second", ("first",), ("second", ("first", "second"))).collect() == [(b, (a,), (b, (a, b))) for a, b in rows[1:]]
        if len(rows) > 1:
            with pytest.raises(gm.JobError, match="KeyError: 'third'"):
                data.pluck("second", "third").collect()


def test_bytes_that_are_ignored_move_no_quote(tmp_path: Path, engine: str) -> None:
    """Where a byte before a quote was ignored, a valid file was refused, depending on where it was cut."""
    content = b'a;b\n\xff"x;1\ny";2\n3;4\n'
    (tmp_path / "a.csv").write_bytes(content)
    text = content.decode(errors="ignore")
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=";", strict=True)]
    with gm.configure(**finely(engine)):
        assert gm.read_csv(tmp_path / "a.csv", delimiter=";", errors="ignore").collect() == [dict(zip(rows[0], row)) for row in rows[1:]]


def test_the_first_error_of_a_file_is_told(tmp_path: Path) -> None:
    """A quote that is not closed was told before a fault in a row above it."""
    (tmp_path / "a.csv").write_text('a,b\n0,0\n1,"x"y\n2,"open\n')
    with pytest.raises(gm.InputError, match="line 3: this is not CSV: ',' expected after"):
        gm.read_csv(tmp_path / "a.csv").collect()
    (tmp_path / "a.csv").write_text('a,b\n0,0\n1\n2,"open\n')
    with pytest.raises(gm.InputError, match="line 3: this row has 1 field, and the header has 2"):
        gm.read_csv(tmp_path / "a.csv").collect()
    with pytest.raises(gm.InputError, match="line 4"), gm.configure(on_error="skip"):
        gm.read_csv(tmp_path / "a.csv").collect()


def test_a_row_may_be_long_if_its_fields_may(tmp_path: Path) -> None:
    """A row of 70 MB was refused, and the error advised a setting that there is not."""
    (tmp_path / "a.csv").write_text('a,b\n"' + "x,y\n" * 17_500_000 + '",1\n2,3\n')
    before = csv.field_size_limit(10**9)
    try:
        assert gm.read_csv(tmp_path / "a.csv").map(lambda row: len(row["a"])).collect() == [70_000_000, 1]
    finally:
        csv.field_size_limit(before)


def test_rows_that_end_with_a_return_are_set_aside_one_by_one(tmp_path: Path, engine: str) -> None:
    rows = [f"{n},{n}" if n % 1000 else "bad" for n in range(1, 5001)]
    (tmp_path / "a.csv").write_text("\r".join(["a,b", *rows]), newline="")
    with gm.configure(on_error="skip", **finely(engine)):
        result = gm.read_csv(tmp_path / "a.csv").run()
    assert list(result) == [{"a": str(n), "b": str(n)} for n in range(1, 5001) if n % 1000]
    assert [(bad.line, bad.record) for bad in result.bad_records] == [(n + 1, ["bad"]) for n in range(1000, 5001, 1000)]
