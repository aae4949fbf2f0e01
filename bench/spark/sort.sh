#!/usr/bin/env bash
# Spark-sort, the sort shuffle and ours in alternation, on one machine: a local cluster of executor processes.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/sort.sh OUT MAPS PAIRS [BYTES]
#
# Appends one JSON line per run to OUT; cpu_seconds are of driver and executors together, load is the machine's when the run ended.
# Executors: $EXECUTORS (2) of 1 core and $MEMORY (1024) MiB. $EXTRA: more --conf.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 maps=$2 pairs=$3 bytes=${4:-1500000000}
executors=${EXECUTORS:-2} memory=${MEMORY:-1024}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work/classes" "$work/local"
data=$work/text-$bytes
javac -cp "$SPARK/jars/*" -d "$work/classes" "$here/SparkSort.java"
jar cf "$work/sort.jar" -C "$work/classes" .
[ -e "$data" ] || java -cp "$work/classes:$SPARK/jars/*" SparkSort make "$data" "$bytes"

run() { # run NAME CONF...
  local name=$1
  shift
  rm -rf "$work/events" && mkdir "$work/events"
  local start end lines
  start=$(date +%s.%N)
  TIMEFORMAT='%U %S'
  { time "$SPARK/bin/spark-submit" --master "local-cluster[$executors,1,$memory]" --driver-memory 1g \
    --conf spark.executor.memory="${memory}m" --conf spark.local.dir="$work/local" --conf spark.ui.enabled=false \
    --conf spark.hadoop.fs.local.block.size=1073741824 --conf spark.serializer=org.apache.spark.serializer.KryoSerializer --conf spark.shuffle.readHostLocalDisk=false \
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir="file://$work/events" \
    --conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false ${EXTRA:-} "$@" --class SparkSort \
    "$work/sort.jar" sort "file://$data" "$maps" "$maps" 2>"$work/$name.err" >"$work/$name.out"; } 2>"$work/$name.cpu"
  lines=$(grep '^lines ' "$work/$name.out")
  end=$(date +%s.%N)
  python3 "$here/events.py" "$work"/events/* shuffle="$name" maps="$maps" bytes="$bytes" lines="$(cut -d' ' -f2 <<<"$lines")" \
    seconds="$(cut -d' ' -f4 <<<"$lines")" process_seconds="$(echo "$end - $start" | bc)" cpu_seconds="$(tr ' ' '+' <"$work/$name.cpu" | bc)" \
    load="$(cut -d' ' -f1 /proc/loadavg)" | tee -a "$out"
}

for ((pair = 0; pair < pairs; pair++)); do
  run sort
  run gristmill --jars "$PLUGIN" --conf spark.shuffle.manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager
done
