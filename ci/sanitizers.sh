#!/bin/sh
# Do the crates with unsafe code touch memory wrongly, or race? Runs their tests under the address
# sanitizer and under the thread sanitizer.
#
#   ci/sanitizers.sh             both
#   ci/sanitizers.sh address     one of them
#
# The thread sanitizer knows one process only: it sees the races of threads, not those between
# processes. It needs the standard library rebuilt (-Zbuild-std), hence the component rust-src.
set -eu
cd "$(dirname "$0")/.."
host=$(rustc +nightly -vV | sed -n 's/^host: //p') || {
    echo "ci/sanitizers.sh: this needs the nightly toolchain: rustup toolchain install nightly" >&2
    exit 1
}
target=${CARGO_TARGET_DIR:-target}

run() {
    echo "== $1 sanitizer"
    sanitizer=$1
    shift
    # The target is named so that build scripts are built without the sanitizer.
    RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_TARGET_DIR="$target/$sanitizer-sanitizer" \
        cargo +nightly test --target "$host" "$@"
}

address() {
    # Leaks are not looked for: a worker ends without running the destructors of its parent's values.
    # A segmentation fault is a case of one test, so it is left to the kernel.
    ASAN_OPTIONS=detect_leaks=0:handle_segv=0 \
        run address --package gristmill-ring --package gristmill-os --package gristmill-page --tests
}

thread() {
    sources=$(rustc +nightly --print sysroot)/lib/rustlib/src
    [ -d "$sources" ] || rustup component add rust-src --toolchain nightly
    run thread -Zbuild-std --package gristmill-ring --package gristmill-page --tests
    # Not the test `process`: the sanitizer runs a thread of its own, which forbids every fork.
    run thread -Zbuild-std --package gristmill-os --lib --test region
}

for which in ${*:-address thread}; do
    "$which"
done
