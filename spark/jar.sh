#!/usr/bin/env bash
# Builds the plugin for the Spark that is here, in seconds and without Maven or tests:  spark/jar.sh [FOLDER]
# FOLDER is a Spark distribution or an installed pyspark; without it SPARK_HOME, else the pyspark of python3. Needs a JDK, 17 or newer.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${1:-${SPARK_HOME:-$(python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))' 2>/dev/null || true)}}
[ -z "$home" ] || home=$(cd "$home" 2>/dev/null && pwd || echo "$home")
core=$(ls "$home"/jars/spark-core_2.13-*.jar 2>/dev/null || true)
if [ -z "$core" ] || ! command -v javac >/dev/null; then
    echo 'spark/jar.sh: this needs a JDK and Spark 4: set SPARK_HOME to its folder, or install it (pip install pyspark).' \
        'With Maven, mvn package -DskipTests in spark/ fetches Spark itself.' >&2
    exit 1
fi
version=${core##*_2.13-}
version=${version%.jar}
case $version in
4.0.*) layers='spark-4.0 spark-before-4.3' ;;
4.[12].*) layers='spark-4.1 spark-before-4.3' ;;
4.*) layers='spark-4.1 spark-4.3' ;;
*) echo "spark/jar.sh: $home has Spark $version; the plugin is for 4.0 to 4.3" >&2 && exit 1 ;;
esac
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
cd "$here/src"
find main/java $(printf '%s/java ' $layers) -name '*.java' >"$classes/sources"
javac --release 17 -nowarn -cp "$home/jars/*" -d "$classes/out" "@$classes/sources"
mkdir -p "$here/target"
jar --create --file "$here/target/gristmill-spark-0.1.0.jar" -C "$classes/out" .
echo "$here/target/gristmill-spark-0.1.0.jar is for Spark $version"
