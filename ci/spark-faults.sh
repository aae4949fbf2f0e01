#!/usr/bin/env bash
# Does the answer stay right when things break? The fault tests of the Spark plugin, many seeds: ci/spark-faults.sh [RUNS] [SEED]
# RUNS (200) seeds of each fault, from SEED (1) on. About 15 seconds a seed on two cores.
set -euo pipefail
cd "$(dirname "$0")/../spark"
mvn -B -q test -Dtest=FaultsTest -Dgristmill.fault.runs="${1:-200}" -Dgristmill.fault.seed="${2:-1}"
grep -h "Tests run" target/surefire-reports/*FaultsTest.txt
