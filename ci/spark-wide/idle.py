"""Executors that dynamic allocation removes because they are idle.

The oracle is ten sequential lines, and a count of the maps that ran.
"""

import gc
import os
import time

from processes import executors
from session import FOLDER, OURS, main, require, session

ROWS, PARTITIONS = 20_000, 2
ALLOCATION = {
    "spark__dynamicAllocation__enabled": "true",
    "spark__dynamicAllocation__minExecutors": 1,
    "spark__dynamicAllocation__initialExecutors": 4,
    "spark__dynamicAllocation__maxExecutors": 4,
    "spark__dynamicAllocation__executorIdleTimeout": "8s",
    "spark__executor__cores": 1,
    "spark__locality__wait": "5s",
}
LIMIT_S = 240


def expected():
    return {k: sum(range(k, ROWS, 97)) for k in range(97)}


def maps_run():
    folder = os.path.join(FOLDER, "maps")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def sums(spark, maps):
    """Sums by key. Each map says that it runs by a file of its own, so that one that runs again is seen."""
    folder = os.path.join(FOLDER, "maps")
    os.makedirs(folder, exist_ok=True)

    def noted(index, numbers):
        open(os.path.join(folder, f"{index} {time.time_ns()}"), "w").close()
        return numbers

    numbers = spark.sparkContext.parallelize(range(ROWS), maps).mapPartitionsWithIndex(noted)
    return numbers.map(lambda n: (n % 97, n)).groupByKey(PARTITIONS).mapValues(sum)


def all_executors(spark, count):
    """Returns when `count` executors have run a task; each task waits for the others."""
    folder = os.path.join(FOLDER, "started")
    os.makedirs(folder, exist_ok=True)

    def wait(task):
        open(os.path.join(folder, str(os.getppid())), "w").close()
        end = time.monotonic() + LIMIT_S
        while len(os.listdir(folder)) < count and time.monotonic() < end:
            time.sleep(0.1)

    spark.sparkContext.parallelize(range(count), count).foreach(wait)
    require(len(os.listdir(folder)) == count, f"{len(os.listdir(folder))} executors instead of {count}")


def await_removals(least):
    """Waits until `least` executors are left, or none has been removed for 25 seconds.

    Returns those that live, by name.
    """
    alive, since = executors(), time.monotonic()
    end = since + LIMIT_S
    while len(alive) > least and time.monotonic() < min(end, since + 25):
        time.sleep(0.5)
        now = executors()
        if now.keys() != alive.keys():
            alive, since = now, time.monotonic()
    return alive


def collected(spark):
    """Lets the driver remove shuffles that nobody knows any more."""
    gc.collect()
    for _ in range(3):
        spark.sparkContext._jvm.System.gc()
        time.sleep(2)


def after_removals(spark, maps):
    """Makes a shuffle on four executors, and lets idle ones go: its sums are right all the same, and no map runs again.

    Returns the shuffle and the executors that stayed.
    """
    all_executors(spark, 4)
    shuffled = sums(spark, maps)
    require(shuffled.collectAsMap() == expected(), "sums before executors go")
    ran = maps_run()
    stayed = await_removals(1)
    require(len(stayed) < 4, "no idle executor was removed")
    for _ in range(2):
        require(shuffled.collectAsMap() == expected(), "sums after executors have gone")
    require(maps_run() == ran, f"maps ran again: {len(ran)} files before, {len(maps_run())} after")
    return shuffled, stayed


def idle_executors():
    """The two that hold partitions of a live shuffle stay, though only one ran its map; others go, and all but one
    when it is gone.
    """
    with session(master="local-cluster[4,1,1024]", **ALLOCATION) as spark:
        shuffled, stayed = after_removals(spark, 1)
        require(not OURS or len(stayed) >= PARTITIONS, f"only {len(stayed)} executors stayed for {PARTITIONS} partitions")
        shuffled = None
        collected(spark)
        left = await_removals(1)
        require(len(left) == 1, f"{sorted(left)} are left when nothing is held")
        shuffled = sums(spark, 8)
        require(shuffled.collectAsMap() == expected(), "sums with executors that came back")
        return f"right: of 4 executors {len(stayed)} stayed while the shuffle lived, then {len(left)}; no map ran twice"


def idle_executors_decommissioned():
    """With a timeout for shuffle data they go in spite of it, and hand their partitions over."""
    with session(
        master="local-cluster[4,1,1024]",
        **ALLOCATION,
        spark__dynamicAllocation__shuffleTracking__timeout="4s",
        spark__decommission__enabled="true",
        spark__storage__decommission__enabled="true",
        spark__storage__decommission__replicationReattemptInterval="2s",
    ) as spark:
        _, left = after_removals(spark, 8)
        return f"right: of 4 executors {len(left)} left, which has all partitions; no map ran twice"


if __name__ == "__main__":
    main({"idle-executors": idle_executors, "idle-executors-decommissioned": idle_executors_decommissioned})
