#!/bin/sh
# Does the page protocol hold in every interleaving? Runs the models of crates/ring under loom.
# Takes about half a minute, and another minute to build loom the first time. Arguments are passed to the tests:
# `ci/loom.sh no_wake_up` runs the models with that in their names.
set -eu
cd "$(dirname "$0")/.."
# A separate folder, because different RUSTFLAGS would rebuild the ordinary one each time.
target=${CARGO_TARGET_DIR:-target}/loom
RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_TARGET_DIR="$target" \
    exec cargo test --release --package gristmill-ring --test loom -- "$@"
