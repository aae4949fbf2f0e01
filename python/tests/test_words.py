"""Mistakes that a newcomer makes: each is an error that says what to do next, and none gives a wrong answer."""

import collections
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

ROOT = Path(__file__).parents[2]
on_machine = pytest.mark.parametrize("engine", ["machine"], indirect=True)
PAIRS = [("a", 1), ("b", 2), ("a", 3)]


# What functions return.


def pair(key: str, values: list[int]) -> Any:
    return key, sum(values)


def named(key: str, values: list[int]) -> Any:
    return collections.namedtuple("Total", "key total")(key, sum(values))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (pair, "returned a tuple, which is not one record but 2 records: yield it, or return a list with it"),
        (named, "returned a tuple, which is not one record but 2 records: yield it, or return a list with it"),
        (lambda key, values: key, "returned a str.*: yield it, or return a list of records"),
        (lambda key, values: key.encode(), "returned a bytes"),
        (lambda key, values: {key: values}, "returned a dict"),
        (lambda key, values: None, "returned None.*is a `return` or `yield` missing"),
    ],
)
@pytest.mark.parametrize("format", ["list", "numpy"])
def test_what_a_function_of_a_group_returns_is_a_collection_of_records(function: Callable[..., Any], says: str, format: Any) -> None:
    """A pair that `map_groups` returned became two records."""
    with pytest.raises(gm.JobError, match=says) as caught:
        gm.from_iterable(PAIRS).group_by_key().map_groups(function, format).collect()
    assert caught.value.record in ("a", "b")
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(TypeError, match=says):
        gm.replay(caught.value)
    with gm.configure(on_error="skip"):
        result = gm.from_iterable(PAIRS).group_by_key().map_groups(function, format).run()
    assert (list(result), sorted(bad.record for bad in result.bad_records)) == ([], ["a", "b"])
    assert all(re.search(says, bad.error) for bad in result.bad_records)


@pytest.mark.parametrize("function", [lambda key, values: [(key, sum(values))], lambda key, values: iter([(key, sum(values))])])
def test_a_list_of_pairs_and_an_iterator_of_them_are_records(function: Callable[..., Any]) -> None:
    assert gm.from_iterable(PAIRS).group_by_key().map_groups(function).collect() == [("a", 4), ("b", 2)]


@pytest.mark.parametrize("make", [lambda data: data.flat_map(lambda n: None), lambda data: data.map_batches(lambda numbers: None)])
def test_a_function_that_forgets_to_return_is_told(make: Callable[[Any], Any]) -> None:
    """The error was "'NoneType' object is not iterable", which names nothing that the user wrote."""
    with pytest.raises(gm.JobError, match="returned None, and not records: is a `return` or `yield` missing"):
        make(gm.range(3)).collect()
    with gm.configure(on_error="skip"):
        result = make(gm.range(3)).run()
    assert {bad.error for bad in result.bad_records} == {"TypeError: the function returned None, and not records: is a `return` or `yield` missing?"}


def test_the_same_error_of_the_users_own_code_stays_as_it_is() -> None:
    with pytest.raises(gm.JobError, match="'NoneType' object is not iterable"):
        gm.range(3).flat_map(lambda n: [item for item in None]).collect()  # type: ignore[attr-defined]  # that is the mistake


def test_text_is_characters_for_flat_map_as_it_is_for_python_and_no_records_for_a_batch() -> None:
    assert gm.from_iterable(["ab"]).flat_map(str.upper).collect() == ["A", "B"]
    for made in ("ab", b"ab", {"a": 1}):
        with pytest.raises(gm.JobError, match=f"returned a {type(made).__name__}"):
            gm.range(3).map_batches(lambda numbers, made=made: made).collect()  # type: ignore[misc]


# Numbers of records.


@pytest.mark.parametrize("count", [-1, "3", 2.5, 3.0, True, None, [1]])
def test_a_number_of_records_is_a_whole_number(count: Any) -> None:
    """`take(-1)` was an error about the arguments of `islice`, and `top(2.5)` one of the engine."""
    data = gm.from_iterable(PAIRS)
    for name, call in (("take", data.take), ("show", data.show), ("top", data.top), ("take", data.group_by_key().take)):
        with pytest.raises(gm.PlanError, match=f"^{name}\\({re.escape(repr(count))}\\): give a whole number from [01] to"):
            call(count)
    with pytest.raises(ValueError, match="give a whole number"):
        gm.top(count)
    with pytest.raises(gm.PlanError, match="give a whole number"):
        gm.iterate(data, lambda state: state, steps=count)


def test_no_record_is_taken_without_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = gm.range(3).map(lambda n: (tmp_path / "ran").touch())
    assert data.take(0) == []
    data.show(0)
    assert capsys.readouterr().out == "" and not (tmp_path / "ran").exists()
    with pytest.raises(gm.PlanError, match=r"top\(0\)"):
        data.top(0)
    import numpy

    assert gm.range(5).take(numpy.int64(2)) == [0, 1]


def test_one_record_is_one_record() -> None:
    """`explain` said "1 records"."""
    one, two = gm.from_iterable(["a"]), gm.from_iterable(["a", "b"])
    assert (one.explain().splitlines()[-1].strip(), two.explain().splitlines()[-1].strip()) == ("1 record", "2 records")
    assert (repr(one.run()), repr(two.run())) == ("<Result: 1 record>", "<Result: 2 records>")
    assert "Result: 1 record<" in one.run()._repr_html_()


# What a dataset is not.


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (len, "use count"),
        (bool, r"if dataset.take\(1\)"),
        (lambda data: 1 if data else 2, r"if dataset.take\(1\)"),
        (lambda data: data[0], r"no record \[0\]: use take\(n\).*collect"),
        (lambda data: data[:3], r"use take\(n\).*collect"),
        (lambda data: list(reversed(data)), "use count"),
    ],
)
def test_a_dataset_is_no_list_before_its_job_runs(mistake: Callable[[Any], Any], says: str) -> None:
    """`if dataset:` was true for a dataset without records."""
    with pytest.raises(TypeError, match=says):
        mistake(gm.range(3))


def test_a_dataset_is_what_a_loop_takes() -> None:
    data = gm.range(3)
    assert ([n for n in data], list(data), sorted(data), tuple(data), sum(data), 2 in data, 3 in data) == (
        [0, 1, 2],
        [0, 1, 2],
        [0, 1, 2],
        (0, 1, 2),
        3,
        True,
        False,
    )
    assert [*data] == [0, 1, 2] and dict(gm.from_iterable(PAIRS)) == dict(PAIRS) and data is not None


# Groups.


def test_groups_can_be_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups had one method, and printed themselves as `<gristmill.dataset.Groups object at 0x7f...>`."""
    groups = gm.from_iterable(PAIRS).group_by_key()
    expected = {"a": [1, 3], "b": [2]}
    for found in (groups.collect(), list(groups), groups.take(2), groups.to_dict().items()):
        assert {key: sorted(values) for key, values in found} == expected
    assert groups.count() == 2 and len(groups.take(1)) == 1
    groups.show(1)
    assert capsys.readouterr().out in ("('a', [1, 3])\n", "('a', [3, 1])\n")
    assert groups.explain() == "group_by_key\n  3 records"
    assert groups._repr_html_() == "<pre>group_by_key\n  3 records</pre>"
    assert "map_groups" in repr(groups) and "0x" not in repr(groups)


@pytest.mark.parametrize(
    ("mistake", "error", "says"),
    [
        (len, TypeError, "use count"),
        (bool, TypeError, r"groups.take\(1\)"),
        (lambda groups: groups["a"], TypeError, "to_dict"),
        (lambda groups: groups.map(str), AttributeError, r"groups have no map\(\): first make records of them, with map_groups"),
        (lambda groups: groups.agg(sum), AttributeError, "no attribute 'agg'"),
    ],
)
def test_groups_are_no_dataset(mistake: Callable[[Any], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        mistake(gm.from_iterable(PAIRS).group_by_key())


# The version.


def test_the_package_has_a_version() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)
    assert version and gm.__version__ == version[1]
    with pytest.raises(AttributeError, match="module 'gristmill' has no attribute '__vision__'"):
        gm.__vision__


# Tracebacks.

PROGRAM = """import gristmill as gm
ENGINE
def inverse(n):
    try:
        return {1: 1, 2: 0.5}[n]
    except KeyError as error:
        raise ValueError("no inverse") from error

def job():
    return gm.range(3).map(inverse).collect()

job()
"""


@pytest.mark.parametrize("engine", ["local", "machine"], indirect=True)
def test_a_program_that_fails_shows_its_own_lines_only(engine: str, tmp_path: Path) -> None:
    """The lines of the user were between some twenty lines of the package."""
    program = tmp_path / "job.py"
    program.write_text(PROGRAM.replace("ENGINE", f"gm.configure(engine={engine!r})"))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    files = set(re.findall(r'File "(.*?)"', ran.stderr))
    assert files == {str(program)}, ran.stderr
    *lines, last = [line for line in ran.stderr.splitlines() if not set(line.strip()) <= set("^~")]
    assert lines[0] == "Traceback (most recent call last):"
    for line in ("KeyError: 0", "ValueError: no inverse", "    job()", "    return gm.range(3).map(inverse).collect()"):
        assert line in lines, ran.stderr
    assert lines[-1].endswith("JobError: ValueError: no inverse") and last == "  in map inverse, on 0"
    assert "_Traceback" not in ran.stderr and ran.stderr.count("ValueError: no inverse") == 2


@on_machine
def test_a_program_with_a_hook_of_its_own_keeps_it(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    hook = "import sys\nsys.excepthook = lambda kind, error, frames: print('mine', kind.__name__)\n"
    for text in (hook + PROGRAM.replace("ENGINE", ""), PROGRAM.replace("ENGINE", hook)):
        program.write_text(text)
        ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
        assert (ran.stdout, ran.stderr) == ("mine JobError\n", "")


@on_machine
def test_other_errors_are_shown_as_python_shows_them(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text("import gristmill as gm\n1 // 0\n")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60, check=False)
    assert "line 2, in <module>" in ran.stderr and ran.stderr.endswith("ZeroDivisionError: integer division or modulo by zero\n")


@pytest.mark.parametrize("engine", ["local", "machine"], indirect=True)
def test_a_notebook_shows_the_lines_of_the_cell_only(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """IPython showed each frame of the package with five lines around it."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_cell(PROGRAM.replace("ENGINE", f"gm.configure(engine={engine!r})"))
        shown = capsys.readouterr()
        text = shown.out + shown.err
        assert "return gm.range(3).map(inverse).collect()" in text and "KeyError: 0" in text, text
        assert "JobError: ValueError: no inverse\n  in map inverse, on 0" in text
        assert "dataset.py" not in text and "engines" not in text and "_Traceback" not in text
        shell.run_cell("gm.read_text('no such file')")
        shown = capsys.readouterr()
        text = shown.out + shown.err
        assert "gm.read_text('no such file')" in text and "there is no file no such file" in text and "sources.py" not in text
    finally:
        InteractiveShell.clear_instance()
