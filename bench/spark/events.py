#!/usr/bin/env python3
"""Sums up a Spark event log: one JSON line of what a run cost.

    events.py LOG [key=value ...]     the extra pairs are copied into the line

Times are seconds summed over tasks (write_s, fetch_wait_s) or wall clock of stages: those that write shuffles (map_s), the others (reduce_s).
"""

import json
import sys


def summary(lines):
    stages, writing, total = (
        {},
        set(),
        {
            "write_s": 0.0,
            "fetch_wait_s": 0.0,
            "written": 0,
            "remote": 0,
            "local": 0,
            "remote_requests": 0,
            "local_requests": 0,
            "disk_spill": 0,
            "failed_tasks": 0,
            "gc_s": 0.0,
        },
    )
    for line in lines:
        event = json.loads(line)
        kind = event["Event"]
        if kind == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            if "Completion Time" in info and "Submission Time" in info:
                stages[info["Stage ID"], info["Stage Attempt ID"]] = (info["Completion Time"] - info["Submission Time"]) / 1000
        elif kind == "SparkListenerTaskEnd":
            if event["Task End Reason"]["Reason"] != "Success":
                total["failed_tasks"] += 1
            metrics = event.get("Task Metrics")
            if not metrics:
                continue
            write, read = metrics["Shuffle Write Metrics"], metrics["Shuffle Read Metrics"]
            total["write_s"] += write["Shuffle Write Time"] / 1e9
            total["written"] += write["Shuffle Bytes Written"]
            if write["Shuffle Bytes Written"]:
                writing.add((event["Stage ID"], event["Stage Attempt ID"]))
            total["fetch_wait_s"] += read["Fetch Wait Time"] / 1e3
            total["remote"] += read["Remote Bytes Read"]
            total["local"] += read["Local Bytes Read"]
            total["remote_requests"] += read["Remote Blocks Fetched"]
            total["local_requests"] += read["Local Blocks Fetched"]
            total["disk_spill"] += metrics["Disk Bytes Spilled"]
            total["gc_s"] += metrics["JVM GC Time"] / 1e3
    total["map_s"] = sum((wall for stage, wall in stages.items() if stage in writing), 0.0)
    total["reduce_s"] = sum((wall for stage, wall in stages.items() if stage not in writing), 0.0)
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in total.items()}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as log:
        line = summary(log)
    print(json.dumps(dict(pair.split("=", 1) for pair in sys.argv[2:]) | line))
