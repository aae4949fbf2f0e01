#!/bin/sh
# Does a queue that is killed at random moments (SIGKILL to the scheduler, or to its watchdog) leave nothing stopped,
# lost, or run twice? COUNT (100) seeds, half of them with --by-bandwidth and more programs than processors; `cargo
# test` tries 20 of them. And does each byte of 100 programs that print 50 MB arrive, whatever is killed or stopped?
# (`cargo test`: 12 programs, 2 MB.)
#
#     ci/batch.sh [COUNT]
set -eu
cd "$(dirname "$0")/.."
GRISTMILL_SEEDS=${1:-100} GRISTMILL_OUTPUT=100x50 \
    exec cargo test --quiet --locked --package gristmill-cli --test programs -- \
    a_queue_killed_at_any_moment every_byte_is_kept
