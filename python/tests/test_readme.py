"""The READMEs and the guide print what happens."""

import doctest
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gristmill as gm

ROOT = Path(__file__).parents[2]
GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))
#: Pages about other things than Python.
WITHOUT_PYTHON = {"rust"}
#: The page that needs a cluster; test_spark.py runs it.
ON_SPARK = {"spark"}


def examples(page: Path) -> tuple[int, int]:
    """Runs the examples of a page. Returns how many failed, and how many there were."""
    return doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)


def test_the_first_five_minutes_go_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed, tried = examples(ROOT / "python/README.md")
    assert (failed, tried > 5) == (0, True)


@pytest.mark.parametrize("page", [page for page in GUIDE if page.stem not in ON_SPARK], ids=lambda page: page.stem)
def test_the_guide_goes_as_printed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = examples(page)
    assert (failed, tried == 0) == (0, page.stem in WITHOUT_PYTHON)


def test_all_python_of_the_guide_runs() -> None:
    blocks = [block for page in GUIDE for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)]
    assert blocks and all(block.startswith(">>> ") for block in blocks)


@pytest.mark.parametrize("engine", ["machine"], indirect=True)
def test_the_first_five_minutes_of_the_command_go_as_printed(tmp_path: Path) -> None:
    here = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / "docs/command.md").read_text(), re.M | re.S)
    runs = [run for block in blocks for run in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.M)]
    assert len(runs) > 5
    for command, printed in runs:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": here}, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, printed), (command, done.stderr)


def test_the_readme_names_every_function() -> None:
    text = (ROOT / "python/README.md").read_text()
    functions = [f"gm.{name}" for name in gm.__all__ if name[0].islower()]
    methods = [name for kind in (gm.Dataset, gm.Groups) for name in vars(kind) if not name.startswith("_")]
    assert [name for name in functions + methods if not re.search(rf"[`.( ]{re.escape(name)}\b", text)] == []


def test_the_first_example_works_as_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ((example, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    words = Counter((ROOT / "LICENSE").read_text().split())
    assert capsys.readouterr().out == printed == "".join(f"{pair!r}\n" for pair in words.most_common(5))
