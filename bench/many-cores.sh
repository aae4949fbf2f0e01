#!/bin/sh
# What `gristmill machine` and `gristmill-lab many-cores` find on this machine, which needs no compiler and no network.
#
# It needs nothing but binaries of gristmill and, beside it, gristmill-lab, which are built without shared libraries:
#
#   RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked --package gristmill-cli --package gristmill-lab \
#     --target x86_64-unknown-linux-gnu
#
# FOLDER gets machine.txt and many-cores.json.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 GRISTMILL FOLDER [SECONDS]" >&2
    exit 2
fi
mkdir -p "$2"
timeout -k 5 120 "$1" machine --dir "$2" >"$2/machine.txt" || echo "$0: gristmill machine failed" >&2
"$1-lab" many-cores --seconds "${3:-480}" --output "$2/many-cores.json"
