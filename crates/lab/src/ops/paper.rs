//! The page of OPS: `gristmill-lab ops`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use gristmill::Error;
use gristmill_cli::Failure;
use gristmill_report::tally::Tally;

use super::record::{self, Point, RecordedRun, RunPair, Shuffle};
use crate::page::picture::Picture;
use crate::page::{Answer, Ask, Item, Judgement, Paper, ROUNDS_MIN};

/// Answer the figures of OPS (Cheng et al. 2020), a shuffle for Spark, with recorded runs
///
/// Its measurements need Spark, three hosts and slow disks, so this page runs nothing: it shows the runs that
/// bench/spark recorded. --rounds and --quick change nothing.
#[derive(Args)]
pub struct Ops {
    #[command(flatten)]
    ask: Ask,

    /// Show these runs of bench/spark/headline.sh (runs.jsonl) in place of the recorded ones
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// The recorded runs.
pub struct Experiments {
    headline: Vec<RecordedRun>,
    /// Where they are.
    source: String,
}

impl Ops {
    pub fn run(&self) -> Result<(), Failure> {
        let (text, source) = match &self.record {
            None => (record::HEADLINE.to_owned(), "bench/runs/2026-11-28-spark-headline".to_owned()),
            Some(path) => {
                let failed = |source| Error::Input { path: path.clone(), source };
                (fs::read_to_string(path).map_err(failed)?, path.display().to_string())
            }
        };
        let headline = record::runs(&text).map_err(|why| Failure::Usage(format!("{source}: {why}")))?;
        PAPER.answer(&self.ask, &mut Experiments { headline, source })
    }
}

pub static PAPER: Paper<Experiments> = Paper {
    name: "ops",
    title: "OPS (Cheng et al. 2020): shuffle management for Apache Spark",
    about: "Read was a report on OPS and its reproduction: figures 8 and 9 are of OPS itself, 10 and 11 of the reproduction, \
            on 4 nodes. Only its text was read, which has no numbers of these pictures but those that are quoted. `Plugin` is \
            Gristmill's shuffle for Spark, `sort shuffle` Spark's own.",
    items: &[
        Item::drawing(
            "figure 1",
            "the design of the system",
            "maps write into a merger in shared memory; its pages are sent \
            early, and lie on the disks of the nodes that reduce them",
            |_| {
                Ok(Answer::drawing(
                    "the plugin's path of a record, map task to page pool to home to reader: spark/docs/design.md",
                ))
            },
        ),
        Item::drawing(
            "figure 2",
            "early merge",
            "the output of all maps of a node is merged by partition in pages, and a page \
            that is full waits to be sent",
            |_| {
                Ok(Answer::drawing(
                    "org.gristmill.spark.writer.PartitionBuffers and org.gristmill.core.send.PagePool; in the engine, a \
                worker's open page for each partition (ARCHITECTURE.md, step 6)",
                ))
            },
        ),
        Item::drawing(
            "figure 3",
            "the hardware of a node",
            "4 virtual processors of 3.1 GHz, 16 GB of memory, a disk of 750 \
            operations and 250 Mbit per second, a network of 4.8 Gbit/s; 100 such nodes",
            |_| {
                Ok(Answer::drawing(
                    "three hosts, which are network namespaces with 500 Mbit/s, each with a disk throttled to 5.2 MB/s and \
                125 operations/s: a sixth of the paper's disk, as the two processors of all three hosts are a sixth of three of its nodes. \
                The network is not scaled alike: a sixth of it would be 800 Mbit/s (bench/spark/cluster.sh)",
                ))
            },
        ),
        Item::drawing(
            "figure 4",
            "errors of the build",
            "a class is missing in the published code, the allocator of algorithm 1",
            |_| Ok(Answer::drawing("nothing: the plugin is complete, and enabled by settings alone (spark/README.md)")),
        ),
        Item::drawing("figure 5", "the build succeeds", "the output of Maven", |_| {
            Ok(Answer::drawing("ci/spark.sh, which builds the plugin and runs its tests"))
        }),
        Item::drawing(
            "figure 6",
            "the class of the allocator",
            "the current page of each partition, and the place in it where the \
            next record is written",
            |_| Ok(Answer::drawing("org.gristmill.spark.writer.PartitionBuffers: a growing buffer for each partition")),
        ),
        Item::drawing(
            "figure 7",
            "algorithm 1 as code",
            "a record is appended to its partition's page; a full page is queued; \
            without memory the writer waits until a page is free",
            |_| {
                Ok(Answer::drawing(
                    "PartitionBuffers and PagePool.acquire, where writers wait for a page (metric poolWaitMs)",
                ))
            },
        ),
        Item {
            label: "figure 8",
            title: "total time of the shuffle by number of map tasks, 1.6 TB on 100 nodes",
            paper: "1600 to 6400 map tasks (4 to 16 waves): OPS takes nearly half of the shuffle's overhead away.",
            agrees_if: "the plugin's shuffle time is at most half of the sort shuffle's in every pair of runs on throttled \
                disks, and there are three pairs or more",
            ask: |experiments| Ok(experiments.halves()),
        },
        Item {
            label: "figure 9",
            title: "total time of the job by number of map tasks, 1.6 TB on 100 nodes",
            paper: "Jobs take about 30 % less time on average.",
            agrees_if: "the median ratio of the job's times, plugin to sort shuffle, is at most 0.7 over the pairs on \
                throttled disks, and there are three pairs or more",
            ask: |experiments| Ok(experiments.shortens()),
        },
        Item {
            label: "figure 10",
            title: "total time of the shuffle by number of map tasks, 32 GB on 4 nodes",
            paper: "From 32 to 128 map tasks (2 to 8 waves) the time of Spark's shuffle grows by nearly three times; that of OPS \
                hardly changes. Tasks of 32, 40, 64, 88, 120 and 128 were run.",
            agrees_if: "from the fewest to the most maps the sort shuffle's shuffle time grows at least twofold, and the \
                plugin's by at most a quarter, in medians of three runs or more",
            ask: |experiments| Ok(experiments.grows("shuffle", |run| run.shuffle_s, 2.0)),
        },
        Item {
            label: "figure 11",
            title: "total time of the job by number of map tasks, 32 GB on 4 nodes",
            paper: "The job's time grows with the number of map tasks with Spark's shuffle, and hardly with OPS. \
                The text has no numbers of the picture.",
            agrees_if: "from the fewest to the most maps the sort shuffle's job time grows by at least a quarter, and the \
                plugin's by at most a quarter and less than the sort shuffle's, in medians of three runs or more",
            ask: |experiments| Ok(experiments.grows("job", |run| run.job_s, 1.25)),
        },
    ],
};

impl Experiments {
    /// Asks whether the plugin halves the time of the shuffle.
    fn halves(&self) -> Answer {
        let pairs = record::pairs(&self.headline);
        let ratios = ratios(&pairs, |run| run.shuffle_s);
        let verdict = Judgement::of(ratios.iter().all(|ratio| *ratio <= 0.5), || {
            "the plugin's shuffle takes more than half of the sort shuffle's time in one pair or more".into()
        });
        self.of_pairs(&pairs, "of the shuffle", |run| run.shuffle_s, verdict)
    }

    /// Asks whether jobs take three tenths less time.
    fn shortens(&self) -> Answer {
        let pairs = record::pairs(&self.headline);
        let median = Tally::of(&ratios(&pairs, |run| run.job_s)).median;
        let verdict = Judgement::of(median <= 0.7, || format!("the median ratio is {median:.2}"));
        self.of_pairs(&pairs, "of the job", |run| run.job_s, verdict)
    }

    fn of_pairs(&self, pairs: &[RunPair], what: &str, time: fn(&RecordedRun) -> f64, verdict: Judgement) -> Answer {
        let mut found = format!(
            "Spark-sort on three hosts with throttled disks and two processors together, recorded in {} and (450 MB) in \
             bench/runs/2026-11-22-spark-rows-5. Seconds {what}; those of a shuffle are summed over tasks, writing and \
             waiting for fetches.\n\n| MB | maps | sort shuffle | plugin | plugin / sort |\n|---|---|---|---|---|\n",
            self.source
        );
        for pair in pairs {
            let (sort, ours, megabytes) = (time(&pair.sort), time(&pair.gristmill), pair.sort.bytes / 1_000_000);
            let _ =
                writeln!(found, "| {megabytes} | {} | {sort:.1} | {ours:.1} | {:.2} |", pair.sort.maps, ours / sort);
        }
        found += "\nThe runs of 150 MB flatter the plugin: a host has 50 MB of them, of which it keeps up to 32 MiB in memory. \
                  Those of 450 MB must be written.\n";
        found += AGAIN;
        Answer::new(found, crate::page::allowed(pairs.len(), None, verdict))
    }

    /// Asks whether times grow with the maps.
    fn grows(&self, what: &'static str, time: fn(&RecordedRun) -> f64, at_least: f64) -> Answer {
        let shuffles = [("sort shuffle", Shuffle::Sort), ("Magnet", Shuffle::Magnet), ("plugin", Shuffle::Gristmill)];
        let all = shuffles.map(|(name, shuffle)| (name, record::by_maps(&self.headline, shuffle, time)));
        let mut found = format!(
            "Spark-sort into 32 partitions on three hosts with throttled disks and two processors together, recorded in {}. \
             Median seconds of the {what} and, in brackets, the runs. Magnet is Spark's own push-based shuffle.\n\n\
             | maps | sort shuffle | Magnet | plugin |\n|---|---|---|---|\n",
            self.source
        );
        for at in 0..all[0].1.len() {
            let cell = |points: &[Point]| match points.get(at) {
                Some((_, runs, median)) => format!("{median:.1} ({runs})"),
                None => "-".to_owned(),
            };
            let cells: Vec<String> = all.iter().map(|(_, points)| cell(points)).collect();
            let _ = writeln!(found, "| {} | {} |", all[0].1[at].0, cells.join(" | "));
        }
        found += &format!("\n{AGAIN}");
        let rows = all.iter().flat_map(|(name, points)| {
            points.iter().map(move |(maps, runs, median)| format!("{name},{maps},{runs},{median:.2}\n"))
        });
        let rows = format!("shuffle,maps,runs,seconds\n{}", rows.collect::<String>());
        let lines = all.clone().map(|(name, points)| {
            (name.to_owned(), points.into_iter().map(|(maps, _, median)| (maps as f64, median)).collect())
        });
        let y = format!("seconds of the {what}");
        let picture = Picture { x: "map tasks", y: &y, level: None, processors: None }.draw(&lines);
        let [(_, sort), _, (_, ours)] = &all;
        Answer::new(found, growth_verdict(sort, ours, at_least))
            .with(format!("ops-{what}-by-maps.csv"), rows)
            .with(format!("ops-{what}-by-maps.svg"), picture)
    }
}

const AGAIN: &str = "To measure it again on a machine with Spark, as root: `bench/spark/headline.sh FOLDER`, an hour or more, then \
                     `gristmill-lab ops --record FOLDER/runs.jsonl`.";

fn ratios(pairs: &[RunPair], time: fn(&RecordedRun) -> f64) -> Vec<f64> {
    pairs.iter().map(|pair| time(&pair.gristmill) / time(&pair.sort)).collect()
}

/// Judges growth from the fewest to the most maps: that of the sort shuffle is at least `at_least`, and the plugin's is
/// at most a quarter, or less than the sort shuffle's if that may be so little itself.
fn growth_verdict(sort: &[Point], ours: &[Point], at_least: f64) -> Judgement {
    let growth = |points: &[Point]| match points {
        [first, .., last] => Some((last.2 / first.2, first.1.min(last.1))),
        _ => None,
    };
    let (Some((sort, sort_runs)), Some((ours, our_runs))) = (growth(sort), growth(ours)) else {
        return Judgement::Undecided("the record has fewer than two numbers of maps".into());
    };
    let agrees = sort >= at_least && ours <= 1.25 && ours < sort;
    let far = format!("the sort shuffle's time is multiplied by {sort:.2}, the plugin's by {ours:.2}");
    match sort_runs.min(our_runs) {
        runs @ ..ROUNDS_MIN => Judgement::Undecided(format!(
            "{runs} run{} with some number of maps, where three are needed; as far as these go, {far}",
            if runs == 1 { "" } else { "s" }
        )),
        _ => Judgement::of(agrees, || format!("{far}; why is not known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_three_runs_at_both_ends() {
        let (steep, flat) =
            ([(32, 3, 10.0), (64, 1, 15.0), (128, 3, 29.0)], [(32, 3, 5.0), (64, 1, 9.0), (128, 3, 6.0)]);
        assert_eq!(growth_verdict(&steep, &flat, 2.0), Judgement::Agrees);
        let Judgement::Differs(why) = growth_verdict(&flat, &steep, 2.0) else { panic!("it grows the other way") };
        assert!(why.starts_with("the sort shuffle's time is multiplied by 1.20, the plugin's by 2.90"), "{why}");
        let Judgement::Undecided(why) = growth_verdict(&steep, &[(32, 3, 5.0), (128, 1, 6.0)], 2.0) else {
            panic!("one run")
        };
        assert!(why.starts_with("1 run with some number of maps") && why.ends_with("plugin's by 1.20"), "{why}");
        assert!(matches!(growth_verdict(&steep[..1], &flat, 2.0), Judgement::Undecided(_)));
    }
}
