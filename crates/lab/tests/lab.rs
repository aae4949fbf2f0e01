//! The command `gristmill-lab`.

#[path = "lab/bandwidth.rs"]
mod bandwidth;
#[path = "../../cli/tests/command/mod.rs"]
mod command;
#[path = "lab/bottlenecks.rs"]
mod bottlenecks;
#[path = "lab/dmr.rs"]
mod dmr;
#[path = "lab/experiment.rs"]
mod experiment;
#[path = "lab/generate.rs"]
mod generate;
#[path = "lab/many_cores.rs"]
mod many_cores;
#[path = "lab/messages.rs"]
mod messages;
#[path = "lab/mr_search.rs"]
mod mr_search;
#[path = "lab/ops.rs"]
mod ops;
#[path = "lab/pages.rs"]
mod pages;
#[path = "lab/palindromes.rs"]
mod palindromes;
#[path = "../../cli/tests/command/survival.rs"]
mod survival;
#[path = "lab/terasort.rs"]
mod terasort;
