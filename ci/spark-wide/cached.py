"""Cached frames and RDDs made by shuffles, whose executors are killed. The oracle is ten sequential lines."""

import random

from processes import await_executors, kill_one
from pyspark import StorageLevel
from session import main, require, session

ROWS, EXECUTORS = 50_000, 3
LEVELS = ("MEMORY_AND_DISK", "true"), ("MEMORY_AND_DISK", "false"), ("DISK_ONLY", "true"), ("MEMORY_AND_DISK_2", "false")


def expected():
    return {k: (len(range(k, ROWS, 997)), sum(range(k, ROWS, 997))) for k in range(997)}


def level(name):
    return getattr(StorageLevel, name)


def cached():
    """An RDD and a frame at each level; an executor dies before each of three rounds of jobs."""
    chance, jobs = random.Random(1), 0
    with session(
        master=f"local-cluster[{EXECUTORS},1,1024]",
        spark__deploy__maxExecutorRetries=-1,
        spark__shuffle__io__retryWait="200ms",
        spark__sql__autoBroadcastJoinThreshold=-1,
    ) as spark:
        for name, adaptive in LEVELS:
            spark.conf.set("spark.sql.adaptive.enabled", adaptive)
            pairs = spark.sparkContext.parallelize(range(ROWS), 10).map(lambda n: (n % 997, n)).groupByKey(6)
            groups = pairs.mapValues(lambda v: (len(v), sum(v))).persist(level(name))
            frame = (
                spark.range(0, ROWS, 1, 10)
                .selectExpr("id % 997 AS k", "id")
                .repartition(6, "k")
                .groupBy("k")
                .agg({"id": "sum", "*": "count"})
                .persist(level(name))
            )
            for number in range(4):
                if number:
                    await_executors(EXECUTORS)
                    kill_one(chance)
                jobs += 3
                of = f"{name}, adaptive execution {adaptive}, {number} executors killed"
                require(dict(groups.collect()) == expected(), "RDD, " + of)
                found = {row.k: (row["count(1)"], row["sum(id)"]) for row in frame.collect()}
                require(found == expected(), "frame, " + of)
                both = frame.join(spark.createDataFrame(groups.map(lambda g: (g[0], g[1][1])), "k long, s long"), "k").where("s = `sum(id)`").count()
                require(both == 997, f"{both} rows of the join, {of}")
                print("right:", of, flush=True)
            groups.unpersist()
            frame.unpersist()
        return f"right, {jobs} jobs"


if __name__ == "__main__":
    main({"cached-frames-lost": cached})
