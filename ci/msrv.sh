#!/bin/sh
# Does everything compile with the oldest Rust that Cargo.toml names?
#
# rustup fetches that Rust if it is not installed. Where it cannot, clippy's lint `incompatible_msrv`, which `make
# lint` always checks, still finds functions of the standard library that are too new. It does not find syntax that is
# too new.
set -eu
cd "$(dirname "$0")/.."
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
export RUSTUP_TOOLCHAIN="$rust"
case $(cargo --version 2>&1) in
"cargo $rust."*) ;;
*)
    if ! rustup toolchain install "$rust" --profile minimal --no-self-update >/dev/null 2>&1; then
        echo "ci/msrv.sh: Rust $rust cannot be fetched, so nothing was compiled with it"
        exit 0
    fi
    ;;
esac
cargo check --quiet --workspace --locked --features gristmill-cli/columnar --target-dir "${CARGO_TARGET_DIR:-target}/msrv"
