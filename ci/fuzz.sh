#!/bin/sh
# Is there a file whose reading panics, takes more memory than it may, or gives other records than it has?
#
# 1. Each parser of files gets COUNT (a million) inputs that are nearly right, made from the numbers 0 to COUNT - 1, and its
#    result is compared with another's. `make test` runs 2000 of each.
# 2. Each program in fuzz/ (one for each parser) gets COUNT inputs of libFuzzer, which looks for bytes that lead to code that
#    was not run before. It begins with fuzz/corpus; what it finds stays in fuzz/found. A panic, 10 seconds, or more
#    than 512 MiB are a failure, and the input is written to a file whose name it says.
#
# ci/fuzz.sh COUNT NAME ... runs these programs only.
set -eu
cd "$(dirname "$0")/.."
count=${1:-1000000}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || GRISTMILL_FUZZ=$count cargo test --release --package gristmill --package gristmill-apps --lib fuzz

# What cargo-fuzz passes, without a sanitizer: that needs a nightly compiler.
coverage='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table'
# With a target named, build scripts are built without these flags.
target=$(rustc --version --verbose | sed -n 's/^host: //p')
RUSTFLAGS="$coverage --cfg fuzzing" cargo build --manifest-path fuzz/Cargo.toml --release --locked --target "$target"

[ $# -gt 0 ] || set -- $(ls fuzz/corpus)
for name; do
    echo "$name"
    mkdir -p "fuzz/found/$name"
    "${CARGO_TARGET_DIR:-fuzz/target}/$target/release/$name" -runs="$count" -seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=512 \
        -artifact_prefix="fuzz/found/$name-" -print_final_stats=1 -verbosity=0 "fuzz/found/$name" "fuzz/corpus/$name" 2>&1 |
        grep -E 'stat::number_of_executed_units|panicked|ERROR|Test unit written|artifact_prefix' || :
    ! ls "fuzz/found/$name"-* 2>/dev/null || exit 1
done
