"""Starts the process of a job.

Workers are forked, and a process with threads cannot be forked safely. A program with one thread forks the process of a
job itself: its functions and data are there already. A program with more threads (a notebook, or NumPy's) has a *starter*: an
interpreter of its own with one thread, which forks the processes of all jobs of the session::

    the program                    the starter             the process of a job
    _Starter.start -- a job -----> _begun -- forks ------> _plan
                   -- modules, the plan, functions ------>   modules.differing: which differ from the program?
                   <- names ------------------------------
                   -- changes ---------------------------->  modules.apply, deferred.opened
                   <- it runs, and has imported ... -------  coordinator.work
                   -- names -----> imports them, for later jobs

If what it imports starts threads, the process of the job ends, and a second one leaves functions to its workers (`opened_later`).
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import Any, NoReturn

from . import _native, logs, modules, surroundings, unpicklable
from .base.errors import PACKAGE, GristmillError, PlanError, ResourceError
from .base.settings import FOLDER, Settings
from .deferred import Imports, Parcel, Refused, opened, opened_later
from .engines.streams import Stream, Wanted
from .logs import Entries
from .plan.nodes import Shuffle, Source
from .plan.stages import Stage, stages
from .records.batches import OnArrays, OnTables

#: Keeps libraries from starting threads when they are imported.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    # Of the allocator in pyarrow.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
#: What the starter's interpreter runs. Nothing is imported before the path is that of the program, without the current folder.
_PROGRAM = """
import sys
_, descriptor, file, *sys.path[:] = sys.argv
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("gristmill", file)
sys.modules["gristmill"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["gristmill"])
from gristmill._starter import serve
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
        #: What its workers log.
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
    started = _fork(stage, settings, stream) if _threads() == 1 else _of_this_process().start(stage, settings, stream)
    if stream is not None:
        stream.started()
    return started


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


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
        _run(lambda: (_with_imports(stage), settings), write, entries.fileno(), program, wanted, mask)
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


def _run(
    plan: Callable[[], tuple[Stage, Settings]],
    pipe: int,
    entries: int,
    parent: int,
    wanted: Wanted | None,
    mask: set[int] | None = None,
) -> NoReturn:
    """Becomes the process of a job, which ends when its parent does. Signals outside `mask` reach it, if one is given."""
    status = 1
    # Workers that do not look for garbage among the program's objects do not copy their memory.
    gc.freeze()
    try:
        with suppress(PermissionError):
            os.setpgid(0, 0)
        _native.die_with_parent()
        if os.getppid() != parent:
            os._exit(status)
        # If memory runs out, the kernel kills a worker, which is replaced, rather than the program.
        with suppress(OSError), open("/proc/self/oom_score_adj", "wb", buffering=0) as score:
            score.write(b"500")
        for name, value in _ONE_THREAD.items():
            os.environ.setdefault(name, value)
        stage, settings = plan()
        logs.send_to(entries)
        gc.freeze()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        from .engines import coordinator

        coordinator.work(stage, settings, pipe, wanted)
        status = 0
    except BrokenPipeError:
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


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
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, *_flags(), "-c", _PROGRAM, str(theirs.fileno()), _FILE, *here, *([FOLDER] if "" in sys.path else [])],
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
        names, own = modules.used(parcel.roots)
        wanted = modules.digests(names)
        job = self._job(settings, stream, lambda channel: self._compared(channel, parcel, wanted, own))
        if job is None:
            # What the functions need starts threads when it is imported, so each worker imports it for itself.
            changes = modules.changes({module: [name for name in wanted[module] if "." not in name] for module in own}, None)
            job = self._job(settings, stream, lambda channel: self._later(channel, parcel, changes))
        if job is None:
            raise PlanError("the process of the job has threads before it has imported what the functions need, so it cannot fork workers")
        return job

    def _job(self, settings: Settings, stream: Stream | None, talk: Callable[[socket.socket], bool]) -> Started | None:
        """Starts the process of a job, which `talk` gives what it needs; `None` if it gives up."""
        wanted = None if stream is None else stream.wanted()
        around = pickle.dumps((os.getcwd(), _paths(), getattr(sys, "argv", []), _environment(), logs.levels(), surroundings.state(), wanted))
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
                    pid = int.from_bytes(_received(self.socket, 8), "little")
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

    def _compared(self, channel: socket.socket, parcel: Parcel, wanted: modules.Digests, own: dict[str, set[str]]) -> bool:
        """Gives the process of a job its plan, and what differs in its modules. Returns whether it runs."""
        _give(channel, b"compare", pickle.dumps((wanted, own, self.threaded)), parcel.shell, parcel.objects)
        answer, content = _taken(channel)
        if answer == b"differs":
            _give(channel, modules.changes(*pickle.loads(content)))
            answer, content = _taken(channel)
        return self._is_answer(answer, content)

    def _later(self, channel: socket.socket, parcel: Parcel, changes: bytes) -> bool:
        """Gives the process of a job its plan, of which the workers load the functions."""
        _give(channel, b"later", changes, parcel.shell, parcel.objects)
        return self._is_answer(*_taken(channel))

    def _is_answer(self, answer: bytes, content: bytes) -> bool:
        """Whether the process of a job runs; an error if it cannot. The starter imports what it has imported, for later jobs."""
        if answer == b"failed":
            raise PlanError(f"the pipeline cannot be rebuilt in its workers: {content.decode()}")
        threaded, imported = pickle.loads(content)
        self.threaded |= threaded
        if imported:
            with self.lock:
                names = pickle.dumps(imported)
                self.socket.sendall(len(names).to_bytes(8, "little") + names)
        return answer == b"runs"


def _flags() -> list[str]:
    """The options of the program's interpreter."""
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    return flags


def _give(end: socket.socket, *frames: bytes) -> None:
    for frame in frames:
        end.sendall(len(frame).to_bytes(8, "little"))
        end.sendall(frame)


def _take(end: socket.socket) -> bytes:
    return _received(end, int.from_bytes(_received(end, 8), "little"))


def _taken(end: socket.socket) -> tuple[bytes, bytes]:
    return _take(end), _take(end)


def _paths() -> list[str]:
    """Where modules are looked for, in this process.

    The current folder comes last if the program has gone there since it started: a module of the standard library that is not imported
    yet never comes from there.
    """
    here = [path or FOLDER for path in sys.path]
    return [*here, os.getcwd()] if "" in sys.path else here


def _environment() -> dict[str, str]:
    return _ONE_THREAD | dict(os.environ)


_starter: _Starter | None = None
_making = threading.Lock()


def _of_this_process() -> _Starter:
    global _starter
    with _making:
        if _starter is None or _starter.pid != os.getpid() or _starter.process.poll() is not None:
            _starter = _Starter()
        return _starter


def _received(end: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = end.recv(min(size - len(content), 1 << 20))
        if not part:
            raise ConnectionError("its socket was closed")
        content += part
    return bytes(content)


def serve(descriptor: int) -> None:
    """The starter: forks a process for each job until the program ends."""
    # What jobs need is imported once, here, and not after each fork.
    import_module("gristmill.engines.coordinator")
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
        head += _received(end, 8 - len(head))
        content = _received(end, int.from_bytes(head, "little"))
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
        _run(lambda: _plan(channel, levels, state), pipe, entries, starter, wanted)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    return pid


def _plan(channel: int, levels: bytes, state: dict[str, Any]) -> tuple[Stage, Settings]:
    """The plan of a job, in its process. Ends the process if the plan cannot run here, after telling the program why."""
    before = set(sys.modules)
    surroundings.adopt(state)
    with socket.socket(fileno=channel) as end:
        end.set_inheritable(False)
        told, way = set[str](), _take(end)
        try:
            if way == b"later":
                changes, shell, objects = _take(end), _take(end), _take(end)
                stage, settings = opened_later(shell, objects, changes)
                _import_for_workers(stage)
            else:
                (wanted, own, refused), shell, objects = pickle.loads(_take(end)), _take(end), _take(end)
                with Imports(refused, _threads) as imports:
                    _compare(end, wanted, own)
                    stage, settings = opened(shell, objects)
                    _import_for_workers(stage)
                told = imports.started
        except Refused:
            answer = b"threads"
        except (Exception, SystemExit) as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            _give(end, b"failed", text.encode(errors="replace"))
            os._exit(1)
        else:
            answer = b"runs" if _threads() == 1 else b"threads"
        imported = [] if told or _threads() > 1 else [name for name in sys.modules if name not in before]
        _give(end, answer, pickle.dumps((told, imported)))
    if answer != b"runs":
        os._exit(0)
    logs.adopt(levels)
    surroundings.adopt_libraries()
    return stage, settings


def _compare(end: socket.socket, wanted: modules.Digests, own: dict[str, set[str]]) -> None:
    """Makes modules what they are in the program."""
    if names := modules.differing(wanted, own):
        _give(end, b"differs", pickle.dumps((names, modules.unset(names))))
        modules.apply(_take(end))


def _with_imports(stage: Stage) -> Stage:
    _import_for_workers(stage)
    return stage


def _import_for_workers(stage: Stage) -> None:
    """Imports what each worker of a job would import, unless it would start threads here, as the user has asked for."""
    if all(os.environ.get(name) == value for name, value in _ONE_THREAD.items()):
        for name in _modules(stage):
            # Where one is missing, what needs it says so.
            with suppress(Exception):
                import_module(name)


def _modules(stage: Stage) -> set[str]:
    """The libraries that the workers of a job need, apart from the user's functions."""
    found = set[str]()
    for part in stages(stage):
        if any(isinstance(source, Source) and source.kind == "parquet" for source in part.inputs):
            found.add("pyarrow.parquet")
        functions = [narrow.function for narrows in part.narrows for narrow in narrows]
        if any(isinstance(function, OnTables) for function in functions):
            found.add("pyarrow")
        if isinstance(part.end, Shuffle) and isinstance(part.end.function, OnArrays):
            found.add("numpy")
    return found
