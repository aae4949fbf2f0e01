"""Large partitions and large records. The oracle is ten sequential lines: a checksum of what a seed gives."""

import random
import zlib

from session import main, read_elsewhere, require, session

MIB = 1 << 20


def block(seed):
    return random.Random(seed).randbytes(MIB)


def checksum(records):
    """A count, a sum of lengths, and a sum of checksums that does not depend on the order."""
    count = length = sums = 0
    for record in records:
        count += 1
        length += len(record)
        sums += zlib.crc32(record)
    yield count, length, sums


def large_partition():
    """One reduce partition above 2 GiB of bytes that do not compress, read by a task at its home and by one
    elsewhere.
    """
    blocks = 2350
    expected = tuple(map(sum, zip(*(next(checksum([block(seed)])) for seed in range(blocks)))))
    with session(master="local-cluster[2,1,2048]", spark__executor__memory="1700m") as spark:
        context = spark.sparkContext
        pairs = context.parallelize(range(blocks), 40).map(lambda seed: (0 if seed else 1, block(seed)))
        shuffled = pairs.partitionBy(4, lambda key: key).values()
        both = context.union([shuffled, shuffled]).mapPartitions(checksum).collect()
        here, there = read_elsewhere(spark)
        require(tuple(map(sum, zip(*both[:4]))) == expected, f"{both[:4]} instead of {expected}")
        require(both[4:] == both[:4], f"{both[4:]} instead of {both[:4]}")
        require(min(here, there) > 1 << 31, f"{here} bytes were read at home and {there} elsewhere: both should be above 2 GiB")
        return f"right: {here >> 20} MiB at home, {there >> 20} MiB elsewhere"


def large_records():
    """Records of 300 MB of bytes that do not compress, among small ones, through a shuffle of an RDD."""
    lengths = [10, 300 * 1000 * 1000, 1000, 300 * 1000 * 1000, 0, 77]

    def record(seed):
        whole = [random.Random(f"{seed} {part}").randbytes(MIB) for part in range(lengths[seed] // MIB)]
        return b"".join(whole) + random.Random(seed).randbytes(lengths[seed] % MIB)

    expected = sorted((seed % 2, len(record(seed)), zlib.crc32(record(seed))) for seed in range(len(lengths)))
    with session(master="local-cluster[2,1,3072]", spark__executor__memory="2g") as spark:
        pairs = spark.sparkContext.parallelize(range(len(lengths)), 3).map(lambda seed: (seed % 2, record(seed)))
        found = pairs.partitionBy(2, lambda key: key).map(lambda pair: (pair[0], len(pair[1]), zlib.crc32(pair[1]))).collect()
        require(sorted(found) == expected, f"{sorted(found)} instead of {expected}")


def huge_record():
    """A row of 1.2 GB, which compresses, among small ones, in SQL. The oracle is arithmetic."""
    length = 1200 * 1000 * 1000
    with session(master="local-cluster[1,1,7168]", spark__executor__memory="7g") as spark:
        rows = spark.range(0, 8, 1, 2).selectExpr("id", f"repeat('ab', if(id = 5, {length // 2}, int(id))) AS text")
        found = rows.repartition(3, "id").selectExpr("id", "length(text)", "right(text, 2)").collect()
        expected = [(i, length if i == 5 else 2 * i, "ab" if i else "") for i in range(8)]
        require(sorted(map(tuple, found)) == expected, f"{sorted(found)} instead of {expected}")


if __name__ == "__main__":
    main({"large-partition": large_partition, "large-records": large_records, "huge-record": huge_record})
