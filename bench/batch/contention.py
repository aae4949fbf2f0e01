#!/usr/bin/env python3
"""Measures what gristmill batch gains with synthetic programs while the machine shows more or less contention.

    python3 bench/batch/contention.py GRISTMILL PROGRAMS ROUNDS > rows.csv
    python3 bench/batch/contention.py rows.csv        # the summary

PROGRAMS is a folder with `triad` and `compute` (bench/batch/pair.rs). Two or three of each run on two processors, all at once: chosen by
the queue (--by-bandwidth), in the system's order, and by an oracle that puts a triad beside a computation at all times. The ways alternate,
in reverse order in every second round. Contention is the time of a triad beside a triad, divided by its time beside a computation; it is
measured before and after each round, and the row has the mean. On a machine that is shared with others, it comes and goes.
"""

import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

TRIAD, COMPUTE = "./triad 450", "./compute 240"
SHORT = ["./triad", "60"], ["./compute", "1000"]
BOUNDS = [1.15, 1.3]


def beside(other, folder):
    """Returns the seconds of a short triad beside another program."""
    second = subprocess.Popen(["taskset", "-c", "1", *other], cwd=folder)
    began = time.monotonic()
    subprocess.run(["taskset", "-c", "0", *SHORT[0]], cwd=folder, check=True)
    took = time.monotonic() - began
    second.kill()
    second.wait()
    return took


def contention(folder):
    return beside(["./triad", "1000"], folder) / beside(SHORT[1], folder)


def run(command, folder):
    began = time.monotonic()
    said = subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout
    return time.monotonic() - began, said


def chosen(said):
    """Returns the mean share of the processor time in which programs were chosen."""
    rows = [json.loads(line) for line in said.splitlines()]
    return statistics.mean(row["chosen"] for row in rows if "began_ms" in row)


def measure(gristmill, folder, rounds):
    print("task,round,contention,gristmill,system,oracle,chosen", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for count in [2, 3]:
            jobs = f"{work}/{count}.jobs"
            with open(jobs, "w") as file:
                file.write("".join(f"{line}\n" for line in [TRIAD] * count + [COMPUTE] * count))
            batch = f"{gristmill} batch -q --json --history {work}/{count} -j {2 * count} {jobs}"
            lanes = [" ; ".join([first, second] * (count // 2) + [first] * (count % 2)) for first, second in [(TRIAD, COMPUTE), (COMPUTE, TRIAD)]]
            ways = {
                "gristmill": f"{batch} --by-bandwidth",
                "system": batch,
                "oracle": f"taskset -c 0 sh -c '{lanes[0]}' & taskset -c 1 sh -c '{lanes[1]}'; wait",
            }
            # Rounds before the first make the programs known.
            before = 1.0
            for turn in range(-1, rounds + 1):
                took = {way: run(ways[way], folder) for way in (ways if turn % 2 else reversed(ways))}
                after = contention(folder)
                if turn > 0:
                    seconds = ",".join(f"{took[way][0]:.3f}" for way in ways)
                    print(f"{count}+{count},{turn},{(before + after) / 2:.3f},{seconds},{chosen(took['gristmill'][1]):.2f}", flush=True)
                before = after


def summarise(path):
    rows = collections.defaultdict(list)
    with open(path) as file:
        for row in csv.DictReader(file):
            level = sum(float(row["contention"]) >= bound for bound in BOUNDS)
            rows[row["task"], level].append({name: float(row[name]) for name in ["gristmill", "system", "oracle", "chosen"]})
    names = [f"below {BOUNDS[0]}", f"{BOUNDS[0]} to {BOUNDS[1]}", f"{BOUNDS[1]} and more"]
    print("| task | contention | rounds | gristmill / system | oracle / system | chosen |\n|---|---|---|---|---|---|")
    for (task, level), some in sorted(rows.items()):
        ratios = [row["gristmill"] / row["system"] for row in some]
        spread = f"{statistics.mean(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
        oracle = statistics.mean(row["oracle"] / row["system"] for row in some)
        share = statistics.mean(row["chosen"] for row in some)
        print(f"| {task} | {names[level]} | {len(some)} | {spread} | {oracle:.3f} | {share:.0%} |")


if len(sys.argv) == 2:
    summarise(sys.argv[1])
else:
    measure(os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
