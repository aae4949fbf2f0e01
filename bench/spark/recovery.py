#!/usr/bin/env python3
"""Measures recompute and resend, without faults and with an executor killed.

  recovery.py OUT PLUGIN [ROUNDS] [ROWS] [MAPS]

Needs pyspark (pip install pyspark). In each round every way to recover runs one job for each fault, in alternation. The job is a
repartition of ROWS rows of 85 bytes by a hash, sorted, and summed. Two executors of one core each are processes of a local cluster. Each
holds at most 16 MiB of partitions in memory, and with resend as much of what it has sent; the rest is written. Faults: none, an executor
killed when half of the maps are done (maps), or when a quarter of the reduce tasks are done (reducers).

A line of JSON for each run is appended to OUT: seconds of the job, processor seconds of all executors, the most that store files (what
homes keep) and kept files (what senders keep, with resend) had at a time, the largest resident memory of an executor, and the machine's load.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

WAYS = ("recompute", "resend")
FAULTS = ("none", "maps", "reducers")
TICKS = os.sysconf("SC_CLK_TCK")


def descendants():
    """The executors below this process: process ids."""
    parents, found = {}, []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline", "rb") as line:
                    parents[int(name)] = int(stat.read().rsplit(")", 1)[1].split()[1])
                    if b"CoarseGrainedExecutorBackend" in line.read():
                        found.append(int(name))
            except OSError:
                pass  # it has ended

    def ours(process):
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [process for process in found if ours(process)]


class Watch(threading.Thread):
    """Looks ten times a second at the executors and their files, and kills one when it is time."""

    def __init__(self, folder, context, fault):
        super().__init__(daemon=True)
        self.folder, self.context, self.fault = folder, context, fault
        self.processor, self.resident = {}, 0
        self.bytes = {".store": 0, ".sent": 0}
        self.killed = self.map_stage = None
        self.over = False

    def run(self):
        while not self.over:
            self.look()
            if self.fault != "none" and self.killed is None and self.due():
                self.killed = descendants()[0]
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.1)

    def look(self):
        for process in descendants():
            try:
                with open(f"/proc/{process}/stat") as stat, open(f"/proc/{process}/status") as status:
                    fields = stat.read().rsplit(")", 1)[1].split()
                    self.processor[process] = (int(fields[11]) + int(fields[12])) / TICKS
                    peak = [line.split()[1] for line in status if line.startswith("VmHWM")]
                    self.resident = max(self.resident, int(peak[0]) << 10 if peak else 0)
            except OSError:
                pass
        now = dict.fromkeys(self.bytes, 0)
        for root, _, files in os.walk(self.folder):
            for name in files:
                ending = os.path.splitext(name)[1]
                if ending in now:
                    with contextlib.suppress(OSError):
                        now[ending] += os.path.getsize(os.path.join(root, name))
        for ending, size in now.items():
            self.bytes[ending] = max(self.bytes[ending], size)

    def due(self):
        tracker = self.context.statusTracker()
        for stage in sorted(tracker.getActiveStageIds()):
            info = tracker.getStageInfo(stage)
            if self.map_stage is None:
                self.map_stage = stage
            if info and stage == self.map_stage:
                return self.fault == "maps" and info.numCompletedTasks >= info.numTasks // 2
            if info and self.fault == "reducers":
                return info.numCompletedTasks >= info.numTasks // 4
        return False


def one(plugin, way, fault, rows, maps):
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp()
    try:
        spark = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .appName("recovery")
            .config("spark.executor.memory", "1g")
            .config("spark.driver.memory", "1g")
            .config("spark.local.dir", folder)
            .config("spark.jars", plugin)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.gristmill.store.bytes", "16m")
            .config("spark.driver.extraClassPath", plugin)
            .config("spark.executor.extraClassPath", plugin)
            .config("spark.locality.wait", "500ms")
            .config("spark.sql.shuffle.partitions", maps)
            .config("spark.shuffle.manager", "org.apache.spark.shuffle.gristmill.GristmillShuffleManager")
            .config("spark.gristmill.recovery", way)
            .getOrCreate()
        )
        context = spark.sparkContext
        while len(descendants()) < 2:
            time.sleep(0.1)
        work = ["xxhash64(id) as k", "sha2(cast(id as string), 256) as v"]
        spark.range(0, rows // 10, 1, 8).selectExpr(*work).write.format("noop").mode("overwrite").save()  # executors are warm then
        watch = Watch(folder, context, fault)
        frame = (
            spark.range(0, rows, 1, maps)
            .selectExpr(*work)
            .repartition(maps, "k")
            .sortWithinPartitions("k")
            .selectExpr("count(*)", "sum(k % 1000003)", "sum(crc32(v))")
        )
        start = time.time()
        watch.start()
        answer = [int(number) for number in frame.collect()[0]]
        seconds = time.time() - start
        watch.over = True
        watch.join()
        result = {
            "way": way,
            "fault": fault,
            "seconds": round(seconds, 2),
            "processor_seconds": round(sum(watch.processor.values()), 2),
            "store_bytes": watch.bytes[".store"],
            "kept_bytes": watch.bytes[".sent"],
            "resident_bytes": watch.resident,
            "killed": watch.killed is not None,
            "rows": rows,
            "maps": maps,
            "answer": answer,
            "load": float(open("/proc/loadavg").read().split()[0]),
            "spark": spark.version,
        }
        spark.stop()
        return result
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    out, plugin = sys.argv[1:3]
    if len(sys.argv) == 7 and sys.argv[3] in WAYS:
        print(json.dumps(one(plugin, sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))))
        return
    rounds, rows, maps = (int(given) for given in (sys.argv[3:] + ["5", "1000000", "48"][len(sys.argv) - 3 :]))
    answers = set()
    for number in range(rounds):
        for fault in FAULTS:
            for way in WAYS if number % 2 == 0 else reversed(WAYS):
                run = subprocess.run(
                    [sys.executable, __file__, out, plugin, way, fault, str(rows), str(maps)], check=True, capture_output=True, text=True
                )
                line = run.stdout.strip().splitlines()[-1]
                answers.add(str(json.loads(line)["answer"]))
                with open(out, "a", encoding="utf-8") as runs:
                    runs.write(line + "\n")
                assert len(answers) == 1, f"answers differ: {answers}"


if __name__ == "__main__":
    main()
