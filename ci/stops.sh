#!/bin/sh
# Does every job end if some of its processes are stopped (SIGSTOP) or killed (SIGKILL) at random moments? Each case
# runs COUNT (24) times with each signal, starting with seed SEED (1). Within a time limit it must give the answer of
# an undisturbed run or one clear error, and leave nothing behind.
#
#     ci/stops.sh [COUNT] [SEED] [more options of ci/stops.py]
set -eu
cd "$(dirname "$0")/.."
cargo build --quiet --locked --package gristmill-cli
count=${1:-24}
seed=${2:-1}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
exec python3 -B ci/stops.py --program "${CARGO_TARGET_DIR:-target}/debug/gristmill" --count "$count" --seed "$seed" "$@"
