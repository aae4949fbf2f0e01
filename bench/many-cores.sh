#!/bin/sh
# Where more workers stop helping on this machine: six applications, threads against processes,
# page policies, and placement on nodes if there are several.
#
# It needs no network and nothing but binaries of gristmill and, beside it, gristmill-lab, which are built without
# shared libraries like this:
#
#   RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --package gristmill-cli --package gristmill-lab \
#     --target x86_64-unknown-linux-gnu
#
# FOLDER gets the reports (.txt and .html), the verdicts of all (verdicts.md), and during the run the inputs. Parts
# for which there is no time left are named there. The inputs grow with the processors, up to 3 GB.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 GRISTMILL FOLDER [SECONDS]" >&2
    exit 2
fi
gristmill=$1
folder=$2
seconds=${3:-600}
began=$(date +%s)
mkdir -p "$folder"
if [ -e "$folder/data" ]; then
    echo "$0: $folder/data is there already" >&2
    exit 2
fi
data=$folder/data
trap 'rm -rf "$data"' EXIT
trap 'exit 1' INT TERM HUP
mkdir "$data"
verdicts=$folder/verdicts.md

left() {
    echo $((seconds - ($(date +%s) - began)))
}

processors=$(nproc)
size=medium
[ "$seconds" -ge 200 ] || size=small
copies=$(((processors + 3) / 4))

# Prints an input as often as there are four processors.
repeated() {
    for _ in $(seq "$copies"); do echo "$1"; done
}

# part NAME OPTIONS -- APPLICATION ARGUMENTS: a report of its own.
part() {
    name=$1
    shift
    if [ "$(left)" -lt 5 ]; then
        echo "- $name: left out, no time was left" >>"$verdicts"
        return
    fi
    echo "$name" >&2
    if timeout -k 5 "$(left)" "$gristmill" scale --repeats 3 --timeout 60s --output "$folder/$name.html" "$@" \
        >"$folder/$name.txt" 2>"$folder/$name.err"; then
        rm "$folder/$name.err"
        echo "- $name: $(tail -n 1 "$folder/$name.txt")" >>"$verdicts"
    else
        echo "- $name: failed or ran out of time: $(tail -n 1 "$folder/$name.err")" >>"$verdicts"
    fi
}

make_input() {
    "$gristmill-lab" generate "$1" --size "$2" -o "$data" | head -n 1
}

# 1. The machine.
{
    echo "# Where more workers stop helping: $processors processors, $(uname -m), $(date -u +%F)"
    echo
    "$gristmill" --version
    echo
} >"$verdicts"
timeout -k 5 120 "$gristmill" machine --dir "$data" >"$folder/machine.txt" 2>/dev/null || true

# 2. Six applications.
text=$(make_input word-count $size)
picture=$(make_input histogram $size)
pairs=$(make_input linear-regression $size)
points=$(make_input kmeans $size)
records=$data/records
# shellcheck disable=SC2046 # As below.
cat $(repeated "$(make_input sort $size)") >"$records"
lines=$(make_input palindromes small)
# shellcheck disable=SC2046 # The names have no spaces but those of FOLDER, which the shell would cut.
part word-count word-count --top 10 $(repeated "$text")
# shellcheck disable=SC2046
part histogram histogram $(repeated "$picture")
# shellcheck disable=SC2046
part linear-regression linear-regression $(repeated "$pairs")
part kmeans kmeans -k 100 "$points"
part sort sort "$records"
part palindromes palindromes --print total --algorithm tree "$lines"

# 3. Threads against processes.
# shellcheck disable=SC2046
part threads-word-count --no-account --vary isolation=process,thread word-count --top 10 $(repeated "$text")
# shellcheck disable=SC2046
part threads-histogram --no-account --vary isolation=process,thread histogram $(repeated "$picture")

# 4. Page policies.
# shellcheck disable=SC2046
part pages-word-count --no-account --vary pages=fresh,reuse,prealloc word-count --top 10 $(repeated "$text")
part pages-sort --no-account --vary pages=fresh,reuse,prealloc sort "$records"

# 5. Placement, where there is a choice.
if [ -d /sys/devices/system/node/node1 ]; then
    # shellcheck disable=SC2046
    part placement-word-count --no-account --vary placement=auto,pinned,off word-count $(repeated "$text")
    part placement-sort --no-account --vary placement=pinned,off sort "$records"
fi
cat "$verdicts"
