"""PySpark jobs in which an executor is killed. The oracle is sequential Python."""

import collections
import os
import random
import shutil
import sys
import threading
import time

from processes import await_executors, kill_one
from session import FOLDER, main, require, session

MAPS, PARTITIONS, EXECUTORS = 12, 6, 3
MOMENTS = "maps", "results", "next job"
READ_BYTES = os.environ.get("GRISTMILL_READ_BYTES", "8k")  # partitions above it are read in several pieces


class Marks:
    """Tells the driver how many tasks of each kind have come to their end, by empty files."""

    def __init__(self, number):
        self.folder = os.path.join(FOLDER, f"marks-{number}")
        os.makedirs(self.folder, exist_ok=True)

    def tasks(self, kind, rdd):
        folder = self.folder

        def marked(index, records):
            yield from records
            time.sleep(0.15)  # so that some tasks run and some wait when the executor dies
            open(os.path.join(folder, f"{kind}-{index}"), "w").close()

        return rdd.mapPartitionsWithIndex(marked, preservesPartitioning=True)

    def count(self, kind):
        return sum(name.startswith(kind) for name in os.listdir(self.folder))


def text(number):
    return f"{number * 2654435761 % 99991:05d}" * 12  # a partition of them is longer than one read from its home


def pairs(spark, marks, keys, rows):
    numbers = marks.tasks("map", spark.sparkContext.parallelize(range(rows), MAPS))
    return numbers.map(lambda n: (n * 7919 % keys, text(n)))


def grouped(rows, keys):
    found = collections.defaultdict(list)
    for n in range(rows):
        found[n * 7919 % keys].append(text(n))
    return found


def group_by_key(spark, marks, rows):
    def collect():
        groups = marks.tasks("result", pairs(spark, marks, 97, rows).groupByKey(PARTITIONS)).mapValues(sorted)
        return lambda: sorted(groups.collect())

    return collect(), sorted((k, sorted(v)) for k, v in grouped(rows, 97).items())


def reduce_by_key(spark, marks, rows):
    found = marks.tasks("result", pairs(spark, marks, 5003, rows).reduceByKey(max, PARTITIONS))
    return lambda: sorted(found.collect()), sorted((k, max(v)) for k, v in grouped(rows, 5003).items())


def sort_by(spark, marks, rows):
    found = marks.tasks("result", pairs(spark, marks, 97, rows).sortBy(lambda pair: (pair[1], pair[0]), numPartitions=PARTITIONS))
    expected = sorted(((k, t) for k, v in grouped(rows, 97).items() for t in v), key=lambda pair: (pair[1], pair[0]))
    return found.collect, expected


def two_deep(spark, marks, rows):
    """Counts by text, then groups of them.

    Python packs records into batches as it reads them. If it reads in another order when a map runs again, the batches
    are others, and the plugin cannot look into them.
    """
    counts = pairs(spark, marks, 5003, rows).map(lambda pair: (pair[1], 1)).reduceByKey(lambda a, b: a + b, PARTITIONS)
    found = marks.tasks("result", counts.map(lambda pair: (int(pair[0][:5]) % 5003, pair)).groupByKey(PARTITIONS))
    expected = collections.defaultdict(list)
    for t, count in collections.Counter(text(n) for n in range(rows)).items():
        expected[int(t[:5]) % 5003].append((t, count))
    return lambda: sorted((k, sorted(v)) for k, v in found.collect()), sorted((k, sorted(v)) for k, v in expected.items())


def joined(spark, marks, rows):
    names = spark.sparkContext.parallelize([(k, f"name {k}") for k in range(0, 97, 2)], 4)
    found = marks.tasks("result", pairs(spark, marks, 97, rows).join(names, PARTITIONS))
    expected = sorted((k, (t, f"name {k}")) for k, v in grouped(rows, 97).items() for t in v if k % 2 == 0)
    return lambda: sorted(found.collect()), expected


def frame_with_udf(spark, marks, rows):
    from pyspark.sql.functions import udf

    frame = spark.createDataFrame(pairs(spark, marks, 997, rows), "k long, t string")
    half = udf(lambda t: int(t[:5]) // 2, "long")
    sums = frame.withColumn("h", half("t")).groupBy("k").sum("h")
    named = sums.select(udf(lambda k: f"n{k % 10}", "string")("k").alias("name"), "sum(h)").repartition(PARTITIONS, "name")
    found = marks.tasks("result", named.rdd)
    expected = sorted((f"n{k % 10}", sum(int(t[:5]) // 2 for t in v)) for k, v in grouped(rows, 997).items())
    return lambda: sorted(map(tuple, found.collect())), expected


def frame_with_udf_and_join(spark, marks, rows):
    from pyspark.sql.functions import udf

    frame = spark.createDataFrame(pairs(spark, marks, 997, rows), "k long, t string")
    other = spark.range(0, 997, 3, 4).select("id", udf(lambda k: k * k, "long")("id").alias("square"))
    found = marks.tasks("result", frame.join(other, frame.k == other.id).select("k", "t", "square").rdd)
    expected = sorted((k, t, k * k) for k, v in grouped(rows, 997).items() for t in v if k % 3 == 0)
    return lambda: sorted(map(tuple, found.collect())), expected


JOBS = group_by_key, reduce_by_key, sort_by, two_deep, joined, frame_with_udf, frame_with_udf_and_join


def attempted(job):
    try:
        return job()
    except Exception as error:
        return error


def struck(job, marks, moment, chance):
    """Runs a job, and kills an executor at a moment of it. Returns the answer, or the error."""
    if moment == "next job":
        first = job()
        kill_one(chance)
        return attempted(job), first
    found = []

    running = threading.Thread(target=lambda: found.append(attempted(job)))
    running.start()
    kind, tasks = ("map", chance.randint(1, MAPS)) if moment == "maps" else ("result", chance.randint(1, 2))
    while running.is_alive() and marks.count(kind) < tasks:
        time.sleep(0.02)
    if moment == "results":
        time.sleep(0.3)  # the driver has the result of the task that has marked its end
    kill_one(chance)
    running.join(600)
    require(not running.is_alive(), "the job has not ended")
    return found[0], found[0]


def kills(runs=1, seed=1, recovery="recompute", only=None):
    """Each job at each moment, with these seeds."""
    jobs = 0
    with session(
        master=f"local-cluster[{EXECUTORS},1,1024]",
        spark__deploy__maxExecutorRetries=-1,
        spark__sql__autoBroadcastJoinThreshold=-1,
        spark__shuffle__io__retryWait="200ms",
        spark__network__timeout="60s",
        spark__gristmill__recovery=recovery,
        spark__gristmill__read__bytes=READ_BYTES,
        spark__gristmill__page__bytes="16k",
        spark__gristmill__segment__bytes="4k",
        spark__executor__memory="700m",
        spark__serializer=f"org.apache.spark.serializer.{'Kryo' if seed % 2 else 'Java'}Serializer",
    ) as spark:
        for number in range(seed, seed + runs):
            for make in JOBS:
                for moment in MOMENTS:
                    if only and only not in make.__name__:
                        continue
                    of = f"{make.__name__}, killed in {moment}, seed {number}"
                    chance = random.Random(f"{number} {make.__name__} {moment}")
                    spark.conf.set("spark.sql.adaptive.enabled", str(chance.random() < 0.5).lower())
                    await_executors(EXECUTORS)
                    marks = Marks(of.replace(" ", "-"))
                    job, expected = make(spark, marks, chance.choice([6_000, 20_000]))
                    found, before = struck(job, marks, moment, chance)
                    shutil.rmtree(marks.folder, ignore_errors=True)
                    jobs += 1
                    print(of, reason(found) if isinstance(found, Exception) else "right" if found == before == expected else "WRONG", flush=True)
                    require(not isinstance(found, Exception), f"{of}: {found}"[:3000])
                    require(found == before == expected, f"{of}: {len(found)} rows, {len(expected)} expected")
    return f"right, {jobs} jobs"


def reason(error):
    return "ended: " + next((line for line in str(error).splitlines() if "Exception" in line), str(error))[:600]


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print("SAID", kills(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
    else:
        main({"python-kills": kills})
