//! The command `gristmill-lab`.

#[path = "lab/bandwidth.rs"]
mod bandwidth;
#[path = "../../cli/tests/command/mod.rs"]
mod command;
#[path = "lab/experiment.rs"]
mod experiment;
#[path = "lab/generate.rs"]
mod generate;
#[path = "lab/messages.rs"]
mod messages;
#[path = "lab/palindromes.rs"]
mod palindromes;
#[path = "../../cli/tests/command/survival.rs"]
mod survival;
#[path = "lab/terasort.rs"]
mod terasort;
