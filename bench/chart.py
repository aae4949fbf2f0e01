#!/usr/bin/env python3
"""Draws bench/peers.svg, the chart of the README, from raw results in bench/runs.

bench/chart.py            writes the chart
bench/chart.py --check    fails if the chart is not what the results give
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median_high

HERE = Path(__file__).resolve().parent
CHART = HERE / "peers.svg"
#: Title, results, the task in them (none: they are of one set, by run.py), and the programs with the names that
#: readers know.
PANELS = [
    (
        "Word count: 100 MB of source code, 1.6 million different words",
        "2026-11-29-xeon-2core/word-count-keys-100m.json",
        None,
        {"gristmill": "Gristmill", "wc_threads": "Rust by hand", "chDB": "chDB", "wc_rayon": "rayon", "Polars": "Polars"},
    ),
    (
        "A Python function for each of 200,000 groups of 20 million rows",
        "2026-11-29-xeon-2core/python/rows.json",
        "groups",
        {"gristmill": "Gristmill", "pandas": "pandas", "pool": "multiprocessing", "duckdb": "DuckDB", "polars": "Polars"},
    ),
    (
        "Sort of 4 GiB within 1 GiB of memory",
        "2026-11-29-xeon-2core/sort-4g.json",
        None,
        {"gristmill": "Gristmill", "DuckDB": "DuckDB", "GNU sort": "GNU sort"},
    ),
]
WIDTH, NAMES, BARS, ROW, HEAD, GAP = 720, 160, 480, 22, 26, 16
STYLE = (
    "text{font:13px sans-serif;fill:#1f2328}.t{font-weight:600}.n{text-anchor:end}.g{fill:#c2571a}.p{fill:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.g{fill:#f0883e}.p{fill:#6e7681}}"
)


def seconds(results, task):
    """Returns the median time of each program."""
    rows = json.loads((HERE / "runs" / results).read_text())
    if task is None:
        return {program["name"]: program["wall_s"]["median"] for program in rows["results"]}
    times = defaultdict(list)
    for row in rows:
        if row["task"] == task:
            times[row["program"]].append(row["seconds"])
    return {program: median_high(taken) for program, taken in times.items()}


def drawn():
    """Returns the chart: a bar for each program, and a scale of its own for each panel."""
    lines, y = [], 0
    for title, results, task, programs in PANELS:
        times = seconds(results, task)
        longest = max(times[program] for program in programs)
        lines.append(f'<text class="t" x="{NAMES + 8}" y="{y + 16}">{title}</text>')
        y += HEAD
        for program, name in programs.items():
            width = max(2, BARS * times[program] / longest)
            kind = "g" if program == "gristmill" else "p"
            lines += [
                f'<text class="n" x="{NAMES}" y="{y + 15}">{name}</text>',
                f'<rect class="{kind}" x="{NAMES + 8}" y="{y + 3}" width="{width:.0f}" height="{ROW - 6}" rx="2"/>',
                f'<text x="{NAMES + 14 + width:.0f}" y="{y + 15}">{times[program]:.3g} s</text>',
            ]
            y += ROW
        y += GAP
    height = y - GAP + 4
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    title = "<title>Seconds that jobs take, less is better</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", *lines, "</svg>", ""])


def main():
    if sys.argv[1:] != ["--check"]:
        CHART.write_text(drawn())
        return 0
    if CHART.read_text() != drawn():
        print("bench/peers.svg is not what the results give; bench/chart.py draws it", file=sys.stderr)
        return 1
    print("bench/peers.svg shows the results")
    return 0


if __name__ == "__main__":
    sys.exit(main())
