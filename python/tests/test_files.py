"""Files are read as Python reads them, and what is wrong in them is named."""

import bz2
import csv
import functools
import gzip
import json
import lzma
import os
import subprocess
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable
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
    with pytest.warns(gm.InputWarning, match="2 hidden names were left out"):
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
        ("a.csv", b"a,b\n1,2\n3\n", gm.read_csv, "a.csv, line 3: this row has 1 field, and the header has 2"),
        ("a.csv", b'a,b\n1,"2"x\n', gm.read_csv, "a.csv, line 2: this is not CSV"),
        ("a.csv", b"a,b\n1,\xff\n", gm.read_csv, "a.csv.*this is not UTF-8"),
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


# Compressed files.

LINES = b"".join(b"%d,a line of some length\n" % n for n in range(3000))


def arrow(codec: str, content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    return bytes(sink.getvalue().to_pybytes())


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": functools.partial(arrow, "zstd"),
    "lz4": functools.partial(arrow, "lz4"),
}


@pytest.mark.parametrize("name", ["a", "a.gz", "a.txt"])
@pytest.mark.parametrize("kind", PACK)
def test_every_reader_reads_every_compression(tmp_path: Path, kind: str, name: str) -> None:
    """`read_csv` said that a file `.zst` was not UTF-8, and read files without an ending as they lay."""
    pack, path = PACK[kind], tmp_path / name
    half = len(LINES) // 2
    # Two members, one after the other, as `cat a.gz b.gz` makes.
    path.write_bytes(pack(LINES[:half]) + pack(LINES[half:]))
    assert b"\n".join(gm.read_bytes(path)) + b"\n" == LINES
    assert "\n".join(gm.read_text(path)) + "\n" == LINES.decode()
    assert gm.read_files(path).collect() == [(str(path), LINES)]
    path.write_bytes(pack(b"number,text\n" + LINES))
    assert [row["number"] for row in gm.read_csv(path)] == [str(n) for n in range(3000)]
    path.write_bytes(pack(b'[1]\n{"a": 2}\n'))
    assert gm.read_jsonl(path).collect() == [[1], {"a": 2}]


@pytest.mark.parametrize("kind", PACK)
def test_what_is_cut_off_or_damaged_is_an_error(tmp_path: Path, kind: str) -> None:
    """Python read the first part of a bzip2 or xz file whose second was damaged, and took it for the whole."""
    whole, path = PACK[kind](LINES), tmp_path / f"a.{kind}"
    readers = (gm.read_text, gm.read_bytes, gm.read_files, gm.read_csv, gm.read_jsonl)
    for content, why in (
        (b"", "it is empty, and an? .* file never is"),
        (b"plain text, no more", "it is not an? .* file, although its name says so: it begins with the bytes 70 6c 61 69"),
        (whole[:5], "truncated"),
        (whole[:-5], "truncated"),
        (whole + whole[:30], "truncated"),
        (whole + b"something else", "no .* data|damaged"),
    ):
        path.write_bytes(content)
        for read in readers:
            with pytest.raises(gm.InputError, match=f"cannot read .*a.{kind}.*({why})|this is not JSON"):
                read(path).collect()


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_zip_archive_of_one_file_is_read(tmp_path: Path) -> None:
    """`read_csv` of a zipped table said that it was not UTF-8."""
    one = zipped(tmp_path / "one.zip", {"folder/": b"", "folder/a.csv": b"number,text\n" + LINES})
    assert [row["number"] for row in gm.read_csv(one)] == [str(n) for n in range(3000)]
    assert gm.read_files(one).collect() == [(str(one), b"number,text\n" + LINES)]
    assert gm.read_text(one).count() == 3001
    two = zipped(tmp_path / "two.zip", {"a": b"1\n", "b": b"2\n"})
    none = zipped(tmp_path / "none.zip", {})
    other = zipped(tmp_path / "other.zip", {"a": b"1\n"}, zipfile.ZIP_BZIP2)
    for path, why in ((two, "of 2 files"), (none, "without a file"), (other, "packed by method 12")):
        for read in (gm.read_csv, gm.read_files):
            with pytest.raises(gm.InputError, match=f"cannot read .*{path.name}.*{why}"):
                read(path).collect()


def test_a_damaged_file_is_no_bad_record(tmp_path: Path) -> None:
    """With `on_error="skip"`, a file that was cut short vanished with all of its rows, as one bad record."""
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n" + LINES)[:-9])
    (tmp_path / "b.csv").write_text('a\n1\n"2')
    for name in ("a.csv.gz", "b.csv"):
        for read in (gm.read_csv, gm.read_files) if name.endswith("gz") else (gm.read_csv,):
            with gm.configure(on_error="skip"), pytest.raises(gm.InputError, match=name):
                read(tmp_path / name).run()


def test_xz_streams_may_be_padded(tmp_path: Path) -> None:
    """Python's `lzma` reads nothing behind the padding that `xz` allows between two streams, and says nothing."""
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"one\n") + b"\0" * 8 + lzma.compress(b"two\n") + b"\0" * 4)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n") + b"\0" * 512)
    assert gm.read_text(tmp_path / "a.xz").collect() == ["one", "two"]
    assert [content for _, content in gm.read_files([tmp_path / "a.xz", tmp_path / "a.gz"])] == [b"one\ntwo\n", b"one\n"]


# Paths.


def test_a_folder_is_read_as_the_command_reads_it(tmp_path: Path) -> None:
    """Links that led out of a folder were followed, and FIFOs and hidden files left out, without a word."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "a").mkdir(parents=True)
    outside.mkdir()
    for path in (folder / "a.txt", folder / "a" / "b", folder / ".hidden", outside / "secret"):
        path.write_text(path.name)
    (folder / "link").symlink_to(outside)
    (folder / "link2").symlink_to(outside / "secret")
    (folder / "loop").symlink_to(folder)
    os.link(folder / "a.txt", folder / "z.txt")
    os.mkfifo(folder / "fifo")
    with pytest.warns(gm.InputWarning) as told:
        data = gm.read_text(folder)
    assert data.collect() == ["b", "a.txt"]
    assert [str(each.message) for each in told] == [
        f"1 hidden name was left out: {folder}/.hidden; "
        f"1 FIFO, socket or device was left out: {folder}/fifo; "
        f"3 symbolic links were not followed: {folder}/link, {folder}/link2, {folder}/loop; "
        f"1 path was left out because its file had been found before: {folder}/z.txt"
    ]
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", gm.InputWarning)
        # What is named is read, whatever it is, as often as it is named.
        assert gm.read_text([folder / "link2", folder / "link2", folder / ".hidden"]).collect() == ["secret", "secret", ".hidden"]
        assert gm.read_text([folder / "link"]).collect() == ["secret"]


def test_a_folder_without_files_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("x")
    with pytest.raises(gm.InputError, match="there is no file in the folder .*: 1 hidden name was left out"):
        gm.read_text(tmp_path)
    with pytest.raises(gm.InputError, match="no input was named"):
        gm.read_text([])


def test_a_file_that_a_pattern_finds_twice_is_read_once(tmp_path: Path) -> None:
    """`**` followed links to folders: with two links in a loop, the search did not end."""
    below = tmp_path / "below"
    below.mkdir()
    (below / "a.txt").write_text("a")
    for number in range(3):
        (below / f"loop{number}").symlink_to(below)
    with pytest.warns(gm.InputWarning, match="1 path was left out because"):
        assert gm.read_text([tmp_path / "**" / "*.txt", below / "a*"]).collect() == ["a"]
    assert gm.read_text(tmp_path / "*" / "[!b].txt").collect() == ["a"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nothing")
    with pytest.raises(gm.InputError, match="dangling: it is a symbolic link to nothing, which does not exist"):
        gm.read_text(tmp_path / "dangling")
    with pytest.raises(gm.InputError, match="it is a device, and may never end"):
        gm.read_text("/dev/zero")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(gm.InputError, match="fifo: it is a FIFO or socket, which can be read only once"):
        gm.read_csv(tmp_path / "fifo")
    with pytest.raises(gm.InputError, match="there is no file"):
        gm.read_text("a\0b")


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    """A job that tried one form of values after the other read a pipe twice: the second time it waited without end."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text("1.5\n2\n"), daemon=True)
    writer.start()
    with gm.configure(deadline=30):
        assert gm.read_text(fifo).map(lambda line: (0, float(line))).reduce_by_key(gm.sum).collect() == [(0, 3.5)]
    writer.join(10)


@pytest.mark.parametrize("name", ["/dev/stdin", "/dev/fd/0"])
@pytest.mark.parametrize("engine", ["machine", "local"], indirect=True)
def test_standard_input_is_that_of_the_program(engine: str, name: str) -> None:
    """In a program with threads, `read_text("/dev/stdin")` read the standard input of another process."""
    program = (
        "import gristmill as gm, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        f"gm.configure(engine={engine!r}, deadline=30)\n"
        f"print(gm.read_text({name!r}).collect())\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], input="1\n2\n", capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout == "['1', '2']\n", ran.stderr


def test_a_hyphen_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the native engine, a file named `-` is standard input."""
    monkeypatch.chdir(tmp_path)
    Path("-").write_text("hyphen")
    assert gm.read_text("-").collect() == gm.read_text("*").collect() == ["hyphen"]


NAMES = ("a\x1b[31mred", "two\nlines", "right\u202eleft", os.fsdecode(b"byte\xff"))


@pytest.mark.parametrize("name", NAMES)
def test_names_in_messages_do_not_steer_the_terminal(tmp_path: Path, name: str) -> None:
    """Escape sequences in the name of a file reached the terminal with an error."""
    path = tmp_path / name
    path.write_bytes(b"a,b\n\xff\n")
    said: list[str] = []
    for read in (gm.read_text, gm.read_csv, gm.read_jsonl, gm.read_parquet):
        with pytest.raises(gm.InputError) as raised:
            read(path).collect()
        said.append(str(raised.value))
    with pytest.raises(gm.InputError) as raised:
        gm.read_text(str(path) + "none")
    said.append(str(raised.value))
    with pytest.raises(gm.JobError) as failed:
        gm.read_bytes(path).map(lambda line: line[9]).collect()
    assert failed.value.file == str(path)
    said += [*str(failed.value).split("\n"), gm.read_bytes(path).explain().split("\n")[1]]
    path.rename(tmp_path / (name + ".gz"))
    with pytest.raises(gm.InputError) as raised:
        gm.read_text(tmp_path / (name + ".gz")).collect()
    said.append(str(raised.value))
    assert not [text for text in said if not text.isprintable()]


# CSV.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b,a,b\n1,2,3,4\n", r"several columns have the name 'a', 'b'.*duplicate_names=\"number\""),
        (b'a,b\n1,2\n3,"4\n5,6\n', "line 3.*not closed before the end of the file|not closed before the end of the file.*line 3"),
        (b'a,b\n1,"2"x\n', "a.csv, line 2: this is not CSV"),
        (b"a,b\n\n1,2,3\n", "a.csv, line 3: this row has 3 fields, and the header has 2"),
        (b"a,b\n1,2,,\n", "a.csv, line 2: this row has 4 fields, and the header has 2"),
        (b"a,b\n1," + b"x" * 200_000 + b"\n", r"longer than 131072 characters.*line 2.*csv.field_size_limit\(...\)"),
    ],
)
def test_csv_that_would_lose_something_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    """A dictionary held the second of two columns of one name, and the first was lost without a word."""
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(gm.InputError, match=message):
        gm.read_csv(tmp_path / "a.csv").collect()


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (b"", []),
        (b"a,b\n", []),
        (b"\n\na\n1\n\n2\n", [{"a": "1"}, {"a": "2"}]),
        (b"\xef\xbb\xbfa,b\r\n1,\xef\xbb\xbf\r\n", [{"a": "1", "b": "\ufeff"}]),
        (b"a,b\r1,2\r3,4", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        (b'a\n"x\n""y""\n"\n""\n', [{"a": 'x\n"y"\n'}, {"a": ""}]),
        # Some programs write a delimiter after every field.
        (b'a,b\n1,2,\n3,4,""\n5,\n', [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}, {"a": "5", "b": ""}]),
    ],
)
def test_odd_csv_is_read_as_python_reads_it(tmp_path: Path, content: bytes, records: list[dict[str, str]]) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    assert gm.read_csv(tmp_path / "a.csv").collect() == records


def test_columns_of_one_name_can_be_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,a_2,a,,a,\n1,2,3,4,5,6\n")
    (tmp_path / "b.csv").write_text("a,b\n1,2\n")
    rows = gm.read_csv(tmp_path / "*.csv", duplicate_names="number").collect()
    assert rows == [{"a": "1", "a_2": "2", "a_3": "3", "": "4", "a_4": "5", "_2": "6"}, {"a": "1", "b": "2"}]
    for wrong in ({"duplicate_names": "drop"}, {"delimiter": ";;"}, {"delimiter": '"'}, {"errors": "rigid"}):
        with pytest.raises(gm.PlanError):
            gm.read_csv(tmp_path / "b.csv", **wrong)  # type: ignore[arg-type]


def test_the_limit_of_a_field_is_that_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n" + "x" * 200_000 + "\n")
    before = csv.field_size_limit(300_000)
    try:
        assert gm.read_csv(tmp_path / "a.csv").map(lambda row: len(row["a"])).collect() == [200_000]
    finally:
        csv.field_size_limit(before)


# JSON.


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"NaN", "NaN is not a number of JSON"),
        (b'{"a": -Infinity}', "-Infinity is not a number of JSON"),
        (b"[" * 100_000, "nested deeper than 500"),
        (b"[" * 501 + b"]" * 501, "nested deeper than 500"),
        (b'{"a":[1],"b":' * 501 + b"0" + b"}" * 501, "nested deeper than 500"),
        (b"1" * 5000, "4300 digits"),
        (b'"\xff"', "this is not UTF-8, from byte 1 of the line on"),
        (b'"\xed\xa0\x80"', "this is not UTF-8"),
        (b"[1] 2", r"this is not JSON: Extra data \(character 5 of the line\)"),
    ],
)
def test_what_is_no_json_is_a_bad_record(tmp_path: Path, line: bytes, message: str) -> None:
    """NaN and Infinity were accepted, which the command refuses; a deep value raised a raw `RecursionError`."""
    (tmp_path / "a.jsonl").write_bytes(b"1\n" + line + b"\n2\n")
    with pytest.raises(gm.InputError, match=f"a.jsonl, line 2, byte 2: .*{message}"):
        gm.read_jsonl(tmp_path / "a.jsonl").collect()
    with gm.configure(on_error="skip"):
        result = gm.read_jsonl(tmp_path / "a.jsonl").run()
    # The list has the beginning of a long record.
    assert list(result) == [1, 2] and [(line.startswith(bad.record), bad.line) for bad in result.bad_records] == [(True, 2)]


@pytest.mark.parametrize(
    ("content", "values"),
    [
        (b"\xef\xbb\xbf[1]\n\xef\xbb\xbf\n\r\n \t\n[2]", [[1], [2]]),
        (b'{"a": 1, "a": 2}\n', [{"a": 2}]),
        (b'"\\ud800"\n"\\ud83d\\ude00"\n', ["\ud800", "\U0001f600"]),
        (b"123456789012345678901234567890\n-0\n1E400\n", [123456789012345678901234567890, 0, float("inf")]),
        (b"[" * 500 + b"]" * 500, [json.loads("[" * 500 + "]" * 500)]),
        (b"[" + b",".join([b"[[1],[2]]"] * 1000) + b"]", [[[[1], [2]]] * 1000]),
        (b'["' + b"[" * 1000 + b'"]', [["[" * 1000]]),
    ],
)
def test_odd_json_is_read_as_python_reads_it(tmp_path: Path, content: bytes, values: list[object]) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    assert gm.read_jsonl(tmp_path / "a.jsonl").collect() == values


# Parquet.


def test_a_column_that_is_not_there_is_an_error_before_the_job(tmp_path: Path) -> None:
    """`read_parquet(columns=["typo"])` gave records without it."""
    one = pyarrow.table({"a": [1], "place": [{"town": "x", "street": "y"}]})
    pyarrow.parquet.write_table(one, tmp_path / "1.parquet")
    pyarrow.parquet.write_table(one.select(["a"]), tmp_path / "2.parquet")
    first, both = tmp_path / "1.parquet", [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    with pytest.raises(gm.InputError, match="1.parquet: there is no column 'typo'; there are 'a', 'place'"):
        gm.read_parquet(first, columns=["a", "typo"])
    with pytest.raises(gm.InputError, match="2.parquet: there is no column 'place'; there are 'a'"):
        gm.read_parquet(both, columns=["place"])
    assert gm.read_parquet(both, columns=["a"]).collect() == [{"a": 1}, {"a": 1}]
    assert gm.read_parquet(first, columns=["place.town"]).collect() == [{"place": {"town": "x"}}]
    for wrong in (["a", "a"], "a"):
        with pytest.raises(gm.PlanError, match="columns="):
            gm.read_parquet(first, columns=wrong)


def test_a_parquet_file_with_two_columns_of_one_name_is_an_error(tmp_path: Path) -> None:
    twice = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["a", "a"])
    pyarrow.parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(gm.InputError, match="several columns have the name 'a'"):
        gm.read_parquet(tmp_path / "a.parquet").collect()
