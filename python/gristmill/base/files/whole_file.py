"""Files that appear under their name whole, or not at all.

A file is written without a name in its folder, synced, and only then given its name. A file without a name vanishes with this process,
however the process ends. If the file system cannot do this, the file has an unpredictable hidden name meanwhile, and what a killed
process leaves of these is removed by the next one. Devices and pipes are written directly: they have no earlier content to protect.

The rules are those of the command (crates/os/src/whole_file.rs and crates/os/src/folder.rs):

- A path is followed name by name, each in a folder that is already open, so a folder that is replaced meanwhile changes nothing.
- A symbolic link stays, and what it leads to is replaced. In a folder that others may write to, such as `/tmp`, the link or file of another
  user is not used.
- A file that replaces another gets its owner, group and permissions, or the job does not begin.
- Of several writers of one path each writes a file of its own, and the last one to end wins.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

#: Other names of the standard streams. A shell may have more to write where they lead, so that is not replaced.
_STANDARD = {"/dev/stdout": 1, "/dev/fd/1": 1, "/proc/self/fd/1": 1, "/dev/stderr": 2, "/dev/fd/2": 2, "/proc/self/fd/2": 2}
_FOLDER = os.O_PATH | os.O_DIRECTORY
#: The most links in one path, as in the kernel.
_LINKS_MAX = 40
_BUFFER_BYTES = 256 << 10
#: Errors of writing, which do not say of which file.
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file for writing, which gets the name `path` if the block succeeds, and is gone if it does not.

    It is made before the block begins: no job runs for hours only to find that its result cannot be written. Raises `OSError` with the
    path.
    """
    with ExitStack() as opened:
        try:
            begun = _begin(path, opened)
        except OSError as error:
            raise _of(path, error) from None
        # Closing it, as what writes to it may do, only writes what is in its buffer.
        file = open(begun.file, "wb", _BUFFER_BYTES, closefd=False)
        try:
            yield file
            file.close()
            begun.publish()
        except OSError as error:
            if error.filename is None and error.errno in _OF_WRITING:
                raise _of(path, error) from error
            raise
        finally:
            with suppress(OSError):
                file.close()


def _of(path: str, error: OSError) -> OSError:
    """The error with the path that the program gave."""
    return OSError(error.errno, error.strerror, path)


@dataclass
class _Entry:
    """A name in an open folder, with its status when it was found."""

    folder: int
    name: str
    facts: os.stat_result | None
    #: It is a link of `/proc` to something without a path, such as `/proc/self/fd/63` to a pipe.
    is_open_file: bool = False


@dataclass
class _Begun:
    """A file that is being written; without a target it is a device or a pipe."""

    file: int
    target: _Entry | None = None
    #: The temporary name, if it must have one.
    hidden: str | None = None

    def publish(self) -> None:
        """Syncs the file and gives it its name."""
        if self.target is None:
            return
        os.fsync(self.file)
        folder, name = self.target.folder, self.target.name
        now = _facts(folder, name)
        if now is not None and now.st_uid != os.fstat(self.file).st_uid:
            _refuse(f"it belongs to user {now.st_uid}, and was put there meanwhile")
        if self.hidden is None:
            try:
                self._link(name)
            except FileExistsError:
                # A link cannot replace a file; a rename can.
                hidden = _hidden_name(name)
                self._link(hidden)
                self.hidden = hidden
        if self.hidden is not None:
            os.rename(self.hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
            self.hidden = None
        _sync(folder)

    def _link(self, name: str) -> None:
        assert self.target is not None
        os.link(f"/proc/self/fd/{self.file}", name, dst_dir_fd=self.target.folder, follow_symlinks=True)

    def remove_hidden(self) -> None:
        if self.hidden is not None and self.target is not None:
            with suppress(OSError):
                os.unlink(self.hidden, dir_fd=self.target.folder)


# Step 1: what is there.


def _begin(path: str, opened: ExitStack) -> _Begun:
    """Begins a file. What is opened for that is closed, and removed, with `opened`."""

    def opening(file: int) -> int:
        opened.callback(os.close, file)
        return file

    if (number := _STANDARD.get(path)) is not None:
        stream = sys.stdout if number == 1 else sys.stderr
        if stream is not None:
            stream.flush()
        return _Begun(opening(os.dup(number)))
    entry = _find(path)
    opening(entry.folder)
    facts = entry.facts
    if path.endswith("/") or (facts is not None and stat.S_ISDIR(facts.st_mode)):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if facts is not None and not stat.S_ISREG(facts.st_mode):
        return _Begun(opening(_open_special(entry, facts)))
    begun = _make(entry, 0o666 if facts is None else 0o600)
    opening(begun.file)
    opened.callback(begun.remove_hidden)
    if facts is not None:
        _hand_down(entry, facts, begun.file)
    return begun


def _find(path: str) -> _Entry:
    """The entry that a path leads to. Its folder is open."""
    if not path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    left = _names(path)[::-1]
    at = os.open("/" if path.startswith("/") else ".", _FOLDER)
    links, expected = 0, None
    try:
        while left:
            name = left.pop()
            facts = _facts(at, name)
            if facts is None:
                if expected is not None:
                    _refuse("the open file has no name any more")
                if left:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                return _Entry(at, name, None)
            if stat.S_ISLNK(facts.st_mode):
                links += 1
                if links > _LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                _refuse_planted(at, name, facts)
                if _is_proc(at):
                    # The kernel knows where it leads; its text need not be a path.
                    facts = os.stat(name, dir_fd=at)
                    if stat.S_ISDIR(facts.st_mode):
                        at = _entered(at, name, _FOLDER)
                        continue
                    if not stat.S_ISREG(facts.st_mode):
                        if left:
                            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                        return _Entry(at, name, facts, is_open_file=True)
                    expected = facts
                to = os.readlink(name, dir_fd=at)
                left += _names(to)[::-1]
                if to.startswith("/"):
                    at = _entered(at, "/", _FOLDER)
            elif left:
                at = _entered(at, name, _FOLDER | os.O_NOFOLLOW)
            else:
                if expected is not None and not os.path.samestat(expected, facts):
                    _refuse("the open file has no name any more")
                if not stat.S_ISDIR(facts.st_mode):
                    _refuse_planted(at, name, facts)
                return _Entry(at, name, facts)
        return _Entry(at, ".", os.fstat(at))
    except BaseException:
        os.close(at)
        raise


def _is_proc(at: int) -> bool:
    with suppress(OSError):
        return os.fstat(at).st_dev == os.stat("/proc").st_dev
    return False


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _entered(at: int, name: str, flags: int) -> int:
    """Opens a folder in another, which is closed."""
    inner = os.open(name, flags, dir_fd=at)
    os.close(at)
    return inner


def _facts(at: int, name: str) -> os.stat_result | None:
    """The status of a name, if it exists; of a link, its own."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _refuse_planted(at: int, name: str, facts: os.stat_result) -> None:
    """Fails if another user may have put this entry there to be used."""
    folder = os.fstat(at)
    is_open_to_all = folder.st_mode & 0o002 or folder.st_mode & 0o1020 == 0o1020
    if not is_open_to_all or facts.st_uid in (os.geteuid(), folder.st_uid):
        return
    is_link = stat.S_ISLNK(facts.st_mode)
    what = "a symbolic link" if is_link else "a FIFO" if stat.S_ISFIFO(facts.st_mode) else "a file"
    then = "is not followed: name what it leads to" if is_link else "is not replaced: name another"
    _refuse(f"{name} is {what} of user {facts.st_uid} in a folder that others may write to, and {then}")


def _refuse(why: str) -> NoReturn:
    raise PermissionError(errno.EPERM, why)


def _open_special(entry: _Entry, facts: os.stat_result) -> int:
    """Opens a device, FIFO or socket for writing."""
    follow = 0 if entry.is_open_file else os.O_NOFOLLOW
    file = os.open(entry.name, os.O_WRONLY | os.O_NOCTTY | follow, dir_fd=entry.folder)
    if not os.path.samestat(os.fstat(file), facts):
        os.close(file)
        _refuse("it was replaced while it was opened")
    return file


# Step 2: the new file.


def _make(target: _Entry, mode: int) -> _Begun:
    """Makes a file without a name, or with a hidden one where that cannot be."""
    try:
        file = os.open(".", os.O_TMPFILE | os.O_WRONLY, mode, dir_fd=target.folder)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
    else:
        if os.path.exists(f"/proc/self/fd/{file}"):
            return _Begun(file, target)
        os.close(file)
    _remove_left_over(target)
    while True:
        hidden = _hidden_name(target.name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(hidden, flags, mode, dir_fd=target.folder)
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            now = _facts(target.folder, hidden)
            if now is not None and os.path.samestat(now, os.fstat(file)):
                return _Begun(file, target, hidden)
        # Another process has taken it for one that was left.
        os.close(file)


def _hidden_name(name: str) -> str:
    """An unpredictable name of at most 255 bytes for an unfinished file: `.counts.csv.partial-8c2f6a1be09d4437`."""
    return f".{os.fsdecode(os.fsencode(name)[:200])}.partial-{secrets.token_hex(8)}"


def _remove_left_over(target: _Entry) -> None:
    """Removes the hidden files of this name that killed processes have left: those that are not locked."""
    start = re.escape(_hidden_name(target.name)[:-16])
    with suppress(OSError):
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=target.folder)
        try:
            left = [name for name in os.listdir(folder) if re.fullmatch(start + "[0-9a-f]{16}", name)]
        finally:
            os.close(folder)
        for name in left:
            with suppress(OSError):
                _remove_if_unlocked(target.folder, name)


def _remove_if_unlocked(folder: int, name: str) -> None:
    file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        facts = os.fstat(file)
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=folder)
    finally:
        os.close(file)


def _hand_down(entry: _Entry, old: os.stat_result, new: int) -> None:
    """Gives a new file the owner, group, permissions and access control list of the one that it will replace.

    It never gets the setuid or the setgid bit, and the permissions of the group only if it is the same group.
    """
    made = os.fstat(new)
    others = (old.st_mode & 0o007) << 3
    os.fchmod(new, old.st_mode & 0o777 & (others | 0o707))
    is_of_its_group = made.st_gid == old.st_gid
    if made.st_uid != old.st_uid:
        try:
            os.fchown(new, old.st_uid, old.st_gid)
        except OSError:
            _refuse(f"it belongs to user {old.st_uid}, and what replaces it would not: remove it first, or name another")
        is_of_its_group = True
    elif not is_of_its_group:
        with suppress(OSError):
            os.fchown(new, -1, old.st_gid)
            is_of_its_group = True
    has_its_list = _hand_down_list(entry, new)
    os.fchmod(new, old.st_mode & 0o777 & ((0o070 if is_of_its_group and has_its_list else others) | 0o707))


def _hand_down_list(entry: _Entry, new: int) -> bool:
    """Copies the access control list; false if it cannot be copied."""
    kind = "system.posix_acl_access"
    try:
        found = os.getxattr(f"/proc/self/fd/{entry.folder}/{entry.name}", kind, follow_symlinks=False)
    except OSError:
        with suppress(OSError):
            # It may have one from its folder, which the old one had not.
            os.removexattr(new, kind)
        return True
    try:
        os.setxattr(new, kind, found)
    except OSError:
        return False
    return True


def _sync(folder: int) -> None:
    """Returns when the names of a folder are on the disk.

    Who may not list a folder cannot ask for that, and need not.
    """
    try:
        file = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    except PermissionError:
        return
    try:
        os.fsync(file)
    finally:
        os.close(file)
