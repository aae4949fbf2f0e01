//! Palindromes counted by the engine, in several ways and in turn.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use gristmill_cli::Failure;
use gristmill_counters::load::Load;
use gristmill_report::tally::Tally;

use crate::compare::comparison::{Comparison, Variant};
use crate::compare::subject::Subject;
use crate::compare::trial::{Contest, Measure, Runner};
use crate::workloads::WORKLOADS;

/// The jobs of several ways.
pub struct Computed {
    /// For each way, the milliseconds of the job, without the start of the process.
    pub ways: Vec<(String, Tally)>,
    /// The load of other programs, if they disturbed.
    pub load: Option<Load>,
    pub rounds: usize,
}

impl Computed {
    /// The times of a way.
    pub fn of(&self, name: &str) -> Option<Tally> {
        self.ways.iter().find(|(other, _)| other == name).map(|(_, tally)| *tally)
    }

    /// The times of those ways that are named by their number of workers.
    pub fn by_workers(&self) -> Vec<(u64, Tally)> {
        self.ways.iter().filter_map(|(name, tally)| Some((name.parse().ok()?, *tally))).collect()
    }
}

/// A way to count: a name, options, and the input.
pub fn way(name: impl Into<String>, options: &str, input: &Path) -> Result<Variant, Failure> {
    let mut way = Variant::new(name, options);
    let input = input.to_str().ok_or_else(|| Failure::Usage(format!("{} is not UTF-8 (TMPDIR)", input.display())))?;
    way.arguments.push(input.to_owned());
    Ok(way)
}

/// Runs `gristmill palindromes --algorithm ALGORITHM` in these ways. All must print the same total.
pub fn measure(algorithm: &str, ways: Vec<Variant>, rounds: u32) -> Result<Computed, Failure> {
    let workload = WORKLOADS.iter().find(|workload| workload.name == "palindromes").expect("it is listed");
    let arguments: Vec<OsString> =
        ["palindromes", "--print", "total", "--algorithm", algorithm].map(OsString::from).into();
    let subject = Subject { workload, input: String::new(), shown: arguments.clone(), arguments };
    let comparison = Comparison::new("", "", ways);
    let mut contest = Contest::new(&comparison, &subject);
    Runner::new()?.run(&mut contest, rounds, rounds)?;
    if let Some((way, why)) = (0..).zip(&contest.failures).find_map(|(way, why)| Some((way, why.as_ref()?))) {
        let source = io::Error::other(format!("{}: {why}", contest.variants[way].name));
        return Err(gristmill::Error::System { what: "counting palindromes", source }.into());
    }
    let tallies = (0..contest.variants.len())
        .filter_map(|way| Some((contest.variants[way].name.clone(), contest.tally(way, Measure::JobMs)?)));
    Ok(Computed { ways: tallies.collect(), load: contest.load(), rounds: rounds as usize })
}
