#!/bin/sh
# Does a killed job continue? Runs COUNT (200) random small jobs with a checkpoint, starting with seed SEED (1), and
# kills the coordinator of each up to seven times while it maps, reduces and delivers. Runs it again until it ends,
# and compares every answer with ten sequential lines. `ci/resume.sh 1 SEED` repeats the job of one seed. It kills
# only processes that it has started.
set -eu
cd "$(dirname "$0")/.."
exec cargo test --release --package gristmill --test resume -- "${1:-200}" "${2:-1}"
