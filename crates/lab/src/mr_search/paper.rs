//! The page of MR-Search: `gristmill-lab mr-search`.

use std::fmt::Write;

use clap::Args;
use gristmill::Error;
use gristmill_cli::Failure;
use gristmill_os::machine::{numa_nodes, processors};
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_report::chart::milliseconds;

use super::grid::{FIELDS, Grid, remote};
use super::job::Way;
use super::measure::{MeasuredRun, Memory, Task, Variation, memories, workers};
use super::passing::Passing;
use super::verdicts;
use crate::generate::{Dataset, Generator, Present, Size};
use crate::page::picture::{Curve, Picture};
use crate::page::{Answer, Ask, Item, Judgement, Paper};

/// Answer the slides of MR-Search (Döbbelin et al. 2012): where the memory of a MapReduce comes from
///
/// Runs a breadth-first search of the 15-puzzle by MapReduce with memory from malloc each time, kept, from a pool and
/// touched before, in threads and in processes, and passes its pairs in shared memory and in messages.
#[derive(Args)]
pub struct MrSearch {
    #[command(flatten)]
    ask: Ask,

    /// Depth of the search [default: 22, with --quick 17]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=22))]
    depth: Option<u32>,
}

/// The measurements of the items, and results that several of them ask about.
pub struct Experiments {
    rounds: u32,
    quick: bool,
    depth: usize,
    processors: u64,
    nodes: usize,
    memories: Vec<Memory>,
    absent: Vec<String>,
    in_threads: Option<Grid>,
    in_processes: Option<Grid>,
}

impl MrSearch {
    pub fn run(&self) -> Result<(), Failure> {
        PAPER.answer(&self.ask, &mut Experiments::new(self.ask.rounds, self.ask.quick, self.depth)?)
    }
}

impl Experiments {
    /// Prepares searches to this depth, or that of the default.
    pub fn new(rounds: u32, quick: bool, depth: Option<u32>) -> Result<Experiments, Failure> {
        let (memories, absent) = memories();
        let nodes = numa_nodes().map_err(|source| Error::System { what: "asking for NUMA nodes", source })?;
        Ok(Experiments {
            rounds,
            quick,
            depth: depth.unwrap_or(if quick { 17 } else { 22 }) as usize,
            processors: processors().usable as u64,
            nodes: nodes.len().max(1),
            memories,
            absent,
            in_threads: None,
            in_processes: None,
        })
    }
}

pub static PAPER: Paper<Experiments> = Paper {
    name: "mr-search",
    title: "MR-Search (Döbbelin et al. 2012): memory of a MapReduce on large machines with shared memory",
    about: "The talk's slides were read as text: it has their words and the marks of their axes, and no height of a bar or a curve. \
            `MapReduce alone` is the time of all steps, without the start of the program; `the whole program` has that, too. Times are \
            medians of the rounds, with the least and the most in brackets. Sources of memory: `C library` and other allocators, \
            malloc and free each time; `reuse` keeps lists and tables for the next step; `pool` gives memory that a worker gave back to \
            any other; `prealloc` takes memory of the size that a run before needed, and touches it before the steps begin.",
    items: &[
        Item::drawing(
            "slide 2",
            "the machine: SGI Altix UV 1000",
            "32 blades of 2 x 8 cores and 64 GB each, joined by NUMAlink",
            |_| Ok(Answer::drawing("`gristmill machine` shows the nodes, caches and memory of this machine")),
        ),
        Item::drawing(
            "slide 3",
            "first touch",
            "an OS page lies on the node of the thread that first writes to it, and stays there",
            |_| {
                Ok(Answer::drawing(
                    "each worker of the engine is pinned to a node, its home, and touches its pages first \
                (docs/decisions/68-memory-lies-where-its-worker-runs.md)",
                ))
            },
        ),
        Item::drawing(
            "slide 4",
            "malloc after free",
            "memory that thread A has touched and freed is given to thread D, for which it is remote",
            |_| {
                Ok(Answer::drawing(
                    "arenas that belong to one worker: its pages come home to it and to no other (crates/page); slide 8 counts \
                remote bytes",
                ))
            },
        ),
        Item::drawing(
            "slide 5",
            "the stages of MapReduce",
            "map, combine, shuffle, reduce; buffers whose size nobody knows; the output of a step \
            is the input of the next",
            |_| {
                Ok(Answer::drawing(
                    "jobs in steps, whose pairs stay on the shelf (docs/decisions/46-steps-reuse-the-round.md)",
                ))
            },
        ),
        Item::drawing(
            "slide 6",
            "how to speed it up",
            "an allocator for many threads (tbbmalloc), memory that is reused, memory that is preallocated",
            |_| {
                Ok(Answer::drawing(
                    "`--pages fresh`, `reuse` and `prealloc` for the pages of the engine; here, a small MapReduce that takes all of its \
                memory from the source that is asked for (crates/lab/src/mr_search/supply.rs)",
                ))
            },
        ),
        Item {
            label: "slide 7",
            title: "speed-up of memory sources over glibc, by threads",
            paper: "MR-Search with 7 to 127 threads, with reuse, tbbmalloc, a TBB pool and preallocation: an axis of speed-up over glibc's malloc \
                that ends at 8. The speed-up is significant if more than one blade is used.",
            agrees_if: "on several nodes, with as many threads as processors, reuse and prealloc are both at least 1.05 times as fast as the C \
                library's malloc each time. It is undecided where the ranges of the runs overlap and 1.05 is possible, or malloc each \
                time spends less than 1 % of its processor time in the kernel",
            ask: |experiments| experiments.speed_up(),
        },
        Item {
            label: "slide 8",
            title: "traffic between nodes, and time, with 127 threads",
            paper: "Bars of the traffic on NUMAlink, up to 600 GB, and of the time, up to 8000 s, for glibc, reuse, tbbmalloc, a TBB pool \
                and prealloc; the text does not have their heights. TBB does not prevent remote memory.",
            agrees_if: "on several nodes, with as many threads as processors, reuse and prealloc have less than half of the remote bytes that \
                the C library's malloc has, and every other allocator has more remote bytes than prealloc",
            ask: |experiments| experiments.remote(),
        },
        Item {
            label: "slide 9",
            title: "scalability of memory sources",
            paper: "Speed-up to 500 cores of tbbmalloc, prealloc (MapReduce alone, and all), reuse and glibc, beside a perfect \
                one. Its summary: allocators made for such machines help to scale, and do not prevent remote memory.",
            agrees_if: "on several nodes, with as many threads as processors, no source has a speed-up more than 3 % above that of \
                prealloc, MapReduce alone, and none has one more than 3 % below that of the C library's malloc; undecided as on slide 7",
            ask: |experiments| experiments.scalability(),
        },
        Item {
            label: "slide 10",
            title: "shared memory against messages",
            paper: "Speed-up to 500 cores of MPI on a cluster and on the UV, and of OpenMP with preallocated memory, MapReduce alone.",
            agrees_if: "on several nodes, with as many workers as processors and memory that was touched before, the speed-up of the better way to \
                share is at least 0.9 of that of the better way to send messages, in both jobs (our reading of the slide)",
            ask: |experiments| experiments.messages(),
        },
        Item::drawing(
            "slide 11",
            "summary",
            "code that scales is not easy to write on large machines: the cost of memory varies much; allocators help to scale, and do not \
            prevent remote memory; the programmer needs to keep track of its location",
            |_| {
                Ok(Answer::drawing(
                    "the engine keeps track: pages belong to the worker that touched them, and workers to nodes \
                (docs/decisions/68-memory-lies-where-its-worker-runs.md). Slides 7 to 10 ask the rest",
                ))
            },
        ),
    ],
};

impl Experiments {
    /// The search: the 15-puzzle to a depth.
    fn search(&self) -> Task {
        Task::Search { side: 4, depth: self.depth }
    }

    fn about(&self) -> String {
        let mut about = format!(
            "The 15-puzzle to depth {}; the states at each depth are the known ones in every run. {} processors, {} NUMA node{}.",
            self.depth,
            self.processors,
            self.nodes,
            if self.nodes == 1 { "" } else { "s" }
        );
        for absent in &self.absent {
            let _ = write!(about, " {absent}.");
        }
        about
    }

    fn picture<'p>(&self, x: &'p str, y: &'p str) -> Picture<'p> {
        Picture { x, y, level: Some(1.0), processors: Some(self.processors as usize) }
    }

    fn measure(&self, exchange: Way) -> Result<Grid, Failure> {
        let workers = workers(self.processors);
        let plans: Vec<Variation> = workers
            .iter()
            .flat_map(|workers| {
                self.memories.iter().map(move |memory| Variation { exchange, memory, workers: *workers })
            })
            .collect();
        let turns = self.search().measure(&plans, self.rounds)?;
        Ok(Grid { workers, turns, sources: self.memories.len() })
    }

    fn in_threads(&mut self) -> Result<&Grid, Failure> {
        if self.in_threads.is_none() {
            self.in_threads = Some(self.measure(Way::Threads)?);
        }
        Ok(self.in_threads.as_ref().expect("it was measured above"))
    }

    /// Returns the place of a source by its name.
    fn source(&self, name: &str) -> usize {
        self.memories.iter().position(|memory| memory.name == name).expect("it is always here")
    }

    fn speed_up(&mut self) -> Result<Answer, Failure> {
        self.in_threads()?;
        if self.in_processes.is_none() {
            self.in_processes = Some(self.measure(Way::Pages)?);
        }
        let (Some(threads), Some(processes)) = (&self.in_threads, &self.in_processes) else {
            unreachable!("both were measured above")
        };
        let mut found = format!(
            "{} All lists and tables come from the source. Buffers between threads do, too; buffers between processes are pages of shared \
             memory.\n",
            self.about()
        );
        let mut rows = format!("workers,in,memory,{FIELDS}\n");
        for (kind, grid) in [("threads", threads), ("processes", processes)] {
            let _ = writeln!(
                found,
                "\n| workers ({kind}) | memory | MapReduce alone (least to most) | speed-up over C library | whole program | page faults | in \
                 the kernel | remote |\n|---|---|---|---|---|---|---|---|"
            );
            for workers in &grid.workers {
                for (source, memory) in self.memories.iter().enumerate() {
                    let costs = grid.costs(*workers, source);
                    let star = if *workers > self.processors { "*" } else { "" };
                    let _ = writeln!(found, "| {workers}{star} | {} | {} |", memory.name, costs.cells());
                    let _ = writeln!(rows, "{workers},{kind},{},{}", memory.name, costs.fields());
                }
            }
        }
        let _ = writeln!(
            found,
            "\n\\* More workers than processors: they take turns. Page faults and time in the kernel are of MapReduce alone and, in \
             brackets, of the whole program."
        );
        let others = self.memories.iter().enumerate().skip(1).take(6);
        let lines: Vec<Curve> =
            others.map(|(source, memory)| (memory.name.to_owned(), threads.over_the_first(source))).collect();
        let verdict = verdicts::beyond_one_node(self.nodes, self.speed_up_verdict(threads));
        Ok(Answer::new(found, threads.turns.allow(verdict))
            .with("mr-search-memory.csv", rows)
            .with("mr-search-speed-up.svg", self.picture("threads", "speed-up over the C library").draw(&lines)))
    }

    fn speed_up_verdict(&self, grid: &Grid) -> Judgement {
        if self.processors < 2 {
            return Judgement::CannotBeAsked("threads that share memory need two processors; here is one".into());
        }
        let workers = self.processors;
        let [glibc, reuse, prealloc] = [0, self.source("reuse"), self.source("prealloc")]
            .map(|source| grid.tally(workers, source, |run| run.steps_ms));
        verdicts::faster(&glibc, &reuse, &prealloc, grid.kernel_share(workers))
    }

    fn remote(&mut self) -> Result<Answer, Failure> {
        let (about, workers, nodes) = (self.about(), self.processors, self.nodes);
        let memories = self.memories.clone();
        let grid = self.in_threads()?;
        let mut found = format!(
            "{about} {workers} thread{}; the bytes of tables after the last step, and those on another node than the thread that uses \
             them (move_pages).\n\n| memory | MapReduce alone | remote |\n|---|---|---|\n",
            if workers == 1 { "" } else { "s" }
        );
        for (source, memory) in memories.iter().enumerate() {
            let steps = grid.tally(workers, source, |run| run.steps_ms).median;
            let placed = grid.last(workers, source).placed;
            let _ = writeln!(found, "| {} | {} | {} |", memory.name, milliseconds(steps), remote(placed));
        }
        if nodes < 2 {
            let why = "there is one NUMA node, so no memory is remote and nothing travels between nodes";
            return Ok(Answer::new(found, Judgement::CannotBeAsked(why.into())));
        }
        let bytes: Option<Vec<(&str, u64)>> = memories
            .iter()
            .enumerate()
            .map(|(source, memory)| Some((memory.name, grid.last(workers, source).placed?[1])))
            .collect();
        let verdict = bytes.map_or_else(
            || Judgement::CannotBeAsked("the kernel does not tell where memory lies".into()),
            |bytes| verdicts::less_remote(&bytes),
        );
        Ok(Answer::new(found, grid.turns.allow(verdict)))
    }

    fn scalability(&mut self) -> Result<Answer, Failure> {
        let (about, processors, nodes) = (self.about(), self.processors, self.nodes);
        let picture = self.picture("threads", "speed-up over one thread with the C library");
        let memories = self.memories.clone();
        let grid = self.in_threads()?;
        let base = |value: fn(&MeasuredRun) -> f64| grid.tally(1, 0, value).median;
        let names: Vec<&str> = memories.iter().map(|memory| memory.name).collect();
        let mut found = format!(
            "{about} Speed-up over one thread with the C library's malloc: MapReduce alone, and in brackets the whole program.\n\n\
             | threads | {} |\n|---|{}\n",
            names.join(" | "),
            "---|".repeat(names.len())
        );
        let speed_up = |workers: u64, source: usize, value: fn(&MeasuredRun) -> f64| {
            base(value) / grid.tally(workers, source, value).median
        };
        for workers in &grid.workers {
            let cells: Vec<String> = (0..names.len())
                .map(|source| {
                    let [steps, whole] = [
                        speed_up(*workers, source, |run| run.steps_ms),
                        speed_up(*workers, source, |run| run.whole_ms),
                    ];
                    format!("{steps:.2} ({whole:.2})")
                })
                .collect();
            let star = if *workers > processors { "*" } else { "" };
            let _ = writeln!(found, "| {workers}{star} | {} |", cells.join(" | "));
        }
        let lines: Vec<Curve> = (0..names.len().min(6))
            .map(|source| {
                let points = grid
                    .workers
                    .iter()
                    .map(|workers| (*workers as f64, speed_up(*workers, source, |run| run.steps_ms)));
                (names[source].to_owned(), points.collect())
            })
            .collect();
        let speed_ups: Vec<(&str, f64)> =
            (0..names.len()).map(|source| (names[source], speed_up(processors, source, |run| run.steps_ms))).collect();
        let verdict = match processors {
            1 => Judgement::CannotBeAsked("speed-up needs two processors; here is one".into()),
            _ => verdicts::beyond_one_node(nodes, verdicts::in_order(&speed_ups, grid.kernel_share(processors))),
        };
        Ok(Answer::new(found, grid.turns.allow(verdict)).with("mr-search-scalability.svg", picture.draw(&lines)))
    }

    fn messages(&mut self) -> Result<Answer, Failure> {
        if self.processors == 1 {
            return Ok(Answer::cannot_be_asked("speed-up needs two processors; here is one"));
        }
        let made = private_folder(&temporary_folder()).map_err(no_temporary);
        let folder = made.map_err(|source| Error::System { what: "making the input", source })?;
        let size = if self.quick { Size::Small } else { Size::Medium };
        let generator = Generator { size, seed: 1, directory: folder.path(), present: Present::Keep };
        let text = generator.make(Dataset::WordCount)?.remove(0);
        let (memory, workers) = (&self.memories[self.source("prealloc")], workers(self.processors));
        let mut found = format!(
            "{} The word count is of a generated text of {} MB; each word is sent, without a combiner. Memory is touched before, and times are \
             of MapReduce alone, median (least to most). Threads pass lists; processes pass pages of 32 KiB in shared memory, or messages of as \
             many bytes. {MPI}\n",
            self.about(),
            if self.quick { 8 } else { 50 }
        );
        let search = Passing::measure("search", &self.search(), memory, &workers, self.rounds)?;
        let words = Passing::measure("word count", &Task::Words(text), memory, &workers, self.rounds)?;
        found += &search.table(self.processors);
        found += &words.table(self.processors);
        found += "\n\\* More workers than processors: they take turns.\n";
        let speed_ups = [("search", &search), ("word count", &words)]
            .map(|(job, passing)| (job, passing.speed_ups(self.processors)));
        let verdict = verdicts::beyond_one_node(self.nodes, verdicts::shared_as_good(&speed_ups));
        let verdict = words.turns.allow(search.turns.allow(verdict));
        let picture = self.picture("workers", "speed-up of the search over one worker");
        let rows = format!("job,workers,exchange,steps_ms,least_ms,most_ms\n{}{}", search.rows(), words.rows());
        Ok(Answer::new(found, verdict)
            .with("mr-search-messages.csv", rows)
            .with("mr-search-messages.svg", picture.draw(&search.curves())))
    }
}

const MPI: &str = "MPI itself, and a cluster, cannot be asked here: that needs mpirun and several machines.";
