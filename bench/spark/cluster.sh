# Clusters to measure in, on one machine; sourced by pair.sh, which has set $SPARK, $work and $memory.
#
#   loopback  a local cluster of $EXECUTORS (2) executor processes of 1 core each
#   hosts     three hosts: network namespaces on a bridge, each link $MBIT (500) Mbit/s each way (tc tbf)
#   disks     the same, and each host keeps its shuffle files on a disk of its own: a loop device that does $DISK_BYTES bytes and
#             $DISK_OPS operations per second each way
#
# The disk is what the hosts of OPS (Cheng et al. 2020) have for each core (31 MB/s and 750 operations/s for four),
# times the cores that a host has: one, or its part of the machine's if there are fewer of them than hosts. With two
# cores: 5.2 MB/s, 125 operations/s. Its data are small beside the memory of the machine, so what has reached a disk
# is dropped from the page cache every second. Hosts need root. cluster_up KIND makes one and sets $conf, what
# spark-submit must be told; cluster_down, to be called at exit, removes all of it. cpu_seconds says how much
# processor time all of it has used so far, where there is cgroup v1 to count it (else 0).

# shellcheck shell=bash disable=SC2034 # pair.sh reads conf
: "${SPARK:?}" "${work:?}" "${memory:?}"
net=10.77.0 hosts=3 accounts=/sys/fs/cgroup/cpuacct
cores=$(nproc) && [ "$cores" -le $hosts ] || cores=$hosts
disk_bytes=${DISK_BYTES:-$((31000000 * cores / (4 * hosts)))} disk_ops=${DISK_OPS:-$((750 * cores / (4 * hosts)))}
pids=() conf=()

cluster_up() {
  if [ -w $accounts/cgroup.procs ]; then
    mkdir -p "$accounts/gristmill-$$"
    echo $$ >"$accounts/gristmill-$$/cgroup.procs"
  fi
  case $1 in
  loopback)
    conf=(--master "local-cluster[${EXECUTORS:-2},1,$memory]" --conf spark.local.dir="$work/local"
      --conf spark.shuffle.readHostLocalDisk=false)
    ;;
  hosts | disks)
    links_up
    rm -f "$work"/*.log
    export SPARK_LOCAL_IP=$net.254
    "$SPARK/bin/spark-class" org.apache.spark.deploy.master.Master --host "$net.254" --port 7077 --webui-port 0 \
      >"$work/master.log" 2>&1 &
    pids+=($!)
    await master.log 'I have been elected leader'
    for ((i = 1; i <= hosts; i++)); do
      mkdir -p "$work/local$i"
      [ "$1" = hosts ] || disk_up "$i"
      worker_up "$i" &
      pids+=($!)
    done
    if [ "$1" = disks ]; then
      forget "$work"/local[1-9] &
      pids+=($!)
    fi
    for ((i = 1; i <= hosts; i++)); do await "worker$i.log" 'Successfully registered'; done
    conf=(--master "spark://$net.254:7077" --conf spark.driver.host="$net.254" --conf spark.cores.max="$hosts")
    ;;
  *)
    echo "cluster.sh: no cluster is called $1 (loopback, hosts, disks)" >&2
    return 1
    ;;
  esac
}

cluster_down() {
  local pid i
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  pids=()
  for ((i = 1; i <= hosts; i++)); do
    ip netns del "gmhost$i" 2>/dev/null || true
    disk_down "$i"
  done
  ip link del gmbridge 2>/dev/null || true
  if [ -d "$accounts/gristmill-$$" ]; then
    echo $$ >$accounts/cgroup.procs
    rmdir "$accounts/gristmill-$$" || true # an executor may still be on its way out
  fi
}

cpu_seconds() {
  echo "scale=3; $(cat "$accounts/gristmill-$$/cpuacct.usage" 2>/dev/null || echo 0) / 1000000000" | bc
}

await() { # await LOG TEXT
  for ((tick = 0; tick < 300; tick++)); do
    grep -q "$2" "$work/$1" 2>/dev/null && return
    sleep 0.2
  done
  echo "cluster.sh: $work/$1 does not say '$2' after a minute" >&2
  return 1
}

links_up() {
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
    tc qdisc add dev "gmv$i" root tbf rate "${MBIT:-500}mbit" burst 256kb latency 50ms
    ip netns exec "gmhost$i" tc qdisc add dev eth0 root tbf rate "${MBIT:-500}mbit" burst 256kb latency 50ms
  done
}

worker_up() {
  SPARK_LOCAL_IP=$net.$1 SPARK_LOCAL_DIRS=$work/local$1 exec ip netns exec "gmhost$1" "$SPARK/bin/spark-class" \
    org.apache.spark.deploy.worker.Worker --host "$net.$1" --cores 1 --memory $((memory + 200))m --webui-port 0 \
    --work-dir "$work/workers/$1" "spark://$net.254:7077" >"$work/worker$1.log" 2>&1
}

magnet_up() { # the shuffle service of each host, which merges what is pushed to it
  for ((i = 1; i <= hosts; i++)); do
    SPARK_LOCAL_IP=$net.$i SPARK_DIST_CLASSPATH=$work/classes ip netns exec "gmhost$i" "$SPARK/bin/spark-class" Magnet \
      >"$work/magnet$i.log" 2>&1 &
    pids+=($!)
  done
  for ((i = 1; i <= hosts; i++)); do await "magnet$i.log" 'Starting shuffle service'; done
}

forget() { # forget FOLDER...: for ever
  exec python3 -c '
import os, sys, time
while True:
    for root in sys.argv[1:]:
        for folder, _, files in os.walk(root):
            for name in files:
                try:
                    file = os.open(os.path.join(folder, name), os.O_RDONLY)
                except OSError:
                    continue  # deleted meanwhile
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)
    time.sleep(1)
' "$@"
}

# The limit of a device is set in the root group: there it also holds for what the kernel writes back later. The
# device takes at most 16 MB of pages that are not yet written.
disk_up() {
  local device number limit
  truncate -s 8G "$work/disk$1.img"
  mkfs.ext4 -q -m 0 -E lazy_itable_init=1,lazy_journal_init=1 "$work/disk$1.img"
  device=$(losetup --find --show --direct-io=on "$work/disk$1.img")
  number=$(lsblk -ndo MAJ:MIN "$device" | tr -d ' ')
  mount -o noatime "$device" "$work/local$1"
  for limit in read_bps:$disk_bytes write_bps:$disk_bytes read_iops:$disk_ops write_iops:$disk_ops; do
    echo "$number ${limit#*:}" >"/sys/fs/cgroup/blkio/blkio.throttle.${limit%:*}_device"
  done
  echo 1 >"/sys/class/bdi/$number/strict_limit"
  echo $((16 << 20)) >"/sys/class/bdi/$number/max_bytes"
}

disk_down() {
  local device number limit
  if mountpoint -q "$work/local$1" 2>/dev/null; then
    device=$(findmnt -no SOURCE "$work/local$1")
    number=$(lsblk -ndo MAJ:MIN "$device" | tr -d ' ')
    for limit in read_bps write_bps read_iops write_iops; do
      echo "$number 0" >"/sys/fs/cgroup/blkio/blkio.throttle.${limit}_device"
    done
    umount "$work/local$1"
    losetup --detach "$device"
    rm "$work/disk$1.img"
  fi
}
