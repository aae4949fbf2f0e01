"""Log records and warnings of workers, which the program gives to its own handlers.

Workers append them to an unnamed file of the job. The program reads it whenever it hears from the job, and once more when the job has
ended, so a worker never waits. The file is on disk (`TMPDIR`), and what was read is freed.

An entry is a line, with an empty line before it: a worker that is killed while it writes spoils no other entry.
"""

from __future__ import annotations

import binascii
import ctypes
import fcntl
import logging
import os
import pickle
import re
import sys
import tempfile
import warnings
from typing import Any

from ...base import pickles

#: Bytes that are read at once.
_READ_BYTES = 1 << 20
#: Flags of fallocate(2): free a part of a file, which keeps its size.
_PUNCH_HOLE, _KEEP_SIZE = 2, 1

#: A filter of warnings for another process: its patterns are texts, and its class is given by module and name.
_Filter = tuple[str, tuple[str, int] | None, tuple[str, str], tuple[str, int] | None, int]


class Entries:
    """The log entries of a job's workers, as the program reads them."""

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(buffering=0)
        except OSError:
            # No folder for it: then it is in memory.
            self._file = open(os.memfd_create("gristmill log", os.MFD_CLOEXEC), "r+b", buffering=0)
        fcntl.fcntl(self._file, fcntl.F_SETFL, os.O_APPEND)
        self._read, self._rest = 0, b""
        self._warned = set[tuple[str, str, str, int]]()

    def fileno(self) -> int:
        """The file to which workers append."""
        return self._file.fileno()

    def close(self) -> None:
        """Gives the program the last entries, and frees the file."""
        try:
            self.emit()
        finally:
            self._file.close()

    def emit(self) -> None:
        """Gives the program's handlers what workers have logged since the last call."""
        while os.fstat(self.fileno()).st_size > self._read:
            some = os.pread(self.fileno(), _READ_BYTES, self._read)
            start, self._read = self._read, self._read + len(some)
            _free(self.fileno(), start, len(some))
            *lines, self._rest = (self._rest + some).split(b"\n")
            for line in filter(None, lines):
                try:
                    entry = pickle.loads(binascii.a2b_base64(line))
                except Exception:
                    # Its worker was killed while it wrote.
                    continue
                if isinstance(entry, dict):
                    self._log(entry)
                else:
                    self._warn(*entry)

    def _log(self, entry: dict[str, Any]) -> None:
        record = logging.makeLogRecord(entry)
        record.levelname = logging.getLevelName(record.levelno)
        logging.getLogger(record.name if record.name != "root" else None).handle(record)

    def _warn(self, message: Warning, kind: type[Warning], file: str, line: int) -> None:
        """Shows a warning, once for each place, and not once for each worker."""
        place = str(message), kind.__qualname__, file, line
        if place not in self._warned:
            self._warned.add(place)
            warnings.showwarning(message, kind, file, line)


def _free(file: int, start: int, size: int) -> None:
    """Frees whole pages of a file that were read. Where a file system cannot, the file stays as large as it is."""
    page = os.sysconf("SC_PAGE_SIZE")
    first, end = start // page * page, (start + size) // page * page
    if end > first:
        _libc.fallocate(file, _PUNCH_HOLE | _KEEP_SIZE, ctypes.c_long(first), ctypes.c_long(end - first))


_libc = ctypes.CDLL(None)


def levels() -> bytes:
    """Levels of the program's loggers, and its filters of warnings, for a process that is no copy of it."""
    manager = logging.root.manager
    found = {
        name: (logger.level, logger.disabled)
        for name, logger in list(manager.loggerDict.items())
        if isinstance(logger, logging.Logger) and (logger.level or logger.disabled)
    }
    return pickle.dumps((logging.root.level, manager.disable, found, is_captured(), [_sent(each) for each in warnings.filters]))


def is_captured() -> bool:
    """Whether warnings are log records."""
    return getattr(logging, "_warnings_showwarning", None) is not None


def _sent(given: Any) -> _Filter:
    action, message, kind, module, line = given
    return action, _pattern(message), (kind.__module__, kind.__qualname__), _pattern(module), line


def _pattern(given: Any) -> tuple[str, int] | None:
    if not given:
        return None
    return (re.escape(given) + r"\Z", 0) if isinstance(given, str) else (given.pattern, given.flags & ~re.UNICODE)


def adopt(content: bytes) -> None:
    """Sets in this process the levels that :func:`levels` returned in the program."""
    root, disabled, loggers, captured, filters = pickle.loads(content)
    logging.root.setLevel(root)
    logging.disable(disabled)
    for name, (level, is_disabled) in loggers.items():
        logger = logging.getLogger(name)
        logger.disabled = is_disabled
        logger.setLevel(level)
    logging.captureWarnings(captured)
    warnings.resetwarnings()
    for action, message, (module, name), where, line in reversed(filters):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and issubclass(kind, Warning):
            compiled = [each and re.compile(*each) for each in (message, where)]
            warnings.filters.insert(0, (action, compiled[0], kind, compiled[1], line))  # type: ignore[attr-defined]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def send_to(file: int) -> None:
    """Sends what this process and its workers log to the program.

    Handlers that a function adds itself are used instead.
    """
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            # They are the program's, which calls its own.
            logger.handlers.clear()
    handle, configure = logging.Logger.callHandlers, logging.basicConfig

    def call(logger: logging.Logger, record: logging.LogRecord) -> None:
        if _has_handlers(logger):
            handle(logger, record)
        else:
            _append(file, _entry(record))

    def show(message: Any, kind: type[Warning], name: str, line: int, *_: Any) -> None:
        try:
            _append(file, pickles.dumps((message, kind, name, line)))
        except Exception:
            _append(file, pickles.dumps((UserWarning(f"{kind.__name__}: {message}"), UserWarning, name, line)))

    # `logging.warning` calls it without arguments, if there are no handlers.
    logging.basicConfig = lambda **given: configure(**given) if given else None
    logging.Logger.callHandlers = call  # type: ignore[method-assign, assignment]
    if not is_captured():
        warnings.showwarning = show  # type: ignore[assignment]


def _has_handlers(logger: logging.Logger) -> bool:
    found: logging.Logger | None = logger
    while found is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in found.handlers):
            return True
        found = found.parent if found.propagate else None
    return False


def _entry(record: logging.LogRecord) -> bytes:
    """A record as bytes. What cannot be pickled is text; so is the traceback."""
    fields = {**vars(record), "exc_info": None}
    if record.exc_info and not record.exc_text:
        fields["exc_text"] = logging.Formatter().formatException(record.exc_info)
    try:
        return pickles.dumps(fields)
    except Exception:
        fields |= {"msg": record.getMessage(), "args": None}
        return pickles.dumps({name: value if _is_plain(value) else str(value) for name, value in fields.items()})


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _append(file: int, content: bytes) -> None:
    entry = b"\n" + binascii.b2a_base64(content, newline=False) + b"\n"
    if os.write(file, entry) < len(entry):
        raise OSError(f"there is no room for what workers log in {tempfile.gettempdir()}")
