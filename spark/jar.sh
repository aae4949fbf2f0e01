#!/usr/bin/env bash
# Builds the plugin for the Spark that is here, in seconds and without Maven or tests:  spark/jar.sh [FOLDER] FOLDER is
# a Spark distribution or an installed pyspark; without it SPARK_HOME, else the pyspark of python3. Needs a JDK, 17 or
# newer. The last line of output is "JAR is for Spark VERSION".
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=${1:-${SPARK_HOME:-$(python3 -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))' 2>/dev/null || true)}}
[ -z "$home" ] || home=$(cd "$home" 2>/dev/null && pwd || echo "$home")
core=$(ls "$home"/jars/spark-core_2.1[0-9]-*.jar 2>/dev/null || true)
if [ -z "$core" ] || ! command -v javac >/dev/null; then
    echo 'spark/jar.sh: this needs a JDK and Spark 4: set SPARK_HOME to its folder, or install it (pip install pyspark).' \
        'With Maven, mvn package -DskipTests in spark/ fetches Spark itself.' >&2
    exit 1
fi
name=${core##*/spark-core_}
name=${name%.jar}
scala=${name%%-*}
version=${name#*-}
case $scala-$version in
2.13-4.0.*) oldest=4.0 layers=(spark-4.0 spark-before-4.3) ;;
2.13-4.[12].*) oldest=4.1 layers=(spark-4.1 spark-before-4.3) ;;
2.13-4.3.*) oldest=4.3 layers=(spark-4.1 spark-4.3) ;;
*) echo "spark/jar.sh: $home has Spark $version for Scala $scala; the plugin is for Spark 4.0 to 4.3, whose Scala is 2.13" >&2 && exit 1 ;;
esac
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
cd "$here/src"
find main/java "${layers[@]/%//java}" -name '*.java' | LC_ALL=C sort >"$classes/sources"
javac --release 17 -nowarn -cp "$home/jars/*" -d "$classes/out" "@$classes/sources"
mkdir -p "$here/target"
jar=$here/target/gristmill-spark-${oldest}_$scala-$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml").jar
# The same sources give the same bytes, if the environment names the time (https://reproducible-builds.org/specs).
time=${SOURCE_DATE_EPOCH:+--date=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%FT%TZ)}
mkdir -p "$classes/out/META-INF"
cp "$here/../LICENSE" "$classes/out/META-INF"
printf 'Implementation-Title: Gristmill for Apache Spark\nImplementation-Version: %s\n' "${jar##*-}" | sed 's/\.jar$//' >"$classes/manifest"
(cd "$classes/out" && find . -type f -printf '%P\n' | LC_ALL=C sort >../files && jar --create ${time:+"$time"} --file "$jar" --manifest ../manifest @../files)
echo "$jar is for Spark $version"
