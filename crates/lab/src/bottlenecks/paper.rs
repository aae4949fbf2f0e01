//! The page of thread bottlenecks: `gristmill-lab bottlenecks`.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use gristmill_apps::Algorithm;
use gristmill_cli::Failure;
use gristmill_counters::card::Card;
use gristmill_counters::ceilings::Measurements;
use gristmill_counters::stream;
use gristmill_os::machine::processors;
use gristmill_report::messages::tell;
use gristmill_report::tally::Tally;

use super::computing::{self, Computed, way};
use super::files::{Files, Size};
use super::reading::{self, Read, Readers, Shares};
use super::scaling::{PaperColumn, Scaling};
use super::verdicts;
use crate::page::{Answer, Ask, Item, Judgement, Paper, Turns, allowed, spread};

/// Answer the tables of thread bottlenecks (Chen 2020): palindromes in many files, read and counted by threads
///
/// Its sizes are up to 50,000 files of 500,000 characters (25 GB). As many are made as fit, in the folder of
/// temporary files (TMPDIR), and the page says how many.
#[derive(Args)]
pub struct Bottlenecks {
    #[command(flatten)]
    ask: Ask,

    /// Most megabytes of files at a time [default: half of the free disk, and a third of the available memory]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    data_mb: Option<u64>,
}

/// The measurements of the items, and results that several of them ask about.
pub struct Experiments {
    rounds: u32,
    quick: bool,
    processors: u64,
    files: Files,
    small: Option<Turns<Read>>,
    middle: Option<Scaling>,
    trees: Option<Computed>,
}

impl Bottlenecks {
    pub fn run(&self) -> Result<(), Failure> {
        PAPER.answer(&self.ask, &mut Experiments::new(self.ask.rounds, self.ask.quick, self.data_mb)?)
    }
}

impl Experiments {
    /// Prepares an empty folder for at most `data_mb` megabytes of files; without a number, for as many as fit.
    pub fn new(rounds: u32, quick: bool, data_mb: Option<u64>) -> Result<Experiments, Failure> {
        Ok(Experiments {
            rounds,
            quick,
            processors: processors().usable as u64,
            files: Files::new(data_mb.map(|megabytes| megabytes * 1_000_000))?,
            small: None,
            middle: None,
            trees: None,
        })
    }
}

const SMALL: Size = Size { files: 1000, characters: 1000 };
const MIDDLE: Size = Size { files: 10_000, characters: 100_000 };
const LARGE: Size = Size { files: 50_000, characters: 500_000 };

const READING_MIDDLE: &[PaperColumn] =
    &[(1, "3.01", "100"), (2, "1.58", "95"), (4, "0.90", "83"), (8, "0.69", "54"), (10, "0.66", "45")];
const READING_LARGE: &[PaperColumn] = &[
    (1, "70.2", "100"),
    (2, "35.9", "97"),
    (5, "15.3", "91"),
    (10, "9.10", "77"),
    (15, "8.93", "52"),
    (20, "8.08", "43"),
];
const BRUTE_SMALL: &[PaperColumn] = &[
    (1, "1.57", "100"),
    (2, "0.79", "99"),
    (4, "0.39", "99"),
    (8, "0.19", "98"),
    (16, "0.10", "98"),
    (32, "0.055", "98"),
    (48, "0.043", "74"),
    (64, "0.040", "61"),
];
const TREE_SMALL: &[PaperColumn] =
    &[(1, "0.019", ""), (2, "0.016", ""), (4, "0.016", ""), (8, "0.017", ""), (16, "0.017", ""), (32, "0.018", "")];
const TREE_MIDDLE: &[PaperColumn] = &[
    (1, "40.6", "100"),
    (2, "21.2", "95"),
    (4, "11.0", "92"),
    (8, "6.6", "76"),
    (16, "5.2", "47"),
    (32, "5.7", "22"),
    (64, "6.7", "9"),
];

pub static PAPER: Paper<Experiments> = Paper {
    name: "bottlenecks",
    title: "Thread bottlenecks (Chen 2020): where multithreaded programs stop scaling",
    about: "Only the text of the paper was read, not its pictures. 1000F1000C stands for 1000 files of 1000 characters each; here \
        each is one line of the letter a, and all files are in the page cache. A reader is a thread that only reads files, and one \
        more thread takes what the readers have read; a worker is one of the engine's, which reads and counts. Brute force counts \
        palindromes one by one, in quadratic time; the tree is a palindromic tree, in linear time. Times are medians of the rounds, \
        with the least and the greatest in brackets; the range of an efficiency or a quotient combines these of both times. Where a \
        range contains the limit of a rule, the verdict is undecided.",
    items: &[
        Item {
            label: "figure 1",
            title: "a profile of one thread that reads 1000F1000C",
            paper: "0.013 s, most of it in vfscanf, a function of the C library, and so in reading.",
            agrees_if: "one reader waits for other threads for less than half of its time",
            ask: |experiments| experiments.one_reader(),
        },
        Item {
            label: "figure 2",
            title: "a profile of four threads that read 1000F1000C",
            paper: "0.026 s, twice as long as with one thread; one is faster whatever the chunk size. Functions of \
                synchronisation, such as raw_spin_unlock_irqrestore, cost more than reading.",
            agrees_if: "four readers, each on a processor, take at least 1.1 times as long as one",
            ask: |experiments| experiments.four_readers(),
        },
        Item {
            label: "table 1",
            title: "reading 10000F100000C",
            paper: "3.01 s with one processor, 1.58 with 2 (95 % efficiency), 0.90 with 4, 0.69 with 8, 0.66 with 10 (45 %). \
                Synchronisation and the disk's bandwidth are the limits.",
            agrees_if: "two readers have an efficiency of 80 % or more, and no number of readers, up to the number of processors, is \
                more efficient than the next smaller one by more than 5 points and beyond the range of the runs. With fewer than \
                three processors, two readers below 80 % say nothing, because the thread that takes what they read needs one, too",
            ask: |experiments| experiments.table_1(),
        },
        Item {
            label: "table 2",
            title: "reading 50000F500000C",
            paper: "70.2 s with one processor, 35.9 with 2 (97 %), 15.3 with 5, 9.10 with 10 (77 %), 8.08 with 20 (43 %): larger files \
                scale better.",
            agrees_if: "two readers have an efficiency of 80 % or more (with fewer than three processors as in table 1), and with no \
                number of readers of both tables, up to the number of processors, the larger files are less efficient than those of \
                table 1 by more than 5 points and beyond the range of the runs",
            ask: |experiments| experiments.table_2(),
        },
        Item {
            label: "table 3",
            title: "shares of functions while 50000F500000C is read",
            paper: "vfscanf has 78 % with one reader, 69 % with 10, 44 % with 40; rwsem_down_read_failed less than 2 % up to 10, 7 % \
                with 20 and 33 % with 40. That is a function of the kernel in which readers wait for a semaphore. The paper supposes \
                that the semaphore shares out some hardware, and concludes that this exclusion limits reading.",
            agrees_if: "with 20 or 40 readers, each on a processor, they sleep in the kernel for 5 points more of their time than \
                one reader does",
            ask: |experiments| experiments.table_3(),
        },
        Item {
            label: "figure 3",
            title: "the call graph of 20 readers",
            paper: "A measured call graph. Its conclusion is at figure 4.",
            agrees_if: "",
            ask: |_| Ok(Answer::cannot_be_asked(CALL_GRAPH)),
        },
        Item {
            label: "figure 4",
            title: "the call graph of 40 readers",
            paper: "A measured call graph: the semaphore now has a very large share. So two things limit reading: synchronisation and \
                scheduling of threads, and the disk's bandwidth.",
            agrees_if: "",
            ask: |_| Ok(Answer::cannot_be_asked(CALL_GRAPH)),
        },
        Item {
            label: "table 4",
            title: "chunk size, 20 readers of 50000F500000C",
            paper: "7.7 s with chunks of 2500 files (all of a reader's), 8.5 with 250, 9.4 with 25: the greatest is best. vfscanf has \
                3 %, 8 % and 12 % of the time.",
            agrees_if: "with 20 readers, each on a processor, chunks of a hundredth of the greatest take at least 1.05 times as long as \
                the greatest. Where readers wait for others less than 1 % of their time, it is undecided",
            ask: |experiments| experiments.table_4(),
        },
        Item {
            label: "table 5",
            title: "brute force, 1000F1000C",
            paper: "1.57 s with one thread, 0.79 with 2, 0.19 with 8, 0.055 with 32 (98 % efficiency is printed; the times give 89 %), \
                0.040 with 64 (61 %): independent computation scales. The machine has \"48 cores, hyper-threading\", which we read as 48 hardware threads.",
            agrees_if: "the efficiency is 85 % or more with every number of workers up to 32. With fewer processors it cannot be asked, \
                beyond that it agrees as far as they reach",
            ask: |experiments| experiments.table_5(),
        },
        Item {
            label: "table 6",
            title: "palindromic tree, 1000F1000C",
            paper: "0.019 s with one thread, 0.016 with 2 and 4, 0.018 with 32: too little work to share.",
            agrees_if: "no number of workers is more than 1.3 times as fast as one",
            ask: |experiments| experiments.table_6(),
        },
        Item {
            label: "table 7",
            title: "palindromic tree, 10000F100000C",
            paper: "40.6 s with one thread, 21.2 with 2 (95 %), 6.6 with 8, 5.2 with 16 (47 %), 6.7 with 64 (9 %). The paper's summary \
                says that times over threads generally have the shape of a U.",
            agrees_if: "two workers have an efficiency of 85 % or more and, on 16 processors or more, 16 have less than 70 %",
            ask: |experiments| experiments.table_7(),
        },
        Item {
            label: "figure 5",
            title: "a profile of the tree without reading",
            paper: "Without reading, and always with the same string, the times are nearly those of table 7. The profile shows neither \
                synchronisation nor the disk among the functions that take the most time.",
            agrees_if: "with a worker for each processor, the times with and without reading differ by less than 15 %",
            ask: |experiments| experiments.without_reading(),
        },
        Item {
            label: "figure 6",
            title: "the hottest instructions of the tree, first part",
            paper: "A profile by instructions: those that take the most time all access memory, such as push and mov, and those that \
                compute, such as sub and add, take hardly any. The paper takes this to confirm that memory is the main limit.",
            agrees_if: "",
            ask: |_| Ok(Answer::cannot_be_asked("it takes a profile by instructions, and this page makes none")),
        },
        Item {
            label: "figure 7",
            title: "the hottest instructions of the tree, second part, and the estimate from them",
            paper: "Memory is supposed to be the limit: 56·10^9 accesses to integers of 4 bytes, 208 GB (of 2^30 bytes) as \
                estimated from code and times, would take 3 s at 60 % of 124 GB/s, and 5 to 6 s were measured. The paper says that it \
                cannot rule out other causes, such as a lower clock rate with many threads.",
            agrees_if: "a worker for each processor has an efficiency below 85 % in table 7, and the most bytes that the code can pass \
                between caches and memory, in the shortest time of table 7, are at least half of the rate at which as many threads read \
                or copy memory. Then memory may be the limit; the paper supposes no more. Where these workers scale, it cannot be asked",
            ask: |experiments| experiments.bandwidth(),
        },
    ],
};

const CALL_GRAPH: &str = "it takes 20 readers or more that run at the same time, and a profile by functions, which this page does not \
                          make; table 3 has the shares of readers here";

/// Reading.
impl Experiments {
    fn middle(&self) -> Size {
        if self.quick { Size { files: 1000, ..MIDDLE } } else { MIDDLE }
    }

    fn large(&self) -> Size {
        if self.quick { Size { files: 200, ..LARGE } } else { LARGE }
    }

    fn small_files(&mut self) -> Result<&Turns<Read>, Failure> {
        if self.small.is_none() {
            let ways = [1, 4].map(|readers| Readers { readers, chunk_files: None });
            self.small = Some(reading::measure(&mut self.files, SMALL, &ways, self.rounds)?);
        }
        Ok(self.small.as_ref().expect("it was measured above"))
    }

    fn one_reader(&mut self) -> Result<Answer, Failure> {
        let turns = self.small_files()?;
        let found = format!("{SMALL_FILES} {NOT_SAMPLED}\n\n{}", shares_table(turns, &[1, 4]));
        Ok(Answer::new(found, turns.allow(verdicts::one_reader(&turns.tally(0, waiting)))))
    }

    fn four_readers(&mut self) -> Result<Answer, Failure> {
        let processors = self.processors;
        let turns = self.small_files()?;
        let [one, four] = [0, 1].map(|way| turns.tally(way, |read| read.ms));
        let found = format!(
            "{SMALL_FILES} One reader takes {}, four take {}. The shares of their time are at figure 1. Other chunk sizes are not \
             tried.",
            spread(&one),
            spread(&four)
        );
        Ok(Answer::new(found, turns.allow(verdicts::four_readers(&one, &four, processors))))
    }

    /// Reads files with the numbers of readers of a table.
    fn reading(&mut self, size: Size, paper: &'static [PaperColumn]) -> Result<(Scaling, Turns<Read>), Failure> {
        let ways: Vec<Readers> = paper.iter().map(|column| Readers { readers: column.0, chunk_files: None }).collect();
        let turns = reading::measure(&mut self.files, size, &ways, self.rounds)?;
        let here = (0..ways.len()).map(|way| (ways[way].readers, turns.tally(way, |read| read.ms)));
        Ok((Scaling { paper, here: here.collect(), processors: self.processors }, turns))
    }

    fn table_1(&mut self) -> Result<Answer, Failure> {
        let (scaling, turns) = self.reading(self.middle(), READING_MIDDLE)?;
        let verdict = turns.allow(verdicts::reading_scales(&scaling.uncrowded(), self.processors));
        let [table, told] = [scaling.table("readers"), scaling.told_of_paper("table 1")];
        let found = format!("{} {ONE_ROUND} {READING}\n\n{table}{told}", self.files.told(MIDDLE));
        let answer = scaling.attach(Answer::new(found, verdict), "table-1");
        self.middle = Some(scaling);
        Ok(answer)
    }

    fn table_2(&mut self) -> Result<Answer, Failure> {
        if self.middle.is_none() {
            self.middle = Some(self.reading(self.middle(), READING_MIDDLE)?.0);
        }
        let smaller = self.middle.as_ref().map_or_else(Vec::new, Scaling::uncrowded);
        let (scaling, turns) = self.reading(self.large(), READING_LARGE)?;
        let larger = scaling.uncrowded();
        let verdict = turns.allow(verdicts::larger_files_scale_better(&smaller, &larger, self.processors));
        let [table, told] = [scaling.table("readers"), scaling.told_of_paper("table 2")];
        let compared = verdicts::larger_beside_smaller(&smaller, &larger);
        let found = format!("{} {ONE_ROUND} {READING}\n\n{table}\n{compared}\n{told}", self.files.told(LARGE));
        Ok(scaling.attach(Answer::new(found, verdict), "table-2"))
    }

    fn table_3(&mut self) -> Result<Answer, Failure> {
        const READERS: [u64; 5] = [1, 5, 10, 20, 40];
        let ways = READERS.map(|readers| Readers { readers, chunk_files: None });
        let size = self.large();
        let turns = reading::measure(&mut self.files, size, &ways, self.rounds)?;
        let kernel: Vec<(u64, Tally)> = (0..READERS.len())
            .filter(|way| READERS[*way] <= self.processors)
            .map(|way| (READERS[way], turns.tally(way, |read| read.shares().kernel)))
            .collect();
        let verdict = turns.allow(verdicts::kernel_lock(&kernel, self.processors));
        let found = format!("{} {ONE_ROUND}\n\n{}", self.files.told(LARGE), shares_table(&turns, &READERS));
        Ok(Answer::new(found, verdict))
    }

    fn table_4(&mut self) -> Result<Answer, Failure> {
        let (size, readers) = (self.large(), self.processors.clamp(2, 20));
        self.files.make(size)?;
        let all = self.files.count().div_ceil(readers);
        let chunks = [all, all.div_ceil(10), all.div_ceil(100)];
        let ways = chunks.map(|files| Readers { readers, chunk_files: Some(files) });
        let turns = reading::measure(&mut self.files, size, &ways, self.rounds)?;
        let times = [0, 1, 2].map(|way| turns.tally(way, |read| read.ms));
        let waits = [0, 1, 2].map(|way| turns.tally(way, waiting).median);
        let mut found = format!(
            "{} {readers} readers. The shares of vfscanf are not asked: they take a profile by functions. The engine has neither readers nor rounds: each worker reads what it maps, 256 KiB at a time \
             (`--chunk-bytes`), whatever the files, and waits for no other.\n\n\
             | files in a chunk | paper | here, median (least to most) | readers wait for others |\n|---|---|---|---|\n",
            self.files.told(LARGE)
        );
        let mut rows = "chunk_files,median_ms,least_ms,most_ms,waiting\n".to_owned();
        for (way, paper) in ["2500: 7.7 s", "250: 8.5 s", "25: 9.4 s"].into_iter().enumerate() {
            let Tally { least, median, most, .. } = times[way];
            let _ = writeln!(
                found,
                "| {} | {paper} | {} | {:.1} % |",
                chunks[way],
                spread(&times[way]),
                waits[way] * 100.0
            );
            let _ = writeln!(rows, "{},{median:.3},{least:.3},{most:.3},{:.4}", chunks[way], waits[way]);
        }
        let most = waits.into_iter().fold(0.0, f64::max);
        let verdict = turns.allow(verdicts::chunks_matter(&times[0], &times[2], most, self.processors));
        Ok(Answer::new(found, verdict).with("bottlenecks-table-4.csv", rows))
    }
}

const SMALL_FILES: &str = "1000F1000C, as in the paper, read in one round.";
const NOT_SAMPLED: &str = "Functions are not sampled. The question is whether the reader waits for other threads.";
const ONE_ROUND: &str =
    "A reader reads all its files in one round, which is the greatest chunk; the paper does not say its chunks.";
const READING: &str = "One more thread takes what the readers have read, and throws it away: with it, two readers are three threads. \
                       No disk is read, so its bandwidth is not asked.";

/// Returns the share of the readers' time in which they wait for other threads.
fn waiting(read: &Read) -> f64 {
    read.shares().others
}

/// Returns the shares of the readers' time as a table.
fn shares_table(turns: &Turns<Read>, readers: &[u64]) -> String {
    let mut table = format!(
        "Shares of the time of all readers in all rounds. The part in the kernel is \"-\" where a reader runs for less \
         than {} ms: the clock for it is too coarse.\n\n\
         | readers | time | running | of that, in the kernel | runnable, waiting for a processor | waiting for other threads | \
         sleeping for another reason (a disk, a kernel lock) |\n|---|---|---|---|---|---|---|\n",
        reading::RUNNING_MIN.as_millis()
    );
    for (way, readers) in readers.iter().enumerate() {
        let Shares { running, system, runnable, others, kernel } = Shares::of(turns.of(way));
        let [running, runnable, others, kernel] =
            [running, runnable, others, kernel].map(|share| format!("{:.0} %", share * 100.0));
        let system = system.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
        let time = spread(&turns.tally(way, |read| read.ms));
        let _ = writeln!(table, "| {readers} | {time} | {running} | {system} | {runnable} | {others} | {kernel} |");
    }
    table
}

/// Computing.
impl Experiments {
    /// The numbers of workers to try: those of the paper, up to four times the processors, or twice if it is quick.
    fn workers(&self, paper: &[PaperColumn]) -> Vec<u64> {
        let most = self.processors.max(2) * if self.quick { 2 } else { 4 };
        paper.iter().map(|column| column.0).filter(|workers| *workers <= most).collect()
    }

    /// Counts 1000F1000C with the numbers of workers of a table.
    fn count_small(&mut self, algorithm: &str, paper: &'static [PaperColumn]) -> Result<(Scaling, Computed), Failure> {
        let folder = self.files.make(SMALL)?;
        let numbers = self.workers(paper).into_iter();
        let ways = numbers.map(|workers| way(workers.to_string(), &format!("--workers {workers}"), &folder));
        let computed = computing::measure(algorithm, ways.collect::<Result<_, _>>()?, self.rounds)?;
        Ok((Scaling { paper, here: computed.by_workers(), processors: self.processors }, computed))
    }

    fn table_5(&mut self) -> Result<Answer, Failure> {
        let (scaling, computed) = self.count_small("brute", BRUTE_SMALL)?;
        let verdict = verdicts::computation_scales(&scaling.uncrowded(), self.processors);
        Ok(answer_of_small(&scaling, &computed, verdict, "table 5"))
    }

    fn table_6(&mut self) -> Result<Answer, Failure> {
        let (scaling, computed) = self.count_small("tree", TREE_SMALL)?;
        let verdict = verdicts::nothing_to_share(scaling.best_speed_up().as_ref(), self.processors);
        Ok(answer_of_small(&scaling, &computed, verdict, "table 6"))
    }

    /// Counts with the tree: with reading for each number of workers, and without for one and for all processors.
    fn trees(&mut self) -> Result<&Computed, Failure> {
        if self.trees.is_none() {
            let size = if self.quick { Size { files: 100, ..MIDDLE } } else { MIDDLE };
            let folder = self.files.make(size)?;
            let one = folder.join("00000.txt");
            let mut ways = Vec::new();
            for workers in self.workers(TREE_MIDDLE) {
                ways.push(way(workers.to_string(), &format!("--workers {workers}"), &folder)?);
            }
            let constant = format!("--workers {} --constant {}", self.processors, self.files.count());
            ways.push(way(WITHOUT, &constant, &one)?);
            if ways.iter().all(|way| way.name != self.processors.to_string()) {
                ways.push(way(self.processors.to_string(), &format!("--workers {}", self.processors), &folder)?);
            }
            self.trees = Some(computing::measure("tree", ways, self.rounds)?);
        }
        Ok(self.trees.as_ref().expect("it was measured above"))
    }

    fn tree_scaling(&mut self) -> Result<Scaling, Failure> {
        let mut here = self.trees()?.by_workers();
        here.sort_by_key(|(workers, _)| *workers);
        Ok(Scaling { paper: TREE_MIDDLE, here, processors: self.processors })
    }

    fn table_7(&mut self) -> Result<Answer, Failure> {
        let scaling = self.tree_scaling()?;
        let verdict = verdicts::tree_saturates(&scaling.uncrowded(), self.processors);
        let [table, told] = [scaling.table("workers"), scaling.told_of_paper("table 7")];
        let found = format!("{} {ENGINE}\n\n{table}{told}", self.files.told(MIDDLE));
        let computed = self.trees()?;
        Ok(scaling.attach(Answer::new(found, allowed(computed.rounds, computed.load, verdict)), "table-7"))
    }

    fn without_reading(&mut self) -> Result<Answer, Failure> {
        let processors = self.processors.to_string();
        let computed = self.trees()?;
        let (Some(with), Some(without)) = (computed.of(&processors), computed.of(WITHOUT)) else {
            return Ok(Answer::new("", Judgement::Undecided("there are no runs".into())));
        };
        let verdict = allowed(computed.rounds, computed.load, verdicts::same_without_reading(&with, &without));
        let [with, without] = [with, without].map(|tally| spread(&tally));
        let found = format!(
            "With {processors} workers, {with} with reading, and {without} with `--constant`, which keeps one file in memory and counts it \
             as often. Only these times are compared. Nothing is said about synchronisation: that takes a profile by functions."
        );
        Ok(Answer::new(found, verdict))
    }

    fn bandwidth(&mut self) -> Result<Answer, Failure> {
        let scaling = self.tree_scaling()?;
        let uncrowded = scaling.uncrowded();
        let fastest = uncrowded.iter().filter_map(|(workers, _)| Some((*workers, scaling.median_ms(*workers)?)));
        let (Some((workers, ms)), Some((_, all))) = (fastest.min_by(|a, b| a.1.total_cmp(&b.1)), uncrowded.last())
        else {
            return Ok(Answer::new("", Judgement::Undecided("there are no runs".into())));
        };
        tell(format_args!("the memory bandwidth of {workers} threads"));
        let card = Card::here();
        let plan = Measurements::new(&card, Path::new("/"));
        let used = &card.topology.allowed[..(workers as usize).min(card.topology.allowed.len())];
        let rates = stream::measure(used, plan.array_bytes, 3);
        let per_byte = Algorithm::Tree.traffic();
        let bytes = per_byte * self.files.count() * MIDDLE.characters;
        let (traffic, rate) = (bytes as f64 / (ms / 1e3), rates.copy.max(rates.read));
        let found = format!(
            "With {workers} worker{} at most {:.2} GB/s pass between caches and memory, less where the tree stays in a cache. As many \
             threads read or copy {:.1} GB/s. The estimate is from the code: for each byte of the input the byte itself, and a node of {} \
             bytes that is fetched and written, together {per_byte} bytes. The paper has 224 bytes for each byte of the input (56 accesses \
             of 4 bytes): it counts every access, also those that a cache answers.",
            if workers == 1 { "" } else { "s" },
            traffic / 1e9,
            rate / 1e9,
            per_byte / 2
        );
        let computed = self.trees()?;
        Ok(Answer::new(found, allowed(computed.rounds, computed.load, verdicts::memory_limits(all, traffic, rate))))
    }
}

const WITHOUT: &str = "without reading";
const ENGINE: &str = "Time of the job, without the start of the process.";

fn answer_of_small(scaling: &Scaling, computed: &Computed, verdict: Judgement, table: &'static str) -> Answer {
    let [of_workers, told] = [scaling.table("workers"), scaling.told_of_paper(table)];
    let found = format!("1000F1000C, as in the paper. {ENGINE}\n\n{of_workers}{told}");
    let answer = Answer::new(found, allowed(computed.rounds, computed.load, verdict));
    scaling.attach(answer, &table.replace(' ', "-"))
}
