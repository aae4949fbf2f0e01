//! The command `gristmill`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use std::process::ExitCode;

use gristmill_os::allocations::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    gristmill_cli::main()
}
