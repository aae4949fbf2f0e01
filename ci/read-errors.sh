#!/bin/sh
# Does a job handle a disk that loses a byte? Drops COUNT (200) bytes of each input, compressed input, table and spill
# file, one at a time. Each gives one clear error or the right answer. `make test` tries a few.
set -eu
cd "$(dirname "$0")/.."
GRISTMILL_READ_ERRORS=${1:-200} exec cargo test --release --package gristmill-cli --test read_errors
