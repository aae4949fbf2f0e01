#!/bin/sh
# What `gristmill scale` says of programs whose limit is known: bench/zoo.sh GRISTMILL ZOO [WORKERS] > zoo.md
#
# ZOO is target/debug/examples/zoo (cargo build --package gristmill-diagnose --examples). A verdict is right if it names the limit; it
# "cannot tell" if it says so, or names the part of the time without a cause; anything else is WRONG.
set -eu
gristmill=$1
zoo=$2
workers=${3:-1,2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >python.py <<'PYTHON'
import sys, threading
def count(turns):
    while turns:
        turns -= 1
threads = [threading.Thread(target=count, args=(12_000_000 // int(sys.argv[1]),)) for _ in range(int(sys.argv[1]))]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
PYTHON

# look KIND EXPECTED COMMAND...: EXPECTED is a pattern for the sentence that names the limit.
look() {
    kind=$1
    expected=$2
    shift 2
    echo "$kind" >&2
    "$gristmill" scale --workers "$workers" --repeats 3 --timeout 60s -- "$@" >report 2>errors || true
    verdict=$(tail -n 1 report)
    if echo "$verdict" | grep -qE "$expected"; then
        judged=right
    elif echo "$verdict" | grep -qE 'cannot tell|cannot be told|under load'; then
        judged='cannot tell'
    else
        judged=WRONG
    fi
    echo "| $kind | $judged | $verdict |"
}

echo '| kind | verdict | what it said |'
echo '|---|---|---|'
run() { look "$1" "$2" "$zoo" "$1" '{workers}'; }
run compute 'hardly a loss'
run bandwidth 'memory bandwidth'
run cache 'caches'
run false-sharing 'false sharing'
run mutex 'the same lock'
run spin 'spinning'
run barrier 'wait for each other, but seldom'
run serial 'serial stretch'
run faults 'page faults|lock of the address space'
run allocator 'allocator|the same lock'
run pipe 'a pipe or socket'
run fsync 'a disk or file system'
run disk 'a disk or file system'
run files 'a disk or file system|file system'
run threads 'more runnable threads'
run tiny-tasks 'the same lock|puts threads to sleep'
look 'interpreter lock' 'the same lock|wait for each other' python3 python.py '{workers}'

quota=/sys/fs/cgroup/cpu/zoo.$$
if mkdir "$quota" 2>/dev/null && echo 100000 >"$quota/cpu.cfs_period_us" && echo 100000 >"$quota/cpu.cfs_quota_us"; then
    look quota 'more runnable threads' sh -c "echo \$\$ >$quota/cgroup.procs; exec $zoo compute {workers}"
    rmdir "$quota" 2>/dev/null || true
else
    echo '| quota | | no quota of processors can be set here |'
fi
