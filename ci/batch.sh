#!/bin/sh
# Does a queue that is killed at random moments (SIGKILL to the scheduler, or to its watchdog) leave nothing stopped, lost, or run twice?
# COUNT (100) seeds, half of them with --by-bandwidth and more programs than processors; `cargo test` tries 20 of them.
#
#     ci/batch.sh [COUNT]
set -eu
cd "$(dirname "$0")/.."
GRISTMILL_SEEDS=${1:-100} exec cargo test --quiet --locked --package gristmill-cli --test experiment \
    a_queue_killed_at_any_moment
