#!/bin/sh
# Is there a file whose reading panics, or gives other records than it has? Each parser of files gets COUNT (a million) inputs
# that are nearly right, made from the numbers 0 to COUNT - 1: lines and the other records, CSV against the csv crate,
# compressed files, BMP, and tables of numbers. `make test` runs 2000 of each.
set -eu
cd "$(dirname "$0")/.."
GRISTMILL_FUZZ=${1:-1000000} exec cargo test --release --package gristmill --package gristmill-apps --lib fuzz
