"""Structured Streaming with state. The oracle is ten sequential lines over all files at once."""

import os
import time

from session import FOLDER, main, require, session

BATCHES, ROWS = 50, 400
SCHEMA = "number LONG, grp LONG, second LONG"


def rows(batch):
    """Some numbers come again in a later file: late, but within the watermark."""
    for row in range(ROWS):
        number = batch * ROWS + row - batch % 3 * 100
        yield number, number % 17, 1_700_000_000 + number // 10


def write_files(folder):
    os.makedirs(folder)
    for batch in range(BATCHES):
        name = os.path.join(folder, f"{batch:04d}.csv")
        with open(name, "w") as out:
            out.writelines(",".join(map(str, row)) + "\n" for row in rows(batch))
        os.utime(name, (1_700_000_000 + batch, 1_700_000_000 + batch))  # the source reads them in this order


def source(spark, folder):
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(folder)
    return read.selectExpr("number", "grp", "timestamp_seconds(second) AS at").withWatermark("at", "60 seconds")


def run(name, query, mode, stop_after):
    """The rows of each batch.

    The query is stopped after some batches, and goes on from its checkpoint in another application.
    """
    files = os.path.join(FOLDER, "files")
    write_files(files)
    found = {}
    for limit in (stop_after, BATCHES):
        with session(spark__sql__shuffle__partitions=4, spark__sql__streaming__noDataMicroBatches__enabled="false") as spark:

            def keep(frame, batch):
                found[batch] = [tuple(row) for row in frame.collect()]

            stream = (
                query(source(spark, files))
                .writeStream.outputMode(mode)
                .foreachBatch(keep)
                .option("checkpointLocation", os.path.join(FOLDER, name))
                .start()
            )
            while stream.isActive and len(found) < limit:
                time.sleep(0.1)
            stream.stop()
            require(not stream.exception(), f"the stream ended with {stream.exception()}")
    require(sorted(found) == list(range(BATCHES)), f"batches {sorted(found)}")
    return found


def streaming_state():
    found = run("counts", lambda frame: frame.dropDuplicates(["number", "at"]).groupBy("grp").agg({"number": "sum", "at": "count"}), "complete", 20)
    numbers = {row[0] for batch in range(BATCHES) for row in rows(batch)}
    expected = {(g, sum(n for n in numbers if n % 17 == g), sum(1 for n in numbers if n % 17 == g)) for g in range(17)}
    last = {(g, *sorted(rest, reverse=True)) for g, *rest in found[BATCHES - 1]}
    require(last == expected, f"{sorted(last)} instead of {sorted(expected)}")


def streaming_join():
    def query(frame):
        left = frame.selectExpr("number AS l", "at AS l_at")
        right = frame.where("number % 3 = 0").selectExpr("number AS r", "at AS r_at")
        return left.join(right, (left.l == right.r) & (left.l_at == right.r_at)).select("l")

    found = run("joined", query, "append", 30)
    times = {}
    for batch in range(BATCHES):
        for number, _, _ in rows(batch):
            times[number] = times.get(number, 0) + 1
    expected = sorted(n for n, count in times.items() if n % 3 == 0 for _ in range(count * count))
    numbers = sorted(row[0] for batch in found.values() for row in batch)
    require(numbers == expected, f"{len(numbers)} rows instead of {len(expected)}")


if __name__ == "__main__":
    main({"streaming-state": streaming_state, "streaming-join": streaming_join})
