#!/usr/bin/env bash
# Does a job stay within its memory? Sorts GIB (4) gibibytes of TeraSort records and counts their words, within a
# tenth of that memory, which the kernel enforces if a memory cgroup can be made. Checks the answers and prints the
# memory used. Needs four times GIB of disk space in TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
gib=${1:-4}
megabytes=$((gib * 1024 / 10))
cargo build --release --locked --package gristmill-cli --package gristmill-lab
gristmill=${CARGO_TARGET_DIR:-target}/release/gristmill
lab=$gristmill-lab
work=$(mktemp -d)
group=
trap 'rm -rf "$work"; [ -z "$group" ] || rmdir "$group" 2>/dev/null || :' EXIT

# The group is charged for pages of the region too; the kernel drops page cache before the limit matters.
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
# A tenth of the kernel's limit is left for page tables and the page cache.
budget=(--memory "$((megabytes * 9 / 10))MiB" --spill-dir "$work" --quiet)
"$lab" terasort generate "$records" -o "$work/made"
made=$("$lab" terasort validate "$work/made" 2>/dev/null || :)
limited "$gristmill" sort --records terasort "${budget[@]}" "$work/made" >"$work/sorted"
sorted=$("$lab" terasort validate "$work/sorted")
[ "$made" = "$sorted" ] || { echo "sorted: $sorted, made: $made" >&2; exit 1; }
echo "$sorted, in order"
rm "$work/sorted"

# Each record has a unique number of 32 digits. The count must have each of them once, in the order of generation. For
# all other words only the total is checked.
limited "$gristmill" word-count --tokens space --sort key "${budget[@]}" "$work/made" >"$work/counted"
cmp <(cut -c13-44 "$work/made") <(grep -aE $'^[0-9A-F]{32}\t1$' "$work/counted" | cut -f1)
words=$(awk -F'\t' '{words += $NF} END {printf "%d", words}' "$work/counted")
found=$(LC_ALL=C wc -w <"$work/made")
[ "$words" = "$found" ] || { echo "counted: $words words, made: $found" >&2; exit 1; }
echo "$words words, $(wc -l <"$work/counted") different"
for peak in memory.peak memory.max_usage_in_bytes; do
    [ -n "$group" ] && [ -e "$group/$peak" ] && echo "peak of the memory cgroup: $(cat "$group/$peak") bytes of $((megabytes * 1048576))" || :
done
