"""Memory outside the heap, and every codec with every serialiser. The oracle is ten sequential lines."""

import random
import zlib

from session import main, read_elsewhere, require, session

ROWS = 60_000


def text(number):
    return f"{number % 4999}-{number * 7 % 13:x}" * 9


def queries(spark):
    """A sort, an aggregation and a join whose rows come from shuffles."""
    rows = spark.range(0, ROWS, 1, 8).selectExpr("id", "id % 4999 AS k", "repeat(concat(id % 4999, '-', lower(hex(id * 7 % 13))), 9) AS t")
    sums = rows.repartition(6, "k").groupBy("k").agg({"id": "sum", "t": "max"}).collect()
    found = {row.k: (row["sum(id)"], row["max(t)"]) for row in sums}
    expected = {k: (sum(range(k, ROWS, 4999)), max(map(text, range(k, ROWS, 4999)))) for k in range(4999)}
    require(found == expected, "sums and greatest texts")
    ordered = [(row.t, row.id) for row in rows.orderBy("t", "id").collect()]
    require(ordered == sorted((text(n), n) for n in range(ROWS)), "rows in order")
    thirds = spark.range(0, ROWS, 3, 8).selectExpr("id AS third", "id * 2 AS twice")
    joined = sorted((row.id, row.t, row.twice) for row in rows.join(thirds, rows.id == thirds.third).collect())
    require(joined == [(n, text(n), 2 * n) for n in range(0, ROWS, 3)], "rows of the join")


def off_heap():
    """Spark's memory outside the heap: ample, little, and too little; with adaptive execution and without."""
    said = []
    for size in "256m", "24m", "4m":
        for adaptive in "true", "false":
            with session(
                master="local-cluster[2,1,1400]",
                spark__memory__offHeap__enabled="true",
                spark__memory__offHeap__size=size,
                spark__executor__memory="900m",
                spark__sql__adaptive__enabled=adaptive,
                spark__sql__autoBroadcastJoinThreshold=-1,
                spark__sql__shuffle__partitions=2,
                spark__gristmill__segment__bytes="16k",
            ) as spark:
                queries(spark)
                store = spark.sparkContext._jsc.sc().statusStore()
                spilled = sum(store.lastStageAttempt(stage).memoryBytesSpilled() for stage in stages(store))
                require(size != "4m" or spilled > 0, "rows that do not fit 4 MiB are spilled")
                said.append(f"{size}: {spilled >> 20} MiB spilled")
    return "right, " + ", ".join(said)


def stages(store):
    jobs = store.jobsList(None)
    for number in range(jobs.size()):
        ids = jobs.apply(number).stageIds()
        yield from (ids.apply(i) for i in range(ids.size()) if store.lastStageAttempt(ids.apply(i)).status().name() == "COMPLETE")


def codecs():
    """Records of Python, which are arrays of bytes to Spark, and rows."""

    def record(seed):
        chance = random.Random(seed)
        return chance.randbytes(chance.choice([0, 1, 700, 40_000])) + b"x" * chance.choice([0, 5_000])

    expected = sorted((seed % 5, zlib.crc32(record(seed))) for seed in range(600))
    for codec in "lz4", "zstd", "snappy", "lzf":
        for serialiser in (
            {"spark__serializer": "org.apache.spark.serializer.JavaSerializer"},
            {"spark__serializer": "org.apache.spark.serializer.KryoSerializer"},
            {"spark__serializer": "org.apache.spark.serializer.KryoSerializer", "spark__kryo__unsafe": "true"},
        ):
            # Tasks have no preferred place, so that some read from the other executor.
            with session(spark__io__compression__codec=codec, **serialiser, spark__shuffle__reduceLocality__enabled="false") as spark:
                of = f"{codec} with {serialiser}"
                pairs = spark.sparkContext.parallelize(range(600), 8).map(lambda seed: (seed % 5, record(seed)))
                found = pairs.partitionBy(5, lambda key: key).mapValues(zlib.crc32).collect()
                require(sorted(found) == expected, f"{len(found)} records, {of}")
                counts = spark.range(0, ROWS, 1, 8).selectExpr("id % 4999 AS k").repartition(6, "k").groupBy("k").count().collect()
                require(dict(map(tuple, counts)) == {k: len(range(k, ROWS, 4999)) for k in range(4999)}, f"rows, {of}")
                here, there = read_elsewhere(spark)
                require(here > 0 and there > 0, f"{here} bytes were read at home and {there} elsewhere, {of}")
    return "right, 12 ways"


if __name__ == "__main__":
    main({"off-heap": off_heap, "codecs": codecs})
