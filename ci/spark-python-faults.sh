#!/usr/bin/env bash
# Does a PySpark job give the sequential answer when an executor is killed? Runs PySpark jobs with many seeds:
#   ci/spark-python-faults.sh [RUNS] [SEED] [recompute|resend|replicate] [JOB]
# Runs RUNS (10) seeds, starting with SEED (1), of each job: RDDs with Python functions (groupByKey, reduceByKey,
# sortBy, join, two shuffles deep) and DataFrames with Python UDFs. An executor is killed among the maps, after the
# first results, or before the next job that reads the same shuffle. JOB chooses jobs by a part of their name. A line
# tells each outcome; it fails if rows are wrong, or if a job ends with an error. GRISTMILL_SHUFFLE=sort runs the same
# with the sort shuffle; GRISTMILL_READ_BYTES sets spark.gristmill.read.bytes (8k). Needs a JDK and
# pyspark[sql] (python3, or PYTHON); 10 to 20 seconds for each of 21 jobs and seed on two cores.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
spark=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
GRISTMILL_JAR=$("$here/../spark/jar.sh" "$spark" | sed -n 's/ is for Spark .*//p')
GRISTMILL_FOLDER=$(mktemp -d)
trap 'rm -rf "$GRISTMILL_FOLDER"' EXIT
export GRISTMILL_JAR GRISTMILL_FOLDER JDK_JAVA_OPTIONS=${JDK_JAVA_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}
cd "$here/spark-wide"
"$python" -B python_kills.py "${1:-10}" "${2:-1}" "${3:-recompute}" ${4:+"$4"} 2>"$GRISTMILL_FOLDER/log" ||
    { tail -50 "$GRISTMILL_FOLDER/log" >&2; exit 1; }
