"""Starts the process of a job.

Workers are forked, and a process with threads cannot be forked safely. A program with one thread forks the process of a
job itself: its functions and data are there already. A program with more threads (a notebook, or NumPy's) has a *starter*: an
interpreter of its own with one thread, which forks the processes of all jobs of the session::

    the program                    the starter             the process of a job
    _Starter.start -- a job -----> serve ---- forks -----> serve._plan
                   -- modules, the plan, functions ------>   changes.differing: which differ from the program?
                   <- names ------------------------------
                   -- changes ---------------------------->  changes.apply, parcel.opened
                   <- it runs, and has imported ... -------  process.run, coordinator.work
                   -- names -----> imports them, for later jobs

If what it imports starts threads, the process of the job ends, and a second one leaves functions to its workers (`opened_later`).
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from ...base.errors import PACKAGE, GristmillError, PlanError, ResourceError
from ...base.settings import FOLDER, Settings, current_folder
from ...plan.stages import Stage
from . import logs, process, surroundings, unpicklable
from .channel import give, received, taken
from .imports import ONE_THREAD, import_for_workers, threads
from .logs import Entries
from .modules.changes import packed_changes
from .modules.digests import Digests, digests
from .modules.used import used
from .parcel import Parcel
from .streams import Stream

#: The program of the starter's interpreter. It imports nothing before the path is that of the user's program,
#: without the current folder.
_PROGRAM = """
import sys
_, descriptor, file, *sys.path[:] = sys.argv
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("gristmill", file)
sys.modules["gristmill"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["gristmill"])
from gristmill.engines.machine.serve import serve
serve(int(descriptor))
"""
_FILE = os.path.join(PACKAGE, "__init__.py")
#: Variables that make an interpreter read commands.
_OF_THE_SHELL = ("PYTHONINSPECT", "PYTHONSTARTUP")
#: Bytes that the records of a job may be ahead of the program.
_PIPE_BYTES = 1 << 20


class Started:
    """A job that runs: its process, and the pipe from which its frames are read."""

    def __init__(self, pid: int, pipe: int, entries: Entries, is_child: bool) -> None:
        self.pid, self.pipe = pid, pipe
        #: The log entries of its workers.
        self.entries = entries
        self._is_child = is_child
        self._ending: str | None = None

    def ending(self) -> str:
        """How the process ended."""
        if self._is_child and self._ending is None:
            with suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                self._ending = signal.strsignal(-code) if code < 0 else f"exit status {code}"
        return self._ending or "it was killed"

    def kill(self) -> None:
        """Kills the process and its workers. Any thread may call it until :meth:`close` has been called."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self, killed: bool) -> None:
        """Ends the process and its workers, if they have not ended."""
        if killed:
            self.kill()
        self.ending()
        self.entries.close()


def start(stage: Stage, settings: Settings, stream: Stream | None = None) -> Started:
    """Starts a job, whose records go to `stream` if there is one."""
    forks = threads() == 1 and _is_of_the_process()
    started = _fork(stage, settings, stream) if forks else _of_this_process().start(stage, settings, stream)
    if stream is not None:
        stream.started()
    return started


def _fork(stage: Stage, settings: Settings, stream: Stream | None) -> Started:
    for printed in (sys.stdout, sys.stderr):
        with suppress(Exception):
            printed.flush()
    read, write = _pipe()
    entries, program = Entries(), os.getpid()
    # At a fork Python calls functions of modules, and ignores what they raise: Ctrl-C there would be lost.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        os.close(read)
        wanted = None
        if stream is not None:
            stream.leave()
            wanted = stream.wanted()

        def plan() -> tuple[Stage, Settings]:
            import_for_workers(stage)
            return stage, settings

        process.run(plan, write, entries.fileno(), program, wanted, mask)
    os.close(write)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    job = Started(pid, read, entries, is_child=True)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    except BaseException:
        os.close(read)
        job.close(killed=True)
        raise
    return job


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write


# Programs with threads.


class _Starter:
    """The starter of this process, as the program has it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        #: Packages that start threads when they are imported.
        self.threaded = set[str]()
        ours, theirs = socket.socketpair()
        here = [path for path in sys.path if path]
        # The options of the program's interpreter.
        flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, *flags, "-c", _PROGRAM, str(theirs.fileno()), _FILE, *here, *([FOLDER] if "" in sys.path else [])],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env={name: value for name, value in _environment().items() if name not in _OF_THE_SHELL},
                start_new_session=True,
            )
        self.socket = ours
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the starter; does nothing in a process that this one forked."""
        if os.getpid() == self.pid:
            self.socket.close()
            with suppress(Exception):
                self.process.wait(timeout=5)

    def start(self, stage: Stage, settings: Settings, stream: Stream | None) -> Started:
        """Starts a job in a process of the starter."""
        try:
            parcel = Parcel(stage, settings)
        except Exception as error:
            raise PlanError(unpicklable.explained(stage, error)) from error
        names, own = used(parcel.roots)
        wanted = digests(names)
        job = self._job(settings, stream, lambda channel: self._compared(channel, parcel, wanted, own))
        if job is None:
            # What the functions need starts threads when it is imported, so each worker imports it for itself.
            changes = packed_changes({module: [name for name in wanted[module] if "." not in name] for module in own}, None)
            job = self._job(settings, stream, lambda channel: self._later(channel, parcel, changes))
        if job is None:
            raise PlanError("the process of the job has threads before it has imported what the functions need, so it cannot fork workers")
        return job

    def _job(self, settings: Settings, stream: Stream | None, talk: Callable[[socket.socket], bool]) -> Started | None:
        """Starts the process of a job, which `talk` gives what it needs; `None` if it gives up."""
        wanted = None if stream is None else stream.wanted()
        around = pickle.dumps((current_folder(), _paths(), getattr(sys, "argv", []), _environment(), logs.levels(), surroundings.state(), wanted))
        read, write = _pipe()
        entries = Entries()
        ours, theirs = socket.socketpair()
        pid = 0
        try:
            with ours, theirs:
                with self.lock:
                    given = [write, theirs.fileno(), entries.fileno(), *(stream.descriptors() if stream is not None else [])]
                    socket.send_fds(self.socket, [len(around).to_bytes(8, "little")], given)
                    self.socket.sendall(around)
                    pid = int.from_bytes(received(self.socket, 8), "little")
                theirs.close()
                ours.settimeout(settings.deadline_seconds())
                if talk(ours):
                    read, kept = -1, read
                    return Started(pid, kept, entries, is_child=False)
                return None
        except BaseException as error:
            if pid:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            if isinstance(error, TimeoutError):
                raise ResourceError(f"the job did not end within {settings.deadline_seconds():g} s") from error
            if isinstance(error, OSError):
                raise GristmillError(f"the starter of workers, or the process of the job, has ended: {error}") from error
            raise
        finally:
            os.close(write)
            if read >= 0:
                os.close(read)
                entries.close()

    def _compared(self, channel: socket.socket, parcel: Parcel, wanted: Digests, own: dict[str, set[str]]) -> bool:
        """Gives the process of a job its plan, and what differs in its modules. Returns whether it runs."""
        give(channel, b"compare", pickle.dumps((wanted, own, self.threaded)), parcel.shell, parcel.objects)
        answer, content = taken(channel)
        if answer == b"differs":
            give(channel, packed_changes(*pickle.loads(content)))
            answer, content = taken(channel)
        return self._is_answer(answer, content)

    def _later(self, channel: socket.socket, parcel: Parcel, changes: bytes) -> bool:
        """Gives the process of a job its plan, of which the workers load the functions."""
        give(channel, b"later", changes, parcel.shell, parcel.objects)
        return self._is_answer(*taken(channel))

    def _is_answer(self, answer: bytes, content: bytes) -> bool:
        """Whether the process of a job runs; an error if it cannot.

        The starter imports what it has imported, for later jobs.
        """
        if answer == b"failed":
            raise PlanError(f"the pipeline cannot be rebuilt in its workers: {content.decode()}")
        threaded, imported = pickle.loads(content)
        self.threaded |= threaded
        if imported:
            with self.lock:
                names = pickle.dumps(imported)
                self.socket.sendall(len(names).to_bytes(8, "little") + names)
        return answer == b"runs"


@functools.cache
def _is_of_the_process() -> bool:
    """Whether this interpreter is the one that the process began with. Only that one may fork."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        with suppress(ImportError):
            interpreters = importlib.import_module(name)
            return bool(interpreters.get_current() == interpreters.get_main())
    return True


def _paths() -> list[str]:
    """Where modules are looked for, in this process.

    The current folder comes last if the program has gone there since it started: a module of the standard library that is not imported
    yet never comes from there.
    """
    here = [path or FOLDER for path in sys.path]
    return [*here, current_folder()] if "" in sys.path else here


def _environment() -> dict[str, str]:
    return ONE_THREAD | dict(os.environ)


_starter: _Starter | None = None
_making = threading.Lock()


def _of_this_process() -> _Starter:
    global _starter
    with _making:
        if _starter is None or _starter.pid != os.getpid() or _starter.process.poll() is not None:
            _starter = _Starter()
        return _starter
