#!/bin/sh
# Is any behaviour of the safe protocol undefined, in Miri's reading of the language? Runs the plain
# tests of crates/ring. The crates os and page live on system calls that Miri does not have (memfd,
# fork, futexes between processes); see ci/sanitizers.sh for them. Arguments go to the tests.
set -eu
cd "$(dirname "$0")/.."
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    rustup component add miri rust-src --toolchain nightly || {
        echo "ci/miri.sh: this needs the nightly toolchain with Miri:" >&2
        echo "    rustup toolchain install nightly --component miri,rust-src" >&2
        exit 1
    }
fi
# Many seeds: each is another schedule of the threads, with other stale values for relaxed loads.
export MIRIFLAGS="-Zmiri-many-seeds=0..16"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
exec cargo +nightly miri test --package gristmill-ring --test plain -- "$@"
