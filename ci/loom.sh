#!/bin/sh
# Does the page protocol hold in every interleaving? Runs the models of crates/ring under loom.
# About half a minute, and a minute more to build loom the first time. Arguments go to the tests:
# `ci/loom.sh no_wake_up` runs the models whose names contain that.
set -eu
cd "$(dirname "$0")/.."
# A folder of its own, because another RUSTFLAGS would rebuild the ordinary one each time.
target=${CARGO_TARGET_DIR:-target}/loom
RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR="$target" \
    exec cargo test --release --package gristmill-ring --test loom -- "$@"
