"""The bar of long jobs, on a terminal and elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

pytestmark = pytest.mark.parametrize("engine", ["machine"], indirect=True)

SLOW = """
import time
import gristmill as gm
def slowly(n):
    time.sleep(0.002)
    return n % 10, n
with gm.configure(workers=2):
    print(gm.range(1000).map(slowly).reduce_by_key(gm.sum).count())
"""


def test_a_terminal_shows_a_bar_and_nothing_is_left_of_it() -> None:
    terminal, other = pty.openpty()
    job = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=other)
    os.close(other)
    shown = b""
    while part := _read(terminal):
        shown += part
    os.close(terminal)
    assert job.communicate()[0] == b"10\n" and job.returncode == 0
    *bars, end = shown.decode().split("\r\x1b[K")[1:]
    assert bars and end == "", shown
    assert all("█" in bar or "░" in bar for bar in bars) and any("of 1,000 records, " in bar and "s left" in bar for bar in bars)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Nobody has the other end.
        return b""


def test_a_pipe_gets_no_bar() -> None:
    job = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, check=True)
    assert (job.stdout, job.stderr) == (b"10\n", b"")
