#!/bin/sh
# Every subcommand with random options on random input, compared with a few lines of Python.
#
#     ci/options.sh [runs of each subcommand, 4] [more options of ci/options.py]
set -eu
cd "$(dirname "$0")/.."
# The build of `make test`, which has the command, too.
cargo test --no-run --quiet --workspace --locked --features gristmill-cli/columnar --test answers
runs=${1:-4}
[ $# -eq 0 ] || shift
exec python3 ci/options.py --program "${CARGO_TARGET_DIR:-target}/debug/gristmill" --runs "$runs" "$@"
