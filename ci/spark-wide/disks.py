"""Disks that are full while partitions are stored, and while a reduce task sorts. Needs root, for file systems of 24 MB."""

import contextlib
import os
import random
import subprocess
import zlib

from cluster import standalone
from session import FOLDER, main, require, session

MAPS, RECORDS, BYTES = 16, 40, 100_000  # 64 MB that do not compress
SETTINGS = {"spark__gristmill__store__bytes": "4m", "spark__executor__cores": 1, "spark__executor__memory": "1g",
            "spark__cores__max": 2}


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


def ask(local_folders, job, ours=os.environ.get("GRISTMILL_SHUFFLE") != "sort", **more):
    """The answer of a job, or the sentence that it ended with."""
    with standalone(local_folders, int(os.environ.get('GRISTMILL_PORT', 7177))) as master, session(ours, master, **SETTINGS, **more) as spark:
        numbers = spark.sparkContext.parallelize(range(MAPS * RECORDS), MAPS)
        try:
            return sorted(job(numbers.map(lambda n: (n % 8, record(n)))))
        except Exception as error:
            return str(error)


def shuffled(pairs):
    return pairs.partitionBy(8, lambda key: key).map(lambda pair: (pair[0], zlib.crc32(pair[1]))).collect()


def judge(found, may_fail):
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


if __name__ == "__main__":
    main({"one-of-two-disks-full": one_of_two_disks_full, "one-executor-full": one_executor_full, "all-disks-full": all_disks_full})
