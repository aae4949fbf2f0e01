"""The parcel that is shipped to another process: the plan of a job, and apart from it its functions and objects.

The plan needs no module but those of this package. Functions and objects need the user's, and these may start threads when
they are imported, after which a process can fork no workers. Then the plan has a :class:`Deferred` in place of each, and the workers
load what it stands for, each for itself.
"""

from __future__ import annotations

import functools
import io
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import cloudpickle

from ...base import pickles
from ...base.keys.canonical import adopt, registered
from ...base.settings import Settings
from ...plan.orders import Order
from ...plan.reducers import Reducer
from ...plan.stages import Stage, functions, sources
from ...records.batches import Pluck
from . import surroundings
from .modules.changes import apply
from .modules.used import Roots

#: Builtin functions that the engine may know.
_KNOWN = (types.BuiltinFunctionType, types.MethodDescriptorType, Order, Pluck, Reducer)


class Recorder(pickles.Pickler):
    """Pickles functions and objects, and records the modules and names that they refer to."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.roots = Roots()

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (FunctionType, type, ModuleType)):
            self.roots.add(value)
        return super().reducer_override(value)


class _Shell(pickle.Pickler):
    """Pickles a plan without the objects that are sent apart."""

    def __init__(self, file: io.BytesIO, apart: dict[int, int]) -> None:
        super().__init__(file, 5)
        self._apart = apart

    def persistent_id(self, value: Any) -> Any:
        number = self._apart.get(id(value))
        if number is None:
            return None
        name = getattr(value, "__qualname__", None) or type(value).__qualname__
        return number, str(name), len(value) if isinstance(value, Sequence) else 0


class _Opened(pickle.Unpickler):
    def __init__(self, shell: bytes, found: Callable[[int, str, int], Any]) -> None:
        super().__init__(io.BytesIO(shell))
        self._found = found

    def persistent_load(self, given: Any) -> Any:
        return self._found(*given)


class Parcel:
    """A plan as bytes, and apart from it functions and objects."""

    def __init__(self, stage: Stage, settings: Settings) -> None:
        objects = list({id(value): value for value in _apart(stage)}.values())
        apart = {id(value): number for number, value in enumerate(objects)}
        with io.BytesIO() as file:
            _Shell(file, apart).dump((stage, settings))
            self.shell = file.getvalue()
        with io.BytesIO() as file:
            recorder = Recorder(file)
            recorder.dump((objects, registered()))
            self.objects, self.roots = file.getvalue(), recorder.roots


def _apart(stage: Stage) -> Iterator[Any]:
    """The objects of a plan that are the user's."""
    for _, function in functions(stage):
        module = str(getattr(function, "__module__", None) or "")
        held = getattr(sys.modules.get(module), getattr(function, "__name__", ""), None)
        is_ours = held is function and module.startswith("gristmill.")
        if not (is_ours or module == "builtins" or isinstance(function, _KNOWN)):
            yield function
    for source in sources(stage):
        if source.kind == "iterable":
            yield source.data


def opened(shell: bytes, objects: bytes) -> tuple[Stage, Settings]:
    """The plan with its functions and objects."""
    found = _loaded(objects)
    plan: tuple[Stage, Settings] = _Opened(shell, lambda number, name, size: found[number]).load()
    return plan


def _loaded(objects: bytes) -> list[Any]:
    """The functions and objects of a plan. This process takes keys for equal as the program does."""
    found: list[Any]
    found, found_keys = pickle.loads(objects)
    adopt(found_keys)
    surroundings.adopt_libraries()
    name_classes()
    return found


def opened_later(shell: bytes, objects: bytes, changes: bytes) -> tuple[Stage, Settings]:
    """The plan, whose functions and objects are loaded when they are first used."""

    @functools.cache
    def load() -> list[Any]:
        apply(changes)
        return _loaded(objects)

    Deferred.load = load
    plan: tuple[Stage, Settings] = _Opened(shell, Deferred).load()
    return plan


class Deferred:
    """A function, or a sequence of records, that is loaded when it is first used."""

    load: ClassVar[Callable[[], list[Any]]] = staticmethod(list)

    def __init__(self, number: int, name: str, size: int) -> None:
        self._number, self.__qualname__, self._size = number, name, size

    def itself(self) -> Any:
        """The function or sequence that this stands for."""
        return type(self).load()[self._number]

    def __call__(self, *arguments: Any) -> Any:
        return self.itself()(*arguments)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:
        return self.itself()[index]

    def __reduce__(self) -> Any:
        return _same, (self.itself(),)


def _same(value: Any) -> Any:
    return value


def name_classes() -> None:
    """Puts classes of the program's `__main__` into that of this process, so that pickles can name them."""
    main: Any = sys.modules["__main__"]
    for kind in list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS):
        if kind.__module__ == "__main__" and "." not in kind.__qualname__:
            setattr(main, kind.__name__, kind)
