#!/usr/bin/env python3
"""Medians of the runs that pair.sh has made, as a table: table.py RUNS.jsonl...

The last column is the seconds of each over the sort shuffle's, or over those of the plugin before a change. shuffle_s is the shuffle time of
OPS (Cheng et al. 2020): writing (with us that includes waiting for pages) and waiting for fetches, summed over tasks.
"""

import collections
import json
import statistics
import sys

ROW = ("cluster", "job", "maps", "partitions", "bytes")
COLUMNS = ("seconds", "cpu_seconds", "map_s", "reduce_s", "shuffle_s", "remote", "remote_requests", "local_requests")
SET = ("wordcount", "sort", "terasort", "join", "aggregation", "pagerank")


def load(paths):
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for run in map(json.loads, lines):
                run["shuffle_s"] = run["write_s"] + run["fetch_wait_s"]
                rows[tuple(run[key] for key in ROW)][run["shuffle"]].append(run)
    return rows


def median(runs, column):
    return statistics.median(float(run[column]) for run in runs)


def main(paths):
    print("| cluster | job | maps x partitions | MB | shuffle | runs | " + " | ".join(COLUMNS) + " | ratio |")
    print("|---" * (len(COLUMNS) + 7) + "|")
    of_set = []
    for (cluster, job, maps, partitions, size), shuffles in load(paths).items():
        present = [shuffle for shuffle in ("sort", "before", "magnet", "gristmill") if shuffle in shuffles]
        for shuffle in present:
            runs, ratio = shuffles[shuffle], ""
            if shuffle != present[0]:
                value = median(runs, "seconds") / median(shuffles[present[0]], "seconds")
                ratio = f"{value:.2f}"
                if cluster == "disks" and job in SET and shuffle == "gristmill":
                    of_set.append(value)
            cells = [f"{round(median(runs, column), 2):.10g}" for column in COLUMNS]
            print(
                f"| {cluster} | {job} | {maps} x {partitions} | {int(size) // 1_000_000} | {shuffle} | {len(runs)} | "
                + " | ".join(cells)
                + f" | {ratio} |"
            )
    if of_set:
        print(f"\nGeometric mean over {len(of_set)} of the {len(SET)} jobs of the set: {statistics.geometric_mean(of_set):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
