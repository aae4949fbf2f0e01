#!/usr/bin/env bash
# Does the Spark plugin give the sequential answer, even if executors die, and are all its dependencies released and
# licensed? Runs everything in spark/ that takes minutes; ci/spark-faults.sh and ci/spark-sql.sh take longer.
set -euo pipefail
cd "$(dirname "$0")/../spark"
if ! command -v mvn >/dev/null || ! command -v javac >/dev/null; then
    echo 'ci/spark.sh: this needs Maven and a JDK of version 17; trying to install them' >&2
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -q && apt-get install -qy maven openjdk-17-jdk-headless
    else
        echo 'ci/spark.sh: install maven and openjdk-17-jdk-headless (Debian, Ubuntu) and run it again' >&2
        exit 1
    fi
fi
mvn -q --batch-mode verify

# The jar must contain only our own classes, so that it needs no third-party notices. (The build checks the licences of
# its build and test dependencies; the list is target/licences/THIRD-PARTY.txt.)
others=$(for jar in target/gristmill-spark-*.jar; do jar tf "$jar"; done | grep -vE '/$|^META-INF/(MANIFEST\.MF|maven/org\.gristmill/)|^org/(gristmill|apache/spark/shuffle/gristmill)/' || true)
if [ -n "$others" ]; then
    printf 'ci/spark.sh: the jar bundles what is not ours:\n%s\n' "$others" >&2
    exit 1
fi
