//! The plan in words: every choice and its reason.

use std::fmt::Display;

use crate::plan::job_plan::Plan;
use crate::plan::known::Known;
use crate::plan::reason::Reason;
use crate::plan::settings::{Buffer, Exchange, Isolation, PagePolicy};

/// One choice of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The subject of the choice: `workers`, `buffer`, ...
    pub what: &'static str,
    /// The choice.
    pub chosen: String,
    /// Its reason.
    pub why: String,
    /// True if `what` is the name of an option that was asked for and that this job does not follow.
    pub is_ignored: bool,
}

impl Choice {
    fn new(what: &'static str, chosen: impl Into<String>, why: impl Display) -> Choice {
        Choice { what, chosen: chosen.into(), why: why.to_string(), is_ignored: false }
    }
}

/// Returns every choice of `plan`, in the order of the data path. `ranges` is the number of ranges that its partitions
/// form, if the input was searched for cuts.
pub(crate) fn explain(plan: &Plan, known: &Known<'_>, ranges: Option<usize>) -> Vec<Choice> {
    let mut choices = vec![sample(known)];
    choices.extend(workers(plan, known));
    choices.extend(map(plan, known));
    choices.extend(exchange(plan, ranges));
    if let Some(weights) = &plan.weights {
        let why = format!(
            "in a sample of {} pairs, one of {} partitions has {:.1} % of the bytes",
            weights.counted,
            weights.of.len(),
            100.0 * weights.largest()
        );
        choices.push(Choice::new("reducers", "the largest partition first", why));
    }
    let ignored = plan.why.ignored();
    choices.extend(ignored.map(|(what, why)| Choice { is_ignored: true, ..Choice::new(what, "ignored", why) }));
    choices
}

fn sample(known: &Known<'_>) -> Choice {
    let why = match known.sample {
        Some(sample) if sample.pieces > 0 => {
            let why = format!(
                "{:.1} ns per byte, {} pairs of {} bytes, {} keys among the first {}; reading {} waited {:.2} ms",
                sample.ns_per_byte,
                sample.pairs,
                sample.pair_bytes / sample.pairs.max(1),
                sample.keys,
                sample.told_apart,
                size(sample.read_bytes),
                sample.wait_ns as f64 / 1e6
            );
            return Choice::new("sample", format!("{} pieces, {}", sample.pieces, size(sample.bytes)), why);
        }
        Some(sample) if sample.ns_per_byte == 0.0 => "no piece was read in time: the disk is slow",
        Some(_) => "no piece was mapped in time: the map function is slow",
        None if known.settings.isolation == Isolation::Thread => {
            "workers are threads: a process with threads is not forked for a look"
        }
        None => "there is nothing to learn, the input is small, the map function crashed, or it is switched off",
    };
    Choice::new("sample", "none", why)
}

fn workers(plan: &Plan, known: &Known<'_>) -> Vec<Choice> {
    let Plan { why, places, .. } = plan;
    let workers = match (plan.fused, plan.map_workers) {
        (true, 1) => "1, which maps and reduces".to_owned(),
        (true, workers) => format!("{workers}, each maps and reduces"),
        (false, workers) => format!("{workers} map, {} reduce", plan.reduce_workers),
    };
    let apart = why.apart.map_or(String::new(), |apart| format!("; {apart}"));
    let mut choices = vec![Choice::new("workers", workers, format_args!("{}{apart}", why.workers))];
    if plan.map_at_once < plan.map_workers {
        choices.push(Choice::new("mapping at once", plan.map_at_once.to_string(), why.map_at_once));
    }
    let trials = known.settings.history.len();
    if trials > 0 && known.learned.is_none() {
        let why = "reading waits for the disk now, they do not agree with what was asked for, or there is only one";
        choices.push(Choice::new("history", format!("{trials} times, not followed"), why));
    }
    if places.nodes.len() > 1 {
        let chosen = match (plan.shares, places.homes.len()) {
            (_, 0) => "wherever the kernel puts them".to_owned(),
            (1, nodes) => format!("pinned to {nodes} nodes"),
            (_, nodes) => format!("pinned to {nodes} nodes, each reduces its own pairs"),
        };
        choices.push(Choice::new("placement", chosen, why.placement));
    }
    let (isolation, why) = match plan.isolation {
        Isolation::Process => ("processes", Reason::Because("a crash is made good, and no memory map is shared")),
        Isolation::Thread => ("threads", Reason::Asked),
    };
    choices.push(Choice::new("isolation", isolation, why));
    choices
}

fn map(plan: &Plan, known: &Known<'_>) -> Vec<Choice> {
    let why = &plan.why;
    let tasks = known.input_bytes.div_ceil(plan.split_bytes);
    let buffer = match plan.buffer {
        Buffer::Auto => unreachable!("a plan has chosen"),
        Buffer::Dense => "dense",
        Buffer::Hash => "hash",
        Buffer::Array => "array",
    };
    let combining = match (plan.combining.in_map, plan.combining.in_reduce) {
        _ if !known.program.combines => "nowhere",
        (true, true) => "in map and in reduce",
        (true, false) => "in map, and at the end",
        (false, true) => "in reduce",
        (false, false) => "at the end",
    };
    let mut choices = vec![
        Choice::new("splits", format!("{tasks} of {}", size(plan.split_bytes)), why.splits),
        Choice::new("chunks", size(plan.chunk_bytes as u64), why.chunks),
        Choice::new("buffer", buffer, why.buffer),
        Choice::new("combining", combining, why.combining),
    ];
    if let Some(values) = plan.combining.after {
        let chosen = format!("combined in reduce once a key has more than {values} values");
        choices.push(Choice::new("heavy keys", chosen, why.heavy_keys));
    }
    choices
}

fn exchange(plan: &Plan, ranges: Option<usize>) -> [Choice; 4] {
    let why = &plan.why;
    let pages = format!("{} of {}", plan.pages_per_arena - plan.reserve_pages, size(plan.page_bytes as u64));
    let pages = match plan.reserve_pages {
        0 => format!("{pages} for each worker"),
        reserve => format!("{pages} for each worker, and {reserve} in reserve"),
    };
    let (policy, policy_why) = match plan.pages {
        PagePolicy::Reuse => ("written again", Reason::Because("their memory is there, and in the cache")),
        PagePolicy::Fresh => ("fresh each time", Reason::Asked),
        PagePolicy::Prealloc => ("faulted in before", Reason::Asked),
    };
    let (exchange, exchange_why) = match plan.exchange {
        Exchange::Pipelined => ("pipelined", Reason::Because("reduce while map runs")),
        Exchange::Barrier => ("barrier", Reason::Asked),
    };
    let cut = Reason::Because("they need not be merged; they are cut where a sample of the pairs says");
    let (partitions, partitions_why) = match ranges {
        Some(ranges) => (format!("{ranges}, each a range of the result"), cut),
        None if plan.shares > 1 => {
            (format!("{} on each of {} nodes", plan.share_partitions(), plan.shares), why.partitions)
        }
        None => (plan.partitions.to_string(), why.partitions),
    };
    [
        Choice::new("pages", pages, why.pages),
        Choice::new("page memory", policy, policy_why),
        Choice::new("exchange", exchange, exchange_why),
        Choice::new("partitions", partitions, partitions_why),
    ]
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0).replace(".0 ", " "),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0).replace(".0 ", " "),
    }
}
