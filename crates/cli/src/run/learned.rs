//! Times that `gristmill scale` measured: kept in the history, read by the plan.
//!
//! Times of ordinary runs are not kept. They do not compare: one run may find its input in the page cache and another
//! not, and others may use the machine meanwhile. `scale` runs each number of workers in turn, on a warm input, and
//! repeats disturbed runs.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap::parser::ValueSource;
use gristmill::options::Trial;
use gristmill::units;
use gristmill_batch::digest;
use gristmill_history::{Asked, History, Measured, Problem, Question};
use gristmill_os::machine::{host_name, processors};

/// Options that do not belong to the question: what the plan chooses, the place of input and output, and reports.
const OTHER: [&str; 12] = [
    "workers",
    "map-at-once",
    "chunk-bytes",
    "files_from",
    "output",
    "bad_records",
    "explain",
    "stats",
    "timeline",
    "quiet",
    "no_history",
    "help",
];

/// The input from which the history is asked: for less, that takes longer than a better plan saves.
const WORTH_BYTES: u64 = 1 << 20;

/// Returns what the words ask an application; `None` if they make no sense, or this program's file cannot be found.
pub fn asked(words: &[OsString]) -> Option<Asked> {
    let mut definition = crate::Command::command();
    definition.build();
    let command = [&[OsString::from("gristmill")], words].concat();
    let matches = definition.try_get_matches_from_mut(command).ok()?;
    let (name, matches) = matches.subcommand()?;
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let is_option = |argument: &&clap::Arg| !argument.is_positional();
    for option in definition.find_subcommand(name)?.get_arguments().filter(is_option) {
        let id = option.get_id().as_str();
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        if is_given && !OTHER.contains(&id) {
            parts.push(id.as_bytes().to_vec());
            parts.extend(matches.get_raw(id).into_iter().flatten().map(|value| value.as_bytes().to_vec()));
        }
    }
    let options = format!("{:016x}", digest(parts.iter().map(Vec::as_slice)));
    let file = std::env::current_exe().ok()?;
    let facts = fs::metadata(&file).ok()?;
    let facts = format!("{} {} {}", facts.size(), facts.mtime(), facts.mtime_nsec());
    let build = digest([file.as_os_str().as_bytes(), facts.as_bytes()]);
    let question = Question { name: name.to_owned(), build: format!("{name}-{build:016x}"), options };
    let value = |id: &str| matches.get_raw(id)?.next()?.to_str();
    Some(Asked {
        question,
        map_at_once: value("map-at-once").and_then(|count| count.parse().ok()),
        chunk_bytes: value("chunk-bytes").and_then(|text| units::bytes(text).ok()).map(|bytes| bytes as u64),
    })
}

/// Returns the path of the user's history; `None` if there is no home.
pub fn in_home() -> Option<PathBuf> {
    gristmill_history::in_home(|name| std::env::var_os(name).map(PathBuf::from))
}

/// Returns the times of earlier runs that answered the same question over a similar input.
///
/// # Errors
/// The history is of no use.
pub fn trials(path: &Path, words: &[OsString], files: u64, input_bytes: u64) -> Result<Vec<Trial>, Problem> {
    if input_bytes < WORTH_BYTES || !path.exists() {
        return Ok(Vec::new());
    }
    let history = History::open(path)?;
    let Some(asked) = asked(words) else { return Ok(Vec::new()) };
    let processors = processors().usable as u64;
    let times = history.measured(&host_name(), &asked.question, processors, files, input_bytes)?;
    let trial = |time: &Measured| Trial {
        workers: time.workers as usize,
        map_at_once: time.map_at_once.map(|count| count as usize),
        chunk_bytes: time.chunk_bytes.map(|bytes| bytes as usize),
        seconds: time.seconds,
    };
    Ok(times.iter().map(trial).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_the_options_without_input_output_and_what_the_plan_chooses() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let question_of = |text: &str| asked(&words(text)).expect("it makes sense").question;
        let first = question_of("palindromes --algorithm tree a b");
        assert_eq!(first.name, "palindromes");
        for same in [
            "palindromes c --algorithm=tree",
            "palindromes --workers 3 --chunk-bytes 64KiB --algorithm tree --quiet --stats s.json --output o a",
            "palindromes --map-at-once 2 --no-history --algorithm tree --explain a",
        ] {
            assert_eq!(question_of(same), first, "{same}");
        }
        for other in [
            "palindromes a",
            "palindromes --algorithm brute a",
            "palindromes --algorithm tree --deterministic a",
            "palindromes --algorithm tree --split-bytes 1MiB a",
        ] {
            assert_ne!(question_of(other).options, first.options, "{other}");
        }
        assert_ne!(question_of("word-count a").build, first.build);
        let asked_for = asked(&words("palindromes --chunk-bytes 64KiB --map-at-once 3 a")).expect("it makes sense");
        assert_eq!((asked_for.map_at_once, asked_for.chunk_bytes), (Some(3), Some(64 << 10)));
        assert_eq!(asked(&words("palindromes --workers")), None);
    }
}
