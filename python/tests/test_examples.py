"""Every example in a docstring prints what it says, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gristmill as gm

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(gm.__path__, "gristmill.")
    if not module.name.startswith(("gristmill._", "gristmill.engines.spark"))
]


def comments(module: ModuleType) -> Iterator[doctest.DocTest]:
    """The examples in comments above variables, which begin with `#:`."""
    for found in re.finditer(r"((?:^#:.*\n)+)^(\w+) = ", inspect.getsource(module), re.MULTILINE):
        text = re.sub("^#: ?", "", found[1], flags=re.MULTILINE)
        yield doctest.DocTestParser().get_doctest(text, {"gm": gm}, f"{module.__name__}.{found[2]}", module.__file__, 0)


EXAMPLES = [test for module in MODULES for test in [*doctest.DocTestFinder().find(module), *comments(module)] if test.examples]
#: Shared arrays are in the memory of one machine, and these applications are the command's. test_spark.py says how
#: they are refused.
NOT_ON_SPARK = {
    "gristmill.applications.group_by",
    "gristmill.applications.sort_files",
    "gristmill.dataset.Dataset.uses",
    "gristmill.shared.shared_array",
}
#: Methods for the engine, which programs do not call.
NOT_FOR_PROGRAMS = {f"gristmill.SharedArray.{name}" for name in ("path", "is_all_zeros", "lend", "take_back")}


def public() -> dict[str, Any]:
    """All that programs may name, by name: functions, classes and their methods and properties, and reducers."""
    found = {f"gristmill.{name}": getattr(gm, name) for name in gm.__all__}
    for name, kind in list(found.items()):
        if inspect.isclass(kind):
            found |= {
                f"{name}.{member}": value
                for member, value in vars(kind).items()
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
            }
    return {name: value for name, value in found.items() if name not in NOT_FOR_PROGRAMS}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_prints_what_it_says(example: doctest.DocTest, engine: str) -> None:
    if engine == "spark" and example.name in NOT_ON_SPARK:
        with pytest.raises(doctest.UnexpectedException) as caught:
            doctest.DebugRunner().run(example)
        assert isinstance(caught.value.exc_info[1], gm.PlanError)
        return
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=printed.append, clear_globs=False)
    assert not printed, "".join(printed)


def test_every_public_name_has_an_example() -> None:
    reducers = importlib.import_module("gristmill.plan.reducers")
    documented = {name for name, value in public().items() if not isinstance(value, gm.Reducer) and ">>>" in (value.__doc__ or "")}
    documented |= {test.name.replace(".reducers.", ".") for test in comments(reducers) if test.examples}
    assert set(public()) - documented == set()


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(page.read_text() for page in (Path(__file__).parents[2] / "docs/reference").glob("*.md"))
    names = set(re.findall(r"^::: gristmill\.(\w+)$", pages, re.MULTILINE))
    for members in re.findall(r"^ +members: \[(.*)\]$", pages, re.MULTILINE):
        names |= set(members.split(", "))
    assert set(gm.__all__) - names == set()
