//! The plan in words: every choice and its reason.

use gristmill_os::machine::Processors;

use crate::plan::ignored::ignored;
use crate::plan::job_plan::{CombiningPlan, Known, PAGE_BYTES_UNKNOWN, Plan, wait_ns, work_ns};
use crate::plan::sample::WORTH_BYTES;
use crate::plan::settings::{Buffer, Combining, Exchange, Isolation, PagePolicy, Placement};

/// One choice of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
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

const ASKED: &str = "as asked for";

/// Returns every choice of `plan`, in the order of the data path.
pub(crate) fn explain(plan: &Plan) -> Vec<Choice> {
    let Known { processors, input_bytes, program, ref sample, trials, ref learned, ranges } = plan.known;
    let sample = sample.as_ref();
    let is_asked = plan.asked;
    let mut choices = Vec::new();
    let mut choose = |what, chosen: String, why: String| choices.push(Choice { what, chosen, why, is_ignored: false });
    let size = |bytes: u64| match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0).replace(".0 ", " "),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0).replace(".0 ", " "),
    };
    let asked = |is_asked: bool, otherwise: &str| if is_asked { ASKED } else { otherwise }.to_owned();

    // 1. Sample.
    match sample {
        Some(sample) if sample.pieces > 0 => choose(
            "sample",
            format!("{} pieces, {}", sample.pieces, size(sample.bytes)),
            format!(
                "{:.1} ns per byte, {} pairs of {} bytes, {} keys among the first {}; reading {} waited {:.2} ms",
                sample.ns_per_byte,
                sample.pairs,
                sample.pair_bytes / sample.pairs.max(1),
                sample.keys,
                sample.told_apart,
                size(sample.read_bytes),
                sample.wait_ns as f64 / 1e6
            ),
        ),
        Some(sample) if sample.ns_per_byte == 0.0 => {
            choose("sample", "none".into(), "no piece was read in time: the disk is slow".into());
        }
        Some(_) => choose("sample", "none".into(), "no piece was mapped in time: the map function is slow".into()),
        None if plan.isolation == Isolation::Thread => {
            choose(
                "sample",
                "none".into(),
                "workers are threads: a process with threads is not forked for a look".into(),
            );
        }
        None => choose(
            "sample",
            "none".into(),
            "there is nothing to learn, the input is small, the map function crashed, or it is switched off".into(),
        ),
    }
    // 2. Workers.
    let work = sample.map(|sample| {
        let work = format!("the input is about {:.1} ms of work for one", work_ns(sample, input_bytes) / 1e6);
        match wait_ns(sample, input_bytes) {
            0.0 => work,
            wait_ns => format!("{work}, which would wait {:.1} ms for the disk", wait_ns / 1e6),
        }
    });
    let from_history = learned.map(|learned| {
        format!(
            "history: the best of {} times, {:.3} s; the worst was {:.3} s",
            learned.trials, learned.best.seconds, learned.seconds_max
        )
    });
    let chosen_by_history = |is_chosen: bool| from_history.clone().filter(|_| is_chosen);
    let Processors { allowed, usable } = processors;
    let processors = match usable < allowed {
        true => format!("the control group allows {usable} of {allowed} processors"),
        false => format!("there are {usable} processors"),
    };
    let why = match (&work, plan.map_workers) {
        _ if is_asked.workers => ASKED.to_owned(),
        _ if learned.is_some() => chosen_by_history(true).expect("it is there"),
        (Some(work), _) => format!("{work}, and {processors}"),
        (None, 1) if usable > 1 => "the input is so small that one more would cost more than it brings".to_owned(),
        (None, _) => format!("one for each processor: {processors}"),
    };
    let why = match plan.apart {
        true => format!("{why}; those that reduce lose nothing if the map function crashes"),
        false => why,
    };
    let workers = match (plan.fused, plan.map_workers) {
        (true, 1) => "1, which maps and reduces".to_owned(),
        (true, workers) => format!("{workers}, each maps and reduces"),
        (false, workers) => format!("{workers} map, {} reduce", plan.reduce_workers),
    };
    choose("workers", workers, why);
    if plan.map_at_once < plan.map_workers {
        let why = "more would push each other's tables out of the caches; the others reduce, and replace the dead";
        let why = asked(is_asked.map_at_once.is_some(), why);
        let is_learned = learned.is_some_and(|of| of.best.map_at_once.is_some()) && is_asked.map_at_once.is_none();
        choose("mapping at once", plan.map_at_once.to_string(), chosen_by_history(is_learned).unwrap_or(why));
    }
    if trials > 0 && learned.is_none() {
        let why = "reading waits for the disk now, they do not agree with what was asked for, or there is only one";
        choose("history", format!("{trials} times, not followed"), why.to_owned());
    }
    if plan.places.nodes.len() > 1 {
        let nodes = plan.places.homes.len();
        let (chosen, why) = match (plan.shares, nodes) {
            (_, 0) => ("wherever the kernel puts them".to_owned(), "memory is in one place, or placement is off"),
            (1, _) => (format!("pinned to {nodes} nodes"), "their memory is there, too; pages cross"),
            _ => (
                format!("pinned to {nodes} nodes, each reduces its own pairs"),
                "keys repeat, so each of them crosses once from each node instead of with each page",
            ),
        };
        choose("placement", chosen, asked(is_asked.placement != Placement::Auto, why));
    }
    let isolation = match plan.isolation {
        Isolation::Process => "processes",
        Isolation::Thread => "threads",
    };
    let why = asked(plan.isolation != Isolation::default(), "a crash is made good, and no memory map is shared");
    choose("isolation", isolation.to_owned(), why);
    // 3. Map.
    let tasks = input_bytes.div_ceil(plan.split_bytes);
    let why = match sample {
        _ if is_asked.split_bytes == Some(plan.split_bytes) => ASKED.to_owned(),
        Some(sample) => format!(
            "about {:.1} ms each, and enough of them that the last ones wait little for each other",
            sample.map_ns(plan.split_bytes.min(input_bytes)) / 1e6
        ),
        None => "enough of them that the last ones wait little for each other".to_owned(),
    };
    choose("splits", format!("{tasks} of {}", size(plan.split_bytes)), why);
    let why = asked(is_asked.chunk_bytes, "input and combining table share the second-level cache");
    let why = chosen_by_history(learned.is_some_and(|of| of.best.chunk_bytes.is_some()) && !is_asked.chunk_bytes)
        .unwrap_or(why);
    choose("chunks", size(plan.chunk_bytes as u64), why);
    let (buffer, why) = match plan.buffer {
        Buffer::Auto => unreachable!("a plan has chosen"),
        Buffer::Dense => ("dense", format!("a place for each of {} keys", program.keys.unwrap_or(0))),
        Buffer::Hash if plan.table_may_rest => {
            ("hash", "values combine; where keys hardly repeat, pairs go past the table".to_owned())
        }
        Buffer::Hash => ("hash", String::new()),
        Buffer::Array if !program.combines => ("array", "the job has no combiner".to_owned()),
        Buffer::Array => ("array", "nothing is combined in map".to_owned()),
    };
    choose("buffer", buffer.to_owned(), asked(is_asked.buffer, &why));
    let CombiningPlan { in_map, in_reduce, after, .. } = plan.combining;
    let (combine, why) = match (in_map, in_reduce) {
        _ if !program.combines => ("nowhere", "the job has no combiner"),
        (true, true) => ("in map and in reduce", "less is sent, and memory grows with the keys, not with the pairs"),
        (true, false) => {
            ("in map, and at the end", "each task adds up in its own order, and tasks are added up in order")
        }
        (false, true) => ("in reduce", "the array buffer combines nothing"),
        (false, false) => ("at the end", "in ascending order, so that rounded sums have the same bits"),
    };
    choose("combining", combine.to_owned(), asked(is_asked.combining != Combining::default() && program.combines, why));
    if let Some(values) = after {
        choose("heavy keys", format!("combined in reduce once a key has more than {values} values"), ASKED.to_owned());
    }
    // 4. Exchange and reduce.
    let why = match plan.page_bytes {
        PAGE_BYTES_UNKNOWN if input_bytes < WORTH_BYTES => "so small an input does not say what will be emitted",
        _ => "the pages of all that map at once stay in the last-level cache",
    };
    let why = asked(is_asked.page_bytes, why);
    let pages = format!("{} of {}", plan.pages_per_arena - plan.reserve_pages, size(plan.page_bytes as u64));
    let pages = match plan.reserve_pages {
        0 => format!("{pages} for each worker"),
        reserve => format!("{pages} for each worker, and {reserve} in reserve"),
    };
    choose("pages", pages, why);
    let (policy, why) = match plan.pages {
        PagePolicy::Reuse => ("written again", "their memory is there, and in the cache"),
        PagePolicy::Fresh => ("fresh each time", ASKED),
        PagePolicy::Prealloc => ("faulted in before", ASKED),
    };
    choose("page memory", policy.to_owned(), why.to_owned());
    let (exchange, why) = match plan.exchange {
        Exchange::Pipelined => ("pipelined", "reduce while map runs"),
        Exchange::Barrier => ("barrier", ASKED),
    };
    choose("exchange", exchange.to_owned(), why.to_owned());
    let partitions = match ranges {
        Some(ranges) => format!("{ranges}, each a range of the result"),
        None if plan.shares > 1 => format!("{} on each of {} nodes", plan.share_partitions(), plan.shares),
        None => plan.partitions.to_string(),
    };
    let why = match plan.buffer {
        _ if ranges.is_some() => "they need not be merged; they are cut where a sample of the pairs says",
        Buffer::Dense => "several for each reducer, and no more than the keys can fill",
        _ => "what is reduced of one stays in the cache for millions of keys, and each reducer has several",
    };
    choose("partitions", partitions, asked(is_asked.partitions.is_some() && ranges.is_none(), why));
    let not_followed = ignored(plan).into_iter();
    choices.extend(not_followed.map(|(what, why)| Choice {
        what,
        chosen: "ignored".to_owned(),
        why,
        is_ignored: true,
    }));
    choices
}
