"""MapReduce for one big machine, with every worker in its own process."""

from contextlib import suppress as _suppress
from importlib import import_module as _import_module

from . import spark
from .applications import group_by, sort_files
from .base import errors as _errors
from .base.errors import Cancelled, GristmillError, InputError, InputWarning, JobError, PlanError, RemoteError, ResourceError, WorkerDied
from .base.keys import register_key
from .base.settings import Settings, configure
from .dataset import Dataset, Groups
from .engines.replays import replay
from .loops import iterate
from .plan.reducers import Reducer, count, first, list, max, mean, min, sum, top
from .plan.shared import SharedArray, shared_array
from .records.runs import BadRecord
from .results import Result
from .running import RunningJob
from .sources import from_iterable, range, read_bytes, read_csv, read_files, read_jsonl, read_parquet, read_text, word_count

_errors.install()

# Nearly every program uses it. Imported here, it does not delay the first job.
with _suppress(ImportError):
    _import_module("gristmill.engines.machine.job")

__all__ = [
    "BadRecord",
    "Cancelled",
    "Dataset",
    "GristmillError",
    "Groups",
    "InputError",
    "InputWarning",
    "JobError",
    "PlanError",
    "Reducer",
    "RemoteError",
    "ResourceError",
    "Result",
    "RunningJob",
    "Settings",
    "SharedArray",
    "WorkerDied",
    "configure",
    "count",
    "first",
    "from_iterable",
    "group_by",
    "iterate",
    "list",
    "max",
    "mean",
    "min",
    "range",
    "read_bytes",
    "read_csv",
    "read_files",
    "read_jsonl",
    "read_parquet",
    "read_text",
    "register_key",
    "replay",
    "shared_array",
    "sort_files",
    "spark",
    "sum",
    "top",
    "word_count",
]

#: The version of the package.
__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from .version import version  # takes a third of the time of `import gristmill`, if that does it

        return version()
    raise AttributeError(f"module 'gristmill' has no attribute {name!r}")
