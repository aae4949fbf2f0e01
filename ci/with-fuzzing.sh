#!/bin/sh
# Compiles one of our crates with `--cfg fuzzing`: a RUSTC_WORKSPACE_WRAPPER, with which cargo builds no dependency a second time, as it would with RUSTFLAGS.
exec "$@" --cfg fuzzing
