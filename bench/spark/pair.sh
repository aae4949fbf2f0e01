#!/usr/bin/env bash
# One job with the sort shuffle and with ours, in one of the clusters of cluster.sh.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/pair.sh OUT CLUSTER JOB MAPS PARTITIONS BYTES
#
# Appends one JSON line per run to OUT (the job's answers must agree); cpu_seconds are of driver, executors and the cluster's other
# processes, load is the machine's when the run ended. Jobs: see Workloads.java. Executors have 1 core and $MEMORY (1024)
# MiB. $EXTRA: more --conf. $FIRST (sort) is run first. $WORK: a folder to keep what can be used again. $THREADS: a file that gets a line
# per run, of what driver and executors used in each stage (threads.py; where there is cgroup v1).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 cluster=$2 job=$3 maps=$4 partitions=$5 bytes=$6
memory=${MEMORY:-1024}
work=${WORK:-$(mktemp -d)}
mkdir -p "$work/classes" "$work/local" "$work/workers"
. "$here/cluster.sh"
javac -cp "$SPARK/jars/*" -d "$work/classes" "$here/Workloads.java"
jar cf "$work/jobs.jar" -C "$work/classes" .
text=$work/text-$bytes
[[ $job != @(sparksort|floor) ]] || [ -e "$text" ] || java -cp "$work/classes:$SPARK/jars/*" Workloads text "$text" "$bytes"

run() { # run NAME CONF...: leaves the answer in $answer
  local name=$1 start end used
  shift
  rm -rf "$work/events" && mkdir "$work/events"
  if [ -n "${THREADS:-}" ]; then
    python3 "$here/threads.py" sample "$accounts/gristmill-$$" "$work/$name.threads" &
    sampler=$!
    pids+=("$sampler") # for cluster_down, should this run fail
  fi
  start=$(date +%s.%N)
  used=$(cpu_seconds)
  "$SPARK/bin/spark-submit" "${conf[@]}" --driver-memory 1g --conf spark.executor.memory="${memory}m" --conf spark.ui.enabled=false \
    --conf spark.scheduler.minRegisteredResourcesRatio=1 --conf spark.scheduler.maxRegisteredResourcesWaitingTime=120s \
    --conf spark.hadoop.fs.local.block.size=1073741824 --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir="file://$work/events" \
    --conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false ${EXTRA:-} "$@" --class Workloads \
    "$work/jobs.jar" "$job" "$maps" "$partitions" "$bytes" "file://$text" 2>"$work/$name.err" >"$work/$name.out"
  end=$(date +%s.%N)
  read -r _ answer _ seconds < <(grep '^answer ' "$work/$name.out")
  python3 "$here/events.py" "$work"/events/* cluster="$cluster" job="$job" shuffle="$name" maps="$maps" partitions="$partitions" \
    bytes="$bytes" answer="$answer" seconds="$seconds" process_seconds="$(echo "$end - $start" | bc)" \
    cpu_seconds="$(echo "$(cpu_seconds) - $used" | bc)" load="$(cut -d' ' -f1 /proc/loadavg)" ${NOTE:-} >"$work/$name.json"
  if [ -n "${THREADS:-}" ]; then
    kill "$sampler"
    wait "$sampler" || true # it was ended
    python3 "$here/threads.py" table "$work/$name.threads" "$work"/events/* job="$job" shuffle="$name" maps="$maps" \
      partitions="$partitions" bytes="$bytes" >>"$THREADS"
  fi
}

sort_shuffle() {
  run sort
}

ours() {
  run gristmill --jars "$PLUGIN" --conf spark.shuffle.manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager
}

trap cluster_down EXIT
cluster_up "$cluster"
[ "${FIRST:-sort}" = sort ] && order='sort_shuffle ours' || order='ours sort_shuffle'
for one in $order; do
  $one
  [ "${expected:=$answer}" = "$answer" ] || { echo "pair.sh: $job gave $expected, then $answer" >&2; exit 1; }
done
cat "$work/sort.json" "$work/gristmill.json" | tee -a "$out"
