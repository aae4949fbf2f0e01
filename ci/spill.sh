#!/bin/sh
# Does a job stay within its memory? Sorts GIB gibibytes (4) of TeraSort records and counts their keys within a tenth of
# that, under a limit of the kernel where a memory cgroup can be made, checks the answer, and says how much memory was used.
# Needs three times GIB of disk in TMPDIR.
set -eu
cd "$(dirname "$0")/.."
gib=${1:-4}
megabytes=$((gib * 1024 / 10))
cargo build --release --locked --package gristmill-cli
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill
work=$(mktemp -d)
group=
trap 'rm -rf "$work"; [ -z "$group" ] || rmdir "$group" 2>/dev/null || :' EXIT

# Pages of the region are charged to the group as well; page cache is dropped before the limit is felt.
for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -z "$group" ] && mkdir "$parent/gristmill-spill-$$" 2>/dev/null && group=$parent/gristmill-spill-$$ || :
done
limited() {
    if [ -n "$group" ]; then
        limit=$group/memory.max
        [ -e "$limit" ] || limit=$group/memory.limit_in_bytes
        echo $((megabytes * 1048576)) >"$limit"
        sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$group" "$@"
    else
        echo 'no memory cgroup can be made here: only the budget limits memory' >&2
        "$@"
    fi
}

records=$((gib * 1073741824 / 100))
"$gristmill" terasort generate "$records" -o "$work/made"
made=$("$gristmill" terasort validate "$work/made" 2>/dev/null || :)
# A tenth of the kernel's limit is left for page tables and the page cache.
limited "$gristmill" sort --records terasort --memory "$((megabytes * 9 / 10))MiB" --spill-dir "$work" \
    --stats "$work/stats.json" "$work/made" >"$work/sorted"
sorted=$("$gristmill" terasort validate "$work/sorted")
[ "$made" = "$sorted" ] || { echo "sorted: $sorted, made: $made" >&2; exit 1; }
echo "$sorted, in order"
for peak in memory.peak memory.max_usage_in_bytes; do
    [ -n "$group" ] && [ -e "$group/$peak" ] && echo "peak of the memory cgroup: $(cat "$group/$peak") bytes of $((megabytes * 1048576))" || :
done
