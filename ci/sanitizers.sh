#!/bin/sh
# Do the crates with unsafe code have memory errors or data races? Runs their tests with the address
# sanitizer and the thread sanitizer.
#
#   ci/sanitizers.sh             both
#   ci/sanitizers.sh address     one of them
#
# The thread sanitizer sees races between threads of one process, not between processes. It needs a rebuilt
# standard library (-Zbuild-std), hence the component rust-src.
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
    # Naming the target keeps the sanitizer from build scripts.
    RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_TARGET_DIR="$target/$sanitizer-sanitizer" \
        cargo +nightly test --target "$host" "$@"
}

address() {
    # Leaks are not checked, because a worker ends without running the destructors of its parent's values.
    # Segmentation faults are left to the kernel, because one test provokes them.
    ASAN_OPTIONS=detect_leaks=0:handle_segv=0 \
        run address --package gristmill-ring --package gristmill-os --package gristmill-page --tests
}

thread() {
    sources=$(rustc +nightly --print sysroot)/lib/rustlib/src
    [ -d "$sources" ] || rustup component add rust-src --toolchain nightly
    # One test after the other, because the sanitizer does not see system calls that rustix makes itself: it takes
    # regions of two tests at one address for the same memory.
    export RUST_TEST_THREADS=1
    run thread -Zbuild-std --package gristmill-ring --package gristmill-page --tests
    # The test `process` is left out: the sanitizer's own thread forbids every fork.
    run thread -Zbuild-std --package gristmill-os --lib --test region
}

[ $# -gt 0 ] || set -- address thread
for which; do
    "$which"
done
