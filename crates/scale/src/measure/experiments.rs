//! Runs the command under changed circumstances, to find out which of several suspects causes a loss.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use crate::diagnose::{Change, ChangeTrial, Cost, Experiments, Findings, Loss, Spread, Suspect};
use gristmill_counters::card::Card;

use crate::request::When;
use crate::run::beside::{self, BesideWork};
use crate::run::circumstances::Circumstances;
use crate::run::command::{BrokenOff, Launcher, Once};
use crate::run::rounds::Series;
use crate::section::Section;
use gristmill_report::tally::Tally;
use gristmill_report::text::escape;

/// The facts about the machine on which experiments depend.
pub struct Surroundings {
    /// Half of the processors, each on a core of its own where there are enough.
    half: Vec<usize>,
    /// All processors that may be used.
    pub processors: u64,
    /// The memory that a process reads to keep it busy.
    read_bytes: usize,
    /// The most bytes of the input that are copied into memory.
    copied_bytes_max: u64,
    /// The kernel's use of huge pages.
    huge_pages: String,
    /// True if runs that other programs disturb count, too.
    despite_load: bool,
    /// Another allocator, named by the user or installed.
    allocator: Option<OsString>,
}

/// The time that experiments may take by themselves.
const ENOUGH: Duration = Duration::from_secs(15);
/// The runs under each change, of which the least cost counts.
const REPEATS: usize = 2;
/// The runs of which others may disturb all but one.
const ATTEMPTS: usize = 4;
/// The least and the most memory that a process reads.
const READ_BYTES: [u64; 2] = [64 << 20, 512 << 20];
/// The limit on the input that is copied into memory, so that the copy takes about a second.
const COPIED_BYTES_MAX: u64 = 1 << 30;
/// Where allocators are installed.
const LIBRARIES: [&str; 4] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
/// Allocators that are preloaded, in the order of preference.
const ALLOCATORS: [&str; 3] = ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"];

impl Surroundings {
    /// Describes this machine, of which `processors` may be used at once.
    pub fn here(card: &Card, processors: u64, despite_load: bool) -> Surroundings {
        let topology = &card.topology;
        let mut allowed = topology.allowed.clone();
        let rank = |cpu: &usize| {
            let known = topology.processors.iter().find(|processor| processor.number == *cpu);
            known.and_then(|known| known.siblings.iter().position(|sibling| sibling == cpu)).unwrap_or(0)
        };
        allowed.sort_by_key(|cpu| (rank(cpu), *cpu));
        // With a quota, fewer processors than these are used at once, so half of them may be no limit.
        let half = if processors < allowed.len() as u64 { 0 } else { allowed.len() / 2 };
        allowed.truncate(half);
        let cache = topology.last_level_bytes().unwrap_or(0).saturating_mul(2);
        let allocator = std::env::var_os("GRISTMILL_ALLOCATOR").filter(|path| !path.is_empty()).or_else(installed);
        Surroundings {
            half: allowed,
            processors,
            despite_load,
            read_bytes: cache.clamp(READ_BYTES[0], READ_BYTES[1]) as usize,
            copied_bytes_max: [card.memory.available_bytes, card.memory.limit_bytes]
                .into_iter()
                .flatten()
                .fold(COPIED_BYTES_MAX, |least, bytes| least.min(bytes / 4)),
            huge_pages: card.memory.transparent.clone().unwrap_or_default(),
            allocator,
        }
    }

    /// Returns what differs under a change; `None` if it cannot be made here.
    fn circumstances(&self, change: Change, missing: u64, busy: f64, is_ours: bool) -> Option<Circumstances> {
        let fits = busy + missing as f64 <= self.processors as f64 + 0.25;
        let beside = |work| Circumstances { beside: Some((work, missing)), ..Circumstances::default() };
        let variable = |name, value, separator| Circumstances {
            variables: vec![(name, value, separator)],
            ..Circumstances::default()
        };
        let option = |name: &str, value: &str| {
            is_ours.then(|| Circumstances {
                options: vec![OsString::from(name), OsString::from(value)],
                ..Circumstances::default()
            })
        };
        match change {
            Change::Threads => option("--isolation", "thread"),
            Change::PreparedPages => option("--pages", "prealloc"),
            // The input is copied when its turn has come.
            Change::InputInMemory => is_ours.then(Circumstances::default),
            Change::HalfProcessors => (!self.half.is_empty())
                .then(|| Circumstances { processors: self.half.clone(), ..Circumstances::default() }),
            Change::BesideComputing => fits.then(|| beside(BesideWork::Compute)),
            Change::BesideReading => fits.then(|| beside(BesideWork::Read { bytes: self.read_bytes })),
            Change::HugePages => (self.huge_pages == "madvise")
                .then(|| variable("GLIBC_TUNABLES", OsString::from("glibc.malloc.hugetlb=1"), ':')),
            Change::SmallPages => {
                (self.huge_pages == "always").then(|| Circumstances { small_pages: true, ..Circumstances::default() })
            }
            Change::OtherAllocator => self.allocator.clone().map(|allocator| variable("LD_PRELOAD", allocator, ':')),
        }
    }
}

fn installed() -> Option<OsString> {
    let paths = ALLOCATORS.iter().flat_map(|name| LIBRARIES.map(|folder| format!("{folder}/{name}")));
    paths.into_iter().find(|path| std::path::Path::new(path).exists()).map(OsString::from)
}

/// Makes the experiments that tell the suspects of a loss apart.
pub fn make(
    program: &Launcher,
    all: &[Series],
    (loss, busy): (&Loss, f64),
    place: &Surroundings,
    when: When,
    mut begins: impl FnMut(Change),
) -> Result<Option<Findings>, BrokenOff> {
    let mut suspects = Suspect::of(loss);
    if program.own().is_some() {
        suspects.extend(Suspect::of_engine(loss));
    }
    suspects.retain(|suspect| *suspect != Suspect::HugePages || place.huge_pages == "always");
    let series = |workers: u64| all.iter().find(|series| series.workers == workers && !series.runs.is_empty());
    let few = all.iter().find(|series| !series.runs.is_empty());
    let (Some(few), Some(many)) = (few, series(loss.workers)) else { return Ok(None) };
    let workers = [few.workers, many.workers];
    let plain = [few, many].map(|series| least(&series.runs));
    let half = place.half.len() as u64;
    let apart = |series: &Series, value: fn(&Once) -> f64| spread(&series.runs, value);
    let thread_seconds = |series: &Series| series.workers as f64 * apart(series, |run| run.seconds);
    let spread =
        Spread { processor: apart(few, processor_seconds), thread_seconds: thread_seconds(few) + thread_seconds(many) };
    let mut experiments = Experiments { workers, half, plain, spread, computing_growth: None, trials: Vec::new() };
    let began = Instant::now();
    for change in Change::ALL {
        let is_told = suspects.iter().any(|suspect| suspect.changes().contains(&change));
        if !is_told && when != When::Always {
            continue;
        }
        let is_ours = program.own().is_some();
        let Some(mut circumstances) = place.circumstances(change, workers[1] - workers[0], busy, is_ours) else {
            continue;
        };
        let applies = change.applies();
        let expected: f64 =
            plain.iter().zip(applies).map(|(cost, applies)| if applies { cost.seconds } else { 0.0 }).sum();
        let is_long = began.elapsed().as_secs_f64() + expected * REPEATS as f64 > ENOUGH.as_secs_f64();
        if is_long && when == When::Auto {
            continue;
        }
        begins(change);
        let mut copies = None;
        if change == Change::InputInMemory {
            copies = program.own().and_then(|own| own.reads.in_memory(place.copied_bytes_max));
            let Some(copies) = &copies else { continue };
            circumstances.replaced.clone_from(&copies.replaced);
        }
        let mut costs = [None; 2];
        for ((cost, workers), _) in costs.iter_mut().zip(workers).zip(applies).filter(|(_, applies)| *applies) {
            *cost = cost_of(program, workers, &circumstances, place.despite_load)?;
        }
        drop(copies);
        if change == Change::BesideComputing {
            experiments.computing_growth = Some(beside::computing_growth(workers[1] - workers[0])?);
        }
        experiments.trials.push(ChangeTrial { change, few: costs[0], many: costs[1] });
    }
    Ok((!experiments.trials.is_empty()).then(|| experiments.examine(&suspects)))
}

/// Runs under changed circumstances. Returns no cost if the command failed, or others disturbed all runs.
fn cost_of(
    program: &Launcher,
    workers: u64,
    circumstances: &Circumstances,
    despite_load: bool,
) -> Result<Option<Cost>, BrokenOff> {
    let mut runs = Vec::new();
    for _ in 0..ATTEMPTS {
        let Ok(run) = program.run_under(workers, circumstances)? else { return Ok(None) };
        if despite_load || !run.load.is_some_and(|load| load.disturbs()) {
            runs.push(run);
        }
        if runs.len() == REPEATS {
            break;
        }
    }
    Ok((!runs.is_empty()).then(|| least(&runs)))
}

/// Returns how far the middle half of the runs lies apart.
fn spread(runs: &[Once], value: fn(&Once) -> f64) -> f64 {
    let seconds: Vec<f64> = runs.iter().map(value).collect();
    let tally = Tally::of(&seconds);
    tally.upper_quartile - tally.lower_quartile
}

fn processor_seconds(run: &Once) -> f64 {
    (run.usage.user_us + run.usage.sys_us) as f64 / 1e6
}

/// Returns the least of each: whatever disturbs a run makes it longer.
fn least(runs: &[Once]) -> Cost {
    let least_of = |value: fn(&Once) -> f64| runs.iter().map(value).fold(f64::INFINITY, f64::min);
    Cost {
        seconds: least_of(|run| run.seconds),
        processor: least_of(processor_seconds),
        faults: runs.iter().map(|run| run.usage.minor_faults).min().unwrap_or(0),
    }
}

/// Renders the experiments as a part of the report.
pub fn section(findings: &Findings) -> Section {
    let title = format!("Experiments on the loss with {} workers", findings.workers);
    let named = |change: Change| format!("with {change}").replace("with beside", "beside");
    let mut text = format!("\n{title}:\n");
    let mut rows = String::new();
    let effects = findings.effects.iter().map(|effect| (effect.change, effect.to_string()));
    let vain = findings.vain.iter().map(|change| (*change, "no effect that could be told from noise".to_owned()));
    for (change, effect) in effects.chain(vain) {
        let change = sentence_case(&change.to_string());
        text += &format!("  {change:<36}{effect}\n");
        rows += &format!("<tr><td>{}</td><td>{}</td></tr>", escape(&change), escape(&effect));
    }
    let mut list = String::new();
    for (suspect, refuted) in &findings.suspects {
        match refuted {
            Some(change) => {
                text += &format!("  [ruled out] {suspect}: not so {}\n", named(*change));
                let (suspect, change) = (escape(&suspect.to_string()), escape(&named(*change)));
                list += &format!("<li><s>{suspect}</s> <span class='soft'>not so {change}</span></li>");
            }
            None => {
                text += &format!("  [possible]  {suspect}\n");
                list += &format!("<li>{}</li>", escape(&suspect.to_string()));
            }
        }
    }
    let html = format!(
        "<h2>{title}</h2><div class='scroll'><table><tr><th>Changed</th><th>Effect</th></tr>{rows}</table></div>\
         <p class='soft'>Half of the loss or more is an effect, a quarter or less is none. Suspects that predicted otherwise are \
         crossed out.</p><ul>{list}</ul>"
    );
    Section { text, html }
}

fn sentence_case(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::Experiments;

    #[test]
    fn what_an_experiment_rules_out_is_crossed_out() {
        let cost = |seconds, processor| Cost { seconds, processor, faults: 100 };
        let half = ChangeTrial { change: Change::HalfProcessors, few: None, many: Some(cost(1.523, 1.39)) };
        let plain = [cost(0.969, 0.94), cost(1.392, 1.381)];
        let trials = vec![half];
        let experiments =
            Experiments { workers: [1, 2], half: 1, plain, spread: Spread::default(), computing_growth: None, trials };
        let section = section(&experiments.examine(&[Suspect::Memory, Suspect::Spinning]));
        assert!(
            section.text.contains("Experiments on the loss with 2 workers:\n  Half the processors "),
            "{}",
            section.text
        );
        assert!(section.text.contains("removes 0 % of the additional processor time\n"), "{}", section.text);
        let ruled_out =
            "[ruled out] memory bandwidth, or caches that the workers share: not so with half the processors\n";
        assert!(section.text.contains(ruled_out), "{}", section.text);
        assert!(
            section.text.contains("[possible]  spinning for a lock that others hold for long\n"),
            "{}",
            section.text
        );
        assert!(
            section.html.contains("<li><s>memory bandwidth, or caches that the workers share</s>"),
            "{}",
            section.html
        );
        assert!(section.html.contains("<li>spinning for a lock that others hold for long</li>"), "{}", section.html);
    }

    #[test]
    fn only_experiments_that_fit_the_machine_are_made() {
        let place = |processors, huge_pages: &str| Surroundings {
            half: vec![0],
            processors,
            read_bytes: 1 << 20,
            huge_pages: huge_pages.to_owned(),
            copied_bytes_max: 0,
            despite_load: false,
            allocator: None,
        };
        let possible = |place: &Surroundings, missing, busy| {
            Change::ALL
                .into_iter()
                .filter(|change| place.circumstances(*change, missing, busy, false).is_some())
                .collect::<Vec<_>>()
        };
        use Change::*;
        assert_eq!(possible(&place(2, "madvise"), 1, 1.0), [HalfProcessors, BesideComputing, BesideReading, HugePages]);
        // One worker keeps both processors busy, or three are missing.
        assert_eq!(possible(&place(2, "always"), 1, 2.0), [HalfProcessors, SmallPages]);
        assert_eq!(possible(&place(2, "never"), 3, 1.0), [HalfProcessors]);
        let other = Surroundings { half: Vec::new(), allocator: Some("/lib/other.so".into()), ..place(2, "never") };
        assert_eq!(possible(&other, 1, 2.0), [OtherAllocator]);
    }
}
