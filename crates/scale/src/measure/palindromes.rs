//! The tables of thread bottlenecks (Chen 2020; docs/bibliography.md), for `gristmill scale palindromes`.
//!
//! 1. Reading and computing apart, each with its efficiency, and the share of the kernel.
//! 2. The control: the same work without reading, so that what is left of a loss is not due to reading.
//! 3. The bytes that pass between caches and memory, estimated from the code, against the measured ceiling.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gristmill::Error;
use gristmill_counters::card::Card;
use gristmill_counters::ceilings::Measurements;
use gristmill_counters::stream;

use super::phase_table::medians;
use crate::run::applications::Applications;
use crate::run::command::What;
use crate::run::own::Own;
use crate::run::reads::Reads;
use crate::run::rounds::Series;
use crate::section::{Grid, Section, shown};

/// A run that counts one file as often as there are files, without reading.
pub struct Control {
    input: Texts,
    /// The bytes between caches and memory for each byte of the input, at most.
    traffic: u64,
}

/// The files that the runs read.
#[derive(Debug, Default, PartialEq)]
struct Texts {
    files: u64,
    bytes: u64,
    /// The file that is nearest to the mean in size.
    typical: PathBuf,
}

/// Fewer files than this for each worker are not spread evenly.
const FILES_PER_WORKER: u64 = 4;

impl Control {
    /// Returns the control for a run of palindromes, and its words. `None` if the run is of another application, has
    /// too few files, or writes or does what a control cannot.
    pub fn of(
        words: &[OsString],
        own: &Own,
        workers_max: u64,
        applications: &Applications,
    ) -> Result<Option<(Control, What)>, Error> {
        let has = |option: &str| words.iter().any(|word| word.as_encoded_bytes().starts_with(option.as_bytes()));
        if words[0] != "palindromes" || has("-o") || has("--output") || has("--constant") {
            return Ok(None);
        }
        let Some(input) = Texts::of(&own.reads).filter(|input| {
            input.files >= FILES_PER_WORKER * workers_max
                && input.bytes / input.files <= applications.constant_bytes_max / 2
        }) else {
            return Ok(None);
        };
        let options = words.iter().filter(|word| !own.reads.named.contains(word)).cloned();
        let constant = ["--constant".into(), input.files.to_string().into(), input.typical.clone().into_os_string()];
        let words: Vec<OsString> = options.chain(constant).collect();
        let traffic = (applications.traffic)(&words);
        match Own::command(&words, applications) {
            Ok((words, own)) => {
                let what = What { words, repeated: Vec::new(), prepare: None, own: Some(own) };
                Ok(Some((Control { input, traffic }, what)))
            }
            Err(Error::Setting(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Formats the tables. `series` are the runs that read, `control` those that do not.
    pub fn section(&self, series: &[Series], control: &[Series], processors: u64) -> Section {
        let rows = rows(series, control);
        let mut sentences: Vec<String> = without_reading(&rows, processors).into_iter().collect();
        let traffic = self.against_ceiling(series, processors);
        sentences.extend(traffic.as_ref().map(|traffic| traffic.sentence(self.traffic)));
        let bars = traffic.map_or(String::new(), |traffic| traffic.bars());
        Section { text: text(&rows, &sentences), html: html(&rows, &sentences) + &bars }
    }

    /// Sets the estimated bytes against the rate that as many threads reach at most.
    fn against_ceiling(&self, series: &[Series], processors: u64) -> Option<Traffic> {
        let fits = series.iter().filter(|series| series.workers <= processors);
        let (threads, seconds) =
            fits.filter_map(|series| Some((series.workers, series.median()?))).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let card = Card::here();
        let plan = Measurements::new(&card, Path::new("/"));
        let used = &card.topology.allowed[..(threads as usize).min(card.topology.allowed.len())];
        let rates = stream::measure(used, plan.array_bytes, PASSES);
        let (rate, ceiling) = (self.traffic as f64 * self.input.bytes as f64 / seconds, rates.copy.max(rates.read));
        Some(Traffic { threads, rate, ceiling })
    }
}

/// The rate between caches and memory at most, and the one that is possible, in bytes per second.
struct Traffic {
    threads: u64,
    rate: f64,
    ceiling: f64,
}

impl Traffic {
    fn share(&self) -> f64 {
        self.rate / self.ceiling
    }

    /// Says whether the memory limits the workers. `per_byte` are the bytes for each byte of the input.
    fn sentence(&self, per_byte: u64) -> String {
        format!(
            "With {} workers at most {:.2} GB/s pass between caches and memory ({per_byte} bytes for each byte of the input, as \
             estimated from the code), {:.0} % of the {:.1} GB/s that as many threads can read or copy: memory bandwidth {}.",
            self.threads,
            self.rate / 1e9,
            self.share() * 100.0,
            self.ceiling / 1e9,
            if self.share() < LIMITS_MIN { "does not limit them" } else { "may limit them" }
        )
    }

    /// Draws both as bars.
    fn bars(&self) -> String {
        let most = self.rate.max(self.ceiling);
        let bar = |name: &str, rate: f64, colour: &str| {
            let width = rate / most * 100.0;
            format!(
                "<tr><td>{name}</td><td style='width:60%'><span style='display:inline-block;height:1rem;width:{width:.2}%;\
                 background:{colour}'></span></td><td class='number'>{:.2} GB/s</td></tr>",
                rate / 1e9
            )
        };
        format!(
            "<h3>Memory traffic with {} workers</h3><table style='width:100%'>{}{}</table>",
            self.threads,
            bar("at most, estimated", self.rate, "var(--first)"),
            bar("ceiling, measured", self.ceiling, "var(--other)")
        )
    }
}

/// The passes of each kernel over the arrays.
const PASSES: usize = 3;
/// The share of the ceiling from which the memory may be the limit.
const LIMITS_MIN: f64 = 0.5;
/// The difference of efficiency that reading must make to be a limit.
const READING_MIN: f64 = 0.1;

impl Texts {
    /// Describes the files that are read. `None` if they are not known before the run.
    fn of(reads: &Reads) -> Option<Texts> {
        let files = reads.files()?;
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let mean = bytes / (files.len() as u64).max(1);
        let typical = files.iter().min_by_key(|file| file.bytes.abs_diff(mean))?;
        Some(Texts { files: files.len() as u64, bytes, typical: typical.path.clone() })
    }
}

/// A row of the table: a number of workers.
struct WorkersRow {
    workers: u64,
    seconds: f64,
    /// The seconds of a worker on average.
    reading: f64,
    computing: f64,
    kernel: Option<f64>,
    without_reading: Option<f64>,
}

fn rows(series: &[Series], control: &[Series]) -> Vec<WorkersRow> {
    let row = |(workers, phases): (u64, crate::run::phases::Phases)| {
        let series = series.iter().find(|series| series.workers == workers)?;
        Some(WorkersRow {
            workers,
            seconds: series.median()?,
            reading: phases.reading() / workers as f64,
            computing: phases.mapping() / workers as f64,
            kernel: series.kernel_share(),
            without_reading: control.iter().find(|control| control.workers == workers).and_then(Series::median),
        })
    };
    medians(series).into_iter().filter_map(row).collect()
}

/// Returns `E = (T1 / Tk) / k` of one of the times of a row.
fn efficiency(rows: &[WorkersRow], row: &WorkersRow, of: impl Fn(&WorkersRow) -> Option<f64>) -> Option<f64> {
    let first = rows.first()?;
    Some(of(first)? / of(row)? * first.workers as f64 / row.workers as f64)
}

/// Says whether reading limits the run with the most workers that have a processor each.
fn without_reading(rows: &[WorkersRow], processors: u64) -> Option<String> {
    let row = rows.iter().rev().find(|row| row.workers <= processors)?;
    let with = efficiency(rows, row, |row| Some(row.seconds))?;
    let without = efficiency(rows, row, |row| row.without_reading)?;
    let verdict = if row.workers == rows[0].workers {
        return None;
    } else if without - with > READING_MIN {
        "reading costs the difference"
    } else {
        "reading is not what limits them"
    };
    Some(format!(
        "The efficiency of {} workers is {:.0} % with reading, and {:.0} % when one file is counted again and again: {verdict}.",
        row.workers,
        with * 100.0,
        without * 100.0
    ))
}

const TITLE: &str =
    "Palindromes as in thread bottlenecks (Chen 2020): the seconds of a worker on average, and their efficiency";
const HEADS: [&str; 10] = [
    "workers",
    "all",
    "efficiency",
    "reading",
    "efficiency",
    "computing",
    "efficiency",
    "kernel",
    "without reading",
    "efficiency",
];

fn cells(rows: &[WorkersRow], row: &WorkersRow) -> [String; HEADS.len()] {
    let none = || "-".to_owned();
    let percent = |share: Option<f64>| share.map_or_else(none, |share| format!("{:.0} %", share * 100.0));
    let share = |of: fn(&WorkersRow) -> Option<f64>| percent(efficiency(rows, row, of));
    [
        row.workers.to_string(),
        shown(row.seconds),
        share(|row| Some(row.seconds)),
        shown(row.reading),
        share(|row| Some(row.reading).filter(|reading| *reading > 0.0)),
        shown(row.computing),
        share(|row| Some(row.computing).filter(|computing| *computing > 0.0)),
        percent(row.kernel),
        row.without_reading.map_or_else(none, shown),
        share(|row| row.without_reading),
    ]
}

fn grid(rows: &[WorkersRow]) -> Grid {
    let cells = rows.iter().map(|row| cells(rows, row).to_vec());
    Grid([HEADS.map(str::to_owned).to_vec()].into_iter().chain(cells).collect())
}

fn text(rows: &[WorkersRow], sentences: &[String]) -> String {
    let grid = grid(rows).text(|column| HEADS[column].len().max(8) + if column > 0 { 2 } else { 0 });
    let sentences: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    format!("{TITLE}:\n{grid}{sentences}\n")
}

fn html(rows: &[WorkersRow], sentences: &[String]) -> String {
    let sentences: String = sentences.iter().map(|sentence| format!("<p>{sentence}</p>")).collect();
    format!(
        "<h2>Reading and computing</h2><p class='soft'>{TITLE}. Kernel: its share of the processor time.</p>{}{sentences}",
        grid(rows).html(None)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workers: u64, seconds: f64, without_reading: f64) -> WorkersRow {
        WorkersRow {
            workers,
            seconds,
            reading: 0.0,
            computing: seconds,
            kernel: None,
            without_reading: Some(without_reading),
        }
    }

    /// The table of thread bottlenecks (docs/bibliography.md): 10,000 files of 100,000 characters, whose control took
    /// about the same time.
    #[test]
    fn a_control_that_takes_the_same_time_clears_reading() {
        let paper = [(1, 40.6), (2, 21.2), (16, 5.2), (64, 6.7)];
        let rows = paper.map(|(workers, seconds)| row(workers, seconds, seconds * 0.98));
        let said = without_reading(&rows, 48).expect("a sentence");
        assert!(said.starts_with("The efficiency of 16 workers is 49 % with reading, and 49 %"), "{said}");
        assert!(said.ends_with("reading is not what limits them."), "{said}");
        let rows = paper.map(|(workers, seconds)| row(workers, seconds, 30.0 / workers as f64));
        assert!(without_reading(&rows, 48).expect("a sentence").ends_with("reading costs the difference."));
        assert_eq!(without_reading(&rows[..1], 48), None);
    }

    #[test]
    fn traffic_is_drawn_against_its_ceiling() {
        let traffic = Traffic { threads: 2, rate: 5e9, ceiling: 20e9 };
        assert!(traffic.sentence(65).ends_with("memory bandwidth does not limit them."));
        let bars = traffic.bars();
        assert!(
            bars.contains("width:25.00%") && bars.contains("width:100.00%") && bars.contains(">20.00 GB/s<"),
            "{bars}"
        );
    }

    #[test]
    fn the_file_nearest_to_the_mean_stands_for_all() {
        let dir = tempfile::tempdir().expect("a directory");
        let below = dir.path().join("below");
        std::fs::create_dir(&below).expect("made");
        for (name, bytes) in [("a", 10), ("b", 19), ("c", 40)] {
            std::fs::write(below.join(name), vec![b'a'; bytes]).expect("written");
        }
        std::fs::write(below.join(".hidden"), "not read").expect("written");
        let input = |names: &[&Path]| {
            Texts::of(&Reads { named: names.iter().map(|name| name.into()).collect(), follow: false })
        };
        assert_eq!(input(&[dir.path()]), Some(Texts { files: 3, bytes: 69, typical: below.join("b") }));
        assert_eq!(input(&[Path::new("/nowhere/*")]), None);
        assert_eq!(input(&[]), None);
    }
}
