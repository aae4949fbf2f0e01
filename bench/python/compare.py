#!/usr/bin/env python3
"""Compares jobs in Python: Gristmill with multiprocessing tuned by hand, pandas, Polars and DuckDB.

    compare.py --text FILE [--rounds 5] [--rows 20000000] [--tasks words,tiny] [--programs gristmill,pool] [--output FOLDER]

Runs alternate: in each round every program runs once, in a process of its own. The table has the median of each.
Programs that are not installed for this Python are left out, with a message. With --memory-mib, each program runs in
a cgroup of its own with so much memory; this needs root. The answers must agree; words of SQL programs end at other
white space, so theirs may differ by a thousandth. The table names programs that fail, and the exit status is then 1.
With --output, rows.json has every run and README.md the table.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks import TASKS, WORKERS

FOLDER = Path(__file__).parent
#: The tasks that need no limit of memory.
ORDINARY = [task for task in TASKS if task != "large"]
#: Programs, the module that each needs, and the tasks that each can do.
PROGRAMS = {
    "gristmill": ("gristmill._native", list(TASKS)),
    "pool": ("multiprocessing", [task for task in ORDINARY if task not in ("totals", "distinct")]),
    "python": ("builtins", ["distinct"]),
    "pandas": ("pandas", ["words", "groups", "totals"]),
    "polars": ("polars", ["words", "groups", "totals", "distinct"]),
    "duckdb": ("duckdb", ["words", "groups", "totals", "large"]),
}
TITLES = {"gristmill": "Gristmill", "pool": "multiprocessing", "python": "plain Python", "pandas": "pandas", "polars": "Polars", "duckdb": "DuckDB"}
SQL = ("polars", "duckdb")
#: Files of rows, so that several processes can read them.
ROW_FILES = 16
#: The lines of the task distinct, and the number of addresses that they are drawn from.
ADDRESSES = 2_000_000
SITES, PAGES = 1000, 1000
LIMIT_SECONDS = 600


def main() -> None:
    args = parsed()
    programs = [name for name in args.programs.split(",") if installed(name)]
    tasks = [task for task in TASKS if task in args.tasks.split(",")]
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        rows = make_rows(Path(folder), args.rows) if {"groups", "large"} & set(tasks) else []
        wide = make_rows(Path(folder, "wide"), args.rows, more=40) if "totals" in tasks else []
        addresses = make_addresses(Path(folder)) if "distinct" in tasks else []
        inputs = {"totals": wide, "distinct": addresses}
        if {"words", "pairs"} & set(tasks):
            warm(args.text)
        for task in tasks:
            able = [name for name in programs if task in PROGRAMS[name][1]]
            for number in range(args.rounds):
                # Each round begins with another program.
                for name in able[number % len(able) :] + able[: number % len(able)]:
                    runs.append({"task": task, "program": name, **run(name, task, args.text, inputs.get(task, rows), args.memory_mib)})
                    print(f"{task} {name}: {runs[-1].get('seconds', runs[-1].get('failed'))}", file=sys.stderr)
            check([each for each in runs if each["task"] == task])
    report = "\n".join(lines(runs, tasks, programs, args))
    print(report)
    if args.output:
        Path(args.output).mkdir(parents=True, exist_ok=True)
        Path(args.output, "README.md").write_text(report + "\n")
        Path(args.output, "rows.json").write_text(json.dumps(runs, indent=1) + "\n")
    if any("failed" in each for each in runs):
        sys.exit(1)


def parsed() -> argparse.Namespace:
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--text", default="", help="a file of UTF-8 text, for the tasks words and pairs")
    args.add_argument("--rows", type=int, default=20_000_000, help="rows to group, a hundred for each key (20000000)")
    args.add_argument("--rounds", type=int, default=5, help="how often each program runs (5)")
    args.add_argument("--memory-mib", type=int, help="the memory of a program; the task large needs this")
    args.add_argument("--tasks", default=",".join(ORDINARY), help=", ".join(TASKS))
    args.add_argument("--programs", default=",".join(PROGRAMS), help=", ".join(PROGRAMS))
    args.add_argument("--output", help="a folder for the table and all runs")
    found = args.parse_args()
    if unknown := {*found.tasks.split(",")} - {*TASKS} | {*found.programs.split(",")} - {*PROGRAMS}:
        args.error(f"there is no {', '.join(sorted(unknown))}")
    if not found.text and {"words", "pairs"} & {*found.tasks.split(",")}:
        args.error("the tasks words and pairs need --text FILE")
    if not found.memory_mib and "large" in found.tasks.split(","):
        args.error("the task large needs --memory-mib")
    return found


def installed(name: str) -> bool:
    module = PROGRAMS[name][0]
    try:
        there = importlib.util.find_spec(module) is not None
    except ImportError:
        there = False
    if not there:
        print(f"{name} is left out: {module} is not installed", file=sys.stderr)
    return there


def make_rows(folder: Path, count: int, more: int = 0) -> list[str]:
    """Files with random keys and values, and `more` columns of numbers; the same ones each time."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(exist_ok=True)
    chance = numpy.random.default_rng(23)
    paths = [str(folder / f"{number}.parquet") for number in range(ROW_FILES)]
    for path in paths:
        rows = count // ROW_FILES
        table = {"key": chance.integers(0, max(1, count // 100), rows), "value": chance.integers(0, 2**30, rows) / 2**10}
        table |= {f"more {number}": chance.random(rows) for number in range(more)}
        pyarrow.parquet.write_table(pyarrow.table(table), path)
    return paths


def make_addresses(folder: Path) -> list[str]:
    """A file of random addresses, a line each; the same ones each time."""
    import random

    chance = random.Random(23)
    pages = (divmod(chance.randrange(SITES * PAGES), PAGES) for _ in range(ADDRESSES))
    path = folder / "addresses.txt"
    path.write_text("".join(f"https://www.site-{site}.example.org/articles/2026/{page}.html\n" for site, page in pages))
    return [str(path)]


def warm(path: str) -> None:
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def run(program: str, task: str, text: str, rows: list[str], memory_mib: int | None) -> dict[str, Any]:
    """The seconds and the answer of one run, or how it failed."""
    command = [sys.executable, str(FOLDER / "one.py"), program, task, text, *rows]
    environment = os.environ | {"BENCH_WORKERS": str(WORKERS), "BENCH_MIB": str(memory_mib)}
    limited = cgroup(memory_mib) if memory_mib else contextlib.nullcontext([])
    try:
        with limited as enter:
            command = [*enter, *command]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LIMIT_SECONDS} s"}
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


@contextlib.contextmanager
def cgroup(memory_mib: int) -> Iterator[list[str]]:
    """Makes a cgroup with this memory, for as long as the block runs.

    Put before a command, the list that it gives runs the command in the cgroup.
    """
    root = Path("/sys/fs/cgroup")
    first = (root / "memory").exists()
    folder = root / "memory/gristmill-bench" if first else root / "gristmill-bench"
    folder.mkdir()
    try:
        (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(memory_mib << 20))
        yield ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(folder / "cgroup.procs")]
    finally:
        while (folder / "cgroup.procs").read_text():
            time.sleep(0.1)
        folder.rmdir()


def check(runs: list[dict[str, Any]]) -> None:
    """Ends the comparison if programs disagree."""
    answers = {each["program"]: each["answer"] for each in runs if "answer" in each}
    expected: list[float] = answers.get("pool") or next(iter(answers.values()), [])
    for program, answer in answers.items():
        slack = 1e-3 if program in SQL else 1e-9
        if any(abs(a - b) > slack * max(abs(b), 1) for a, b in zip(answer, expected)):
            sys.exit(f"the answers of the task {runs[0]['task']} differ: {answers}")


def lines(runs: list[dict[str, Any]], tasks: list[str], programs: list[str], args: argparse.Namespace) -> list[str]:
    """The table in Markdown."""
    versions = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in programs if name not in ("pool", "python"))]
    text = f"The text has {os.path.getsize(args.text) / 1e6:.0f} MB. " if args.text else ""
    rows = f"There are {args.rows:,} rows and {args.rows // 100:,} keys. " if {"groups", "large", "totals"} & set(tasks) else ""
    if args.memory_mib:
        rows += f"Each program has {args.memory_mib} MiB of memory. "
    found = [
        f"Seconds, medians of {args.rounds} alternating runs, on {processor()} with {WORKERS} workers. {text}{rows}Imports do not count.",
        f"{', '.join(versions)}. The mean load of the last minutes was {os.getloadavg()[1]:.1f}.",
        "",
        f"| task | {' | '.join(TITLES[name] for name in programs)} |",
        f"|---|{'---|' * len(programs)}",
    ]
    for task in tasks:
        medians = {name: median_of([each for each in runs if (each["task"], each["program"]) == (task, name)]) for name in programs}
        least = min((seconds for seconds in medians.values() if isinstance(seconds, float)), default=None)
        cells = [shown(seconds, seconds == least) for seconds in medians.values()]
        found.append(f"| {TASKS[task]} | {' | '.join(cells)} |")
    return found


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of a working copy, not of a wheel"


def median_of(runs: list[dict[str, Any]]) -> float | str:
    failed = [each["failed"] for each in runs if "failed" in each]
    return f"failed: {failed[0]}" if failed else statistics.median(each["seconds"] for each in runs) if runs else ""


def shown(seconds: float | str, least: bool) -> str:
    if isinstance(seconds, str):
        return seconds.replace("|", "\\|")
    text = f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"
    return f"**{text}**" if least else text


def processor() -> str:
    """The name of the processor."""
    if shutil.which("lscpu"):
        told = subprocess.run(["lscpu"], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}, check=False).stdout
        for line in told.splitlines():
            if line.startswith("Model name:"):
                return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
