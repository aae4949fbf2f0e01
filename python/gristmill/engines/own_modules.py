"""The program's own modules, told from those of libraries, and the names in their code."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from types import CodeType, ModuleType
from typing import Any

_STDLIB = {sysconfig.get_path("stdlib") + os.sep, sysconfig.get_path("platstdlib") + os.sep, os.path.dirname(os.__file__) + os.sep}
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
#: The name of this package.
PACKAGE_NAME = __name__.partition(".")[0]
#: Variables that the import system makes.
OF_IMPORTS = frozenset(
    "__name__ __file__ __path__ __spec__ __loader__ __package__ __cached__ __builtins__ __doc__ __warningregistry__"
    " __annotations__ __dict__ __weakref__ __module__ __annotate__ __firstlineno__ __static_attributes__ __annotate_func__"
    " __annotations_cache__ __conditional_annotations__ __classcell__ __abstractmethods__ _abc_impl".split()
)


def is_own(name: str, module: object) -> bool:
    """Whether a module is the user's: not of the standard library, not installed, and not of this package."""
    if not isinstance(module, ModuleType) or name in ("__main__", "__mp_main__") or name.partition(".")[0] == PACKAGE_NAME:
        return False
    known = vars(module)
    file = known.get("__file__")
    if file is None:
        return known.get("__spec__") is None and known.get("__loader__") is None
    if not isinstance(file, str) or not file.endswith((".py", ".pyc")):
        return False
    return not any(part in file for part in _INSTALLED) and not file.startswith(tuple(_STDLIB))


def own_modules() -> dict[str, ModuleType]:
    """The user's modules that are imported here."""
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (name not in _known or _known[name][0] is not module):
            _known[name] = module, is_own(name, module)
    return {name: module for name, (module, is_ours) in list(_known.items()) if is_ours and sys.modules.get(name) is module}


#: Modules, and whether they are the user's.
_known: dict[str, tuple[ModuleType, bool]] = {}


def names_in(code: CodeType) -> set[str]:
    """Names that code uses, and texts in it that may be names."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_in(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return found


def cell_content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
