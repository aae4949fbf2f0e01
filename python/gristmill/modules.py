"""The program's own modules, as a job sees them: as they are in the program when the job is called.

Workers of a program with threads are not copies of the program: they import its modules from their files. Since then the program may
have reloaded a module, set one of its variables, or patched a function for a test. So each job compares what its functions use:

1. The program lists the functions and variables that the job's functions may use (:func:`used`), by the names in their code.
2. The process of the job imports the modules and compares digests (:func:`differing`).
3. The program sends what differs (:func:`changes`), and the process of the job puts it in place (:func:`apply`).

Modules of the user are compared whole. Of the standard library and of installed packages only the variables are compared whose
names the user's code contains, and only whether they are still the library's own.
"""

from __future__ import annotations

import enum
import hashlib
import io
import marshal
import os
import pickle
import sys
import sysconfig
import types
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from .base import pickles
from .base.errors import PlanError

#: For each module, its variables and those of its classes (`"Class.name"`), each with a digest of its value.
Digests = dict[str, dict[str, bytes]]
#: For each module, names of variables: of those whose values differ.
Names = dict[str, list[str]]

_STDLIB = {sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep, os.path.dirname(os.__file__) + os.sep}
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_PACKAGE = __name__.partition(".")[0]
#: Variables that the import system makes.
_OF_IMPORTS = frozenset(
    "__name__ __file__ __path__ __spec__ __loader__ __package__ __cached__ __builtins__ __doc__ __warningregistry__"
    " __annotations__ __dict__ __weakref__ __module__ __annotate__ __firstlineno__ __static_attributes__ __annotate_func__"
    " __annotations_cache__ __conditional_annotations__ __classcell__ __abstractmethods__ _abc_impl".split()
)
#: Names in code that may reach any variable.
_REACH_ALL = frozenset(("globals", "vars", "eval", "exec", "__dict__"))
#: Modules that are another in every process.
_NOT_COMPARED = frozenset((_PACKAGE, "__main__", "__mp_main__", "sys", "builtins"))
#: Plain values, which `marshal` writes in one way.
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type(...), list, tuple, dict))
_ITEMS_MAX = 1000
_ABSENT = object()


def is_own(name: str, module: object) -> bool:
    """Whether a module is the user's: not of the standard library, not installed, and not of this package."""
    if not isinstance(module, ModuleType) or name in ("__main__", "__mp_main__") or name.partition(".")[0] == _PACKAGE:
        return False
    known = vars(module)
    file = known.get("__file__")
    if file is None:
        return known.get("__spec__") is None and known.get("__loader__") is None
    if not isinstance(file, str) or not file.endswith((".py", ".pyc")):
        return False
    return not any(part in file for part in _INSTALLED) and not file.startswith(tuple(_STDLIB))


def _own() -> dict[str, ModuleType]:
    """The user's modules that are imported here."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (name not in _known or _known[name][0] is not module):
            _known[name] = module, is_own(name, module)
    return {name: module for name, (module, is_ours) in list(_known.items()) if is_ours and sys.modules.get(name) is module}


#: Modules, and whether they are the user's.
_known: dict[str, tuple[ModuleType, bool]] = {}


class Roots:
    """Modules, and names in code, that a pickle refers to: see :class:`gristmill.deferred.Recorder`."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.names: set[str] = set()

    def add(self, value: FunctionType | type | ModuleType) -> None:
        """Adds a function, class or module that a pickle has."""
        if isinstance(value, ModuleType):
            self.modules[value.__name__] = None
            return
        module = value.__module__
        if isinstance(module, str):
            self.modules[module] = None
        self.names |= _holder_of(value)
        if isinstance(value, FunctionType) and (module == "__main__" or "<" in value.__qualname__ or module in _own()):
            self.names |= names_in(value.__code__)


def used(roots: Roots) -> tuple[Names, dict[str, set[str]]]:
    """For each module, its variables that functions of a job may use; and for the user's modules, all variables."""
    search = _Search(roots)
    found = search.found()
    return found, {name: set(space) for name, space in search.modules.items() if name in search.own}


class _Search:
    """Follows names in code from function to function."""

    def __init__(self, roots: Roots) -> None:
        self.names, self.code = set(roots.names), set[CodeType]()
        self.modules: dict[str, dict[str, Any]] = {}
        self.own = _own()
        self.seen = set[int]()
        self.reached: dict[str, dict[str, None]] = {}
        for name in roots.modules:
            self._module(name)

    def found(self) -> Names:
        before = (-1, -1, -1)
        while before != (now := (len(self.names), len(self.modules), len(self.seen))):
            before = now
            for name in self.names & self.own.keys():
                self._module(name)
            for module, space in list(self.modules.items()):
                if module in self.own:
                    self._own(module, space)
                elif space:
                    self.reached[module] = dict.fromkeys(self.names & space.keys() - _OF_IMPORTS)
        return {name: list(keys) for name, keys in self.reached.items() if keys or name in self.own}

    def _module(self, name: str) -> None:
        if name not in self.modules and name.partition(".")[0] not in _NOT_COMPARED:
            module = sys.modules.get(name)
            self.modules[name] = vars(module) if isinstance(module, ModuleType) else {}

    def _own(self, module: str, space: dict[str, Any]) -> None:
        reached = self.reached.setdefault(module, {})
        names = space.keys() if self.names & _REACH_ALL else self.names & space.keys()
        for name in sorted(names - _OF_IMPORTS - reached.keys()):
            reached[name] = None
            self._value(space[name])
        package = module if "__path__" in space else module.rpartition(".")[0]
        if package:
            for name in self.own.keys() - self.modules.keys():
                if name.rpartition(".")[0] == package and name.rpartition(".")[2] in self.names:
                    self._module(name)

    def _value(self, value: Any, depth: int = 0) -> None:
        if type(value) not in (str, int, float, bytes, bool, type(None)) and id(value) not in self.seen:
            self.seen.add(id(value))
            # Proxies may raise anything when they are looked at.
            with suppress(Exception):
                self._object(value, depth)

    def _object(self, value: Any, depth: int) -> None:
        if isinstance(value, ModuleType):
            self._module(value.__name__)
            return
        value = getattr(value, "__wrapped__", value) if not isinstance(value, type) else value
        kind = value if isinstance(value, (type, FunctionType)) else type(value)
        if (module := getattr(kind, "__module__", None)) in self.own:
            self._module(module)
            self.names |= _holder_of(kind)
        if isinstance(value, FunctionType):
            self.names |= names_in(value.__code__)
            for cell in value.__closure__ or ():
                self._value(_content(cell), depth)
        elif isinstance(value, type) and module in self.own:
            for base in value.__mro__[1:]:
                self._value(base)
            for each in list(vars(value).values()):
                for function in _functions(each):
                    self._value(function)
        elif depth < 3 and isinstance(value, (dict, list, tuple, set, frozenset)) and len(value) <= _ITEMS_MAX:
            for each in list(value.values() if isinstance(value, dict) else value):
                self._value(each, depth + 1)


def _holder_of(value: FunctionType | type) -> set[str]:
    """The variable of its module in which a function or class can be found; none for what a function has made."""
    name = value.__qualname__
    return set() if "<locals>" in name else {name.partition(".")[0]}


def names_in(code: CodeType) -> set[str]:
    """Names that code uses, and texts in it that may be names."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return found


def _functions(value: Any) -> Iterator[FunctionType]:
    """The functions of an attribute of a class."""
    for function in (value, *(getattr(value, name, None) for name in ("__func__", "fget", "fset", "fdel", "__wrapped__"))):
        if isinstance(function, FunctionType):
            yield function


# Digests.


def digests(wanted: Mapping[str, Iterable[str]]) -> Digests:
    """Digests of variables of modules, as they are in this process."""
    return {module: dict(_digests(module, names)) for module, names in wanted.items()}


def _digests(module: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    space = vars(sys.modules[module])
    own = is_own(module, sys.modules[module])
    for name in names:
        value = space.get(name, _ABSENT)
        if value is _ABSENT:
            yield name, b""
        elif not own:
            yield name, _digest_of_library(value)
        elif _is_space(value, module, name):
            shape = [type(value), *value.__mro__[1:], vars(value).get("__slots__")]
            yield name, digest(shape)
            for attribute, each in list(vars(value).items()):
                if attribute not in _OF_IMPORTS and not isinstance(each, types.MemberDescriptorType):
                    yield f"{name}.{attribute}", digest(each)
        elif issubclass(type(value), enum.EnumMeta):
            members: dict[str, enum.Enum] = dict(value.__members__)
            yield name, digest([value, [(each, member.value) for each, member in members.items()]])
        else:
            yield name, digest(value)


def _is_space(value: Any, module: str, name: str) -> bool:
    """Whether a class can be compared and changed attribute by attribute."""
    kind = type(value)
    return issubclass(kind, type) and not issubclass(kind, enum.EnumMeta) and (value.__module__, value.__qualname__) == (module, name)


def _digest_of_library(value: Any) -> bytes:
    """Tells a library's own function or class from one that a test put in its place, and a constant from another."""
    if issubclass(type(value), (type, FunctionType, types.BuiltinFunctionType)):
        code = getattr(value, "__code__", None)
        return repr((value.__module__, value.__qualname__, code and code.co_firstlineno)).encode()
    if type(value) in _PLAIN and not isinstance(value, (list, dict, tuple)):
        return repr(value).encode()
    return repr((type(value).__module__, type(value).__qualname__)).encode()


def digest(value: Any) -> bytes:
    """Bytes that are equal, in all processes, for values that are built alike.

    >>> digest([1, {"a"}]) == digest([1, {"a"}]), digest([1]) == digest([1.0])
    (True, False)
    """
    hashed = hashlib.blake2b(digest_size=16)
    try:
        _feed(value, hashed.update, {})
    except Exception:
        return f"{type(value).__module__}.{type(value).__qualname__}".encode()
    return hashed.digest()


def _feed(value: Any, put: Callable[[Any], object], seen: dict[int, tuple[int, Any]]) -> None:
    kind = type(value)
    if kind in _PLAIN or kind is CodeType:
        try:
            put(marshal.dumps(value, 0))
            return
        except ValueError:
            pass
    if id(value) in seen:
        put(b"again %d" % seen[id(value)][0])
        return
    # Kept, so that no other value gets its address.
    seen[id(value)] = len(seen), value
    put(f"({kind.__module__}.{kind.__qualname__} ".encode())
    if kind is FunctionType:
        own = value.__module__ == "__main__" or is_own(value.__module__, sys.modules.get(value.__module__))
        code = value.__code__
        parts: Iterable[Any] = (value.__module__, value.__qualname__, code if own else code.co_firstlineno)
        if own:
            cells = [_content(cell) for cell in value.__closure__ or ()]
            parts = *parts, value.__defaults__, value.__kwdefaults__, cells, value.__dict__
    elif isinstance(value, type):
        parts = value.__module__, value.__qualname__
    elif kind is ModuleType:
        parts = (value.__name__,)
    elif kind in (set, frozenset):
        parts = sorted(map(digest, value))
    elif kind is dict:
        parts = (part for item in value.items() for part in item)
    elif kind in (list, tuple):
        parts = value
    elif kind in (staticmethod, classmethod):
        parts = (value.__func__,)
    elif kind is property:
        parts = value.fget, value.fset, value.fdel
    elif kind is pickle.PickleBuffer:
        put(value.raw())
        parts = ()
    elif (wrapped := getattr(value, "__wrapped__", None)) is not None:
        parts = (wrapped,)
    else:
        parts = _reduced(value)
    for part in parts:
        _feed(part, put, seen)
    put(b")")


def _reduced(value: Any) -> Iterator[Any]:
    """The parts of an object, as they are pickled."""
    try:
        made = value.__reduce_ex__(5)
    except Exception:
        return
    if isinstance(made, str):
        yield made
    else:
        for number, part in enumerate(made):
            yield list(part) if number in (3, 4) and part is not None else part


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


# In the process of a job.


def differing(given: Digests, own: Mapping[str, Container[str]]) -> Names:
    """The variables whose values are others here than in the program. Modules of the user may be missing here: `own` are their variables."""
    for module in given:
        if module in own:
            _imported(module)
        else:
            with suppress(ImportError):
                import_module(module)
    given = {module: keys for module, keys in given.items() if module in sys.modules}
    # Classes may have attributes here that are gone in the program.
    here = digests({module: [name for name in keys if "." not in name] for module, keys in given.items()})
    found = {
        module: [name for name in {**keys, **here[module]} if keys.get(name) != here[module].get(name)]
        for module, keys in given.items()
    }
    for module, names in own.items():
        # Those that are gone in the program.
        space = vars(sys.modules[module])
        more = [name for name in space.keys() - _OF_IMPORTS if name not in names]
        found[module] += [name for name in more if not issubclass(type(space[name]), ModuleType)]
    return {module: names for module, names in found.items() if names}


def unset(names: Names) -> Names:
    """Returns those of some variables that are `None` or missing in this process."""
    return {module: [name for name in some if _at(module, name) is None or _at(module, name) is _ABSENT] for module, some in names.items()}


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
        found = vars(found).get(part, _ABSENT)
        if found is _ABSENT:
            break
    return found


def apply(content: bytes) -> None:
    """Puts in place what :func:`changes` made."""
    if not content:
        return
    modules, gone = pickle.loads(content)
    for module, values in {**dict.fromkeys(gone, {}), **modules}.items():
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


def changes(names: Names, unset: Names | None) -> bytes:
    """Values of variables for the process of a job, pickled. `unset` are those that are `None` there, if that is known.

    A variable that cannot be pickled is left out if it is `None` there, because the functions that use it then make it, or if nothing
    is known. Otherwise, raises :class:`gristmill.PlanError`.
    """
    values: dict[str, dict[str, Any]] = {}
    gone: Names = {}
    for module, some in names.items():
        for name in some:
            value = _at(module, name)
            if value is _ABSENT:
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
                    if unset is not None and name not in unset.get(module, ()) and (module in _own() or callable(held[name])):
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


class _Pickler(pickles._Pickler):
    """Pickles functions and classes of changed variables with their code; their global variables stay those of their module."""

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
