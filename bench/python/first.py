#!/usr/bin/env python3
"""Measures how soon records come, and `distinct()`: Gristmill beside multiprocessing, a `set`, and Polars.

    first.py [--rounds 5] [--output FOLDER]

Runs alternate, each in a process of its own. The table has the median of each, and the least and greatest; a memory is the peak of the
program and of its largest worker. With --output, rows.json has every run and README.md the table.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

#: The tasks, and for each program the lines that do it. They set `found`, on which the programs must agree.
TASKS = {
    "first record of 50,000, 1 ms each": {
        "Gristmill": "found = next(iter(gm.range(50_000).map(slow)))",
        "Pool.imap": "with multiprocessing.Pool(2) as pool:\n    found = next(pool.imap(slow, range(50_000)))\n    pool.terminate()",
    },
    "take(1) of a million": {
        "Gristmill": "found = gm.range(10**6).map(abs).take(1)[0]",
        "Pool.imap": "with multiprocessing.Pool(2) as pool:\n    found = next(pool.imap(abs, range(10**6), 1000))\n    pool.terminate()",
    },
    "three records of an endless generator": {
        "Gristmill": "found = gm.range(2).flat_map(endless).take(3)",
    },
    "6 million strings from one record": {
        "Gristmill": "with gm.configure(memory='100MiB'):\n    found = sum(1 for _ in gm.range(1).flat_map(strings))",
        "Pool.imap": "with multiprocessing.Pool(1) as pool:\n    found = sum(len(each) for each in pool.imap(all_strings, range(1)))",
    },
    "distinct of 2 million URLs": {
        "Gristmill": "found = len(gm.read_text(sys.argv[1]).distinct().collect())",
        "set": "with open(sys.argv[1]) as file:\n    found = len({line.rstrip('\\n') for line in file})",
        "Polars": "found = polars.read_csv(sys.argv[1], has_header=False, separator='\\t', quote_char=None).to_series().unique().len()",
    },
    "count of a million, trivial function": {
        "Gristmill": "found = gm.range(10**6).map(abs).count()",
        "Pool.imap": "with multiprocessing.Pool(2) as pool:\n    found = sum(1 for _ in pool.imap(abs, range(10**6), 10_000))",
    },
}
IMPORTS = {"Gristmill": "import gristmill as gm", "Polars": "import polars", "set": "", "Pool.imap": "import multiprocessing"}
PROGRAM = """
import json, resource, sys, time
{imports}

def slow(n):
    time.sleep(0.001)
    return n

def endless(n):
    while True:
        yield n

def strings(n):
    for number in range(6_000_000):
        yield f"string number {{number}}"

def all_strings(n):
    return list(strings(n))

if __name__ == "__main__":
    began = time.perf_counter()
{lines}
    seconds = time.perf_counter() - began
    # `getrusage` counts what the process that started this one had.
    own = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    memory = [own >> 10, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10]
    print(json.dumps({{"seconds": seconds, "mebibytes": memory, "found": found}}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        urls = Path(folder) / "urls"
        draw = random.Random(1)
        numbers = (draw.randrange(1_300_000) for _ in range(2_000_000))
        urls.write_text("".join(f"https://example.com/{n % 977}/page/{n * 2654435761 % 2**32:x}?id={n}\n" for n in numbers))
        for task, programs in TASKS.items():
            for number in range(args.rounds):
                for name, lines in programs.items():
                    file = Path(folder) / "program.py"
                    file.write_text(PROGRAM.format(imports=IMPORTS[name], lines="\n".join("    " + line for line in lines.split("\n"))))
                    ran = subprocess.run([sys.executable, file, urls], stdout=subprocess.PIPE, text=True, check=True)
                    runs.append({"task": task, "program": name, "round": number, **json.loads(ran.stdout)})
            assert len({json.dumps(run["found"]) for run in runs if run["task"] == task}) == 1, f"the answers of {task} differ"
    table = made(runs)
    print(table)
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        (args.output / "rows.json").write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n")
        machine = f"{os.cpu_count()} processors, Python {platform.python_version()}"
        head = f"# How soon records come in Python\n\n`bench/python/first.py --rounds {args.rounds}`, {machine}.\n\n"
        (args.output / "README.md").write_text(head + table)


def made(runs: list[dict]) -> str:
    lines = ["| task | program | seconds (least to greatest) | MiB, program and worker |", "|---|---|---|---|"]
    for task, programs in TASKS.items():
        for name in programs:
            seconds = [run["seconds"] for run in runs if (run["task"], run["program"]) == (task, name)]
            memory = [run["mebibytes"] for run in runs if (run["task"], run["program"]) == (task, name)]
            peaks = ", ".join(str(max(each)) for each in zip(*memory))
            lines.append(f"| {task} | {name} | {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f}) | {peaks} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
