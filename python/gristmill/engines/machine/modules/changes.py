"""Changes of modules: what differs in the process of a job, and putting there what the program has."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Container, Mapping
from contextlib import suppress
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from ....base import pickles
from ....base.errors import PlanError
from ...own_modules import OF_IMPORTS, is_own, own_modules
from .digests import ABSENT, Digests, digests
from .used import Names

# In the process of a job.


def differing(given: Digests, own: Mapping[str, Container[str]]) -> Names:
    """Returns the variables whose values are others here than in the program.

    Modules of the user may be missing here: `own` are their variables.
    """
    for module in given:
        if module in own:
            _imported(module)
        else:
            with suppress(ImportError):
                import_module(module)
    given = {module: keys for module, keys in given.items() if module in sys.modules}
    # Classes may have attributes here that are gone in the program.
    here = digests({module: [name for name in keys if "." not in name] for module, keys in given.items()})
    found = {module: [name for name in {**keys, **here[module]} if keys.get(name) != here[module].get(name)] for module, keys in given.items()}
    for module, names in own.items():
        # Those that are gone in the program.
        space = vars(sys.modules[module])
        more = [name for name in space.keys() - OF_IMPORTS if name not in names]
        found[module] += [name for name in more if not issubclass(type(space[name]), ModuleType)]
    return {module: names for module, names in found.items() if names}


def unset(names: Names) -> Names:
    """Returns those of some variables that are `None` or missing in this process."""
    return {module: [name for name in some if _at(module, name) is None or _at(module, name) is ABSENT] for module, some in names.items()}


def _imported(name: str) -> ModuleType:
    """A module; an empty one if it cannot be imported, which the program then fills."""
    try:
        return import_module(name)
    except (Exception, SystemExit):
        parent, _, last = name.rpartition(".")
        module = sys.modules.setdefault(name, ModuleType(name))
        module.__package__ = parent
        if parent in sys.modules:
            setattr(sys.modules[parent], last, module)
        return module


def _at(module: str, name: str) -> Any:
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = vars(found).get(part, ABSENT)
        if found is ABSENT:
            break
    return found


def apply(content: bytes) -> None:
    """Puts in place what :func:`changes` made."""
    if not content:
        return
    modules, gone = pickle.loads(content)
    for module in dict.fromkeys([*gone, *modules]):
        _imported(module)
    for module, packed in modules.items():
        for name, value in packed.items():
            holder, last = _holder(module, name)
            setattr(holder, last, value)
    for module, names in gone.items():
        for name in names:
            holder, last = _holder(module, name)
            if last in vars(holder):
                delattr(holder, last)


def _holder(module: str, name: str) -> tuple[Any, str]:
    holder: Any = sys.modules[module]
    *path, last = name.split(".")
    for part in path:
        holder = getattr(holder, part)
    return holder, last


# In the program.


def packed_changes(names: Names, unset: Names | None) -> bytes:
    """Values of variables for the process of a job, pickled. `unset` are those that are `None` there, if that is known.

    A variable that cannot be pickled is left out if it is `None` there, because the functions that use it then make it, or if nothing
    is known. Otherwise, raises :class:`gristmill.PlanError`.
    """
    values: dict[str, dict[str, Any]] = {}
    gone: Names = {}
    for module, some in names.items():
        for name in some:
            value = _at(module, name)
            if value is ABSENT:
                gone.setdefault(module, []).append(name)
            else:
                values.setdefault(module, {})[name] = value
    if not values and not gone:
        return b""
    try:
        return _pickled(values, gone)
    except Exception:
        for module, held in values.items():
            for name in list(held):
                try:
                    _pickled({module: {name: held[name]}}, {})
                except Exception as error:
                    if unset is not None and name not in unset.get(module, ()) and (module in own_modules() or callable(held[name])):
                        raise PlanError(
                            f"functions of the job use {module}.{name}, which was changed after {module} was imported, and workers "
                            f"cannot get its value, because it cannot be pickled: {error}. Make it inside the function, or undo the change"
                        ) from error
                    del held[name]
        return _pickled(values, gone)


def _pickled(values: dict[str, dict[str, Any]], gone: Names) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file, values).dump((values, gone))
        return file.getvalue()


class _Pickler(pickles.Pickler):
    """Pickles functions and classes of changed variables with their code, but with the globals of their module."""

    def __init__(self, file: io.BytesIO, values: dict[str, dict[str, Any]]) -> None:
        super().__init__(file)
        self._values = values

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (FunctionType, type)):
            names = self._values.get(value.__module__, {})
            if value.__qualname__ in names or (isinstance(value, FunctionType) and value.__qualname__.rpartition(".")[0] in names):
                if isinstance(value, FunctionType):
                    return self._dynamic_function_reduce(value)
                return cloudpickle.cloudpickle._dynamic_class_reduce(value)
        return super().reducer_override(value)

    def is_by_value(self, value: Any) -> bool:
        return value.__qualname__ in self._values.get(value.__module__, {}) or super().is_by_value(value)

    def _dynamic_function_reduce(self, function: FunctionType) -> Any:
        made, (code, _, *others), (state, slots), *rest = super()._dynamic_function_reduce(function)
        module = sys.modules.get(function.__globals__.get("__name__", ""))
        if module is None or vars(module) is not function.__globals__ or not is_own(module.__name__, module):
            return super()._dynamic_function_reduce(function)
        return made, (code, _Namespace(module.__name__), *others), (state, {**slots, "__globals__": {}}), *rest


class _Namespace:
    """Stands in pickles for the global variables of a module."""

    def __init__(self, module: str) -> None:
        self.module = module

    def __reduce__(self) -> Any:
        return _namespace, (self.module,)


def _namespace(module: str) -> dict[str, Any]:
    return vars(_imported(module))
