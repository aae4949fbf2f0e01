#!/usr/bin/env bash
# Does the Spark plugin give the sequential answer, even if executors die, and are all its dependencies released and
# licensed? Runs everything in spark/ that takes minutes; ci/spark-faults.sh and ci/spark-sql.sh take longer.
set -euo pipefail
cd "$(dirname "$0")/../spark"
sh ../ci/needs.sh java
if ! mvn -q --batch-mode verify; then
    sed -n 's/^\(.*\)\.\([^.( ]*\).* -- Time elapsed: .* <<< \(FAILURE\|ERROR\)!$/Alone: (cd spark \&\& mvn -q test -Dtest=\1#\2)/p' \
        target/surefire-reports/*.txt >&2
    exit 1
fi

# The jar must contain only our own classes, so that it needs no third-party notices. (The build checks the licences of
# its build and test dependencies; the list is target/licences/THIRD-PARTY.txt.)
others=$(for jar in target/gristmill-spark-*.jar; do jar tf "$jar"; done | grep -vE '/$|^META-INF/(MANIFEST\.MF|LICENSE|maven/org\.gristmill/)|^org/(gristmill|apache/spark/shuffle/gristmill)/' || true)
if [ -n "$others" ]; then
    printf 'ci/spark.sh: the jar bundles what is not ours:\n%s\n' "$others" >&2
    exit 1
fi
