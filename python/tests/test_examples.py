"""Every example in a docstring prints what it says, and every function that users call has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import gristmill as gm

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.iter_modules(gm.__path__, "gristmill.")
    if not module.name.startswith("gristmill._")
]
EXAMPLES = [test for module in MODULES for test in doctest.DocTestFinder().find(module) if test.examples]
#: `to_polars` needs a library that the tests do without; `group_by_key` has its example at `map_groups`.
WITHOUT = {"gristmill.Dataset.to_polars", "gristmill.Dataset.group_by_key"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_prints_what_it_says(example: doctest.DocTest) -> None:
    printed: list[str] = []
    doctest.DocTestRunner().run(example, out=printed.append, clear_globs=False)
    assert not printed, "".join(printed)


def test_every_function_has_an_example() -> None:
    functions = {
        f"gristmill.{name}": getattr(gm, name)
        for name in gm.__all__
        if inspect.isfunction(getattr(gm, name))
    } | {
        f"gristmill.{kind.__name__}.{name}": function
        for kind in (gm.Dataset, gm.Groups)
        for name, function in vars(kind).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    without = {name for name, function in functions.items() if ">>>" not in (function.__doc__ or "")}
    assert without == WITHOUT
