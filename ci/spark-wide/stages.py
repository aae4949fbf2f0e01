"""Stages that Spark runs in other ways than one job after the other. The oracle is ten sequential lines."""

import os
import threading
import time

from pyspark import BarrierTaskContext, TaskContext
from session import FOLDER, main, require, session

ROWS = 20_000


def sums(numbers):
    expected = {}
    for number in numbers:
        expected[number % 97] = expected.get(number % 97, 0) + number
    return expected


def barrier():
    """A barrier stage between two shuffles.

    A task of its first attempt fails, so that Spark runs the whole stage again.
    """

    def together(records):
        context = BarrierTaskContext.get()
        context.barrier()
        if context.partitionId() == 1 and not os.path.exists(failed):
            open(failed, "w").close()
            raise ValueError("this task fails once")
        return [(key, value + 1) for key, value in records]

    failed = os.path.join(FOLDER, "failed")
    with session() as spark:
        numbers = spark.sparkContext.parallelize(range(ROWS), 10).map(lambda n: (n % 97, n))
        found = numbers.reduceByKey(lambda a, b: a + b, 2).barrier().mapPartitions(together).reduceByKey(lambda a, b: a + b, 8).collectAsMap()
        expected = {key: value + 1 for key, value in sums(range(ROWS)).items()}
        require(os.path.exists(failed), "no task has failed")
        require(found == expected, f"{found} instead of {expected}")


def checkpoint():
    """Results of shuffles that are written down, cached, and read by the next shuffle."""
    with session() as spark:
        spark.sparkContext.setCheckpointDir(os.path.join(FOLDER, "checkpoint"))
        pairs = spark.sparkContext.parallelize(range(ROWS), 10).map(lambda n: (n % 97, n))
        for _ in range(3):
            pairs = pairs.reduceByKey(lambda a, b: a + b, 8).persist()
            pairs.checkpoint()
            pairs.count()
        require(pairs.collectAsMap() == sums(range(ROWS)), "sums after three checkpoints")


def cancelled():
    """A user cancels a job in its maps, another one in its reduce tasks; the next job uses the same shuffle."""
    with session() as spark:
        context = spark.sparkContext

        def slow(index, records):
            for record in records:
                time.sleep(0.0005 if TaskContext.get().getLocalProperty("slow") == "yes" else 0)
                yield record

        maps = context.parallelize(range(ROWS), 20).mapPartitionsWithIndex(slow).map(lambda n: (n % 97, n))
        shuffled = maps.reduceByKey(lambda a, b: a + b, 8).mapPartitionsWithIndex(slow)
        for seconds in (1, 3, 5):
            context.setJobGroup(f"group {seconds}", "to be cancelled", True)
            context.setLocalProperty("slow", "yes")
            timer = threading.Timer(seconds, context.cancelJobGroup, [f"group {seconds}"])
            timer.start()
            try:
                shuffled.collect()
            except Exception as error:
                require("cancel" in str(error), str(error))
            timer.cancel()
            context.setLocalProperty("slow", "no")
            context.setJobGroup("next", "the next job")
            require(shuffled.collectAsMap() == sums(range(ROWS)), "sums after a job was cancelled")


def jobs_side_by_side():
    """Eight threads run jobs at once, in fair order."""
    with session(master="local-cluster[2,2,1024]", spark__scheduler__mode="FAIR") as spark:
        wrong = []

        def work(thread):
            try:
                for job in range(3):
                    rows = ROWS + 100 * thread + job
                    found = dict(map(tuple, spark.range(rows).selectExpr("id % 97 AS k", "id").groupBy("k").sum("id").collect()))
                    joined = spark.range(rows).join(spark.range(0, rows, 3), "id").repartition(5).count()
                    if found != sums(range(rows)) or joined != len(range(0, rows, 3)):
                        wrong.append((thread, job))
            except Exception as error:
                wrong.append((thread, str(error)))

        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        threads = [threading.Thread(target=work, args=[thread]) for thread in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        require(not wrong, f"wrong: {wrong}")


if __name__ == "__main__":
    main({"barrier": barrier, "checkpoint": checkpoint, "cancelled": cancelled, "jobs-side-by-side": jobs_side_by_side})
