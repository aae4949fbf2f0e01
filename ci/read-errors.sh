#!/bin/sh
# What does a job make of a disk that loses a byte? COUNT (200) bytes of each input, compressed input, table and spill file are
# lost, one at a time: each is one clear error, or the answer is right. `make test` tries a few.
set -eu
cd "$(dirname "$0")/.."
GRISTMILL_READ_ERRORS=${1:-200} exec cargo test --release --package gristmill-cli --test read_errors
