//! `gristmill machine`: shows the card of this machine and its ceilings.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use gristmill_counters::card::Card;
use gristmill_counters::ceilings::{Ceilings, Measurements, Rates};
use gristmill_counters::kept::{Kept, to_json};
use gristmill_counters::units::age;
use gristmill_os::room::temporary_folder;
use serde_json::{Value, json};

use crate::terminal::failure::Failure;
use crate::terminal::messages::tell;
use crate::terminal::standard_output::print;
use gristmill::units;

/// Show the hardware of this machine, its counters, and its highest rates
///
/// Processors, caches, NUMA nodes, limits, huge pages; which counters can be read, and why the others cannot. Then the
/// ceilings for each number of threads: memory as STREAM measures it, pages handed over from process to process, a file
/// from the page cache, and its disk. Takes a few seconds. Results are kept with their time, because the memory of a
/// virtual machine may get faster or slower.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MachineCommand {
    /// Print JSON: sizes in bytes, rates in bytes per second
    #[arg(long)]
    json: bool,

    /// Do not measure: show the ceilings that were measured before, if any
    #[arg(long)]
    no_measure: bool,

    /// Make the file for page cache and disk in this directory [default: that for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Bytes of each of the three arrays [default: four times the last-level caches, STREAM's rule]. Results
    /// for another size are not kept
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    array: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  gristmill machine
  gristmill machine --no-measure
  gristmill machine --json --dir /data > machine.json

Ceilings are kept in $XDG_STATE_HOME/gristmill/ceilings.json (~/.local/state if it is not set), the last 20 for each host.";

impl MachineCommand {
    pub fn run(&self) -> Result<(), Failure> {
        let card = Card::here();
        // 1. Load earlier measurements.
        let kept = Kept::in_home(|name| std::env::var_os(name).map(PathBuf::from));
        let mut all = match kept.as_ref().map(|kept| kept.load(&card.identity())) {
            Some(Ok(all)) => all,
            Some(Err(why)) => {
                tell(why);
                Vec::new()
            }
            None => Vec::new(),
        };
        // 2. Measure.
        if !self.no_measure {
            let dir = self.dir.clone().unwrap_or_else(temporary_folder);
            let mut plan = Measurements::new(&card, &dir);
            if let Some(bytes) = self.array {
                plan.array_bytes = bytes as u64;
                plan.file_bytes = plan.file_bytes.min(plan.array_bytes.max(1 << 20));
                plan.array_note =
                    Some("arrays of a size that was asked for: what fits into caches is faster than memory".into());
            }
            let mut now = Ceilings::measure(&plan, |part| tell(format_args!("measuring {part}")));
            tell("measuring hand-over");
            hand_over(&plan, &mut now);
            match &kept {
                _ if self.array.is_some() => all.clear(),
                Some(kept) => {
                    if let Err(why) = kept.add(&card.identity(), &now) {
                        tell(why);
                    }
                }
                None => tell("the ceilings are not kept: neither XDG_STATE_HOME nor HOME is set"),
            }
            all.push(now);
        }
        // 3. Print.
        if self.json { print(json(&card, &all)) } else { print(text(&card, &all).trim_end()) }
    }
}

/// Measures the rate at which processes hand over pages, with each number of processors.
fn hand_over(plan: &Measurements, now: &mut Ceilings) {
    for processors in &plan.processors {
        let best = (0..HAND_OVER_PASSES).try_fold(None, |best: Option<f64>, _| {
            let rate = crate::hand_over::rate(processors)?;
            Ok::<_, io::Error>(best.into_iter().chain(rate).reduce(f64::max))
        });
        match best {
            Ok(best) => {
                let row = now.rows.iter_mut().find(|row| row.threads == processors.len());
                row.into_iter().for_each(|row| row.hand_over = best);
            }
            Err(error) => now.notes.push(format!("hand-over, {} processes: {error}", processors.len())),
        }
    }
}

/// The number of runs with each number of processors; the best counts.
const HAND_OVER_PASSES: usize = 3;

fn json(card: &Card, all: &[Ceilings]) -> String {
    let mut value = card.to_json();
    value["ceilings"] = all.last().map_or(Value::Null, to_json);
    let earlier = &all[..all.len().saturating_sub(1)];
    value["ceilings_earlier"] = json!(earlier.iter().map(to_json).collect::<Vec<Value>>());
    format!("{value:#}")
}

fn text(card: &Card, all: &[Ceilings]) -> String {
    let mut text = String::new();
    let mut put = |line: String| text.push_str(&format!("{line}\n"));
    for (name, value) in card.facts() {
        put(format!("{name:<15}{value}"));
    }
    for source in &card.access.sources {
        let readable = source.refused.as_ref().map_or("yes".to_owned(), |why| format!("no: {why}"));
        put(format!("  {:<38}{readable}", source.name));
    }
    let Some(last) = all.last() else {
        put("\nCeilings have not been measured yet on this host.".to_owned());
        return text;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    put(format!("\nCeilings in GB/s, measured {}:", age(now.saturating_sub(last.at))));
    put(format!(
        "{:>7}{:>10}{:>10}{:>10}{:>11}{:>12}{:>11}",
        "threads", "read", "copy", "triad", "hand-over", "page cache", "disk read"
    ));
    for row in &last.rows {
        let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), giga);
        let Rates { threads, read, copy, triad, hand_over, page_cache, disk_read } = *row;
        let [hand_over, page_cache, disk_read] = [hand_over, page_cache, disk_read].map(rate);
        let [read, copy, triad] = [read, copy, triad].map(giga);
        put(format!("{threads:>7}{read:>10}{copy:>10}{triad:>10}{hand_over:>11}{page_cache:>12}{disk_read:>11}"));
    }
    if let Some(rate) = last.disk_write {
        put(format!("Writing to the disk, until it has everything: {}", giga(rate)));
    }
    if let Some(range) = range(all) {
        put(range);
    }
    last.notes.iter().for_each(|note| put(format!("Note: {note}.")));
    text
}

/// Returns the range of triads with all threads.
fn range(all: &[Ceilings]) -> Option<String> {
    let triads: Vec<f64> = all.iter().filter_map(|ceilings| Some(ceilings.rows.last()?.triad)).collect();
    if triads.len() < 2 {
        return None;
    }
    let (least, most) =
        triads.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    let warning = if most > 1.3 * least { "; the memory of this machine is not always equally fast" } else { "" };
    Some(format!("The last triad was {} to {} in {} measurements{warning}.", giga(least), giga(most), triads.len()))
}

/// Formats a rate in GB/s with three digits.
fn giga(rate: f64) -> String {
    let rate = rate / 1e9;
    let digits = if rate < 0.1 {
        3
    } else if rate < 10.0 {
        2
    } else if rate < 100.0 {
        1
    } else {
        0
    };
    format!("{rate:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(triad: f64) -> Ceilings {
        let row = Rates { threads: 2, read: 3e10, copy: 2e10, triad, page_cache: Some(1e10), ..Rates::default() };
        Ceilings { rows: vec![row], ..Ceilings::default() }
    }

    #[test]
    fn rates_that_vary_are_a_warning() {
        assert_eq!(range(&[measured(4e10)]), None);
        let steady = range(&[measured(4e10), measured(4.4e10)]).expect("two");
        assert_eq!(steady, "The last triad was 40.0 to 44.0 in 2 measurements.");
        assert!(range(&[measured(4e10), measured(7.7e10)]).is_some_and(|text| text.contains("not always")));
    }

    #[test]
    fn a_rate_has_three_digits() {
        assert_eq!([4.2e7, 1.234e9, 12.34e9, 123.4e9].map(giga), ["0.042", "1.23", "12.3", "123"]);
    }
}
