#!/usr/bin/env python3
"""Medians of the runs that rows.sh has made, as a table: table.py FILE.jsonl..."""
import collections
import json
import os
import statistics
import sys

COLUMNS = ["seconds", "cpu_seconds", "map_s", "reduce_s", "write_s", "fetch_wait_s", "remote", "remote_requests",
           "local_requests"]


def main(paths):
    print("| row | maps | shuffle | runs | " + " | ".join(COLUMNS) + " | ours / sort |")
    print("|---" * (len(COLUMNS) + 5) + "|")
    for path in paths:
        rows = collections.defaultdict(list)
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                run = json.loads(line)
                rows[int(run["maps"]), run["bytes"], run["shuffle"]].append(run)
        for (maps, size, shuffle), runs in sorted(rows.items(), key=lambda row: (row[0][0], row[0][1], row[0][2] != "sort")):
            medians = {c: statistics.median(float(r[c]) for r in runs) for c in COLUMNS if all(c in r for r in runs)}
            stock = rows.get((maps, size, "sort"))
            ratio = "" if shuffle == "sort" or not stock else "%.2f" % (
                medians["seconds"] / statistics.median(float(r["seconds"]) for r in stock))
            cells = ["%.10g" % round(medians[c], 2) if c in medians else "" for c in COLUMNS]
            name = os.path.basename(path).removesuffix(".jsonl")
            print(f"| {name}, {int(size) / 1e9:g} GB | {maps} | {shuffle} | {len(runs)} | " + " | ".join(cells) + f" | {ratio} |")


if __name__ == "__main__":
    main(sys.argv[1:])
