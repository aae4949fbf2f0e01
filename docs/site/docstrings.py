"""Tells mkdocstrings about the docstrings of this package, as an extension of Griffe."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

#: References as Python's own tools write them: `` :meth:`Dataset.uses` ``.
_ROLE = re.compile(r":(?:func|meth|class|attr):`(?:gristmill\.)?([\w.]+)`")


#: An example, up to the next empty line.
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.M)
#: The first line of every example.
_IMPORT = re.compile(r"^>>> import gristmill as gm\n", re.M)


class Docstrings(griffe.Extension):
    """Makes references links, examples code, and comments that begin with `#:` docstrings of attributes."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        for obj in _all_of(pkg):
            if obj.is_attribute and obj.docstring is None:
                obj.docstring = _comment_above(obj)
            if obj.docstring:
                text = _ROLE.sub(lambda role, here=obj: f"[`{role[1]}`][{_path(role[1], here)}]", obj.docstring.value)
                obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", _IMPORT.sub("", text))


def _all_of(obj: griffe.Object) -> Iterator[griffe.Object]:
    yield obj
    for member in obj.members.values():
        if isinstance(member, griffe.Object):
            yield from _all_of(member)


def _path(name: str, obj: griffe.Object) -> str:
    """Returns the path of a name that the docstring of an object uses: of the same class, or of the package."""
    for around in (obj, obj.parent):
        if around is not None and around.is_class and name in around.members:
            return f"gristmill.{around.name}.{name}"
    return f"gristmill.{name}"


def _comment_above(attribute: griffe.Object) -> griffe.Docstring | None:
    if attribute.lineno is None or not isinstance(attribute.filepath, Path):
        return None
    lines: list[str] = []
    for line in reversed(attribute.filepath.read_text().splitlines()[: attribute.lineno - 1]):
        if not line.lstrip().startswith("#:"):
            break
        lines.insert(0, line.lstrip()[2:].strip())
    return griffe.Docstring("\n".join(lines), parent=attribute) if lines else None
