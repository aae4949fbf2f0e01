#!/usr/bin/env python3
"""Draws the gain of gristmill batch on the simulated machine by the number of executions.

It is given the rows of `gristmill-lab simulate --rows`.

    python3 bench/batch/gain.py rows.csv.gz > docs/batch-gain.svg

A point is the mean over the groups, and over the five executions around it.
"""

import csv
import gzip
import statistics
import sys
from collections import defaultdict

WAYS = {"with additions": "#2f7d5b", "across executions": "#c2702a"}
KINDS = {"figures 7 and 8": "", "unseen groups": "6 4"}
NAMES = {"figures 7 and 8": "the paper's groups", "unseen groups": "random groups"}
LEFT, TOP, WIDTH, HEIGHT, AROUND = 48, 14, 560, 250, 2


def gains(rows, kind, way):
    """Returns the mean gain over Linux of each execution, in percent."""
    spans = defaultdict(dict)
    for row in rows:
        if row["experiment"] == kind and row["measure"] == "makespan_s":
            spans[(row["setting"], int(row["number"]))][row["subject"]] = float(row["value"])
    numbers = sorted(number for setting, number in spans if setting == way)
    groups = lambda number: spans[(way, number)].items()
    return [statistics.mean(100 * (1 - span / spans[("Linux", number)][group]) for group, span in groups(number)) for number in numbers]


def main():
    with gzip.open(sys.argv[1], "rt") as file:
        rows = list(csv.DictReader(file))
    lines = {(kind, way): gains(rows, kind, way) for kind in KINDS for way in WAYS}
    smooth = {key: [statistics.mean(line[max(0, at - AROUND) : at + AROUND + 1]) for at in range(len(line))] for key, line in lines.items()}
    low = min(0, *(min(line) for line in smooth.values())) // 1
    high = -(-max(max(line) for line in smooth.values()) // 1)
    count = max(len(line) for line in smooth.values())
    x = lambda at: LEFT + (WIDTH - LEFT - 12) * at / (count - 1)
    y = lambda gain: HEIGHT - 44 - (HEIGHT - 44 - TOP) * (gain - low) / (high - low)
    print(f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT + 40}' font-family='sans-serif' font-size='11'>")
    print(f"<title>Gain over Linux by the number of executions</title><rect width='{WIDTH}' height='{HEIGHT + 40}' fill='#fff'/>")
    for mark in range(int(low), int(high) + 1):
        colour = "#888" if mark == 0 else "#e2e2e2"
        print(f"<path d='M{LEFT} {y(mark):.1f}H{WIDTH - 12}' stroke='{colour}'/>")
        print(f"<text x='{LEFT - 6}' y='{y(mark) + 4:.1f}' text-anchor='end'>{mark} %</text>")
    for at in range(0, count, 10):
        print(f"<text x='{x(at):.1f}' y='{HEIGHT - 26}' text-anchor='middle'>{at + 1}</text>")
    print(f"<text x='{(LEFT + WIDTH) / 2}' y='{HEIGHT - 8}' text-anchor='middle'>execution since the programs were known</text>")
    for (kind, way), line in smooth.items():
        points = "L".join(f"{x(at):.1f} {y(gain):.1f}" for at, gain in enumerate(line))
        print(f"<path d='M{points}' fill='none' stroke='{WAYS[way]}' stroke-width='2' stroke-dasharray='{KINDS[kind]}'/>")
    for place, (kind, way) in enumerate(smooth):
        left, top = LEFT + place % 2 * 250, HEIGHT + 8 + place // 2 * 18
        print(f"<path d='M{left} {top}h28' stroke='{WAYS[way]}' stroke-width='2' stroke-dasharray='{KINDS[kind]}'/>")
        print(f"<text x='{left + 34}' y='{top + 4}'>{NAMES[kind]}, {way.replace('with additions', 'with our additions')}</text>")
    print("</svg>")


main()
