#!/bin/sh
# Does the protocol have undefined behaviour, according to Miri? Runs the plain tests of crates/ring. The crates os and
# page need system calls that Miri does not support (memfd, fork, futexes between processes); ci/sanitizers.sh covers
# them. Arguments are passed to the tests.
set -eu
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup component add miri rust-src --toolchain nightly || {
        echo "ci/miri.sh: this needs the nightly toolchain with Miri:" >&2
        echo "    rustup toolchain install nightly --component miri,rust-src" >&2
        exit 1
    }
fi
# Each seed gives another schedule of the threads, and other stale values for relaxed loads.
export MIRIFLAGS="-Zmiri-many-seeds=0..16"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
exec cargo +nightly miri test --package gristmill-ring --test plain -- "$@"
