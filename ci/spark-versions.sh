#!/usr/bin/env bash
# Does the plugin work with other versions of Spark?
#   ci/spark-versions.sh [4.0.5 4.1.4 ...]
# For each version, which pip installs, builds the jar like spark/jar.sh and runs the quick tests with it. ci/spark.sh
# tests the version that the build names. Needs a JDK, Maven (for JUnit), and Python with venv.
set -euo pipefail
cd "$(dirname "$0")/../spark"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=({Answers,Codecs,Fallback,Metrics,RecomputeFaults,Waits}Test)

# JUnit and Mockito come from the build, Spark from pip.
mvn -B -q dependency:copy-dependencies -DincludeScope=test -DoutputDirectory="$work/junit" \
    -DincludeGroupIds=org.junit.jupiter,org.mockito,net.bytebuddy,org.objenesis
mvn -B -q dependency:copy -Dartifact=org.junit.platform:junit-platform-console-standalone:1.11.4 -DoutputDirectory="$work/junit"
read -ra opens <<<"$(sed -n 's:.*<spark.opens>\(.*\)</spark.opens>.*:\1:p' pom.xml)"

failed=0
[ $# -gt 0 ] || set -- 4.0.5 4.1.4 4.2.1 4.3.0
for version; do
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install -q "pyspark==$version"
    home=$("$work/venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
    said=$(./jar.sh "$home")
    cp "${said% is for Spark *}" "$work/gristmill.jar"
    # Spark's own suites are in test jars, which pip does not provide.
    find src/test/java -name '*.java' ! -name '*Suite*.java' >"$work/sources"
    rm -rf "$work/classes" && cp -r src/test/resources "$work/classes"
    javac -nowarn -cp "$work/gristmill.jar:$home/jars/*:$work/junit/*" -d "$work/classes" "@$work/sources"
    # Executors find the plugin and the tests only through the environment, so that they run pip's Spark.
    JDK_JAVA_OPTIONS='-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' SPARK_HOME=$home SPARK_SCALA_VERSION=2.13 SPARK_LOCAL_IP=127.0.0.1 \
        SPARK_DIST_CLASSPATH="$work/gristmill.jar:$work/classes" \
        java -Xmx1500m "${opens[@]}" -cp "$work/gristmill.jar:$work/classes:$home/jars/*:$work/junit/*" \
        org.junit.platform.console.ConsoleLauncher execute --details=summary --disable-banner \
        --select-package org.gristmill.core "${tests[@]/#/--select-class=org.apache.spark.shuffle.gristmill.}" \
        >"$work/out" 2>"$work/err" || failed=1
    echo "Spark $version: $(grep -E 'tests (successful|failed)' "$work/out" | tr -s '[] \n' ' ')"
    grep -A8 -E '^ +(JUnit Jupiter:|=>)' "$work/out" || true
    rm -rf "$work/venv"
done
exit $failed
