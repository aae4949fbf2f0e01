"""Engines: what runs a plan. `machine` uses the worker processes of the native engine, `spark` a cluster, `local` this process.

Each is a module with `run(stage, settings) -> Run`. They give the same results; `local` is the simpler one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import PlanError
from ..plan import Stage
from ..runs import Run
from ..settings import Settings


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """Runs a stage and those before it, on the engine that the settings name."""
    if settings.engine == "local":
        from . import local

        return local.run(stage, settings)
    if settings.engine != "machine":
        try:
            spark = import_module("gristmill.engines.spark")
        except ImportError as error:
            raise PlanError(f"jobs on Spark need what is missing here ({error}): pip install 'gristmill[spark]'") from error
        on_spark: Run[Any] = spark.run(stage, settings)
        return on_spark
    try:
        machine = import_module("gristmill.engines.machine")
    except ImportError as error:
        raise PlanError(
            f'the native part of gristmill is missing ({error}); gm.configure(engine="local") runs jobs in this process'
        ) from error
    found: Run[Any] = machine.run(stage, settings)
    return found
