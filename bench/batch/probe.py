#!/usr/bin/env python3
"""Compares what probes of the memory tell with what a program loses beside another one.

    python3 bench/batch/probe.py PROGRAMS ROUNDS > rows.csv

PROGRAMS is a folder with `triad` and `compute` (bench/batch/pair.rs) and `probe` (bench/batch/probe.rs). In each round,
a triad runs beside a computation and beside a triad, whose times give the contention; between them, each kind of probe reads beside two
computations, and beside a triad and a computation. A row has the contention before and after, and the median of each kind in both cases.
"""

import contextlib
import subprocess
import sys
import time

TRIAD, COMPUTE = ["./triad", "100000"], ["./compute", "100000"]


@contextlib.contextmanager
def running(folder, *programs):
    """Runs a program on each of the first processors meanwhile."""
    started = [subprocess.Popen(["taskset", "-c", str(at), *program], cwd=folder) for at, program in enumerate(programs)]
    time.sleep(0.25)
    yield
    for process in started:
        process.kill()
        process.wait()


def triad_seconds(folder, other):
    with running(folder, other):
        began = time.monotonic()
        subprocess.run(["taskset", "-c", "1", "./triad", "60"], cwd=folder, check=True)
        return time.monotonic() - began


def readings(folder, *programs):
    with running(folder, *programs):
        # On the first processor, it takes the place of a computation, and reads beside the other program.
        command = ["taskset", "-c", "0", "./probe", "8", "15"]
        said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return dict(line.split("\t") for line in said.splitlines())


def main():
    folder, rounds = sys.argv[1], int(sys.argv[2])
    print("round,contention_before,contention_after,probe,beside_compute_us,beside_triad_us")
    for turn in range(1, rounds + 1):
        calm = readings(folder, COMPUTE, COMPUTE)
        before = triad_seconds(folder, TRIAD) / triad_seconds(folder, COMPUTE)
        pressed = readings(folder, COMPUTE, TRIAD)
        after = triad_seconds(folder, TRIAD) / triad_seconds(folder, COMPUTE)
        for kind in calm:
            print(f'{turn},{before:.3f},{after:.3f},"{kind}",{calm[kind]},{pressed[kind]}', flush=True)


main()
