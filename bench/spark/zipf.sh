#!/usr/bin/env bash
# How well are skewed partitions predicted and placed? Asks the driver of a Zipf shuffle on a local cluster.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/zipf.sh OUT RUNS [MAPS PARTITIONS RECORDS_PER_MAP]
#
# Appends one JSON line per run: load of the fullest executor over the mean, as placed and as round robin would have;
# how far predicted sizes were off, of all bytes. Executors: $EXECUTORS (4) of 1 core and $MEMORY (512) MiB. Seconds
# are not what this is about.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 runs=$2 maps=${3:-64} partitions=${4:-100} records=${5:-20000}
executors=${EXECUTORS:-4} memory=${MEMORY:-512}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/classes" "$work/local"
javac -cp "$SPARK/jars/*" -d "$work/classes" "$here/Zipf.java"
jar cf "$work/zipf.jar" -C "$work/classes" .
cat >"$work/log4j2.properties" <<'LOG'
rootLogger.level = warn
rootLogger.appenderRef.out.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
logger.gristmill.name = org.apache.spark.shuffle.gristmill
logger.gristmill.level = info
LOG
read -ra extra <<<"${EXTRA:-}"
for ((run = 0; run < runs; run++)); do
  "$SPARK/bin/spark-submit" --master "local-cluster[$executors,1,$memory]" --driver-memory 512m --jars "$PLUGIN" \
    --driver-java-options "-Dlog4j2.configurationFile=file:$work/log4j2.properties" \
    --conf spark.executor.memory="${memory}m" --conf spark.local.dir="$work/local" --conf spark.ui.enabled=false \
    --conf spark.scheduler.minRegisteredResourcesRatio=1 --conf spark.scheduler.maxRegisteredResourcesWaitingTime=120s \
    --conf spark.shuffle.manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager "${extra[@]}" \
    --class Zipf "$work/zipf.jar" "$maps" "$partitions" "$records" >"$work/out" 2>"$work/err"
  grep -q "^records $((maps * records))$" "$work/out"
  sed -nE 's/^shuffle 0 is written: .* on ([0-9]+) executors, (.*) \(fit ([0-9.]+)\);.* written, ([0-9.]+) off .* fullest home ([0-9.]+) x .* round robin ([0-9.]+) x$/{"executors": \1, "placed_by": "\2", "fit": \3, "prediction_error": \4, "fullest": \5, "round_robin": \6, /p' "$work/err" |
    sed "s/\$/\"maps\": $maps, \"partitions\": $partitions, \"records_per_map\": $records, \"load\": $(cut -d' ' -f1 /proc/loadavg)}/" | tee -a "$out"
done
