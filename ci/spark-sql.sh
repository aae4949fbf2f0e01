#!/usr/bin/env bash
# Do Spark's own SQL suites (joins, aggregates, adaptive execution, exchanges) pass with our shuffle? ci/spark-sql.sh
set -euo pipefail
cd "$(dirname "$0")/../spark"
mvn -B -q test -P sql-suites -Dtest=SqlSuitesTest
grep -h "Tests run" target/surefire-reports/*SqlSuitesTest.txt
