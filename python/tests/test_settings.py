"""Settings: one unit for all times and sizes, checked when they are set, and all of them listed."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill import _native
from gristmill.base import options

ROOT = Path(__file__).parents[2]
on_machine = pytest.mark.parametrize("engine", ["machine"], indirect=True)

#: The manual's forms of a time, and the seconds that they are.
TIMES = [(2, 2), (1.5, 1.5), ("2", 2), ("1.5", 1.5), (".5", 0.5), ("2s", 2), ("500ms", 0.5), ("2m", 120), ("2min", 120), ("1m 30s", 90), ("1h", 3600)]
NO_TIMES = ["", "soon", "2x", "-1s", "1:30", "2s later", "1 2", True, 0, -1, "0s", float("nan"), float("inf"), 10**12, [2], b"2s"]


@pytest.mark.parametrize("name", ["deadline", "task_timeout"])
@pytest.mark.parametrize(("given", "seconds"), TIMES)
def test_a_time_is_seconds_or_the_text_that_the_command_takes(name: str, given: Any, seconds: float) -> None:
    """`deadline=2` was two seconds, and `task_timeout=1` was an error of the first job: "time unit needed"."""
    with gm.configure(**{name: given}) as chosen:
        found = chosen.deadline_seconds() if name == "deadline" else chosen.others[name]
        assert found == pytest.approx(seconds)
        assert gm.range(3).collect() == [0, 1, 2]


@pytest.mark.parametrize("name", ["deadline", "task_timeout"])
@pytest.mark.parametrize("given", NO_TIMES, ids=repr)
def test_what_is_no_time_is_refused_with_what_is_one(name: str, given: Any) -> None:
    with pytest.raises(ValueError, match=f'^{name}=.*: give seconds, a number greater than 0, or text such as "500ms", "2s" or "2m"$'):
        gm.configure(**{name: given})


@pytest.mark.parametrize(
    ("given", "size"),
    [(512 << 20, 512 << 20), ("64KiB", 64 << 10), ("1.5GiB", 3 << 29), ("64 kB", 64_000), ("2G", 2 << 30), ("2g", 2 << 30), ("7", 7), ("7b", 7)],
)
def test_a_size_is_bytes_or_the_text_that_the_command_takes(given: Any, size: int) -> None:
    """`memory="2G"` was 2,000,000,000 bytes, and `keep_free="2G"` was 2 GiB."""
    with gm.configure(memory=given, keep_free=given) as chosen:
        assert (chosen.memory_bytes(), chosen.others["keep_free"]) == (size, size)


@pytest.mark.parametrize(
    ("changes", "takes"),
    [
        ({"workers": "many"}, "a whole number from 1 to 1024"),
        ({"workers": 2.5}, "a whole number from 1 to 1024"),
        ({"workers": True}, "a whole number from 1 to 1024"),
        ({"workers": 5000}, "a whole number from 1 to 1024"),
        ({"retries": -1}, "a whole number"),
        ({"retries": "often"}, "a whole number"),
        ({"partitions": 5000}, "a whole number from 1 to 4096"),
        ({"keep_free": "some"}, "bytes, or text"),
        ({"memory": 0}, "bytes, or text"),
        ({"memory": [1]}, "bytes, or text"),
        ({"exchange": "never"}, '"pipelined" or "barrier"'),
        ({"exchange": ["barrier"]}, '"pipelined" or "barrier"'),
        ({"sample": "perhaps"}, "True or False"),
        ({"progress": "perhaps"}, "True, False or None"),
        ({"spill_dir": 7}, "the name of a folder"),
        ({"spill_dir": ""}, "the name of a folder"),
        ({"on_error": None}, '"raise" or "skip"'),
    ],
    ids=str,
)
def test_a_value_that_a_setting_does_not_take_is_refused_when_it_is_set(changes: dict[str, Any], takes: str) -> None:
    """The first job found it, far from the line at fault, and some only by a `TypeError` of the engine."""
    ((name, value),) = changes.items()
    with pytest.raises(ValueError, match=f"^{name}={re.escape(repr(value))}: give {takes}"):
        gm.configure(**changes)


def test_workers_of_both_kinds_and_of_one_exclude_each_other() -> None:
    with gm.configure(workers=2):
        with pytest.raises(ValueError, match="workers=2 and map_workers=3 exclude each other"):
            gm.configure(map_workers=3)
        with gm.configure(workers=None, map_workers=3, retries=None) as chosen:
            assert chosen.others == {"map_workers": 3}


@on_machine
def test_every_option_reaches_the_engine(tmp_path: Path) -> None:
    """The engine refused values that the package had taken, in the first job."""
    # Others need a program that is not of Python, or several settings together.
    least = {"page_bytes": "64KiB", "combine_after": None, "isolation": "process", "buffer": "hash"}
    for name in options.ENGINE:
        kind, _ = options.ENGINE[name]
        values = {"True or False": [True, False], "seconds": [60]}.get(kind.words, re.findall('"(.+?)"', kind.words) or [4])
        if kind.words.startswith("bytes"):
            values = ["64KiB"]
        for value in [least[name]] if name in least else values:
            with gm.configure(**{name: value}):
                assert gm.range(3).map(lambda n: (n % 2, n)).reduce_by_key(gm.sum).collect() == [(0, 2), (1, 1)]
    with gm.configure(spill_dir=tmp_path, deadline="0.5m", workers="2"):
        assert gm.range(3).distinct().collect() == [0, 1, 2]


def test_the_command_gets_the_settings_of_ready_applications(tmp_path: Path) -> None:
    """`deadline=0.5` was "0.5s" for the command, which takes no fractions; `sample=False` was dropped."""
    (tmp_path / "a.csv").write_text("k\na\n")
    with gm.configure(deadline=60.5, task_timeout="2m", sample=False, deterministic=True, spill_dir=tmp_path):
        assert gm.group_by(tmp_path / "a.csv", "k").collect() == [("a", 1)]


@on_machine
def test_the_kinds_and_defaults_are_those_of_the_engine() -> None:
    """docs/options.md is made of the engine's own table; this package has its own words for it."""
    page = (ROOT / "docs/options.md").read_text()
    rows = dict(re.findall(r"^\| `(?:-\w, )?--(?:no-)?([\w-]+(?: \w+)?)` \| (.*) \|$", page, re.M)[::-1])
    rows = {name.replace("-", "_"): about for name, about in rows.items()}
    kinds = {"N": "a whole number", "TIME": "seconds", "SIZE": "bytes", "": "True or False"}
    for name in options.ENGINE:
        ((row, about),) = [(row, about) for row, about in rows.items() if row.split()[0] == name]
        kind, _ = options.ENGINE[name]
        words = row.partition(" ")[2]
        if choices := re.search(r"\(one of (.*?)\)", about):
            assert re.findall('"(.+?)"', kind.words) == choices[1].split(", "), name
        else:
            assert kind.words.startswith(kinds[words]), name
        default = re.search(r"\[default: (.*?)\]", about)
        if default is not None and name != "map_at_once":
            assert kind.default == default[1], name


def test_help_and_the_reference_list_all_settings() -> None:
    """`help(gm.configure)` named none of them."""
    rows = options.listed()
    fields = {name for name in gm.Settings.__dataclass_fields__ if name not in ("timeline", "live", "others")}
    assert {name for name, *_ in rows} == fields | set(options.ENGINE)
    text = gm.configure.__doc__ or ""
    for name, takes, default, about in rows:
        assert f"    {name}: {takes} [default: {default}]\n        {about}." in text
    if not options.ENGINE:
        return
    table = "".join(f"| `{name}` | {takes} | {default} | {about} |\n" for name, takes, default, about in rows)
    page = ROOT / "docs/reference/settings.md"
    made = re.sub(r"(?<=\|---\|---\|---\|---\|\n)(\|.*\n)*", lambda _: table, page.read_text())
    if os.environ.get("GRISTMILL_WRITE_DOCS"):
        page.write_text(made)
    assert page.read_text() == made, "GRISTMILL_WRITE_DOCS=1 writes the page again"


@on_machine
@pytest.mark.parametrize("shuffles", [False, True])
def test_workers_bounds_the_functions_that_run_at_the_same_time(shuffles: bool) -> None:
    """`workers=16` called functions that wait for a server by two at a time on two processors."""

    def call(n: int) -> tuple[int, tuple[float, float, int]]:
        began = time.monotonic()
        time.sleep(0.02)
        return n, (began, time.monotonic(), os.getpid())

    for workers in (1, 5):
        with gm.configure(workers=workers):
            data = gm.range(300).map(call)
            calls = [call for _, call in (data.reduce_by_key(gm.first) if shuffles else data)]
        changes = sorted([(began, 1) for began, _, _ in calls] + [(ended, -1) for _, ended, _ in calls])
        at_once = [sum(change for _, change in changes[:count]) for count in range(len(changes) + 1)]
        assert max(at_once) == workers == len({pid for _, _, pid in calls})


def test_processors_are_those_that_the_control_groups_leave() -> None:
    """On a node of 64 processors with a quota of 2, a job started 64 workers."""
    assert 1 <= _native.processors() <= len(os.sched_getaffinity(0))
