"""What the READMEs print is what happens."""

import doctest
import re
from collections import Counter
from pathlib import Path

import pytest

import gristmill as gm

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_the_first_five_minutes_go_as_printed() -> None:
    failed, tried = doctest.testfile(str(ROOT / "python/README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert (failed, tried > 5) == (0, True)


def test_the_readme_names_every_function() -> None:
    text = (ROOT / "python/README.md").read_text()
    functions = [f"gm.{name}" for name in gm.__all__ if name[0].islower()]
    methods = [name for kind in (gm.Dataset, gm.Groups) for name in vars(kind) if not name.startswith("_")]
    assert [name for name in functions + methods if not re.search(rf"[`.( ]{re.escape(name)}\b", text)] == []


def test_the_first_example_works_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[:1]
    exec(compile(example, "README.md", "exec"), {})
    words = Counter(word for path in ROOT.glob("docs/*.md") for word in path.read_text().split())
    assert capsys.readouterr().out.splitlines()[0] == repr(words.most_common(1)[0])
