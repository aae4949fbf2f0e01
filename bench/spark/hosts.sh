#!/usr/bin/env bash
# Spark-sort on three emulated hosts (network namespaces, links throttled with tc tbf): the sort shuffle and ours in alternation.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/hosts.sh OUT MAPS PAIRS [BYTES] [MBIT]
#
# Needs root. A standalone cluster: the master outside of them, a worker of 1 core and $MEMORY (1024) MiB per host.
# Appends one JSON line per run to OUT. $EXTRA: more --conf. Removes what it has made when it ends.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1 maps=$2 pairs=$3 bytes=${4:-1500000000} mbit=${5:-500}
memory=${MEMORY:-1024} hosts=3 net=10.77.0
work=${WORK:-$(mktemp -d)}
mkdir -p "$work/classes" "$work/local" "$work/workers"
data=$work/text-$bytes
javac -cp "$SPARK/jars/*" -d "$work/classes" "$here/SparkSort.java"
jar cf "$work/sort.jar" -C "$work/classes" .
[ -e "$data" ] || java -cp "$work/classes:$SPARK/jars/*" SparkSort make "$data" "$bytes"

pids=()
clean() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for ((i = 1; i <= hosts; i++)); do ip netns del "gmhost$i" 2>/dev/null || true; done
  ip link del gmbridge 2>/dev/null || true
}
trap clean EXIT

ip link add gmbridge type bridge
ip addr add "$net.254/24" dev gmbridge
ip link set gmbridge up
for ((i = 1; i <= hosts; i++)); do
  ip netns add "gmhost$i"
  ip link add "gmv$i" type veth peer name eth0 netns "gmhost$i"
  ip link set "gmv$i" master gmbridge up
  ip -n "gmhost$i" addr add "$net.$i/24" dev eth0
  ip -n "gmhost$i" link set eth0 up
  ip -n "gmhost$i" link set lo up
  tc qdisc add dev "gmv$i" root tbf rate "${mbit}mbit" burst 256kb latency 50ms
  ip netns exec "gmhost$i" tc qdisc add dev eth0 root tbf rate "${mbit}mbit" burst 256kb latency 50ms
done

SPARK_LOCAL_IP=$net.254 "$SPARK/bin/spark-class" org.apache.spark.deploy.master.Master --host "$net.254" --port 7077 \
  --webui-port 0 >"$work/master.log" 2>&1 &
pids+=($!)
sleep 4
for ((i = 1; i <= hosts; i++)); do
  ip netns exec "gmhost$i" env SPARK_LOCAL_IP="$net.$i" SPARK_LOCAL_DIRS="$work/local" "$SPARK/bin/spark-class" \
    org.apache.spark.deploy.worker.Worker --host "$net.$i" --cores 1 --memory $((memory + 200))m --webui-port 0 \
    --work-dir "$work/workers/$i" "spark://$net.254:7077" >"$work/worker$i.log" 2>&1 &
  pids+=($!)
done
sleep 6

run() { # run NAME CONF...
  local name=$1 start end lines
  shift
  rm -rf "$work/events" && mkdir "$work/events"
  start=$(date +%s.%N)
  lines=$(SPARK_LOCAL_IP=$net.254 "$SPARK/bin/spark-submit" --master "spark://$net.254:7077" --driver-memory 1g \
    --conf spark.driver.host="$net.254" --conf spark.executor.memory="${memory}m" --conf spark.ui.enabled=false \
    --conf spark.scheduler.minRegisteredResourcesRatio=1 --conf spark.cores.max=$hosts \
    --conf spark.hadoop.fs.local.block.size=1073741824 --conf spark.serializer=org.apache.spark.serializer.KryoSerializer \
    --conf spark.eventLog.enabled=true --conf spark.eventLog.dir="file://$work/events" \
    --conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false ${EXTRA:-} "$@" --class SparkSort \
    "$work/sort.jar" sort "file://$data" "$maps" "$maps" 2>"$work/$name.err" | grep '^lines ')
  end=$(date +%s.%N)
  python3 "$here/events.py" "$work"/events/* shuffle="$name" hosts="$hosts" mbit="$mbit" maps="$maps" bytes="$bytes" \
    lines="$(cut -d' ' -f2 <<<"$lines")" seconds="$(cut -d' ' -f4 <<<"$lines")" \
    process_seconds="$(echo "$end - $start" | bc)" | tee -a "$out"
}

for ((pair = 0; pair < pairs; pair++)); do
  run sort
  run gristmill --jars "$PLUGIN" --conf spark.shuffle.manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager
done
