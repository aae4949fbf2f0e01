#!/bin/sh
# Does every subcommand give the right answer with random options on random input? A few lines of Python say.
#
#     ci/options.sh [runs of each subcommand] [more options of ci/options/run.py]
set -eu
cd "$(dirname "$0")/.."
# The build of `make test` includes both commands.
cargo test --no-run --quiet --workspace --locked --features gristmill-cli/columnar --test answers --test lab
# Without arguments the runs are the same each time, so that a failure comes from a change and not from chance.
[ $# -gt 0 ] || set -- 4 --seed 1
runs=$1
shift
exec python3 -B ci/options/run.py --program "${CARGO_TARGET_DIR:-target}/debug/gristmill" --runs "$runs" "$@"
