"""The process of a job: ends with the program, and hands its plan to the coordinator."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from ... import _native
from ...base.settings import Settings
from ...plan.stages import Stage
from . import coordinator, logs
from .imports import ONE_THREAD
from .streams import Wanted


def run(
    plan: Callable[[], tuple[Stage, Settings]],
    pipe: int,
    entries: int,
    parent: int,
    wanted: Wanted | None,
    mask: set[int] | None = None,
) -> NoReturn:
    """Becomes the process of a job, which ends when its parent does.

    Signals outside `mask` reach it, if one is given.
    """
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
        for name, value in ONE_THREAD.items():
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
        coordinator.work(stage, settings, pipe, wanted)
        status = 0
    except BrokenPipeError:
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
