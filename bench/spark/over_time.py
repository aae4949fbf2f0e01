#!/usr/bin/env python3
"""Disk operations and requests for blocks in each second of a run, as OPS (Cheng et al. 2020) draws them. Linux.

    over_time.py sample SAMPLES FOLDER...                 until it is ended: what the disks of these folders have done so far, twice a second
    over_time.py table SAMPLES LOG [key=value ...]        one JSON line from the samples and the run's Spark event log; the extra pairs are copied
    over_time.py chart LINES > SVG                        draws such lines, the last one of each shuffle

A request is a block that a reduce task has fetched; they are counted in the second in which the task ended.
"""

import collections
import itertools
import json
import os
import sys
import time

EVERY = 0.5
COLOURS = {"sort": "#c2702a", "magnet": "#4a6fa5", "gristmill": "#2f7d5b"}
LEFT, WIDTH, PANEL, GAP = 64, 640, 150, 46


def operations(device):
    with open(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat", encoding="ascii") as file:
        numbers = file.read().split()
    return int(numbers[0]) + int(numbers[4])  # reads and writes that were completed


def sample(path, folders):
    devices = {os.stat(folder).st_dev for folder in folders}
    with open(path, "w", encoding="ascii") as out:
        while True:
            print(time.time(), sum(map(operations, devices)), file=out, flush=True)
            time.sleep(EVERY)


def per_second(samples, begin):
    seconds = collections.Counter()
    for (_, before), (at, done) in itertools.pairwise(samples):
        seconds[int(at - begin)] += done - before
    return seconds


def table(samples, log, pairs):
    with open(samples, encoding="ascii") as file:
        samples = [(float(at), int(done)) for at, done in map(str.split, file)]
    begin, requests, maps_end = None, collections.Counter(), 0
    with open(log, encoding="utf-8") as events:
        for event in map(json.loads, events):
            if event["Event"] == "SparkListenerJobStart" and begin is None:
                begin = event["Submission Time"] / 1000
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                second = int(event["Task Info"]["Finish Time"] / 1000 - begin)
                read = event["Task Metrics"]["Shuffle Read Metrics"]
                requests[second] += read["Remote Blocks Fetched"] + read["Local Blocks Fetched"]
                if event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]:
                    maps_end = second
    disk = per_second([one for one in samples if one[0] >= begin], begin)
    end = max([*disk, *requests])
    counts = {"operations": [disk[s] for s in range(end + 1)], "requests": [requests[s] for s in range(end + 1)]}
    print(json.dumps(pairs | {"maps_end": maps_end} | counts))


def chart(path):
    with open(path, encoding="utf-8") as file:
        runs = {run["shuffle"]: run for run in map(json.loads, file)}
    seconds = max(len(run["operations"]) for run in runs.values())
    height = 2 * PANEL + 2 * GAP + 24
    x = lambda second: LEFT + (WIDTH - LEFT - 12) * second / seconds
    print(f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' font-family='sans-serif' font-size='11'>")
    print(f"<title>Disk operations and requests in each second</title><rect width='{WIDTH}' height='{height}' fill='#fff'/>")
    for panel, (key, title) in enumerate({"operations": "disk operations per second", "requests": "blocks fetched per second"}.items()):
        top = 20 + panel * (PANEL + GAP)
        high = max(1, *(max(run[key]) for run in runs.values()))
        y = lambda value: top + PANEL * (1 - value / high)  # noqa: B023
        print(f"<text x='{LEFT}' y='{top - 6}'>{title}</text>")
        for mark in (0, high // 2, high):
            print(f"<path d='M{LEFT} {y(mark):.1f}H{WIDTH - 12}' stroke='#e2e2e2'/>")
            print(f"<text x='{LEFT - 6}' y='{y(mark) + 4:.1f}' text-anchor='end'>{mark:,}</text>")
        for second in range(0, seconds, max(1, seconds // 8 // 5 * 5)):
            print(f"<text x='{x(second):.1f}' y='{top + PANEL + 14}' text-anchor='middle'>{second} s</text>")
        for name, run in runs.items():
            line = "L".join(f"{x(second):.1f} {y(value):.1f}" for second, value in enumerate(run[key]))
            print(f"<path d='M{line}' fill='none' stroke='{COLOURS[name]}' stroke-width='1.5'/>")
            print(f"<path d='M{x(run['maps_end']):.1f} {top}v{PANEL}' stroke='{COLOURS[name]}' stroke-dasharray='2 4'/>")
    for place, name in enumerate(runs):
        print(f"<path d='M{LEFT + place * 110} {height - 14}h28' stroke='{COLOURS[name]}' stroke-width='2'/>")
        print(f"<text x='{LEFT + 34 + place * 110}' y='{height - 10}'>{name}</text>")
    print(f"<text x='{LEFT + 34 + len(runs) * 110}' y='{height - 10}'>dotted: the last map has ended</text>\n</svg>")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "sample":
        sample(rest[0], rest[1:])
    elif what == "table":
        table(rest[0], rest[1], dict(pair.split("=", 1) for pair in rest[2:]))
    else:
        chart(rest[0])
