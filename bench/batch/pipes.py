#!/usr/bin/env python3
"""Times `gristmill batch` with another build of it, and with GNU parallel where that is installed, in alternation.

    bench/batch/pipes.py BEFORE AFTER [ROUNDS]      prints a table in Markdown; each job is a whole queue

Wall times in seconds: median (least..most). The outputs are compared before anything is timed.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHORT = 2000
LARGE = "yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c {}"


def queue(program, *words):
    return [program, "batch", "--no-history", "-q", "-j", "2", *words]


def jobs(before, after):
    """Yields the name of each job, and the command of each program that can do it."""
    values = [":::", *map(str, range(SHORT))]
    parallel = shutil.which("parallel")
    known = [("before", before), ("after", after)]

    def queues(*words):
        return {name: queue(program, *words) for name, program in known}

    short = queues("--", "true", *values)
    if parallel:
        short["GNU parallel"] = [parallel, "-j", "2", "true", *values]
    yield f"{SHORT} programs that do nothing", short, None
    for name, count, size in (("one program that prints 2 GB", 1, 2 << 30), ("20 that print 50 MB each", 20, 50_000_000)):
        numbers = [":::", *map(str, range(count))]
        words = ["--", "sh", "-c", LARGE.format(size), *numbers]
        printed = queues(*words)
        if parallel:
            printed["GNU parallel"] = [parallel, "-j", "2", f"true {{}}; {LARGE.format(size)}", *numbers]
        yield f"{name}, printed to a pipe", printed, count * size
        yield f"{name}, kept by --output", queues("--output", "kept", *words), None


def run(words, folder, expected_bytes):
    """Runs a queue in `folder` and returns its seconds.

    Its output is counted if `expected_bytes` says how much that is.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.perf_counter()
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        count = 0
        while piece := process.stdout.read(1 << 20):
            count += len(piece)
    seconds = time.perf_counter() - began
    if process.returncode != 0 or (expected_bytes is not None and count != expected_bytes):
        sys.exit(f"{words[:3]}: status {process.returncode}, {count} bytes")
    return seconds


def main():
    before, after = (str(Path(path).resolve()) for path in sys.argv[1:3])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print("| job | before | after | GNU parallel | after : before | after : GNU parallel |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, programs, expected_bytes in jobs(before, after):
            times = {program: [] for program in programs}
            for _ in range(rounds):
                for program, words in programs.items():
                    times[program].append(run(words, Path(folder) / "t", expected_bytes))
            shown = {program: f"{statistics.median(all):.2f} ({min(all):.2f}..{max(all):.2f})" for program, all in times.items()}
            medians = {program: statistics.median(all) for program, all in times.items()}
            ratios = [f"{medians['after'] / medians[other]:.2f}" if other in medians else "" for other in ("before", "GNU parallel")]
            row = [name, shown["before"], shown["after"], shown.get("GNU parallel", ""), *ratios]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
