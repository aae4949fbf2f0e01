"""Tests and examples in docstrings run once with each engine that is there.

`GRISTMILL_ENGINES=local,machine` names those that must be there: then the absence of one is a failure. The engine `spark` is slow to
start, so it must be named; ci/python.sh says which tests run on it.
"""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

# NumPy and PyArrow start threads when they are imported; without them a program has one thread, which
# test_oracle.py needs.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}

import gristmill as gm

# Tests send these. What a shell starts in the background ignores them, and so would the programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how each test that failed is run alone."""
    for report in terminalreporter.getreports("failed") + terminalreporter.getreports("error"):
        terminalreporter.write_line(f"Alone: GRISTMILL_ENGINES={','.join(engines())} ci/python.sh {shlex.quote(report.nodeid)}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A cluster of Spark on this machine, with two executors, for all tests; it uses Gristmill's shuffle."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "3",
        # Tests are over before better code is ready.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    session = SparkSession.builder.config(map=gm.spark.config() | settings).getOrCreate()
    yield
    session.stop()


@pytest.fixture(autouse=True, params=engines())
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "spark":
        request.getfixturevalue("cluster")
    with gm.configure(engine=request.param):
        yield request.param
