"""A Spark session on a local cluster, with this plugin or with Spark's own shuffle, and what the cases of
ci/spark-wide.sh share.
"""

import contextlib
import os
import shutil
import sys

import pyspark
from pyspark.sql import SparkSession

JAR = os.environ["GRISTMILL_JAR"]
FOLDER = os.environ["GRISTMILL_FOLDER"]  # for local folders, checkpoints and logs; the script deletes it
MANAGER = "org.apache.spark.shuffle.gristmill.GristmillShuffleManager"
OURS = os.environ.get("GRISTMILL_SHUFFLE") != "sort"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else executors run the python3 of the machine, without pyarrow


def settings(ours):
    """Returns the settings of every case: our shuffle for each job, however small, or Spark's."""
    common = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": os.path.join(FOLDER, "local"),
        "spark.sql.shuffle.partitions": "8",
        "spark.locality.wait": "200ms",
        "spark.network.timeout": "60s",
    }
    if not ours:
        return common
    return common | {"spark.jars": JAR, "spark.shuffle.manager": MANAGER, "spark.gristmill.fallback": "false"}


@contextlib.contextmanager
def session(ours=OURS, master="local-cluster[2,1,1024]", **more):
    """Yields a session. More settings are given by name, with __ for each point."""
    memory = master.rstrip("]").split(",")[-1]
    chosen = settings(ours) | {"spark.executor.memory": memory + "m"}
    chosen |= {name.replace("__", "."): str(value) for name, value in more.items()}
    builder = SparkSession.builder.master(master).appName("gristmill wide")
    for key, value in chosen.items():
        builder = builder.config(key, value)
    for folder in chosen["spark.local.dir"].split(","):
        os.makedirs(folder, exist_ok=True)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    context.setLogLevel(os.environ.get("GRISTMILL_LOG", "WARN"))
    try:
        yield spark
    finally:
        name = context.applicationId
        spark.stop()
        work = os.path.join(os.path.dirname(pyspark.__file__), "work", name)
        if os.path.isdir(work):
            shutil.copytree(work, os.path.join(FOLDER, "work", name), ignore=shutil.ignore_patterns("*.jar"))
            shutil.rmtree(work)


def read_elsewhere(spark):
    """The shuffle bytes that tasks have read: from their own executor, from others."""
    store = spark.sparkContext._jsc.sc().statusStore()
    here = there = 0
    for job in range(store.jobsList(None).size()):
        for stage in _ints(store.job(job).stageIds()):
            here += store.lastStageAttempt(stage).shuffleLocalBytesRead()
            there += store.lastStageAttempt(stage).shuffleRemoteBytesRead()
    return here, there


def _ints(scala):
    return [scala.apply(i) for i in range(scala.size())]


def require(holds, claim):
    if not holds:
        raise AssertionError(claim)


def main(cases):
    """Runs the case named on the command line; what it returns is said of it."""
    print("SAID", cases[sys.argv[1]]() or "right")
