//! Where the workers of our own applications spend their time: from the statistics of each run.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::{fs, io};

use clap::{CommandFactory, Subcommand};
use serde_json::Value;

use super::command::PLACE;
use super::runs::Series;
use crate::commands::Applications;

/// The kinds of time, each with the phases of a worker that belong to it (`docs/statistics.md`).
const KINDS: [(&str, &[&str]); 6] = [
    ("reading", &["input"]),
    ("mapping", &["map", "merge", "combine"]),
    ("sending", &["send_wait", "receive"]),
    ("reducing", &["reduce", "spill", "sort"]),
    ("output", &["output"]),
    ("idle", &["start", "idle"]),
];

/// The options that are added to those of the application, and why it may not have them already.
const OURS: [(&str, &str); 3] = [
    ("--workers", "it is what varies, so write it before the application"),
    ("--stats", "the report is made of its statistics"),
    ("--quiet", "it is always given"),
];

/// The time of all workers of a run, in thread-seconds, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases([f64; KINDS.len()]);

impl Phases {
    /// Reads the statistics of a run.
    ///
    /// # Errors
    /// The file cannot be read, or holds no statistics.
    fn read(path: &PathBuf) -> io::Result<Phases> {
        let stats: Value = serde_json::from_slice(&fs::read(path)?)?;
        let workers =
            stats["workers"].as_array().ok_or_else(|| io::Error::other("there are no statistics of workers"))?;
        let of_phase = |phase: &&str| -> f64 {
            workers.iter().filter_map(|worker| worker["phases"][phase]["ns"].as_f64()).sum::<f64>() / 1e9
        };
        Ok(Phases(KINDS.map(|(_, phases)| phases.iter().map(of_phase).sum())))
    }
}

/// One of our own applications, which is run with several numbers of workers.
pub struct Own {
    /// Holds the statistics of the last run.
    folder: tempfile::TempDir,
}

impl Own {
    /// Returns the command that runs an application of this program with its arguments, and what reads its statistics.
    ///
    /// # Errors
    /// The first word names no application, or the arguments are wrong; a sentence.
    pub fn command(words: &[OsString]) -> io::Result<Result<(Vec<OsString>, Own), String>> {
        if let Err(why) = checked(words) {
            return Ok(Err(why));
        }
        let folder = tempfile::tempdir()?;
        let mut command = vec![std::env::current_exe()?.into_os_string()];
        command.extend_from_slice(&words[..1]);
        command.extend(["--workers", PLACE, "--quiet", "--stats"].map(OsString::from));
        command.push(folder.path().join("stats.json").into_os_string());
        command.extend_from_slice(&words[1..]);
        Ok(Ok((command, Own { folder })))
    }

    /// Returns the phases of the last run.
    ///
    /// # Errors
    /// The run has left no statistics.
    pub fn phases(&self) -> io::Result<Phases> {
        Phases::read(&self.folder.path().join("stats.json"))
    }
}

/// Returns a sentence about what is wrong with the words that name an application and its arguments.
fn checked(words: &[OsString]) -> Result<(), String> {
    let name = words[0].to_string_lossy();
    let applications = Applications::augment_subcommands(clap::Command::new("applications"));
    if applications.find_subcommand(&*name).is_none() {
        return Err(format!(
            "{name} is none of Gristmill's applications; write any other command behind --, with {PLACE} in it"
        ));
    }
    for (option, why) in OURS {
        let is_option = |word: &OsString| word == option || word.to_string_lossy().starts_with(&format!("{option}="));
        if words.iter().any(is_option) {
            return Err(format!("leave {option} of {name} out: {why}"));
        }
    }
    let added = ["--workers", "1", "--quiet", "--stats", "stats.json"].map(OsString::from);
    let command = [&["gristmill".into(), words[0].clone()], &added[..], &words[1..]].concat();
    match crate::Command::command().try_get_matches_from(command) {
        Ok(_) => Ok(()),
        Err(error) if !error.use_stderr() => Err(format!("gristmill {name} --help tells the options of {name}")),
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(format!("{name}: {}", first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Returns the phases of the run whose time is the median, for each number of workers.
fn medians(all: &[Series]) -> Vec<(u64, Phases)> {
    let of = |series: &Series| {
        let mut runs: Vec<_> = series.runs.iter().filter(|run| run.phases.is_some()).collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Some((series.workers, runs.get(runs.len() / 2)?.phases?))
    };
    all.iter().filter_map(of).collect()
}

const TITLE: &str = "Thread-seconds by phase, all workers together, in the run of median time";

/// Formats a row for each number of workers; empty for other commands than our own.
pub fn table(all: &[Series]) -> String {
    let medians = medians(all);
    if medians.is_empty() {
        return String::new();
    }
    let mut text = format!("{TITLE}:\n{:>8}", "workers");
    KINDS.iter().for_each(|(kind, _)| write!(text, "{kind:>10}").expect("a string takes everything"));
    for (workers, Phases(seconds)) in medians {
        write!(text, "\n{workers:>8}").expect("a string takes everything");
        seconds.iter().for_each(|seconds| write!(text, "{seconds:>10.3}").expect("a string takes everything"));
    }
    text + "\n\n"
}

/// Renders the same table for the page.
pub fn html(all: &[Series]) -> String {
    let medians = medians(all);
    if medians.is_empty() {
        return String::new();
    }
    let heads: String = KINDS.iter().map(|(kind, _)| format!("<th class='number'>{kind}</th>")).collect();
    let row = |(workers, Phases(seconds)): (u64, Phases)| {
        let cells: String = seconds.iter().map(|seconds| format!("<td class='number'>{seconds:.3}</td>")).collect();
        format!("<tr><td class='number'>{workers}</td>{cells}</tr>")
    };
    let rows: String = medians.into_iter().map(row).collect();
    format!(
        "<h2>Phases</h2><p class='soft'>{TITLE}.</p>\
         <div class='scroll'><table><tr><th class='number'>Workers</th>{heads}</tr>{rows}</table></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_of_a_worker_belongs_to_one_kind() {
        let mut ours: Vec<&str> = KINDS.iter().flat_map(|(_, phases)| phases.iter().copied()).collect();
        let mut all: Vec<&str> = gristmill::PHASES.iter().map(|phase| phase.name()).collect();
        ours.sort_unstable();
        all.sort_unstable();
        assert_eq!(ours, all);
    }

    #[test]
    fn only_right_arguments_of_our_applications_are_taken() {
        let check = |words: &[&str]| checked(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(check(&["word-count", "--top", "3", "file"]), Ok(()));
        assert!(check(&["make", "-j2"]).expect_err("unknown").contains("behind --"));
        assert!(check(&["scale"]).is_err());
        for (words, said) in [
            (&["word-count", "--workers=3", "file"][..], "leave --workers of word-count out: it is what varies"),
            (&["word-count", "--stats", "file", "file"], "leave --stats of word-count out"),
            (&["word-count", "--help"], "gristmill word-count --help tells"),
            (&["word-count", "--tops", "3"], "word-count: unexpected argument '--tops'"),
        ] {
            let why = check(words).expect_err(said);
            assert!(why.starts_with(said) && why.lines().count() == 1, "{why}");
        }
    }
}
