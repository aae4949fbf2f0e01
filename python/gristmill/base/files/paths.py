"""The walk from the paths that a program names to the files that are read.

The rules are those of the command (crates/engine/src/input/walk.rs and crates/cli/src/options/patterns.rs), and of `grep -r`. A named file
is read whatever it is, as often as it is named, and a named symbolic link is followed. Below a folder only files and folders are read, in
the order of their names. Hidden names are left out there, and so are symbolic links and whatever could block a reader: FIFOs, sockets,
devices.
A file that is found by a pattern or below a folder is read once, however many paths lead to it: hard links are one file.

A :class:`gristmill.InputWarning` counts what is left out, and names the first ones.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Union

from ..errors import PACKAGE, InputError, InputWarning
from ..printable import printable

#: A path as `open` takes it.
AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
#: A file, a folder (all files in it and below, but hidden ones), a pattern such as `logs/*.gz`, or several of these.
Paths = AnyPath | Iterable[AnyPath]

#: Why a path is left out: in the singular and the plural.
_HIDDEN = ("hidden name was left out", "hidden names were left out")
_LINK = ("symbolic link was not followed", "symbolic links were not followed")
_SPECIAL = ("FIFO, socket or device was left out", "FIFOs, sockets or devices were left out")
_AGAIN = (
    "path was left out because its file had been found before",
    "paths were left out because their files had been found before",
)
#: The paths that a warning names for each reason.
_NAMED_MAX = 3

_Identity = tuple[int, int]


def text_of(path: AnyPath) -> str:
    """Returns a path as text; `~` at its start is a home folder. Raises `TypeError` for what is no path.

    >>> import pathlib
    >>> text_of(b"logs/a"), text_of(pathlib.Path("logs/a"))
    ('logs/a', 'logs/a')
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"a path is text, bytes or an os.PathLike such as pathlib.Path, and this is {path!r}")
    return os.path.expanduser(os.fsdecode(path))


def found(paths: Paths) -> list[str]:
    """Returns the files that paths stand for, in order, and warns of what is left out."""
    named = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    walk = _Walk()
    for path in named:
        walk.add(text_of(path))
    if walk.left_out:
        warnings.warn(walk.told(), InputWarning, _user_level())
    if not walk.files:
        left = f"there is nothing left to read: {walk.told()}"
        raise InputError(left if walk.left_out else "no input was named: give files, folders or patterns")
    return walk.files


def is_regular(path: str) -> bool:
    """Whether a path leads to a file that can be read twice: no FIFO, socket or device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        # Its reader says what is wrong.
        return True


class _Walk:
    """The files found so far, and what was left out."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.left_out: dict[tuple[str, str], list[str]] = {}
        #: The files that were named, and the files and folders that were found.
        self._named: set[_Identity] = set()
        self._found: set[_Identity] = set()

    def add(self, path: str) -> None:
        """Adds what a path stands for that the program names."""
        if "\0" in path:
            raise InputError(f"there is no file {printable(path)}")
        if _is_pattern(path) and not os.path.lexists(path):
            matches = list(_matches(path))
            if not matches:
                raise InputError(f"there is no file {printable(path)}")
            for match in matches:
                self._found_file(match)
            return
        path = _of_this_process(path)
        facts = _facts(path)
        if stat.S_ISDIR(facts.st_mode):
            before = len(self.files)
            self._folder(path, facts)
            if before == len(self.files) and _AGAIN not in self.left_out:
                but = f": {self.told()}" if self.left_out else ""
                raise InputError(f"there is no file in the folder {printable(path)}{but}")
            return
        if stat.S_ISBLK(facts.st_mode) or (stat.S_ISCHR(facts.st_mode) and not os.path.samefile(path, os.devnull)):
            why = "it is a device, and may never end. Copy as much of it as you want to a file"
            raise InputError(f"cannot read {printable(path)}: {why}")
        self._file(path, facts, is_named=True)

    def _file(self, path: str, facts: os.stat_result, *, is_named: bool) -> None:
        identity = (facts.st_dev, facts.st_ino)
        if not is_named and (identity in self._found or identity in self._named):
            return self._leave_out(_AGAIN, path)
        (self._named if is_named else self._found).add(identity)
        # The engine would take a lone hyphen for standard input.
        self.files.append("./-" if path == "-" else path)

    def _found_file(self, path: str) -> None:
        facts = _facts(path)
        if stat.S_ISREG(facts.st_mode):
            self._file(path, facts, is_named=False)
        else:
            self._leave_out(_SPECIAL, path)

    def _folder(self, path: str, facts: os.stat_result) -> None:
        """Adds the files below a folder."""
        inside = [self._entries_once(path, facts)]
        while inside:
            entry = next(inside[-1], None)
            if entry is None:
                inside.pop()
            elif entry.name.startswith("."):
                self._leave_out(_HIDDEN, entry.path)
            elif entry.is_symlink():
                self._leave_out(_LINK, entry.path)
            elif entry.is_dir(follow_symlinks=False):
                inside.append(self._entries_once(entry.path, _facts(entry.path)))
            else:
                self._found_file(entry.path)

    def _entries_once(self, folder: str, facts: os.stat_result) -> Iterator[os.DirEntry[str]]:
        """The entries of a folder; none if it was found before."""
        identity = (facts.st_dev, facts.st_ino)
        if identity in self._found:
            self._leave_out(_AGAIN, folder)
            return iter(())
        self._found.add(identity)
        return iter(_entries(folder))

    def _leave_out(self, why: tuple[str, str], path: str) -> None:
        self.left_out.setdefault(why, []).append(path)

    def told(self) -> str:
        """Says in a sentence which paths were left out."""
        return "; ".join(_told(why, paths) for why, paths in self.left_out.items())


def _of_this_process(path: str) -> str:
    """The name that an open file of this process, such as standard input, has in the processes of the job."""
    path = "/dev/fd/0" if path == "/dev/stdin" else path
    found = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", path)
    return f"/proc/{os.getpid()}/fd/{found[1]}" if found else path


def _told(why: tuple[str, str], paths: list[str]) -> str:
    first = ", ".join(map(printable, paths[:_NAMED_MAX])) + (", ..." if len(paths) > _NAMED_MAX else "")
    return f"1 {why[0]}: {first}" if len(paths) == 1 else f"{len(paths)} {why[1]}: {first}"


def _facts(path: str) -> os.stat_result:
    """The status of what a path leads to."""
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        if os.path.islink(path):
            to = printable(os.readlink(path))
            raise InputError(f"there is no file {printable(path)}: it is a symbolic link to {to}, which does not exist") from error
        raise InputError(f"there is no file {printable(path)}") from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, in the order of their names as bytes."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise _unreadable(folder, error) from error


def _unreadable(path: str, error: OSError) -> InputError:
    return InputError(f"cannot read {printable(path)}: {error.strerror}")


# Patterns.


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _matches(pattern: str) -> Iterator[str]:
    """The paths that match a pattern, without folders, in the order of their names.

    As in a shell, `*` matches any part of a name, `?` one character, `[a-z]` and `[!a-z]` one of a set. A name `**` matches any number
    of folders, but does not go through links. A name that begins with a dot is only matched by a pattern that does.
    """
    names = [name for name in pattern.split("/") if name]
    if names[-1] == "**":
        names.append("*")
    return _expanded("/" if pattern.startswith("/") else "", names, set())


def _expanded(folder: str, names: list[str], seen: set[tuple[int, int, int]]) -> Iterator[str]:
    """The paths below a folder that match these names of a pattern, one level each."""
    if not names:
        if os.path.lexists(folder) and not os.path.isdir(folder):
            yield folder
        return
    try:
        facts = os.stat(folder or ".")
    except OSError:
        return
    # Loops of links, or several `**`, lead to the same search again.
    if (search := (facts.st_dev, facts.st_ino, len(names))) in seen:
        return
    seen.add(search)
    name, *rest = names
    if not _is_pattern(name):
        yield from _expanded(os.path.join(folder, name), rest, seen)
    elif not stat.S_ISDIR(facts.st_mode):
        return
    elif name == "**":
        # No folder, or one more of any name.
        yield from _expanded(folder, rest, seen)
        for entry in _entries_matching(folder, re.compile(r"(?!\.)")):
            if entry.is_dir(follow_symlinks=False):
                yield from _expanded(os.path.join(folder, entry.name), names, seen)
    else:
        shown = re.compile(("" if name.startswith(".") else r"(?!\.)") + fnmatch.translate(name))
        for entry in _entries_matching(folder, shown):
            if not rest or entry.is_dir():
                yield from _expanded(os.path.join(folder, entry.name), rest, seen)


def _entries_matching(folder: str, pattern: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    return (entry for entry in _entries(folder or ".") if pattern.match(entry.name))


def _user_level() -> int:
    """The level of the first line that is not of this package, as `warnings.warn` counts from its caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
