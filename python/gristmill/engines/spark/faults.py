"""Faults of Spark, and of plans that cannot travel to its executors, as errors of a job."""

from __future__ import annotations

import re
from typing import Any

from ...base import pickles
from ...base.errors import GristmillError, PlanError, WorkerDied
from ...plan.describe import name
from .executors import Work


def error_of(error: BaseException, context: Any) -> BaseException:
    """The error of a job for one of Spark."""
    text = str(error)
    if not isinstance(error, Exception):
        return error
    if missing := re.search(r"ModuleNotFoundError: (No module named '[\w.]+')", text):
        return PlanError(
            f"{missing[1]} on the executors of Spark, where {context.pythonExec} runs: install it there, or send a module of your own"
            " with SparkContext.addPyFile; PYSPARK_PYTHON, set before the session starts, names another Python"
        )
    traceback = text.partition("Traceback (most recent call last):")[2].strip().partition("\n\n")[0]
    # The last line of a traceback of Python says what is wrong, the first line of one of Java.
    first = (traceback.splitlines()[-1:] or text.strip().splitlines()[:1] or [type(error).__name__])[0]
    if "Python worker exited unexpectedly" in text or "Python worker failed to connect back" in text:
        return WorkerDied(f"a Python worker of Spark died, each time that Spark tried its task: {first}")
    if "ExecutorLostFailure" in text:
        return WorkerDied(f"executors of Spark died, each time that Spark tried a task: {first}")
    return GristmillError(f"Spark ended the job: {first}")


def stuck(work: Work) -> str:
    """Names the part of a task that cannot be pickled."""
    functions: list[tuple[str, Any]] = [(f"{narrow.kind} {name(narrow.function)}", narrow.function) for narrow in work.side.narrows]
    if work.side.end is not None:
        functions.append((work.side.end.kind, (work.side.end.function, work.side.end.reducer)))
    for said, function in functions:
        try:
            pickles.dumps(function)
        except Exception:
            return said
    return "a function"
