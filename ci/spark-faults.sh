#!/usr/bin/env bash
# Does the answer stay right under faults? Runs the fault tests of the Spark plugin with many seeds:
#   ci/spark-faults.sh [RUNS] [SEED] [Recompute|Resend|Replicate|Attempt|Order]
# Runs RUNS (200) seeds of each fault, starting with SEED (1), for one way to recover, for the faults that cost no home,
# or for all. Takes about 15 seconds per seed and way on two cores.
#
# The tests include a matrix of maps whose output differs when they run again (rowsOfMapsThatDrawAnew...): random and
# salted keys, round robin, samples, time, maps that are sometimes empty or sometimes fail; with Kryo and with Java's
# serialiser; with an executor killed in maps, in maps of a second shuffle, in reducers, or before the next job. The
# same is tested in SQL, with a UDF that is not deterministic and with each setting of Spark's row checksums
# (rowsOfSql...).
#
# Order runs jobs in which the order of records decides on values (sums of doubles, first, lists: each must be finished)
# or on partitions (salts, ids, round robin: right, or ended with the reason), with an executor killed after the first
# results; about 15 seconds for each of 9 jobs and seed. A job that is not finished runs with the sort shuffle, which
# must not finish it either.
#
# GRISTMILL_TEST=rowsOf* runs only this matrix.
set -euo pipefail
cd "$(dirname "$0")/../spark"
mvn -B -q test -Dtest="${3:-*}FaultsTest${GRISTMILL_TEST:+#$GRISTMILL_TEST}" -Dgristmill.fault.runs="${1:-200}" -Dgristmill.fault.seed="${2:-1}"
grep -h "ended with an error" target/surefire-reports/*FaultsTest-output.txt || true
grep -h "Tests run" target/surefire-reports/*FaultsTest.txt
