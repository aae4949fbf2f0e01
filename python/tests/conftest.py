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
    items[:] = [item for item in items if getattr(item, "callspec", None) is None or item.callspec.params.get("engine", there[0]) in there]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True, params=engines())
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    with gm.configure(engine=request.param):
        yield request.param
