"""Starts the process of a job.

Workers are forked, and a process with threads cannot be forked safely. A program with one thread forks the process of a
job itself: its functions and data are there already. A program with more threads (a notebook, or NumPy's) has a *starter*: an
interpreter of its own with one thread, which gets the plan pickled, and forks the processes of all jobs of the session.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import cloudpickle

from . import _native, keys, pickles
from .batches import OnArrays, OnTables
from .errors import GristmillError, PlanError
from .plan import Shuffle, Source, Stage, stages
from .settings import FOLDER, Settings

#: Keeps libraries from starting threads when they are imported.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    # Of the allocator in pyarrow.
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
#: What the starter's interpreter runs.
_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from gristmill._starter import serve
serve(int(sys.argv[1]))
"""
#: Bytes that the records of a job may be ahead of the program.
_PIPE_BYTES = 1 << 20


class Started:
    """A job that runs: its process, and the pipe from which its frames are read."""

    def __init__(self, pid: int, pipe: int, is_child: bool) -> None:
        self.pid, self.pipe = pid, pipe
        self._is_child = is_child
        self._ending: str | None = None

    def ending(self) -> str:
        """How the process ended."""
        if self._is_child and self._ending is None:
            with suppress(ChildProcessError):
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                self._ending = signal.strsignal(-code) if code < 0 else f"exit status {code}"
        return self._ending or "it was killed"

    def close(self, killed: bool) -> None:
        """Ends the process and its workers, if they have not ended."""
        if killed:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self.ending()


def start(stage: Stage, settings: Settings) -> Started:
    """Starts a job."""
    return _fork(stage, settings) if _threads() == 1 else _of_this_process().start(stage, settings)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _fork(stage: Stage, settings: Settings) -> Started:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    read, write = _pipe()
    program = os.getpid()
    # At a fork Python calls functions of modules, and ignores what they raise: Ctrl-C there would be lost.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _run(stage, settings, write, program, mask)
    os.close(write)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    job = Started(pid, read, is_child=True)
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


def _run(stage: Stage, settings: Settings, pipe: int, parent: int, mask: set[int] | None = None) -> NoReturn:
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
        _import_for_workers(stage)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        from .engines import coordinator

        coordinator.work(stage, settings, pipe)
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
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), json.dumps(_paths())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=_environment(),
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

    def start(self, stage: Stage, settings: Settings) -> Started:
        """Starts a job in a process of the starter."""
        try:
            around = os.getcwd(), _paths(), getattr(sys, "argv", []), _environment()
            plan = pickle.dumps((*around, pickles.dumps((stage, settings, keys.registered()))))
        except Exception as error:
            raise PlanError(f"the pipeline cannot be sent to its workers: {error}") from error
        read, write = _pipe()
        try:
            with self.lock:
                socket.send_fds(self.socket, [len(plan).to_bytes(8, "little")], [write])
                self.socket.sendall(plan)
                answer = _received(self.socket, int.from_bytes(_received(self.socket, 8), "little"))
        except OSError as error:
            os.close(read)
            raise GristmillError(f"the starter of workers has ended: {error}") from error
        finally:
            os.close(write)
        pid, why = pickle.loads(answer)
        if why:
            os.close(read)
            raise PlanError(why)
        return Started(pid, read, is_child=False)


def _paths() -> list[str]:
    """Where modules are looked for, in this process."""
    here = [path or os.getcwd() for path in sys.path]
    return [*here, FOLDER] if "" in sys.path else here


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
        head, descriptors, _, _ = socket.recv_fds(end, 8, 1)
        if not head:
            break
        head += _received(end, 8 - len(head))
        (pipe,) = descriptors
        plan = _received(end, int.from_bytes(head, "little"))
        answer: tuple[int, str]
        try:
            answer = _begun(plan, pipe), ""
            jobs.add(answer[0])
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            answer = 0, f"the pipeline cannot be rebuilt in its workers: {text}"
        os.close(pipe)
        content = pickle.dumps(answer)
        end.sendall(len(content).to_bytes(8, "little") + content)
    for pid in jobs:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _begun(plan: bytes, pipe: int) -> int:
    folder, sys.path[:], sys.argv[:], environment, job = pickle.loads(plan)
    os.chdir(folder)
    if environment != dict(os.environ):
        os.environ.clear()
        os.environ.update(environment)
    stage, settings, registered = pickle.loads(job)
    keys.adopt(registered)
    _name_classes()
    _import_for_workers(stage)
    if (threads := _threads()) > 1:
        raise RuntimeError(f"what it imports started {threads - 1} threads, and a process with threads cannot fork workers")
    starter = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.set_inheritable(pipe, False)
        _run(stage, settings, pipe, starter)
    with suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    return pid


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


def _name_classes() -> None:
    """Puts classes of the program's `__main__` into that of this process, so that their objects can be pickled by name."""
    main: Any = sys.modules["__main__"]
    for kind in list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS):
        if kind.__module__ == "__main__" and "." not in kind.__qualname__:
            setattr(main, kind.__name__, kind)
