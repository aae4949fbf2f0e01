#!/usr/bin/env bash
# One job with the sort shuffle and with ours, or with the shuffles in $SHUFFLES, in one of the clusters of cluster.sh.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/pair.sh OUT CLUSTER JOB MAPS PARTITIONS BYTES
#
# Appends one JSON line per run to OUT (the job's answers must agree); cpu_seconds are of driver, executors and the
# cluster's other processes, load is the machine's when the run ended. Jobs: see Workloads.java. Executors have 1 core
# and $MEMORY (1024) MiB. $EXTRA: more --conf. $FIRST (sort) is run first. $SHUFFLES, in this order: sort; gristmill;
# before (ours, of the jar $BEFORE); magnet (Spark's push-based shuffle, on hosts and disks). $WORK: a folder to keep
# what can be used again. $THREADS: a file that gets a line per run, of what driver and executors used in each stage
# (threads.py; where there is cgroup v1). $OVER_TIME: a file that gets a line per run, of disk operations and requests
# in each second (over_time.py; on disks).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 cluster=$2 job=$3 maps=$4 partitions=$5 bytes=$6
memory=${MEMORY:-1024}
work=${WORK:-$(mktemp -d)}
read -ra extra <<<"${EXTRA:-}"
read -ra note <<<"${NOTE:-}"
mkdir -p "$work/classes" "$work/local" "$work/workers"
. "$here/cluster.sh"
mkdir -p "$work/classes/META-INF/services"
echo Magnet >"$work/classes/META-INF/services/org.apache.spark.scheduler.ExternalClusterManager"
javac -nowarn -cp "$SPARK/jars/*" -d "$work/classes" "$here/Workloads.java" "$here/Magnet.java"
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
  if [ -n "${OVER_TIME:-}" ]; then
    python3 "$here/over_time.py" sample "$work/$name.operations" "$work"/local[1-9] &
    watcher=$!
    pids+=("$watcher")
  fi
  start=$(date +%s.%N)
  used=$(cpu_seconds)
  "$SPARK/bin/spark-submit" "${conf[@]}" --driver-memory 1g --conf spark.executor.memory="${memory}m" --conf spark.ui.enabled=false \
    --conf spark.scheduler.minRegisteredResourcesRatio=1 --conf spark.scheduler.maxRegisteredResourcesWaitingTime=120s \
    --conf spark.hadoop.fs.local.block.size=1073741824 --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir="file://$work/events" \
    --conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false "${extra[@]}" "$@" --class Workloads \
    "$work/jobs.jar" "$job" "$maps" "$partitions" "$bytes" "file://$text" 2>"$work/$name.err" >"$work/$name.out"
  end=$(date +%s.%N)
  read -r _ answer _ seconds < <(grep '^answer ' "$work/$name.out")
  python3 "$here/events.py" "$work"/events/* cluster="$cluster" job="$job" shuffle="$name" maps="$maps" partitions="$partitions" \
    bytes="$bytes" answer="$answer" seconds="$seconds" process_seconds="$(echo "$end - $start" | bc)" \
    cpu_seconds="$(echo "$(cpu_seconds) - $used" | bc)" load="$(cut -d' ' -f1 /proc/loadavg)" "${note[@]}" >"$work/$name.json"
  if [ -n "${THREADS:-}" ]; then
    kill "$sampler"
    wait "$sampler" || true # it was ended
    python3 "$here/threads.py" table "$work/$name.threads" "$work"/events/* job="$job" shuffle="$name" maps="$maps" \
      partitions="$partitions" bytes="$bytes" >>"$THREADS"
  fi
  if [ -n "${OVER_TIME:-}" ]; then
    kill "$watcher"
    wait "$watcher" || true # it was ended
    python3 "$here/over_time.py" table "$work/$name.operations" "$work"/events/* job="$job" shuffle="$name" maps="$maps" \
      partitions="$partitions" bytes="$bytes" >>"$OVER_TIME"
  fi
}

with() { # with SHUFFLE
  local manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager
  case $1 in
  sort) run sort ;;
  gristmill) run gristmill --jars "$PLUGIN" --conf spark.shuffle.manager=$manager ;;
  before) run before --jars "$BEFORE" --conf spark.shuffle.manager=$manager ;;
  magnet)
    run magnet --conf spark.shuffle.service.enabled=true --conf spark.shuffle.push.enabled=true --conf spark.testing=true \
      --conf spark.testing.reservedMemory=314572800 --conf spark.shuffle.push.mergersMinStaticThreshold=1 --conf spark.shuffle.push.minShuffleSizeToWait=1m \
      --master "sparkmagnet://$net.254:7077"
    ;;
  *)
    echo "pair.sh: no shuffle is called $1 (sort, gristmill, before, magnet)" >&2
    return 1
    ;;
  esac
}

trap cluster_down EXIT
cluster_up "$cluster"
[ "${FIRST:-sort}" = sort ] && order='sort gristmill' || order='gristmill sort'
order=${SHUFFLES:-$order}
[[ $order != *magnet* ]] || magnet_up
for one in $order; do
  with "$one"
  [ "${expected:=$answer}" = "$answer" ] || { echo "pair.sh: $job gave $expected, then $answer" >&2; exit 1; }
done
for one in $order; do cat "$work/$one.json"; done | tee -a "$out"
