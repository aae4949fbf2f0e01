#!/bin/sh
# Do small jobs take more instructions than before? Instructions, unlike times, are the same on a busy machine.
#
#     ci/instructions.sh          fails if a job takes 5 % more or less than ci/instructions/counts.json says
#     ci/instructions.sh --set    writes that file anew; the message of a commit that does says why
set -eu
cd "$(dirname "$0")/.."
sh ci/needs.sh valgrind
# The build of `make test` includes the command.
cargo test --no-run --quiet --workspace --locked --features gristmill-cli/columnar --test answers
exec python3 -B ci/instructions/count.py "${CARGO_TARGET_DIR:-target}/debug/gristmill" "$@"
