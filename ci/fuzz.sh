#!/bin/sh
# Can a file make a parser panic, exceed its memory, or return wrong records?
#
# 1. Each parser of files gets COUNT (a million) almost valid inputs, made from the numbers 0 to COUNT - 1. Its
#    result is compared with that of another parser. `make test` runs 2000 of each.
# 2. Each program in fuzz/ (one per parser) gets COUNT inputs of libFuzzer, which searches for bytes that reach new
#    code. It starts from fuzz/corpus and stores its findings in fuzz/found. A panic, 10 seconds, or more than 512 MiB are a
#    failure; the input is then written to a file, whose name is printed.
#
# ci/fuzz.sh COUNT NAME ... runs only the named programs.
set -eu
cd "$(dirname "$0")/.."
count=${1:-1000000}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || GRISTMILL_FUZZ=$count cargo test --release --package gristmill --package gristmill-apps --lib fuzz

# The flags of cargo-fuzz without a sanitizer, which would need a nightly compiler.
coverage='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table'
# Naming the target keeps these flags from build scripts.
target=$(rustc --version --verbose | sed -n 's/^host: //p')
RUSTFLAGS="$coverage --cfg fuzzing" cargo build --manifest-path fuzz/Cargo.toml --release --locked --target "$target"

[ $# -gt 0 ] || set -- fuzz/corpus/*
for name; do
    name=${name##*/}
    echo "$name"
    mkdir -p "fuzz/found/$name"
    "${CARGO_TARGET_DIR:-fuzz/target}/$target/release/$name" -runs="$count" -seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=512 \
        -artifact_prefix="fuzz/found/$name-" -print_final_stats=1 -verbosity=0 "fuzz/found/$name" "fuzz/corpus/$name" 2>&1 |
        grep -E 'stat::number_of_executed_units|panicked|ERROR|Test unit written|artifact_prefix' || :
    ! ls "fuzz/found/$name"-* 2>/dev/null || exit 1
done
