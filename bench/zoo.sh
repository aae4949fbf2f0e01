#!/bin/sh
# Runs `gristmill scale` on programs whose limit is known: bench/zoo.sh GRISTMILL ZOO [OPTION...] >zoo.md
#
# ZOO is target/debug/examples/zoo (cargo build --package gristmill-scale --examples). OPTIONs are those of `gristmill
# scale`. The folder for temporary files (TMPDIR) must lie on a disk. As root the script makes cgroups for a slow disk
# and for a quota of processors. ONLY="spin files" tries only these kinds, and REPORTS=FOLDER keeps the whole reports.
# GRISTMILL_HIDE=events,tracing,schedstat,pressure makes it tier C, and ,wchan one whose kernel tells even less.
#
# Each verdict is judged:
#   right        it names the limit
#   no loss      it says that hardly anything is lost, and the efficiency is at least 85 %: here the limit does not bite
#   cannot tell  it says so
#   WRONG        anything else
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 GRISTMILL ZOO [OPTION...]" >&2
    exit 2
fi
gristmill=$(realpath "$1")
zoo=$(realpath "$2")
shift 2
[ $# -gt 0 ] || set -- --workers 1,2,4
folder=$(mktemp -d)
cgroups=
end() {
    rm -rf "$folder"
    for cgroup in $cgroups; do rmdir "$cgroup" 2>/dev/null || true; done
}
trap end EXIT
trap 'exit 1' INT TERM HUP
cd "$folder"
processors=$(nproc)

# judge KIND EXPECTED OPTION... -- COMMAND...: prints a row. EXPECTED is a pattern for the sentence that names the
# limit.
judge() {
    kind=$1
    expected=$2
    shift 2
    case " ${ONLY:-$kind} " in *" $kind "*) ;; *) return 0 ;; esac
    echo "$kind" >&2
    "$gristmill" scale --timeout 60s "$@" >report 2>errors || true
    [ -z "${REPORTS:-}" ] || cp report "$REPORTS/$kind.txt"
    verdict=$(tail -n 1 report | grep -oE '(With [0-9]+ workers|Why) .*$' || tail -n 1 errors)
    # The efficiency with the most workers for which there are processors.
    efficiency=$(awk -v most="$processors" '$1 ~ /^[0-9]+$/ && $1 <= most && / %/ { sub(/ %.*/, ""); last = $NF } END { print last + 0 }' report)
    if echo "$verdict" | grep -qE 'cannot tell|cannot be told'; then
        judged='cannot tell'
    elif echo "$verdict" | grep -qE "$expected"; then
        judged=right
    elif echo "$verdict" | grep -q 'hardly a loss' && [ "$efficiency" -ge 85 ]; then
        judged='no loss'
    else
        judged=WRONG
    fi
    echo "| $kind | $efficiency % | $judged | $verdict |"
}

# cgroup CONTROLLER: makes a cgroup and prints its folder, or fails.
cgroup() {
    case $1 in cpu) v2=cpu ;; blkio) v2=io ;; esac
    if [ -d "/sys/fs/cgroup/$1" ]; then
        path=/sys/fs/cgroup/$1/zoo.$$
    elif grep -qw "$v2" /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
        path=/sys/fs/cgroup/zoo.$$.$v2
    else
        return 1
    fi
    mkdir "$path" 2>/dev/null && echo "$path"
}

# The command of a kind within a cgroup.
within() {
    echo "echo \$\$ >$1/cgroup.procs; exec $zoo $2 {workers}"
}

cat >count.py <<'PYTHON'
import sys, threading

def count(turns):
    while turns:
        turns -= 1

workers = int(sys.argv[1])
threads = [threading.Thread(target=count, args=(20_000_000 // workers,)) for _ in range(workers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
PYTHON

echo '| kind | efficiency | verdict | what it said |'
echo '|---|---|---|---|'
run() {
    kind=$1
    expected=$2
    shift 2
    judge "$kind" "$expected" "$@" -- "$zoo" "$kind" '{workers}'
}
run compute 'hardly a loss' "$@"
run bandwidth 'memory bandwidth' "$@"
run cache 'caches' "$@"
run false-sharing 'false sharing' "$@"
run mutex 'the same lock' "$@"
run queue 'one thread is busy all the time' "$@"
run file-lock 'a lock on a file' "$@"
run spin 'spinning' "$@"
run barrier 'wait for each other, but seldom' "$@"
run serial 'serial stretch' "$@"
run faults 'page faults|address space|the same lock' "$@"
judge allocator 'the same lock' "$@" -- env GLIBC_TUNABLES=glibc.malloc.arena_max=1 "$zoo" allocator '{workers}'
run pipe 'a pipe or socket' "$@"

# A disk of 200 writes and 100 MB per second, where a cgroup can make one.
disk=$(stat -c %Hd:%Ld "$folder")
if slow=$(cgroup blkio); then
    cgroups="$cgroups $slow"
    if [ -e "$slow/io.max" ]; then
        echo "$disk wbps=100000000 wiops=200" >"$slow/io.max" || true
    else
        echo "$disk 100000000" >"$slow/blkio.throttle.write_bps_device" || true
        echo "$disk 200" >"$slow/blkio.throttle.write_iops_device" || true
    fi
    judge fsync 'a disk or file system' "$@" -- sh -c "$(within "$slow" fsync)"
    judge disk 'a disk or file system' "$@" -- sh -c "$(within "$slow" disk)"
else
    echo 'no cgroup for a slow disk can be made here' >&2
    run fsync 'a disk or file system' "$@"
    run disk 'a disk or file system' "$@"
fi
run files 'files and folders|file system|of the kernel' "$@"
run threads 'already with' "$@"
run tiny-tasks 'the same lock|lock or queue in common|puts threads to sleep' "$@"
judge interpreter-lock 'runs at a time|the same lock' "$@" -- python3 count.py '{workers}'

# As much time as one processor has.
if quota=$(cgroup cpu); then
    cgroups="$cgroups $quota"
    if [ -e "$quota/cpu.max" ]; then
        echo '100000 100000' >"$quota/cpu.max"
    else
        echo 100000 >"$quota/cpu.cfs_quota_us"
    fi
    judge quota 'processors that they may use|quota' "$@" -- sh -c "$(within "$quota" compute)"
else
    echo '| quota | | not tried | no cgroup for a quota of processors can be made here |'
fi
