//! Comparisons: the strategies of one choice, each defined by a few arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

use super::allocator::ALLOCATORS;
use super::shell;
use super::subject::Subject;
use crate::commands::application::Pairs;

/// A choice of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Topic {
    /// The number of workers
    Workers,
    /// The choice of the plan, against every fixed strategy
    Plan,
    /// Processes or threads
    Isolation,
    /// Workers that map and reduce, or workers for each
    Topology,
    /// Reduce while map runs, or after it
    Exchange,
    /// The buffer between map and the pages
    Buffer,
    /// Where values are combined
    Combiner,
    /// Where the memory of pages comes from
    Pages,
    /// Written into a shared array, or emitted
    Output,
    /// Implementations of malloc
    Allocator,
    /// Shared pages, or messages
    HandOver,
}

/// All comparisons, in the order of the report.
pub const TOPICS: [Topic; 11] = [
    Topic::Workers,
    Topic::Plan,
    Topic::Isolation,
    Topic::Topology,
    Topic::Exchange,
    Topic::Buffer,
    Topic::Combiner,
    Topic::Pages,
    Topic::Output,
    Topic::Allocator,
    Topic::HandOver,
];

/// The strategies to compare.
pub struct Comparison {
    pub topic: Topic,
    /// The name on the command line and in the CSV.
    pub name: String,
    pub title: &'static str,
    /// The question, and the meaning of the strategies.
    pub question: &'static str,
    pub variants: Vec<Variant>,
    /// Strategies that are not available on this machine.
    pub absent: Vec<String>,
}

/// One strategy.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    pub arguments: Vec<String>,
    /// A library to preload.
    pub preload: Option<PathBuf>,
    /// The pairs that an application must emit at least.
    needs: Pairs,
}

impl Variant {
    fn new(name: impl Into<String>, arguments: &str) -> Variant {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Variant { name: name.into(), arguments, preload: None, needs: Pairs::Any }
    }

    fn needing(self, needs: Pairs) -> Variant {
        Variant { needs, ..self }
    }

    /// Returns true if `subject` can run with this strategy.
    pub fn suits(&self, subject: &Subject) -> bool {
        subject.workload.pairs >= self.needs
    }
}

impl Topic {
    /// Returns the strategies to compare on a machine with this many processors.
    pub fn comparison(self, processors: usize) -> Comparison {
        // A single worker has no other to hand a page to.
        let workers = format!("--workers {}", processors.max(2));
        let half = processors.div_ceil(2);
        let with = |name: &str, arguments: &str| Variant::new(name, &format!("{workers} {arguments}"));
        let mut absent = Vec::new();
        let (title, question, variants) = match self {
            Topic::Workers => (
                "Workers",
                "How does the time fall when more workers share the work? Beyond the number of processors there is nothing to \
                 gain; the question is what the additional workers cost.",
                std::iter::successors(Some(1), |workers| Some(workers * 2))
                    .take_while(|workers| *workers <= 4 * processors.max(2))
                    .map(|workers| Variant::new(workers.to_string(), &format!("--workers {workers}")))
                    .collect(),
            ),
            Topic::Plan => (
                "The plan against fixed strategies",
                "Left alone, the engine plans each job itself. Is that as fast as the best strategy that a user could have \
                 named? In brackets: where values are combined.",
                vec![
                    Variant::new("the plan", ""),
                    Variant::new("one worker", "--workers 1"),
                    with("hash (both)", "--buffer hash").needing(Pairs::Combining),
                    with("hash (map)", "--buffer hash --combine map").needing(Pairs::Combining),
                    with("array (reduce)", "--buffer array --combine reduce").needing(Pairs::Combining),
                    with("array (off)", "--buffer array --combine off"),
                    with("dense (both)", "--buffer dense").needing(Pairs::Dense),
                    with("pages of 4 KiB", "--page-bytes 4KiB"),
                    with("pages of 128 KiB", "--page-bytes 128KiB"),
                ],
            ),
            Topic::Isolation => (
                "Processes or threads",
                "The same engine with workers that have an address space of their own, and with workers that share one. \
                 The claim of DMR (Yu and Zhang 2017): sharing an address space makes page faults and memory maps wait for each other.",
                vec![with("processes", "--isolation process"), with("threads", "--isolation thread")],
            ),
            Topic::Topology => (
                "Fused or split",
                "Either every worker maps and reduces (fused), or half of them map and the others reduce (split, the \
                 layout of DMR).",
                vec![
                    with("fused", ""),
                    Variant::new("split", &format!("--map-workers {half} --reduce-workers {half}")),
                ],
            ),
            Topic::Exchange => (
                "Pipeline or barrier",
                "Do reducers begin with the first page that arrives, or when everything is mapped, as Phoenix does?",
                vec![with("pipelined", "--exchange pipelined"), with("barrier", "--exchange barrier")],
            ),
            Topic::Buffer => (
                "Buffers of map workers",
                "Pairs are appended to pages as they come (array), combined in a table that fits the cache (hash), or added \
                 into an array with a place for every key (dense; for keys that are small numbers).",
                vec![
                    with("array", "--buffer array --combine reduce").needing(Pairs::Combining),
                    with("hash", "--buffer hash").needing(Pairs::Combining),
                    with("dense", "--buffer dense").needing(Pairs::Dense),
                ],
            ),
            Topic::Combiner => (
                "Combiner",
                "Where are the values of one key combined: before they are sent and as they arrive (both), only before, only \
                 as they arrive (reduce), or once at the end (off)?",
                vec![
                    with("both", "--combine both").needing(Pairs::Combining),
                    with("map", "--combine map").needing(Pairs::Combining),
                    with("reduce", "--combine reduce").needing(Pairs::Combining),
                    with("off", "--combine off").needing(Pairs::Combining),
                ],
            ),
            Topic::Pages => (
                "Memory of pages",
                "A page's memory is given back to the kernel after each use and faulted in again (fresh), written again \
                 (reuse), or faulted in before the first task and then written again (prealloc). Look at the page faults, too.",
                vec![
                    with("fresh", "--pages fresh"),
                    with("reuse", "--pages reuse"),
                    with("prealloc", "--pages prealloc"),
                ],
            ),
            Topic::Output => (
                "Shared output or pairs",
                "Workers write the rows of a product into a shared array, each into a view of its own, of which what has changed \
                 is merged when a task is done; or they emit every row as a pair, and the array is filled from the result.",
                vec![
                    with("shared output", "--way shared-output"),
                    with("pairs", "--way pairs"),
                    with("shared by threads", "--way shared-output --isolation thread"),
                    with("pairs by threads", "--way pairs --isolation thread"),
                ],
            ),
            Topic::Allocator => (
                "Allocators",
                "The same job with other implementations of malloc, loaded in place of that of the C library. Pages do not \
                 come from malloc; tables, lists and results do. All numbers are below: allocations, page faults, and time in the kernel.",
                {
                    let mut variants = vec![with("C library", "")];
                    for allocator in &ALLOCATORS {
                        match allocator.find() {
                            preload @ Some(_) => variants.push(Variant { preload, ..with(allocator.name, "") }),
                            None => absent.push(allocator.advice()),
                        }
                    }
                    variants
                },
            ),
            Topic::HandOver => (
                "Shared pages or messages",
                "One process reads a text, another counts its lines; only the way between them differs. Pages of 32 KiB change \
                 hands in place, as the engine's do, or are copied through a pipe, or through a socket.",
                ["pages", "pipe", "socket"].map(|way| Variant::new(way, &format!("--way {way}"))).into(),
            ),
        };
        let name = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        Comparison { topic: self, name, title, question, variants, absent }
    }
}

impl Comparison {
    /// Returns true if this comparison applies to `subject`.
    pub fn asks(&self, subject: &Subject) -> bool {
        match self.topic {
            Topic::Workers | Topic::Plan => true,
            Topic::HandOver => subject.workload.name == "word-count",
            Topic::Output => subject.workload.name == "matrix-multiply",
            _ => subject.workload.name != "small-files",
        }
    }

    /// Returns the arguments for an application with these `arguments`. This comparison may replace the subcommand,
    /// with the same input.
    pub fn command(&self, arguments: &[OsString]) -> Vec<OsString> {
        match self.topic {
            Topic::HandOver => {
                let input = arguments.last().expect("an application reads something");
                vec!["hand-over".into(), input.clone()]
            }
            _ => [arguments, &["--quiet".into()]].concat(),
        }
    }

    /// Returns the command of a strategy as a user types it.
    pub fn line(&self, subject: &Subject, variant: &Variant) -> String {
        let words = shell::line(self.command(&subject.shown));
        let more =
            variant.arguments.iter().map(|word| format!(" {}", shell::quoted(word.as_ref()))).collect::<String>();
        let preload = variant.preload.as_ref();
        let preload = preload.map(|library| format!("LD_PRELOAD={} ", shell::quoted(library.as_ref())));
        format!("{}gristmill {words}{more}", preload.unwrap_or_default())
    }

    /// Returns true if the runs produce statistics of the engine.
    pub fn has_statistics(&self) -> bool {
        self.topic != Topic::HandOver
    }
}
