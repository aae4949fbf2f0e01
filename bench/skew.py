#!/usr/bin/env python3
"""How unequal the parts of reducers are where some keys have many of the pairs.

    bench/skew.py COMMAND...    for each gristmill command: 16 million words by Zipf's law, nothing combined in map

Prints, for each exponent and number of workers, the pairs of the fullest reducer as a multiple of a fair part: the median
and the range of five runs, because every run draws another seed for its hashes. Beside it is the largest key alone.
"""

import collections
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DRAWN, TIMES, KEYS, RUNS = 4_000_000, 4, 100_000, 5
EXPONENTS, WORKERS = (0.9, 1.2), (8, 16, 32)


def words(exponent):
    """Draws words whose frequencies follow Zipf's law."""
    sums = list(itertools.accumulate(rank**-exponent for rank in range(1, KEYS + 1)))
    return random.Random(1).choices([f"word{rank:06}" for rank in range(KEYS)], cum_weights=sums, k=DRAWN)


def fullest(command, text, workers, stats):
    """Returns the pairs of the fullest reducer as a multiple of a fair part, by the statistics of a run."""
    options = ["--workers", str(workers), "--buffer", "array", "--combine", "reduce", "--stats", stats]
    subprocess.run([command, "word-count", *options, text], check=True, stdout=subprocess.DEVNULL)
    parts = [worker["counts"]["pairs_reduced"] for worker in json.loads(Path(stats).read_text())["workers"]]
    assert sum(parts) == DRAWN * TIMES, parts
    return max(parts) * len(parts) / sum(parts)


def main():
    commands = sys.argv[1:] or sys.exit(__doc__)
    print("| exponent | workers | largest key |", " | ".join(commands), "|")
    print("|---|---|---|" + "---|" * len(commands))
    with tempfile.TemporaryDirectory() as folder:
        text, stats = f"{folder}/text", f"{folder}/stats.json"
        for exponent in EXPONENTS:
            drawn = words(exponent)
            Path(text).write_text(("\n".join(drawn) + "\n") * TIMES)
            largest = max(collections.Counter(drawn).values()) / DRAWN
            for workers in WORKERS:
                cells = []
                for command in commands:
                    found = sorted(fullest(command, text, workers, stats) for _ in range(RUNS))
                    cells.append(f"{statistics.median(found):.2f} ({found[0]:.2f} to {found[-1]:.2f})")
                print(f"| {exponent} | {workers} | {largest * workers:.2f} | {' | '.join(cells)} |", flush=True)


main()
