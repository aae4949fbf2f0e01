"""The records of a stage without a shuffle, as its workers send them, in the order of the input.

::

    workers --- messages ---> Stream.receive --> pieces of each task --> Stream.ready: blocks of records
                socket                           in memory, or a file    of one task after the other

A message is a piece of what a task makes; crates/python/src/stream.rs draws its bytes. The first task that has not ended is the one
whose *turn* it is. Its records go on as they come; pieces of later tasks wait. A task whose worker died is mapped again, in another
*attempt*: records that were not passed on are dropped, and those that were must come again.
"""

from __future__ import annotations

import os
import socket
import struct
import tempfile
import time
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...base.errors import GristmillError, ResourceError

_HEADER = struct.Struct("<IIIIB")
_ENDS_RECORD, _ENDS_TASK = 1, 2
_MESSAGE_BYTES = 128 << 10
#: Pieces that wait in memory; more go to a file.
_MEMORY_BYTES = 32 << 20
#: If the task whose turn it is is silent for so long, the workers that are ahead go on: one of them may have to do it.
_PATIENCE_SECONDS = 1.0
#: The turn that lets all workers go on.
_EVERYONE = (1 << 64) - 1

_OTHER_RECORDS = (
    "a worker died, and a function did not make those records again that the program already has. A function that depends on more than its "
    "record, such as the time, can be used with collect(), which takes records when their task has ended"
)

#: A piece in memory, or its place and length in the file.
_Piece = bytes | tuple[int, int]


@dataclass
class Wanted:
    """The settings of a stream for workers; see `Wanted` in crates/python/src/stream.rs."""

    socket: int
    turn: int
    live: bool
    count: bool
    whole_calls: bool


@dataclass
class _Task:
    """The pieces of a task."""

    attempt: tuple[int, int] | None = None
    #: Pieces that were not passed on, each with whether its last byte ends a record.
    pieces: deque[tuple[_Piece, bool]] = field(default_factory=deque)
    records: int = 0
    has_ended: bool = False
    #: The bytes that were passed on, and their checksum.
    passed_bytes: int = 0
    passed_sum: int = 0
    #: The bytes that must come again, and the checksum of those that have.
    again_bytes: int = 0
    again_sum: int = 0


class Stream:
    """The receiving end. `live` passes records on before their task has ended; `count` only counts them."""

    def __init__(self, *, live: bool, count: bool, skip: bool, spill_dir: str | os.PathLike[str] | None) -> None:
        self.live, self.count, self.skip, self.spill_dir = live, count, skip, spill_dir
        self.records = 0
        #: The task whose turn it is.
        self.turn = 0
        self._tasks: dict[int, _Task] = {}
        self._waiting_bytes = self._file_bytes = self._file_pieces = 0
        self._file: int | None = None
        self._heard = time.monotonic()
        self._socket, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._turn = os.memfd_create("gristmill turn")
        self._set_turn(0)

    def descriptors(self) -> list[int]:
        """The ends for the workers: the socket, and the file with the turn."""
        return [self._theirs.fileno(), self._turn]

    def wanted(self) -> Wanted:
        """Returns the settings for workers."""
        return Wanted(self._theirs.fileno(), self._turn, self.live, self.count, self.skip)

    def fileno(self) -> int:
        return self._socket.fileno()

    def started(self) -> None:
        """Leaves the sending end to the workers."""
        self._theirs.close()

    def leave(self) -> None:
        """Leaves the receiving end to the program, in a process that it has forked."""
        self._socket.close()

    def close(self) -> None:
        self._theirs.close()
        self._socket.close()
        os.close(self._turn)
        if self._file is not None:
            os.close(self._file)

    def receive(self) -> bool:
        """Takes the messages that have come, until something can be passed on; returns whether it can."""
        while not self._is_ready():
            try:
                message = self._socket.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return False
            if not message:
                return False
            self._heard = time.monotonic()
            self._take(message)
        return True

    def look(self) -> None:
        """Lets all workers go on if nothing has come for long: the worker that had the turn may be dead."""
        if self._tasks and time.monotonic() - self._heard > _PATIENCE_SECONDS:
            self._set_turn(_EVERYONE)

    def ready(self) -> Iterator[bytes]:
        """The blocks of records whose turn it is."""
        while (task := self._tasks.get(self.turn)) is not None:
            if self.live or task.has_ended:
                yield from self._passed(task)
            if not task.has_ended:
                return
            self.records += task.records
            del self._tasks[self.turn]
            self.turn += 1
            self._set_turn(self.turn)

    def rest(self) -> Iterator[bytes]:
        """The blocks of all that has been sent and whose turn it is or becomes."""
        while self.receive():
            yield from self.ready()

    def ended(self, tasks: int) -> None:
        """Checks that all tasks of a job that has ended were passed on, each whole."""
        if self.turn != tasks:
            raise GristmillError(f"records of the job were lost: {self.turn} of its {tasks} tasks have arrived. Please report this as a bug")

    # Messages.

    def _is_ready(self) -> bool:
        task = self._tasks.get(self.turn)
        return task is not None and (task.has_ended or (self.live and any(ends for _, ends in task.pieces)))

    def _take(self, message: bytes) -> None:
        number, process, attempt, records, flags = _HEADER.unpack_from(message)
        if number < self.turn:
            return  # Another attempt of a task that was passed on whole.
        task = self._tasks.setdefault(number, _Task())
        if task.attempt != (process, attempt):
            if task.has_ended:
                return
            self._begin_again(task)
            task.attempt = (process, attempt)
        task.records += records
        piece = message[_HEADER.size :]
        if task.again_bytes:
            piece = self._without_passed(task, piece)
        if piece:
            task.pieces.append((self._kept(piece), bool(flags & _ENDS_RECORD)))
        task.has_ended = bool(flags & _ENDS_TASK)
        if task.has_ended and task.again_bytes:
            raise GristmillError(_OTHER_RECORDS)

    def _begin_again(self, task: _Task) -> None:
        for piece, _ in task.pieces:
            self._forget(piece)
        task.pieces.clear()
        task.records = task.again_sum = 0
        task.again_bytes = task.passed_bytes

    def _without_passed(self, task: _Task, piece: bytes) -> bytes:
        """Returns the part of a piece that no earlier attempt has passed on."""
        again, new = piece[: task.again_bytes], piece[task.again_bytes :]
        task.again_sum = zlib.crc32(again, task.again_sum)
        task.again_bytes -= len(again)
        if not task.again_bytes and task.again_sum != task.passed_sum:
            raise GristmillError(_OTHER_RECORDS)
        return new

    # Pieces.

    def _passed(self, task: _Task) -> Iterator[bytes]:
        """The whole records of the pieces, which are then gone."""
        parts: list[bytes] = []
        ends = [number for number, (_, ends) in enumerate(task.pieces) if ends]
        for _ in range(ends[-1] + 1 if ends else 0):
            piece, ends_record = task.pieces.popleft()
            parts.append(self._read(piece))
            if not task.has_ended:
                task.passed_bytes += len(parts[-1])
                task.passed_sum = zlib.crc32(parts[-1], task.passed_sum)
            if ends_record:
                yield b"".join(parts) if len(parts) > 1 else parts[0]
                parts.clear()

    def _kept(self, piece: bytes) -> _Piece:
        if self._waiting_bytes + len(piece) <= _MEMORY_BYTES:
            self._waiting_bytes += len(piece)
            return piece
        try:
            if self._file is None:
                with tempfile.TemporaryFile(dir=self.spill_dir) as file:
                    self._file = os.dup(file.fileno())
            place = self._file_bytes
            written = 0
            while written < len(piece):
                written += os.pwrite(self._file, piece[written:], place + written)
        except OSError as error:
            folder = self.spill_dir or tempfile.gettempdir()
            raise ResourceError(
                f"records that wait for their turn cannot be written to {folder}: {error.strerror}. gm.configure(spill_dir=...) names another folder"
            ) from error
        self._file_bytes += len(piece)
        self._file_pieces += 1
        return place, len(piece)

    def _forget(self, piece: _Piece) -> None:
        if isinstance(piece, bytes):
            self._waiting_bytes -= len(piece)
            return
        self._file_pieces -= 1
        if not self._file_pieces and self._file is not None:
            os.ftruncate(self._file, 0)
            self._file_bytes = 0

    def _read(self, piece: _Piece) -> bytes:
        if isinstance(piece, bytes):
            found = piece
        else:
            assert self._file is not None
            place, length = piece
            found = os.pread(self._file, length, place)
            if len(found) < length:
                raise ResourceError("the file with records that wait for their turn is shorter than what was written to it")
        self._forget(piece)
        return found

    def _set_turn(self, turn: int) -> None:
        os.pwrite(self._turn, turn.to_bytes(8, "little"), 0)
