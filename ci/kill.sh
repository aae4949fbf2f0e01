#!/bin/sh
# Does a job survive the death of its workers at any moment? Runs COUNT (500) random small jobs, starting with seed SEED
# (1), kills workers of each from outside, and compares every answer with ten sequential lines.
# With `spill` as third argument all jobs exceed their memory, so that workers die while they spill and merge.
# `ci/kill.sh 1 SEED` repeats the job of one seed. It kills only processes that it has started.
set -eu
cd "$(dirname "$0")/.."
exec cargo test --release --package gristmill --test random_kills -- "${1:-500}" "${2:-1}" "${3:-any}"
