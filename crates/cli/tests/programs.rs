//! Subcommands that run programs, and what they leave: batch, scale, machine, history.

mod command;
#[path = "programs/history.rs"]
mod history;
#[path = "programs/learned.rs"]
mod learned;
#[path = "programs/machine.rs"]
mod machine;
#[path = "programs/memory.rs"]
mod memory;
#[path = "programs/own_files.rs"]
mod own_files;
#[path = "programs/output.rs"]
mod output;
#[path = "programs/private.rs"]
mod private;
#[path = "programs/queue.rs"]
mod queue;
#[path = "programs/rules.rs"]
mod rules;
#[path = "programs/scale.rs"]
mod scale;
#[path = "programs/values.rs"]
mod values;
