"""Messages between the program and the process of a job: a length, and so many bytes."""

from __future__ import annotations

import socket


def give(end: socket.socket, *frames: bytes) -> None:
    for frame in frames:
        end.sendall(len(frame).to_bytes(8, "little"))
        end.sendall(frame)


def take(end: socket.socket) -> bytes:
    return received(end, int.from_bytes(received(end, 8), "little"))


def taken(end: socket.socket) -> tuple[bytes, bytes]:
    return take(end), take(end)


def received(end: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = end.recv(min(size - len(content), 1 << 20))
        if not part:
            raise ConnectionError("its socket was closed")
        content += part
    return bytes(content)
