#!/usr/bin/env python3
"""Processor seconds of driver and executors in each stage of a run, by what the threads were for. Linux.

threads.py sample GROUP SAMPLES            until it is ended: every half second, what the threads of the JVMs in the control group GROUP have used
threads.py table SAMPLES LOG [key=value ...]    one JSON line from the samples and the run's Spark event log; the extra pairs are copied into it
"""

import collections
import json
import os
import sys
import time

TICKS = os.sysconf("SC_CLK_TCK")
EVERY = 0.5
JVMS = {"CoarseGrainedExecutorBackend": "executors", "SparkSubmit": "driver"}
PURPOSES = {"C1 Comp": "jit", "C2 Comp": "jit", "G1 ": "gc", "GC ": "gc", "Executor task": "tasks"}


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # the process or thread has ended
        return ""


def jvm(pid):
    command = read(f"/proc/{pid}/cmdline")
    return next((name for text, name in JVMS.items() if text in command), None)


def threads(pid):
    """(thread, its name, seconds) of each."""
    try:
        numbers = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for number in numbers:
        stat = read(f"/proc/{pid}/task/{number}/stat")
        if stat:
            name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            yield number, name, (int(rest[11]) + int(rest[12])) / TICKS


def sample(group, path):
    used = {}  # of threads that have ended too
    with open(path, "w", encoding="utf-8") as out:
        while True:
            for pid in read(f"{group}/cgroup.procs").split():
                process = jvm(pid)
                for number, name, seconds in threads(pid) if process else ():
                    purpose = next((p for start, p in PURPOSES.items() if name.startswith(start)), "other")
                    used[pid, number] = f"{process} {purpose}", seconds
            sums = collections.Counter()
            for purpose, seconds in used.values():
                sums[purpose] += seconds
            print(json.dumps([time.time(), sums]), file=out, flush=True)
            time.sleep(EVERY)


def at(samples, when):
    """Interpolates the use until then, on a straight line between two samples."""
    before = samples[0]
    for after in samples:
        if after[0] > when:
            share = (when - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0
            return {k: before[1].get(k, 0) + share * (v - before[1].get(k, 0)) for k, v in after[1].items()}
        before = after
    return before[1]


def table(samples, log):
    stages = []
    for event in map(json.loads, log):
        if event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            start, end = info["Submission Time"] / 1000, info["Completion Time"] / 1000
            first, last = at(samples, start), at(samples, end)
            stages.append({"seconds": round(end - start, 2)} | {k: round(v - first.get(k, 0), 2) for k, v in sorted(last.items())})
    return stages


if __name__ == "__main__":
    if sys.argv[1] == "sample":
        sample(*sys.argv[2:])
    with open(sys.argv[2], encoding="utf-8") as samples, open(sys.argv[3], encoding="utf-8") as log:
        stages = table([json.loads(line) for line in samples if line.endswith("]\n")], log)
    print(json.dumps(dict(pair.split("=", 1) for pair in sys.argv[4:]) | {"stages": stages}))
