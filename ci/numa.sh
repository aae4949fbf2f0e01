#!/usr/bin/env bash
# Do workers keep to their nodes on a machine with several? Boots an emulated one of two nodes, with two processors
# each, and counts words there under every placement. Checks the answers, the bytes that one node has read of the
# other (docs/statistics.md), and where the kernel says that the pages of each worker lie.
#
#     ci/numa.sh               builds the command
#     ci/numa.sh GRISTMILL     uses this one
#
# Missing tools, and a kernel that is not installed but only unpacked, come from apt (Debian). Emulation needs no
# rights and no KVM.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    gristmill=$1
else
    cargo build --locked --package gristmill-cli
    gristmill=${CARGO_TARGET_DIR:-target}/debug/gristmill
fi
if ! command -v qemu-system-x86_64 >/dev/null || ! command -v busybox >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends qemu-system-x86 busybox-static >/dev/null
fi

# 1. A kernel, kept for the next time.
kept=${CARGO_TARGET_DIR:-target}/numa
mkdir -p "$kept"
kernel() {
    find "$kept" -name 'vmlinuz-*' -print -quit
}
if [ -z "$(kernel)" ]; then
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
    (cd "$kept" && apt-get download -o APT::Sandbox::User=root "$package" >/dev/null && dpkg -x "$package"_*.deb . && rm "$package"_*.deb)
fi

# 2. Words that repeat, and their counts.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp}
LC_ALL=C awk 'BEGIN {
    srand(1)
    for (line = 0; line < 250000; line++) {
        for (word = 0; word < 8; word++) printf "w%d ", int(2000 * rand() ^ 2)
        print ""
    }
}' >"$root/words"
tr -s ' ' '\n' <"$root/words" | LC_ALL=C sort | uniq -c | awk '$2 != "" { print $2 "\t" $1 * 16 }' >"$work/expected"
expected=$(md5sum <"$work/expected" | cut -d' ' -f1)

# 3. The guest's script. For each placement it prints the answer's checksum and the bytes read of nodes. During the
#    job, it prints for each worker its processors and the pages of its arena on each node. The arena is the last part
#    of the region that it may write to.
strip -o "$root/bin/gristmill" "$gristmill"
ldd "$gristmill" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root/$(dirname "$library")"
    cp -L "$library" "$root/$library"
done
cp "$(command -v busybox)" "$root/bin/busybox"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys || echo guest no sysfs
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
echo "guest nodes $(cat /sys/devices/system/node/online)"
look() {
    for pid in $(cat /proc/"$1"/task/"$1"/children); do
        arena=$(grep 'rw-s.*memfd:gristmill' /proc/"$pid"/maps | tail -n 1 | cut -d- -f1)
        [ -n "$arena" ] || continue
        lies=$(grep "^$arena " /proc/"$pid"/numa_maps | tr ' ' '\n' | grep '^N[0-9]*=' | tr '\n' ' ')
        cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/"$pid"/status)
        [ -z "$lies" ] || echo "guest $2 arena cpus $cpus $lies"
    done
}
for placement in auto pinned by-node off; do
    # The words, sixteen times, so that there is time to look.
    gristmill word-count --workers 4 --placement $placement --explain --stats /tmp/stats.csv $(yes /words | head -n 16) \
        >/tmp/counts 2>/tmp/plan &
    job=$!
    # Until all four have pages, or the job is over.
    while grep -q . /proc/$job/maps && [ "$(look $job $placement | tee /tmp/look | wc -l)" -lt 4 ]; do :; done
    cat /tmp/look
    wait $job
    echo "guest $placement status $?"
    echo "guest $placement answer $(md5sum </tmp/counts | cut -d' ' -f1)"
    grep -vE '^plan: ' /tmp/plan | sed "s/^/guest $placement says /"
    grep -E '^plan: (workers|sample|placement|partitions):' /tmp/plan | sed "s/^/guest $placement /"
    sed -n "s/^job,,\(node_.*\),\(.*\)/guest $placement \1 \2/p" /tmp/stats.csv
    sed -n "s/^job,,wall_ns,/guest $placement wall_ns /p" /tmp/stats.csv
done
echo guest end
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initramfs"

# 4. The machine.
began=$(date +%s)
timeout -k 5 600 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 4 -m 1536M -display none -monitor none -serial stdio -no-reboot \
    -object memory-backend-ram,id=m0,size=768M -object memory-backend-ram,id=m1,size=768M \
    -numa node,nodeid=0,memdev=m0,cpus=0-1 -numa node,nodeid=1,memdev=m1,cpus=2-3 -numa dist,src=0,dst=1,val=20 \
    -kernel "$(kernel)" -initrd "$work/initramfs" -append 'console=ttyS0 quiet panic=-1' 2>/dev/null |
    tr -d '\r' >"$work/console" || :
grep -o 'guest .*' "$work/console" >"$work/report" || :
cat "$work/report"
if ! grep -q '^guest end' "$work/report"; then
    tail -n 20 "$work/console"
    echo 'the guest did not come to its end' >&2
    exit 1
fi
echo "the guest ran for $(($(date +%s) - began)) s"

# 5. The claims.
failed=0
check() {
    if ! awk "$2" "$work/report"; then
        echo "not so: $1" >&2
        failed=1
    fi
}
# Prints the share of what crosses in per mille.
# shellcheck disable=SC2016  # awk's variables
remote='function remote(name) { for (key in bytes) { split(key, of, " "); if (of[1] == name) { all += bytes[key]; split(of[2], node, "_"); if (node[2] != node[5]) cross += bytes[key] } } return all ? 1000 * cross / all : -1 }
    $3 ~ /^node_.*_bytes$/ { bytes[$2 " " $3] = $4 }'
for placement in auto pinned by-node off; do
    check "$placement gives the right answer" "\$2 == \"$placement\" && \$3 == \"answer\" { found = \$4 == \"$expected\" } END { exit !found }"
done
# What `auto` chooses depends on a sample, for which an emulated machine is mostly too slow; without one, it is
# `pinned`.
check "by-node reads at most 5 % of the other node" "$remote END { share = remote(\"by-node\"); print \"by-node: \" share / 10 \" % cross\"; exit !(share >= 0 && share <= 50) }"
for placement in pinned off; do
    check "$placement reads about half of the other node" "$remote END { share = remote(\"$placement\"); print \"$placement: \" share / 10 \" % cross\"; exit !(share >= 350 && share <= 650) }"
done
# Each pinned worker has a line, and all pages of its arena lie on its node.
for placement in auto pinned by-node; do
    check "the arenas of $placement lie on their workers' nodes" "
        \$2 == \"$placement\" && \$3 == \"arena\" {
            workers++
            home = \$5 == \"0-1\" ? 0 : \$5 == \"2-3\" ? 1 : -1
            if (NF < 6 || home < 0) wrong = 1
            for (at = 6; at <= NF; at++) if (\$at !~ \"^N\" home \"=\") wrong = 1
        }
        END { exit wrong || workers < 4 }"
done
[ $failed = 0 ] && echo 'workers keep to their nodes'
exit $failed
