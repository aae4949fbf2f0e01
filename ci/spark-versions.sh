#!/usr/bin/env bash
# Does the plugin work with other versions of Spark? Builds it for each and runs its quick tests: ci/spark-versions.sh [4.0 4.2]
# The default of the build is 4.1, which ci/spark.sh tests. Each starts clean, because the classes of two versions do not mix.
set -euo pipefail
cd "$(dirname "$0")/../spark"
trap 'rm -rf target' EXIT
for version in "${@:-4.0 4.2}"; do
  for one in $version; do
    rm -rf target
    mvn -B -q test -P "spark-$one" -Dtest='org.gristmill.core.*Test,AnswersTest,CodecsTest,FallbackTest,MetricsTest,RecomputeFaultsTest' || failed=1
    echo "Spark $one: $(grep -h "Tests run" target/surefire-reports/*.txt | awk -F'[:,]' '{run += $2; bad += $4 + $6} END {print run " tests, " bad " failed"}')"
  done
done
exit "${failed:-0}"
