"""Files are written whole or not at all, compressed as their names say, and can be read again."""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.base.files import whole_file

RERUN = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def unzstd(content: bytes) -> bytes:
    with pyarrow.CompressedInputStream(io.BytesIO(content), "zstd") as stream:
        return bytes(stream.read())


UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": unzstd,
    ".GZ": gzip.decompress,
}


@pytest.mark.parametrize("end", UNPACK)
def test_the_name_of_a_file_says_how_it_is_compressed(tmp_path: Path, end: str) -> None:
    """`write_jsonl("x.jsonl.gz")` wrote plain text, which `read_jsonl` then refused."""
    rows = [{"name": f"n{n}", "age": str(n)} for n in range(2000)]
    data = gm.from_iterable(rows)
    text, jsonl, table = (tmp_path / f"a{kind}{end}" for kind in (".txt", ".jsonl", ".csv"))
    assert data.pluck("name").write_text(text) == data.write_jsonl(jsonl) == data.write_csv(table) == 2000
    unpack = UNPACK[end]
    assert unpack(text.read_bytes()).decode().splitlines() == [row["name"] for row in rows]
    assert [json.loads(line) for line in unpack(jsonl.read_bytes()).splitlines()] == rows
    assert list(csv.DictReader(io.StringIO(unpack(table.read_bytes()).decode()))) == rows
    assert gm.read_text(text).collect() == [row["name"] for row in rows]
    assert gm.read_jsonl(jsonl).collect() == gm.read_csv(table).collect() == rows


def test_a_parquet_file_is_not_compressed_as_a_whole(tmp_path: Path) -> None:
    """`write_parquet("x.parquet.gz")` wrote a plain Parquet file, which nothing that reads names could open."""
    with pytest.raises(gm.PlanError, match=r"x\.parquet\.gz: .*Leave out the last part"):
        gm.range(3).write_parquet(tmp_path / "x.parquet.gz")
    assert not list(tmp_path.iterdir())


# Whole, or not at all.


def test_nothing_is_visible_while_a_file_is_written_and_after_a_kill(tmp_path: Path) -> None:
    """A writer that was killed left `.NAME.PID.part` behind, which the next reader of the folder found or not."""
    program = (
        "import gristmill as gm, os, signal\n"
        "def kill():\n"
        "    yield 1\n"
        f"    print(os.listdir({str(tmp_path)!r}), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "from gristmill.records import writers\n"
        f"writers.write_text({str(tmp_path / 'out')!r}, kill)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "[]\n"), ran.stderr
    assert os.listdir(tmp_path) == []


def test_threads_that_write_one_path_write_whole_files(tmp_path: Path) -> None:
    """Two threads that wrote one path got a mixture of both, and no error."""
    path = tmp_path / "out"
    wrong: list[str] = []

    def write(letter: str) -> None:
        with gm.configure(engine="local"):
            gm.from_iterable([letter * 100] * 2000).write_text(path)

    def look() -> None:
        while threads[0].is_alive() or threads[1].is_alive():
            found = path.read_text().split() if path.exists() else []
            if len(set(found)) > 1 or len(found) not in (0, 2000):
                wrong.append(f"{len(found)} lines of {set(found)}")

    for _ in range(10):
        threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
        for thread in threads:
            thread.start()
        look()
        for thread in threads:
            thread.join()
    assert not wrong and os.listdir(tmp_path) == ["out"]


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    """Another user who planted a link named `.out.PID.part` chose which file of the writer was overwritten."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".out.{os.getpid()}.part", ".out.partial-0123456789abcdef"):
        (tmp_path / name).symlink_to(victim)
    gm.range(3).write_text(tmp_path / "out")
    assert victim.read_text() == "precious" and (tmp_path / "out").read_text() == "0\n1\n2\n"


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("below/file")
    for content in (3, 2):
        gm.range(content).write_text(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "below" / "file").read_text() == "".join(f"{n}\n" for n in range(content))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        gm.range(3).write_text(tmp_path / "loop")


def test_a_file_keeps_its_permissions_and_owner(tmp_path: Path) -> None:
    """A file of mode 600 that was replaced became readable by everybody."""
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    gm.range(3).write_text(path)
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    mask = os.umask(0)
    os.umask(mask)
    gm.range(3).write_text(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_the_link_of_another_user_in_an_open_folder_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    os.chown(tmp_path, 0, 0)
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    os.chown(tmp_path / "link", 1234, 1234, follow_symlinks=False)
    with pytest.raises(PermissionError, match="symbolic link of user 1234"):
        gm.range(3).write_text(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_a_file_system_without_unnamed_files_gets_hidden_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "O_TMPFILE", os.O_WRONLY | os.O_DIRECTORY)  # such a file system answers with EISDIR
    (tmp_path / ".out.partial-0123456789abcdef").write_text("left by a killed process")
    seen: list[str] = []

    def records() -> list[int]:
        seen.extend(os.listdir(tmp_path))
        return [1, 2]

    from gristmill.records import writers

    writers.write_text(tmp_path / "out", records)
    assert len(seen) == 1 and seen[0].startswith(".out.partial-") and seen[0] != ".out.partial-0123456789abcdef"
    assert os.listdir(tmp_path) == ["out"] and (tmp_path / "out").read_text() == "1\n2\n"


def test_pipes_and_devices_are_written_directly(tmp_path: Path) -> None:
    gm.range(3).write_text("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_text()))
    reader.start()
    with gm.configure(engine="local"):
        gm.range(3).write_text(fifo)
    reader.join(10)
    assert found == ["0\n1\n2\n"]
    program = "import gristmill as gm\ngm.configure(engine='local')\nprint('before')\ngm.range(2).write_text('/dev/stdout')\nprint('after')"
    with open(tmp_path / "log", "w+") as log:
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True, timeout=60)
        log.seek(0)
        assert log.read() == "before\n0\n1\nafter\n"


def test_a_full_disk_names_the_file_and_keeps_the_old_one(tmp_path: Path) -> None:
    """A disk that was full gave `OSError: No space left on device` without the name of the file."""
    (tmp_path / "out").write_text("old")
    program = (
        "import gristmill as gm, resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "gm.configure(engine='local')\n"
        f"gm.from_iterable(['x' * 1000] * 1000).write_text({str(tmp_path / 'out')!r})\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1 and ran.stderr.strip().endswith(f"File too large: '{tmp_path / 'out'}'"), ran.stderr
    assert (tmp_path / "out").read_text() == "old" and os.listdir(tmp_path) == ["out"]


def test_a_folder_that_is_replaced_meanwhile_does_not_redirect_the_file(tmp_path: Path) -> None:
    folder, moved, victim = (tmp_path / name for name in ("folder", "moved", "victim"))
    folder.mkdir()
    victim.mkdir()
    with whole_file.whole_file(str(folder / "out")) as file:
        file.write(b"ours")
        folder.rename(moved)
        folder.symlink_to(victim)
    assert (moved / "out").read_bytes() == b"ours" and not list(victim.iterdir())


def test_homes_and_bytes_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`read_text("~/x")` found no file, and `read_text(b"x")` took the bytes for a list of paths."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert gm.range(3).write_text("~/x") == 3
    assert gm.read_text("~/x").count() == gm.read_text(os.fsencode(tmp_path / "x")).count() == 3
    assert gm.read_text([Path("~/x"), os.fsencode(tmp_path / "x")]).count() == 6
    assert gm.range(2).write_csv(os.fsencode(tmp_path / "y")) == 2 and (tmp_path / "y").exists()
    for odd in (3, None, [3]):
        with pytest.raises(TypeError):
            gm.read_text(odd)  # type: ignore[arg-type]


# What is written can be read.

SURROGATES = st.text(st.sampled_from('a\ud800\udc80\udfff\u2028"\\\n\r,'), max_size=5)


@RERUN
@given(st.lists(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | SURROGATES, st.lists)))
def test_every_json_value_comes_back(tmp_path: Path, values: list[object]) -> None:
    """A record with a lone surrogate ended `write_jsonl` with a raw `UnicodeEncodeError`."""
    path = tmp_path / "a.jsonl"
    with gm.configure(engine="local"):
        assert gm.from_iterable(values).write_jsonl(path) == len(values)
    expected = [json.loads(json.dumps(value)) for value in values]
    assert [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] == expected
    assert gm.read_jsonl(path).collect() == expected


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"a": math.nan}, "record 2, {'a': nan}: JSON has no nan and no infinity"),
        ([1, -math.inf], "record 2, .*: JSON has no nan and no infinity"),
        ({1, 2}, "record 2, {1, 2}: Object of type set is not JSON serializable"),
    ],
)
def test_what_json_cannot_hold_is_an_error_that_names_the_record(tmp_path: Path, record: object, message: str) -> None:
    """`write_jsonl` wrote `NaN`, which is no JSON, and which no other reader takes."""
    with pytest.raises(gm.PlanError, match=message):
        gm.from_iterable([1, record]).write_jsonl(tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())


def test_deep_values_are_an_error_that_names_the_record(tmp_path: Path) -> None:
    """A value that was nested deeply ended `write_jsonl` with a raw `RecursionError`."""
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with gm.configure(engine="local"), pytest.raises(gm.PlanError, match="record 1, .*nested too deeply"):
        gm.from_iterable([deep]).write_jsonl(tmp_path / "a.jsonl")


def test_half_of_a_surrogate_pair_is_an_error_that_names_the_record(tmp_path: Path) -> None:
    """Such text ended a write with a raw `UnicodeEncodeError`, which named nothing."""
    records = gm.from_iterable(["a", "b\ud800"])
    for write in (records.write_text, records.write_csv):
        with pytest.raises(gm.PlanError, match=r"record 2, 'b\\ud800': half of a surrogate pair"):
            write(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_bytes_that_are_no_text_come_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"name\nb\xffd\n")
    lines = gm.read_text(tmp_path / "a", errors="surrogateescape")
    lines.write_text(tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"name\nb\xffd\n"
    rows = gm.read_csv(tmp_path / "a", errors="surrogateescape")
    assert rows.collect() == [{"name": "b\udcffd"}]
    rows.write_csv(tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == b"name\nb\xffd\n"


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.sampled_from('ab,"\n\r;\x00 \u2028é'), max_size=5)


@RERUN
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b,", 'c"\r']), CELLS), max_size=5).filter(lambda rows: not rows or any(rows)))
def test_csv_is_read_by_python_as_it_was_written(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    """A carriage return in a field was not quoted, so that its row was read as two."""
    path = tmp_path / "a.csv"
    with gm.configure(engine="local"):
        assert gm.from_iterable(rows).write_csv(path) == len(rows)
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["value"]
    expected = [{name: "" if row.get(name) is None else str(row[name]) for name in names} for row in rows]
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file, strict=True)) == expected
    assert gm.read_csv(path).collect() == expected


@pytest.mark.parametrize(
    ("records", "message"),
    [([{}, {}], "all 2 records are empty dictionaries"), ([{1: 2, "1": 3}], "several names of columns are one as text")],
)
def test_columns_that_would_be_lost_are_an_error(tmp_path: Path, records: list[object], message: str) -> None:
    """A file of `{1: 2, "1": 3}` had one column, and one of empty dictionaries no row, but the count was of all."""
    data = gm.from_iterable(records)
    for make in (data.write_csv, data.write_parquet):
        with pytest.raises(gm.PlanError, match=message):
            make(tmp_path / "out")
    for export in (data.to_arrow, data.to_pandas, data.to_polars):
        with pytest.raises(gm.PlanError, match=message):
            export()


def test_a_result_without_pairs_has_the_columns_of_pairs(tmp_path: Path, engine: object) -> None:
    """On a day without sales, `frame["key"]` was a KeyError, and the file had the one column `value`."""
    sales = gm.from_iterable([("fig", 3)]).filter(lambda sale: sale[1] > 3)
    sums = sales.reduce_by_key(gm.sum)
    for data in (sums, sums.sort_by_key(), sales.count_by_value().top(3), sums.join(sums), sums.filter(bool).run(), sums.cache()):
        assert data.to_arrow().column_names == list(data.to_pandas()) == data.to_polars().columns == ["key", "value"]
        assert data.write_csv(tmp_path / "sums.csv") == data.write_parquet(tmp_path / "sums.parquet") == 0
        assert (tmp_path / "sums.csv").read_text() == "key,value\n"
        assert gm.read_parquet(tmp_path / "sums.parquet").count() == 0
    assert list(sales.cache().to_pandas()) == list(sales.to_pandas()) == list(sums.map(str).to_pandas()) == ["value"]
