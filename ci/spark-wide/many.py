"""Hundreds of shuffles and queries in one session, and shuffles of many blocks: nothing is left behind when they are
gone.
"""

import gc
import os
import subprocess
import time

from processes import java_processes
from session import FOLDER, main, require, session

ROUNDS = 200
ROWS = 4_000
MIB = 1 << 20


def state(process):
    """Returns live heap after a collection, resident memory, open files and threads of a process."""
    histogram = subprocess.run(["jmap", "-histo:live", process], capture_output=True, text=True, check=True).stdout
    status = dict(line.split(":", 1) for line in open(f"/proc/{process}/status"))
    ours = sum(int(line.split()[1]) for line in histogram.splitlines() if "gristmill" in line and len(line.split()) >= 4)
    return {
        "heap": int(histogram.strip().splitlines()[-1].split()[2]),
        "resident": int(status["VmRSS"].split()[0]) * 1024,
        "files": len(os.listdir(f"/proc/{process}/fd")),
        "threads": int(status["Threads"]),
        "objects of ours": ours,
        "threads of ours": subprocess.run(["jstack", process], capture_output=True, text=True, check=True).stdout.count('"gristmill-'),
    }


def store_files():
    return [name for _, _, names in os.walk(os.path.join(FOLDER, "local")) for name in names if name.endswith((".store", ".sent"))]


def watched(spark, job):
    """Runs the job ROUNDS times and compares what the processes hold after a quarter of them with what they hold at
    the end.
    """
    held = {}
    for number in range(ROUNDS):
        job(number)
        if number + 1 in (ROUNDS // 4, ROUNDS):
            gc.collect()
            for _ in range(3):
                spark.sparkContext._jvm.System.gc()  # the driver removes the shuffles that nobody knows any more
                time.sleep(5)
            held[number + 1] = {name: state(process) for name, process in java_processes().items()}, store_files()
    (early, early_files), (late, late_files) = held.values()
    said = "; ".join(
        f"{name}: heap {early[name]['heap'] / MIB:.1f} to {late[name]['heap'] / MIB:.1f} MiB, resident "
        f"{early[name]['resident'] // MIB} to {late[name]['resident'] // MIB} MiB, files {early[name]['files']} to "
        f"{late[name]['files']}, threads {early[name]['threads']} to {late[name]['threads']}, of ours "
        f"{early[name]['threads of ours']} to {late[name]['threads of ours']}, objects of ours "
        f"{early[name]['objects of ours']} to {late[name]['objects of ours']}"
        for name in sorted(late)
    )
    said += f"; store files {len(early_files)} to {len(late_files)}"
    for name in late:
        require(late[name]["objects of ours"] <= 2 * early[name]["objects of ours"] + 100, said)
        require(late[name]["heap"] <= early[name]["heap"] + 20 * MIB, said)
        require(late[name]["files"] <= early[name]["files"] + 20, said)
        require(late[name]["threads of ours"] <= early[name]["threads of ours"] + 2, said)  # SQL starts a thread or two for each query
    require(len(late_files) <= len(early_files) + 8, said)
    return "right: " + said


def many_shuffles():
    expected = {k: sum(range(k, ROWS, 13)) for k in range(13)}
    with session(spark__gristmill__store__bytes="0", spark__cleaner__periodicGC__interval="30s") as spark:
        numbers = spark.sparkContext.parallelize(range(ROWS), 8).map(lambda n: (n % 13, n))

        def job(number):
            records = numbers.map(lambda pair: (pair[0], pair[1] - number)).groupByKey(8).mapValues(sum)
            found = records.reduceByKey(lambda a, b: a + b, 4).collectAsMap()
            count = {k: len(range(k, ROWS, 13)) for k in range(13)}
            require(found == {k: expected[k] - number * count[k] for k in range(13)}, f"sums of round {number}")

        return watched(spark, job)


def many_queries():
    with session(
        spark__cleaner__periodicGC__interval="30s",
        spark__sql__autoBroadcastJoinThreshold="-1",
        spark__sql__ui__retainedExecutions=10,
        spark__ui__retainedJobs=10,
        spark__ui__retainedStages=10,
        spark__ui__retainedTasks=100,
    ) as spark:

        def job(number):
            left = spark.range(0, ROWS + number, 1, 8)
            found = left.join(spark.range(0, ROWS, 3), "id").groupBy((left.id % 13).alias("k")).count().collect()
            expected = {k: sum(1 for n in range(0, ROWS, 3) if n % 13 == k) for k in range(13)}
            require({row.k: row["count"] for row in found} == expected, f"counts of round {number}")

        return watched(spark, job)


def many_blocks():
    """2,000 maps x 2,000 partitions of tiny records, on four executors; Spark then reports sizes as averages."""
    with session(
        master="local-cluster[4,1,1024]", spark__driver__memory="2g", spark__sql__adaptive__enabled="false", spark__sql__shuffle__partitions=2000
    ) as spark:
        found = (
            spark.range(0, 1_000_000, 1, 2000)
            .selectExpr("id % 100003 AS k", "id")
            .groupBy("k")
            .sum("id")
            .selectExpr("count(*)", "sum(`sum(id)` * (k % 7))")
            .collect()[0]
        )
        expected = 100003, sum(n * (n % 100003 % 7) for n in range(1_000_000))
        require(tuple(found) == expected, f"{tuple(found)} instead of {expected}")


if __name__ == "__main__":
    main({"many-shuffles": many_shuffles, "many-queries": many_queries, "many-blocks": many_blocks})
