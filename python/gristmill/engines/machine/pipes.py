"""The pipe from which the program reads the frames of a job; crates/python/src/frames.rs says what they are."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator, Sequence
from typing import Protocol

#: The bytes before a frame: its kind and the length of what follows.
_HEAD = 5
_READ_BYTES = 1 << 20
#: How often a program that waits looks at the time.
_LOOK_MS = 200


class Pipe:
    """The reading end."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.is_closed = descriptor, False
        os.set_blocking(descriptor, False)
        self._bytes = bytearray()

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def fileno(self) -> int:
        return self.descriptor

    def frames(self) -> Iterator[tuple[bytes, bytes]]:
        """The frames that have arrived: the kind and the content of each."""
        while True:
            try:
                read = os.read(self.descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            if not read:
                self.is_closed = True
                return
            self._bytes += read
            start = 0
            while (end := self._end(start)) is not None:
                yield bytes(self._bytes[start : start + 1]), bytes(self._bytes[start + _HEAD : end])
                start = end
            del self._bytes[:start]

    def _end(self, start: int) -> int | None:
        """The end of the frame that begins here, if it is complete."""
        if len(self._bytes) < start + _HEAD:
            return None
        end = start + _HEAD + int.from_bytes(self._bytes[start + 1 : start + _HEAD], "little")
        return end if end <= len(self._bytes) else None


class Readable(Protocol):
    """Something that can be waited for."""

    def fileno(self) -> int: ...


def wait(sources: Sequence[Readable]) -> None:
    """Waits until one of the sources can be read, or for a fifth of a second."""
    poll = select.poll()
    for source in sources:
        poll.register(source.fileno(), select.POLLIN)
    poll.poll(_LOOK_MS)
