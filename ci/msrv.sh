#!/bin/sh
# Does everything compile with the oldest Rust that Cargo.toml names?
#
# rustup fetches that Rust if it is not installed. `make lint` asks less: clippy's lint `incompatible_msrv` finds
# functions of the standard library that are too new, but not syntax.
set -eu
cd "$(dirname "$0")/.."
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
export RUSTUP_TOOLCHAIN="$rust"
case $(cargo --version 2>&1) in
"cargo $rust."*) ;;
*)
    if ! rustup toolchain install "$rust" --profile minimal --no-self-update >/dev/null 2>&1; then
        echo "ci/msrv.sh: Rust $rust cannot be fetched: rustup toolchain install $rust --profile minimal" >&2
        exit 1
    fi
    ;;
esac
cargo check --quiet --workspace --locked --features gristmill-cli/columnar --target-dir "${CARGO_TARGET_DIR:-target}/msrv"
