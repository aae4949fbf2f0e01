"""The choice of the engine for a job: the one that the settings name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..base.errors import PlanError
from ..base.keys.forms import NoKey
from ..base.keys.order import group_key
from ..base.settings import Settings
from ..plan.describe import step_of
from ..plan.nodes import Join, Shuffle, Source
from ..plan.orders import is_pair
from ..plan.stages import Stage, stages
from ..records.runs import Run

#: The module of each engine, and what is told if it cannot be imported.
_ENGINES = {
    "local": ("gristmill.engines.local", "{}"),
    "machine": (
        "gristmill.engines.machine.job",
        'the native part of gristmill cannot be loaded ({}); gm.configure(engine="local") runs jobs in this process',
    ),
    "spark": ("gristmill.engines.spark.job", "jobs on Spark need what is missing here ({}): pip install 'gristmill[spark]'"),
}


def run(stage: Stage, settings: Settings) -> Run[Any]:
    """Runs a stage and those before it, on the engine that the settings name."""
    for part in stages(stage):
        _refuse_keys(part)
    name, missing = _ENGINES[settings.engine if isinstance(settings.engine, str) else "spark"]
    try:
        engine = import_module(name)
    except ImportError as error:
        raise PlanError(missing.format(error)) from error
    found: Run[Any] = engine.run(stage, settings)
    return found


def _refuse_keys(stage: Stage) -> None:
    """Refuses keys of a type that nobody knows before the job runs, where the first record of the program tells it."""
    end = stage.end
    if not isinstance(end, Join) and not (isinstance(end, Shuffle) and end.kind in ("reduce", "groups", "distinct", "count_by_value")):
        return
    for source, narrows in zip(stage.inputs, stage.narrows):
        if narrows or not isinstance(source, Source) or not isinstance(source.data, list) or source.kind != "iterable":
            continue
        for record in source.data[:1]:
            of_pairs = isinstance(end, Join) or end.kind in ("reduce", "groups")
            if of_pairs and not is_pair(record):
                continue
            try:
                group_key(record[0] if of_pairs else record)
            except NoKey as error:
                raise PlanError(f"{step_of(end)}: {error}") from error
            except Exception:
                # A worker says what is wrong, and with which record.
                continue
