#!/bin/sh
# Do all programs in bench/ and fuzz/ compile, with the versions in their lock files?
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

# 1. The programs that Gristmill is measured against.
cargo check --manifest-path bench/Cargo.toml --target-dir "$target" --all-targets --locked

# 2. Programs of one file each.
mkdir -p "$target/bench"
for program in bench/batch/*.rs; do
    for cfg in plain triad; do
        rustc --edition 2024 --cfg "$cfg" --emit metadata --out-dir "$target/bench" "$program"
    done
done

# 3. Those that look for bytes on which a parser panics. A check links nothing, so libFuzzer need not be built.
RUSTFLAGS='--cfg fuzzing' CUSTOM_LIBFUZZER_PATH=/not/linked/libfuzzer.a \
    cargo check --manifest-path fuzz/Cargo.toml --target-dir "$target" --locked
