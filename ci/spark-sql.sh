#!/usr/bin/env bash
# Do Spark's own SQL suites pass with our shuffle? ci/spark-sql.sh [joins aggregates adaptiveExecution exchanges] Runs
# them unchanged, one by one, from Spark's published test jars. The names are methods of SqlSuitesTest; the default is
# all of them.
set -euo pipefail
cd "$(dirname "$0")/../spark"
for suite in "${@:-joins aggregates adaptiveExecution exchanges}"; do
  for one in $suite; do
    mvn -B -q test -P sql-suites -Dtest="SqlSuitesTest#$one" || failed=1
    echo "$one: $(grep -h "Tests run" target/surefire-reports/*SqlSuitesTest.txt)"
  done
done
exit "${failed:-0}"
