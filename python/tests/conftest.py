"""Tests and examples in docstrings run once with each engine that is there.

`GRISTMILL_ENGINES=local,machine` names those that must be there: then the absence of one is a failure.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import gristmill as gm


def engines() -> list[str]:
    named = os.environ.get("GRISTMILL_ENGINES")
    if named:
        return named.split(",")
    native = find_spec("gristmill._native") and find_spec("gristmill.engines.machine")
    return ["local", "machine"] if native else ["local"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out tests of engines that are not there."""
    there = engines()

    def engine_of(item: pytest.Item) -> str:
        found = getattr(item, "callspec", None)
        return str(found.params.get("engine", there[0])) if found else there[0]

    items[:] = [item for item in items if engine_of(item) in there]


@pytest.fixture(autouse=True, params=engines())
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with gm.configure(engine=request.param):
        yield request.param
