#!/bin/sh
# Does a job that was killed continue? Runs COUNT random small jobs (200) from seed SEED (1) on with a checkpoint, kills the
# coordinator of each up to seven times while it maps, reduces and delivers, runs it again until it ends, and compares every
# answer with ten sequential lines. `ci/resume.sh 1 SEED` repeats the job of one seed. Stops nothing that it has not started.
set -eu
cd "$(dirname "$0")/.."
exec cargo test --release --package gristmill --test resume -- "${1:-200}" "${2:-1}"
