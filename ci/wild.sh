#!/bin/sh
# Does a job survive a stray pointer in a worker? Runs COUNT (300) random small jobs, starting with seed SEED (1). In
# each of them a worker overwrites one word that it shares with the others. The answer is that of ten sequential
# lines, or there is one error: no job hangs, and no coordinator panics. `ci/wild.sh 1 SEED` repeats the job of one
# seed; SHOW=1 prints what each job printed.
set -eu
cd "$(dirname "$0")/.."
exec cargo test --release --package gristmill --test wild_writes -- "${1:-300}" "${2:-1}"
