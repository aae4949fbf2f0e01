#!/usr/bin/env python3
"""Is the plan that gristmill makes by itself ever slower than one worker? (requirement R4.4)

    bench/adaptive.py --output bench/runs/<date>-<machine>/adaptive
    bench/adaptive.py --plans default 1 4 16 --only cold       how many readers a cold disk wants

Inputs: 1000 files of 1 KiB, 1000 files of 1000 lines, one file of 100 MB. Each is read warm (from the page cache) and cold (the
page cache, directories and inodes are dropped before each run, which needs root). The plans run in turn, and every second
round in the opposite order. Writes runs.jsonl, one line for each run, and prints the medians.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DROP = Path("/proc/sys/vm/drop_caches")
APPS = {"word-count": ["word-count", "--top", "10"], "palindromes": ["palindromes", "--print", "total"]}
LINES = 1000


def make(lab, folder):
    """Makes the inputs that are missing, and returns the path of each."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {"files": folder / "small-files-small", "lines": folder / "lines", "one": folder / "word-count-large.txt"}
    if not inputs["files"].exists():
        subprocess.run([lab, "generate", "small-files", "-o", folder], check=True, stdout=subprocess.DEVNULL)
    if not inputs["one"].exists():
        made = subprocess.run(
            [lab, "generate", "word-count", "--size", "large", "-o", folder], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.split()
        Path(made[0]).rename(inputs["one"])
    if not inputs["lines"].exists():
        inputs["lines"].mkdir()
        with open(inputs["one"], "rb") as text:
            for number in range(1000):
                (inputs["lines"] / f"{number:04}.txt").write_bytes(b"".join(text.readline() for _ in range(LINES)))
    return inputs


def chill(gristmill):
    """Empties the page cache of everything but the program."""
    os.sync()
    DROP.write_text("3")
    Path(gristmill).read_bytes()
    subprocess.run([gristmill, "--version"], check=True, stdout=subprocess.DEVNULL)


def once(gristmill, words, plan, path):
    options = [] if plan == "default" else ["--workers", plan]
    command = [gristmill, *words, *options, "--quiet", path]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--gristmill", default=str(ROOT / "target/release/gristmill"))
    arguments.add_argument("--data", type=Path, default=ROOT / "bench/data/adaptive")
    arguments.add_argument("--output", type=Path)
    arguments.add_argument("--plans", nargs="+", default=["default", "1"])
    arguments.add_argument("--only", choices=["warm", "cold"])
    arguments.add_argument("--inputs", nargs="+", default=["files", "lines", "one"])
    arguments.add_argument("--apps", nargs="+", default=list(APPS))
    arguments.add_argument("--repeats", type=int, default=11)
    arguments.add_argument("--make", action="store_true", help="make the inputs, and do nothing else")
    asked = arguments.parse_args()
    inputs = make(asked.gristmill + "-lab", asked.data)
    if asked.make:
        return
    states = [state for state in ("warm", "cold") if asked.only in (None, state)]
    if "cold" in states and not os.access(DROP, os.W_OK):
        sys.exit("cold runs need root, to empty the page cache; --only warm leaves them out")
    runs = []
    for state in states:
        for name in asked.inputs:
            for app in asked.apps:
                # The first round is not counted.
                for number in range(asked.repeats + 1):
                    for plan in asked.plans if number % 2 else reversed(asked.plans):
                        if state == "cold":
                            chill(asked.gristmill)
                        seconds = once(asked.gristmill, APPS[app], plan, inputs[name])
                        if number:
                            runs.append({"state": state, "input": name, "app": app, "plan": plan, "seconds": seconds})
                said = f"{state} {name:5} {app:11}"
                times = {
                    plan: [run["seconds"] for run in runs if (run["state"], run["input"], run["app"], run["plan"]) == (state, name, app, plan)]
                    for plan in asked.plans
                }
                medians = {plan: statistics.median(times[plan]) for plan in asked.plans}
                for plan, median in medians.items():
                    said += f"  {plan} {median * 1e3:.1f} ms"
                if {"default", "1"} <= medians.keys():
                    said += f"  default / 1 = {medians['default'] / medians['1']:.3f}"
                print(said, flush=True)
    if asked.output:
        asked.output.mkdir(parents=True, exist_ok=True)
        with open(asked.output / "runs.jsonl", "w", encoding="utf-8") as out:
            print(json.dumps({"machine": platform.platform(), "processors": os.cpu_count(), "repeats": asked.repeats}), file=out)
            for run in runs:
                print(json.dumps({**run, "seconds": round(run["seconds"], 6)}), file=out)


if __name__ == "__main__":
    main()
