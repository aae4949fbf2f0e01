"""Disks that are full while partitions are stored, and while a reduce task sorts.

Needs root, for file systems of 24 MB.
"""

import contextlib
import os
import random
import subprocess
import zlib

from cluster import standalone
from session import FOLDER, main, require, session

MAPS, RECORDS, BYTES = 16, 40, 100_000  # 64 MB that do not compress
SETTINGS = {"spark__gristmill__store__bytes": "4m", "spark__executor__cores": 1, "spark__executor__memory": "1g", "spark__cores__max": 2}


def record(number):
    return random.Random(number).randbytes(BYTES)


def expected():
    return sorted((number % 8, zlib.crc32(record(number))) for number in range(MAPS * RECORDS))


@contextlib.contextmanager
def small_disk(name, size="24m"):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def disk(name):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder)
    return folder


@contextlib.contextmanager
def cluster(local_folders, **more):
    with standalone(local_folders, int(os.environ.get("GRISTMILL_PORT", 7177))) as master, session(master=master, **SETTINGS | more) as spark:
        yield spark


def answer(job):
    """Returns the answer of a job, sorted, or the sentence that it ended with."""
    try:
        return sorted(job())
    except Exception as error:
        return str(error)


def ask(local_folders, job, **more):
    with cluster(local_folders, **more) as spark:
        numbers = spark.sparkContext.parallelize(range(MAPS * RECORDS), MAPS)
        return answer(lambda: job(numbers.map(lambda n: (n % 8, record(n)))))


def shuffled(pairs):
    return pairs.partitionBy(8, lambda key: key).map(lambda pair: (pair[0], zlib.crc32(pair[1]))).collect()


def judge(found, may_fail, expected=expected):
    if found == expected():
        return "right"
    require(may_fail and isinstance(found, str), f"{str(found)[:2000]}")
    require("space" in found, "the error does not say that a disk is full: " + found[:2000])
    return "one error that names the disk: " + next(line for line in found.splitlines() if "space" in line)[:400]


def one_of_two_disks_full():
    with small_disk("small0", "10m") as small0, small_disk("small1", "10m") as small1:
        return judge(ask([f"{small0},{disk('large0')}", f"{small1},{disk('large1')}"], shuffled), False)


def one_executor_full():
    with small_disk("small") as small:
        return judge(ask([small, disk("large")], shuffled), False)


def all_disks_full():
    with small_disk("small0") as small0, small_disk("small1") as small1:
        return judge(ask([small0, small1], shuffled), True)


# A reduce task writes while it sorts. The partitions themselves stay in the memory of their homes, so that the disk is
# not full before.
SPILLING = {"spark__gristmill__store__bytes": "1g", "spark__shuffle__spill__numElementsForceSpillThreshold": 50}


def reader_spill(local_folders, may_fail):
    """Rows that a reduce task sorts, in SQL, and records that it sorts, in an RDD of Java strings."""
    lines = [record(number)[: BYTES // 2].hex() for number in range(MAPS * RECORDS)]
    for number in range(MAPS):
        with open(os.path.join(disk(f"text/{number}"), "lines"), "w") as file:
            file.write("\n".join(lines[number::MAPS]) + "\n")
    said = []
    with cluster(local_folders, **SPILLING, spark__io__compression__codec="lz4") as spark:
        text = spark.read.text(os.path.join(FOLDER, "text/*")).selectExpr("value", "crc32(value) AS k")
        rows = text.repartition(8, "k").sortWithinPartitions("value")
        checksums = sorted(zlib.crc32(line.encode()) for line in lines)
        found = answer(lambda: [row.crc for row in rows.selectExpr("crc32(value) AS crc").collect()])
        said.append("rows: " + judge(found, may_fail, lambda: checksums))

        def records():
            out = os.path.join(FOLDER, "sorted")
            java = spark.sparkContext._jsc.textFile(os.path.join(FOLDER, "text/*"), MAPS)
            java.zipWithIndex().sortByKey(True, 8).keys().saveAsTextFile(out)
            parts = sorted(name for name in os.listdir(out) if name.startswith("part-"))
            return [line for name in parts for line in open(os.path.join(out, name)).read().split()]

        found = answer(records)
        said.append("records: " + judge(found, may_fail, lambda: sorted(lines)))
    return "; ".join(said)


def disk_was_full():
    """Whether an executor has said so in its log."""
    return any(
        "No space left" in open(os.path.join(folder, name), errors="replace").read()
        for folder, _, names in os.walk(FOLDER)
        for name in names
        if name == "stderr"
    )


def spilling(local_folders):
    said = reader_spill(local_folders, True)
    require(disk_was_full(), "no disk was full: " + said)
    return said


def reader_spills_on_full_disk():
    with small_disk("small", "2m") as small:
        return spilling([small, disk("large")])


def reader_spills_on_full_disks():
    with small_disk("small0", "2m") as small0, small_disk("small1", "2m") as small1:
        return spilling([small0, small1])


def reader_spills_with_one_of_two_disks_full():
    with small_disk("small0", "2m") as small0, small_disk("small1", "2m") as small1:
        return spilling([f"{small0},{disk('large0')}", f"{small1},{disk('large1')}"])


if __name__ == "__main__":
    main(
        {
            "one-of-two-disks-full": one_of_two_disks_full,
            "one-executor-full": one_executor_full,
            "all-disks-full": all_disks_full,
            "reader-spills-on-full-disk": reader_spills_on_full_disk,
            "reader-spills-on-full-disks": reader_spills_on_full_disks,
            "reader-spills-with-one-of-two-disks-full": reader_spills_with_one_of_two_disks_full,
        }
    )
