//! The reason for each choice. The function that makes a choice returns its reason; nothing else decides it.

use std::fmt;

use gristmill_os::machine::Processors;

use crate::plan::history::Learned;

/// The reason for a choice, which is put into words only if somebody asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reason {
    /// The user asked for it.
    Asked,
    /// A fact speaks for it.
    Because(&'static str),
    /// The user asked for something else, but a fact forbids it.
    Instead(&'static str),
    /// The user asked for more workers that map at once than map in all.
    FewMap { map_workers: usize },
    /// The user asked for splits that would be too many tasks.
    ManyTasks { asked_bytes: u64, split_bytes: u64 },
    /// The user asked for fewer partitions than workers that reduce.
    FewPartitions { asked: usize, reduce_workers: usize },
    /// Earlier runs took these times.
    History(Learned),
    /// The sample promises so much work, and there are so many processors for it.
    Work { work_ns: f64, wait_ns: f64, processors: Processors },
    /// There is one for each processor.
    Processors(Processors),
    /// A task takes so long, by the sample.
    TaskTime { task_ns: f64 },
    /// There are so many keys.
    Keys(usize),
}

impl Reason {
    /// Returns `Instead` if something else was asked for, or else `Because`.
    pub fn new(because: &'static str, is_asked: bool) -> Reason {
        if is_asked { Reason::Instead(because) } else { Reason::Because(because) }
    }

    /// Returns whether the user asked for something else.
    pub fn overrules(&self) -> bool {
        use Reason::{FewMap, FewPartitions, Instead, ManyTasks};
        matches!(self, Instead(_) | FewMap { .. } | ManyTasks { .. } | FewPartitions { .. })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::Asked => to.write_str("as asked for"),
            Reason::Because(sentence) | Reason::Instead(sentence) => to.write_str(sentence),
            Reason::FewMap { map_workers } => write!(to, "{map_workers} workers map in all"),
            Reason::ManyTasks { asked_bytes, split_bytes } => {
                write!(to, "splits of {asked_bytes} bytes would be too many tasks, so they have {split_bytes} bytes")
            }
            Reason::FewPartitions { asked, reduce_workers } => {
                write!(to, "{asked} would be fewer than the {reduce_workers} workers that reduce")
            }
            Reason::History(Learned { best, trials, seconds_max }) => {
                write!(
                    to,
                    "history: the best of {trials} times, {:.3} s; the worst was {seconds_max:.3} s",
                    best.seconds
                )
            }
            Reason::Work { work_ns, wait_ns, processors } => {
                write!(to, "the input is about {:.1} ms of work for one", work_ns / 1e6)?;
                if wait_ns > 0.0 {
                    write!(to, ", which would wait {:.1} ms for the disk", wait_ns / 1e6)?;
                }
                write!(to, ", and {}", shown(processors))
            }
            Reason::Processors(processors) => write!(to, "one for each processor: {}", shown(processors)),
            Reason::TaskTime { task_ns } => {
                write!(
                    to,
                    "about {:.1} ms each, and enough of them that the last ones wait little for each other",
                    task_ns / 1e6
                )
            }
            Reason::Keys(keys) => write!(to, "a place for each of {keys} keys"),
        }
    }
}

fn shown(Processors { allowed, usable }: Processors) -> String {
    match usable < allowed {
        true => format!("the control group allows {usable} of {allowed} processors"),
        false => format!("there are {usable} processors"),
    }
}

/// The reason for each choice of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons {
    pub workers: Reason,
    /// Why the plan has chosen reduce workers of their own, if it has.
    pub apart: Option<Reason>,
    pub map_at_once: Reason,
    pub placement: Reason,
    pub splits: Reason,
    pub chunks: Reason,
    pub buffer: Reason,
    pub combining: Reason,
    pub heavy_keys: Reason,
    pub pages: Reason,
    pub partitions: Reason,
}

impl Reasons {
    /// Returns the options that were asked for and are not followed, and why. An option that contradicts another one
    /// is refused instead, when the plan is made.
    pub fn ignored(&self) -> impl Iterator<Item = (&'static str, Reason)> {
        let options = [
            ("map-at-once", self.map_at_once),
            ("placement", self.placement),
            ("split-bytes", self.splits),
            ("combine", self.combining),
            ("combine-after", self.heavy_keys),
            ("partitions", self.partitions),
        ];
        options.into_iter().filter(|(_, why)| why.overrules())
    }
}
