"""MapReduce for one big machine, with every worker in its own process."""

# The rooms, from the ground up: a module imports only from those before it (ci/rooms.py).
#
#   base: known_as printable errors cancel options settings libraries pickles stats progress blocks
#   base.files: compression paths whole_file
#   base.keys: forms times rules canonical order values
#   records: timeline runs tables writers batches
#   plan: orders reducers shared nodes stages describe
#   engines: own_modules randoms formats csv_pieces replays functions local
#   engines.machine.modules: used digests changes
#   engines.machine: words channel pipes streams logs surroundings parcel unpicklable imports
#   engines.machine: workers attempts requests coordinator process serve starter job
#   engines.spark: rows report feeds sinks partials executors faults parts held job
#   engines: choice
#   gristmill: version spark exports results running dataset sources loops applications __main__

from contextlib import suppress as _suppress
from importlib import import_module as _import_module

from . import spark
from .applications import group_by, sort_files
from .base import errors as _errors
from .base.errors import Cancelled, GristmillError, InputError, InputWarning, JobError, PlanError, RemoteError, ResourceError, WorkerDied
from .base.keys.canonical import register_key
from .base.settings import Settings, configure
from .dataset import Dataset, Groups
from .engines.replays import replay
from .loops import iterate
from .plan.reducers import Reducer, count, first, list, max, mean, min, sum, top
from .plan.shared import SharedArray, shared_array
from .records.runs import BadRecord
from .results import Result
from .running import RunningJob
from .sources import from_iterable, range, read_bytes, read_csv, read_files, read_jsonl, read_parquet, read_text

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
]

#: The version of the package.
__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from .version import version  # takes a third of the time of `import gristmill`, if that does it

        return version()
    raise AttributeError(f"module 'gristmill' has no attribute {name!r}")
