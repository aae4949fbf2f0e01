//! Figures 10 and 11: a queue with a lock for each reducer, and a channel for each pair of workers whose pages are
//! remapped; beside them the mailboxes of the engine. Buffers, map function and reduce function are the same.

use gristmill_cli::Failure;
use gristmill_report::tally::Tally;

use super::words::{by_workers, drawn, median};
use crate::dmr::curves::Curve;
use crate::dmr::experiments::{Experiments, GLIBC, WORKERS, through};
use crate::dmr::judge::{judged, too_few_processors};
use crate::dmr::model::strategy::{CHANNELS, ChannelKind};
use crate::dmr::runs::{COLUMNS, ModelRuns};
use crate::page::{Answer, Contrast, Judgement};

/// Processors with which the holder of a lock seldom waits for one itself, while others wait for the lock.
const PROCESSORS: usize = 16;

/// Returns the microseconds of a page: the processor time of all workers, with map and reduce, divided by their pages.
fn of_page(runs: &ModelRuns, channel: ChannelKind, workers: usize) -> Option<Tally> {
    runs.tally_of(GLIBC, &through(channel, workers), |value| {
        Some(value("processor_ns")? / 1e3 / value("pages").filter(|pages| *pages > 0.0)?)
    })
}

pub fn figure_10(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let (most, processors) = (WORKERS[WORKERS.len() - 1], experiments.processors);
    compared(experiments, "figure-10", |runs, _| {
        let times = |workers| [ChannelKind::Queue, ChannelKind::Mailbox].map(|kind| of_page(runs, kind, workers));
        let ([Some(queue), Some(mailbox)], [Some(queue_alone), Some(mailbox_alone)]) = (times(most), times(1)) else {
            return Judgement::Undecided("it did not run".into());
        };
        let [lost, lost_alone] = [queue.median - mailbox.median, queue_alone.median - mailbox_alone.median];
        let contrast = Contrast::of(&queue, &mailbox);
        let found = format!(
            "a page costs {:.1} µs through the queue and {:.1} µs through the mailbox with {most} workers{}, {:.1} and {:.1} µs with one",
            queue.median,
            mailbox.median,
            contrast.caveat(),
            queue_alone.median,
            mailbox_alone.median
        );
        if processors < PROCESSORS {
            let what = "workers that wait for a lock while its holder has a processor need";
            return too_few_processors(what, PROCESSORS, processors, &found);
        }
        match contrast.holds(Contrast::Slower) {
            None => Judgement::Undecided(found),
            Some(holds) => Judgement::of(holds && lost > lost_alone, || {
                format!("{found}: the lock is taken once for a page of 2047 pairs, and held for a few stores")
            }),
        }
    })
}

pub fn figure_11(experiments: &mut Experiments) -> Result<Answer, Failure> {
    compared(experiments, "figure-11", |runs, own| {
        let [mailbox, queue, remap] =
            [ChannelKind::Mailbox, ChannelKind::Queue, ChannelKind::Remap].map(|kind| of_page(runs, kind, own));
        let (Some(mailbox), Some(queue), Some(remap)) = (mailbox, queue, remap) else {
            return Judgement::Undecided("it did not run".into());
        };
        let agrees = [&mailbox, &queue].iter().all(|other| Contrast::of(&remap, other) == Contrast::Faster);
        match agrees {
            true => Judgement::Agrees,
            false => Judgement::CannotBeAsked(format!(
                "DMR's kernel, dlinux, moves the memory itself. With the calls of an ordinary kernel and {own} workers a page costs {:.1} µs \
                 if it is remapped, {:.1} µs through a queue and {:.1} µs through a mailbox: two system calls for a page, and page faults \
                 on both sides for each 4 KiB of it",
                remap.median, queue.median, mailbox.median
            )),
        }
    })
}

fn compared(
    experiments: &mut Experiments,
    name: &str,
    decide: impl FnOnce(&ModelRuns, usize) -> Judgement,
) -> Result<Answer, Failure> {
    let (rounds, own) = (experiments.rounds, experiments.own_processors().max(2));
    let runs = experiments.channels()?;
    let times = |kind| WORKERS.map(|workers| of_page(runs, kind, workers));
    let walls = |kind| WORKERS.map(|workers| runs.tally(GLIBC, &through(kind, workers), "wall_ns"));
    let faults = |kind| WORKERS.map(|workers| runs.tally(GLIBC, &through(kind, workers), "faults"));
    let cells = |tallies: [Option<Tally>; 6], unit: f64| tallies.map(|tally| median(tally, unit)).to_vec();
    let named = CHANNELS.map(|(kind, name)| (kind, name.to_owned()));
    let pages = by_workers("µs for a page", named.clone().map(|(kind, name)| (name, cells(times(kind), 1.0))));
    let whole = by_workers("ms for a run", named.clone().map(|(kind, name)| (name, cells(walls(kind), 1e6))));
    let missed = by_workers("page faults", named.clone().map(|(kind, name)| (name, cells(faults(kind), 1.0))));
    let found = format!(
        "Word count with an array, combined in reduce, by processes. A page of 32 KiB has 2047 pairs. Its cost is the \
         processor time of all workers, with the map and reduce functions, which are the same, divided by the pages:\n\n\
         {pages}\n{whole}\n{missed}"
    );
    let lines =
        named.map(|(kind, name)| Curve { name, values: times(kind).map(|time| time.map(|time| time.median)).to_vec() });
    let verdict = judged(rounds, runs.load, || decide(runs, own));
    let rows = format!("{COLUMNS}\n{}", runs.csv("word count"));
    Ok(drawn(Answer::new(found, verdict), name, "processor time of all workers for a page, µs", &lines)
        .with("channels-runs.csv", rows))
}
