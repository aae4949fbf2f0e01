"""Stops and kills processes of the command at random moments: see stops.sh."""

import argparse
import array
import gzip
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASK_TIMEOUT_S = 1
# A signal costs the task timeout, the lost work, and possibly a retry record by record.
BOUND_S = 60
SIGNALS = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL}
ROLES = ["--no-sample", "--map-workers", "2", "--reduce-workers", "2"]
LITTLE = ["--workers", "3", "--split-bytes", "50k"]


class Case:
    """A command, and the processes of it that get signals. `None` is the command itself."""

    def __init__(self, name, words, struck=slice(None), stdin=None):
        self.name, self.words, self.struck, self.stdin = name, words, struck, stdin


def cases(text, points, packed, numbers):
    count = ["word-count", text, "--sort", "key"]
    return [
        Case("mapper", [*count, *ROLES, "--split-bytes", "50k"], slice(0, 2)),
        Case("reducer", [*count, *ROLES, "--split-bytes", "50k"], slice(2, 4)),
        Case("fused worker", [*count, *LITTLE]),
        Case("mapper that waits for pages", [*count, *ROLES, "--buffer", "array", "--page-bytes", "4k"], slice(0, 2)),
        Case("reducer that begins after map", [*count, *ROLES, "--exchange", "barrier"], slice(2, 4)),
        Case("worker that spills", ["sort", text, "--memory", "24M", *LITTLE]),
        Case("worker of a job in steps", ["kmeans", points, "--header", "no", "-k", "5", "--iterations", "30", *LITTLE]),
        Case("worker that writes a shared output", ["matrix-multiply", "--left", numbers, numbers, "--print", "summary", *LITTLE]),
        Case("mapper of a file that cannot be cut", ["word-count", packed, "--sort", "key", *ROLES], slice(0, 2)),
        Case("worker that saves", [*count, *LITTLE, "--checkpoint", "saved", "--checkpoint-every", "100ms"]),
        Case("worker that sets records aside", [*count, *LITTLE, "--skip-bad-records", "5"]),
        Case("worker of a job that reads a pipe", ["word-count", "--sort", "key", *LITTLE], stdin=text),
        Case("sampler", [*count, "--workers", "2"], slice(0, 1)),
        Case("coordinator", [*count, *LITTLE], None),
    ]


def make_inputs(folder):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 7))) for _ in range(20_000)]
    lines = (" ".join(draw.choices(words, k=10)) for _ in range(120_000))
    text = ("\n".join(lines).encode() + b"\n") * 4
    (folder / "text").write_bytes(text)
    (folder / "packed.gz").write_bytes(gzip.compress(text, 1))
    points = (f"{draw.randrange(1000)},{draw.randrange(1000)},{draw.randrange(1000)}\n" for _ in range(100_000))
    (folder / "points.csv").write_text("".join(points))
    side = 500
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({side}, {side}), }}"
    numbers = array.array("d", (draw.randrange(10) for _ in range(side * side)))
    with open(folder / "matrix.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n" + numbers.tobytes())
    return [str(folder / name) for name in ("text", "points.csv", "packed.gz", "matrix.npy")]


def children(pid):
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(group):
    """Returns the processes of a group that have not ended."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def run(program, case, folder, strikes, wanted):
    """Runs a case and sends signals at the given moments.

    Returns a failure or None, the seconds taken, and the number of signals.
    """
    folder.mkdir()
    spill, output = folder / "spill", folder / "output"
    spill.mkdir()
    options = ["--task-timeout", f"{TASK_TIMEOUT_S}s", "--retries", "20", "--spill-dir", spill, "-o", output]
    stdin = open(case.stdin, "rb") if case.stdin else subprocess.DEVNULL
    with open(folder / "said", "wb") as said:
        began = time.monotonic()
        job = subprocess.Popen([program, *case.words, *options], cwd=folder, stdin=stdin, stderr=said, start_new_session=True)
    struck, resume = 0, None
    try:
        while job.poll() is None:
            now = time.monotonic() - began
            if now > BOUND_S:
                return f"it did not end within {BOUND_S} s", None, struck
            if resume and now > resume:
                os.kill(job.pid, signal.SIGCONT)
                resume = None
            if strikes and now >= strikes[0][0]:
                _, number, pick = strikes[0]
                targets = [job.pid] if case.struck is None else children(job.pid)[case.struck]
                if targets:
                    strikes.pop(0)
                    try:
                        os.kill(targets[int(pick * len(targets))], number)
                        struck += 1
                    except ProcessLookupError:
                        pass
                    # No other process watches over a stopped coordinator.
                    if case.struck is None and number == signal.SIGSTOP:
                        resume = now + 2 * TASK_TIMEOUT_S
            time.sleep(0.001)
        took = time.monotonic() - began
        # Workers die shortly after the command.
        deadline = time.monotonic() + 10
        while (left := alive(job.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        said = (folder / "said").read_text()
        if left:
            return f"processes are left: {left}", took, struck
        if files := list(spill.iterdir()):
            return f"files are left: {files}", took, struck
        if "panicked" in said:
            return f"it panicked: {said}", took, struck
        if job.returncode == 0:
            return (None if output.read_bytes() == wanted else "another answer"), took, struck
        if job.returncode == -signal.SIGKILL and case.struck is None:
            # It may have been killed after all work was done.
            whole = not output.exists() or output.read_bytes() == wanted
            return (None if whole else "it was killed and left a part of the result"), took, struck
        if output.exists():
            return "it failed and wrote a result", took, struck
        errors = [line for line in said.splitlines() if line.startswith("gristmill: ")]
        if job.returncode == 1 and errors:
            return None, took, struck
        return f"status {job.returncode}, and it said: {said}", took, struck
    finally:
        if job.poll() is None:
            for pid in alive(job.pid):
                os.kill(pid, signal.SIGKILL)
            job.wait()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--program", required=True)
    options.add_argument("--count", type=int, default=24)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--case", help="only cases whose name contains this")
    options = options.parse_args()
    program = os.path.abspath(options.program)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gristmill-stops-") as folder:
        folder = Path(folder)
        for case in cases(*make_inputs(folder)):
            if options.case and options.case not in case.name:
                continue
            undisturbed = folder / "undisturbed"
            wrong, took, _ = run(program, case, undisturbed, [], None)
            if wrong != "another answer":
                sys.exit(f"{case.name}, undisturbed: {wrong or (undisturbed / 'said').read_text()}")
            wanted = (undisturbed / "output").read_bytes()
            took = min(took, BOUND_S / 10)
            shutil.rmtree(undisturbed)
            for name, number in SIGNALS.items():
                strikes_total, longest = 0, 0
                for seed in range(options.seed, options.seed + options.count):
                    draw = random.Random(f"{case.name} {name} {seed}")
                    strikes = sorted((draw.random() * took, number, draw.random()) for _ in range(draw.randint(1, 3)))
                    place = folder / "struck"
                    wrong, time_s, struck = run(program, case, place, strikes, wanted)
                    strikes_total += struck
                    longest = max(longest, time_s or 0)
                    if wrong:
                        failed += 1
                        print(f"FAILED: {case.name}, {name}, seed {seed}: {wrong}", flush=True)
                    shutil.rmtree(place)
                print(
                    f"{case.name}, {name}: {options.count} runs, {strikes_total} signals; undisturbed {took:.1f} s, longest {longest:.1f} s",
                    flush=True,
                )
    print(f"{failed} failed")
    sys.exit(failed > 0)


main()
