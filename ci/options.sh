#!/bin/sh
# Every subcommand with random options on random input, compared with a few lines of Python.
#
#     ci/options.sh [runs of each subcommand] [more options of ci/options/run.py]
set -eu
cd "$(dirname "$0")/.."
# The build of `make test`, which has the command, too.
cargo test --no-run --quiet --workspace --locked --features gristmill-cli/columnar --test answers
# Without arguments the same runs each time, so that a change and not luck decides.
[ $# -gt 0 ] || set -- 4 --seed 1
runs=$1
shift
exec python3 -B ci/options/run.py --program "${CARGO_TARGET_DIR:-target}/debug/gristmill" --runs "$runs" "$@"
