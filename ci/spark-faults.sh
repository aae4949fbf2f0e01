#!/usr/bin/env bash
# Does the answer stay right when things break? The fault tests of the Spark plugin, many seeds:
#   ci/spark-faults.sh [RUNS] [SEED] [Recompute|Resend|Replicate|Attempt]
# Among them is the matrix of maps that do not write the same again (rowsOfMapsThatDrawAnew...): random and salted keys, round robin, samples,
# time, by Kryo and by Java's serialiser, an executor killed in maps, in maps of a second shuffle, in reducers, or before the next job; and
# the same in SQL, with a UDF that is not deterministic and each setting of Spark's checksums of rows (rowsOfSql...);
# GRISTMILL_TEST=rowsOf* runs only this.
# RUNS (200) seeds of each fault, from SEED (1) on, for one way to recover, for those that cost no home, or for all. About 15 seconds
# a seed and way on two cores.
set -euo pipefail
cd "$(dirname "$0")/../spark"
mvn -B -q test -Dtest="${3:-*}FaultsTest${GRISTMILL_TEST:+#$GRISTMILL_TEST}" -Dgristmill.fault.runs="${1:-200}" -Dgristmill.fault.seed="${2:-1}"
grep -h "jobs .* ended with an error" target/surefire-reports/*FaultsTest-output.txt || true
grep -h "Tests run" target/surefire-reports/*FaultsTest.txt
