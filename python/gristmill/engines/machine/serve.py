"""The starter: an interpreter with one thread, which forks the processes of jobs for a program that has more."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any

from ...base.errors import one_line
from ...base.settings import Settings
from ...plan.stages import Stage
from . import logs, process, surroundings
from .channel import give, received, take
from .imports import Imports, Refused, import_for_workers, threads
from .modules.changes import apply, differing, unset
from .modules.digests import Digests
from .parcel import opened, opened_later


def serve(descriptor: int) -> None:
    """The starter: forks a process for each job until the program ends."""
    end = socket.socket(fileno=descriptor)
    end.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs: set[int] = set()
    watch = os.pidfd_open(os.getppid())
    while True:
        ready, _, _ = select.select([end.fileno(), watch], [], [], 1.0 if jobs else None)
        jobs -= {pid for pid in jobs if os.waitpid(pid, os.WNOHANG)[0]}
        if watch in ready:
            break
        if end.fileno() not in ready:
            continue
        head, descriptors, _, _ = socket.recv_fds(end, 8, 5)
        if not head:
            break
        head += received(end, 8 - len(head))
        content = received(end, int.from_bytes(head, "little"))
        if descriptors:
            pid = _begun(content, *descriptors)
            jobs.add(pid)
            end.sendall(pid.to_bytes(8, "little"))
            for descriptor in descriptors:
                os.close(descriptor)
        else:
            # What they print, the process of the job has printed.
            with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
                for name in pickle.loads(content):
                    with suppress(Exception, SystemExit):
                        import_module(name)
    for pid in jobs:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _begun(around: bytes, pipe: int, channel: int, entries: int, *stream: int) -> int:
    """Forks the process of a job."""
    folder, sys.path[:], sys.argv[:], environment, levels, state, wanted = pickle.loads(around)
    if wanted is not None:
        wanted.socket, wanted.turn = stream
    with suppress(OSError):
        # A folder that is gone is gone for the program, too.
        os.chdir(folder)
    if environment != dict(os.environ):
        os.environ.clear()
        os.environ.update(environment)
    starter = os.getpid()
    pid = os.fork()
    if pid == 0:
        for descriptor in (pipe, entries, *stream):
            os.set_inheritable(descriptor, False)
        process.run(lambda: _plan(channel, levels, state), pipe, entries, starter, wanted)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    return pid


def _plan(channel: int, levels: bytes, state: dict[str, Any]) -> tuple[Stage, Settings]:
    """The plan of a job, in its process.

    Ends the process if the plan cannot run here, after telling the program why.
    """
    before = set(sys.modules)
    surroundings.adopt(state)
    with socket.socket(fileno=channel) as end:
        end.set_inheritable(False)
        told, way = set[str](), take(end)
        try:
            if way == b"later":
                changes, shell, objects = take(end), take(end), take(end)
                stage, settings = opened_later(shell, objects, changes)
                import_for_workers(stage)
            else:
                (wanted, own, refused), shell, objects = pickle.loads(take(end)), take(end), take(end)
                with Imports(refused, threads) as imports:
                    _compare(end, wanted, own)
                    stage, settings = opened(shell, objects)
                    import_for_workers(stage)
                told = imports.started
        except Refused:
            answer = b"threads"
        except (Exception, SystemExit) as error:
            give(end, b"failed", one_line(error).encode(errors="replace"))
            os._exit(1)
        else:
            answer = b"runs" if threads() == 1 else b"threads"
        imported = [] if told or threads() > 1 else [name for name in sys.modules if name not in before]
        give(end, answer, pickle.dumps((told, imported)))
    if answer != b"runs":
        os._exit(0)
    logs.adopt(levels)
    surroundings.adopt_libraries()
    return stage, settings


def _compare(end: socket.socket, wanted: Digests, own: dict[str, set[str]]) -> None:
    """Makes modules what they are in the program."""
    if names := differing(wanted, own):
        give(end, b"differs", pickle.dumps((names, unset(names))))
        apply(take(end))
