//! The workers: how many there are, what each one does, and how many map at the same time.

use crate::error::{Error, Result};
use crate::input::tasks::FIRST_SPLIT_BYTES;
use crate::plan::known::Known;
use crate::plan::reason::Reason::{self, Asked, Because};
use crate::plan::sample::WORTH_BYTES;

/// The least work for which one more worker is worth its start and its share of pages and tables.
const WORKER_NS: f64 = 2e6;
/// The least work for which reducers get processes of their own, if the job wants that.
const LONG_NS: f64 = 100e6;
/// The largest number of workers per processor, if reading waits.
const READERS_PER_CPU_MAX: f64 = 4.0;

/// The numbers of workers that map and that reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    pub map_workers: usize,
    pub reduce_workers: usize,
    /// Whether each worker both maps and reduces.
    pub fused: bool,
}

impl Roles {
    /// Returns the number of workers at the start.
    pub fn workers(self) -> usize {
        if self.fused { self.map_workers } else { self.map_workers + self.reduce_workers }
    }
}

/// Chooses the workers, and whether reducers are processes of their own. If that was not asked for, it has a reason,
/// too.
pub(crate) fn roles(known: &Known<'_>) -> Result<(Roles, Reason, Option<Reason>)> {
    let settings = known.settings;
    let (map_workers, reduce_workers, fused, why) = match (settings.map_workers, settings.reduce_workers) {
        (None, None) => {
            let (workers, why) = workers(known);
            let fused = !settings.reduce_apart || workers == 1 || known.program.iterates || !is_long(known);
            (workers, if fused { workers } else { workers.div_ceil(2) }, fused, why)
        }
        (map, reduce) => {
            let half = settings.workers.unwrap_or(known.machine.processors.usable).div_ceil(2);
            (map.unwrap_or(half), reduce.unwrap_or(half), false, Asked)
        }
    };
    let roles = Roles { map_workers, reduce_workers, fused };
    if map_workers == 0 || reduce_workers == 0 {
        return Err(Error::Setting("a job needs at least one map worker and one reduce worker".into()));
    }
    if roles.workers() > 1024 {
        let workers = roles.workers();
        return Err(Error::Setting(format!("{workers} workers were asked for; a job has at most 1024")));
    }
    let is_apart = !fused && settings.map_workers.is_none() && settings.reduce_workers.is_none();
    let apart = is_apart.then_some(Because("those that reduce lose nothing if the map function crashes"));
    Ok((roles, why, apart))
}

/// Chooses the number of workers, if it is not split into two roles.
fn workers(known: &Known<'_>) -> (usize, Reason) {
    let processors = known.machine.processors;
    match (known.settings.workers, known.learned) {
        (Some(workers), _) => (workers, Asked),
        (None, Some(learned)) => (learned.best.workers, Reason::History(learned)),
        // It is not known what later steps will map, and workers are started only once.
        (None, None) if known.program.iterates => (processors.usable, Reason::Processors(processors)),
        (None, None) => workers_worth(known),
    }
}

/// Returns the number of workers that pay: at most as many as keep the processors busy, and as many as there is work
/// for.
fn workers_worth(known: &Known<'_>) -> (usize, Reason) {
    let Known { settings, sample, .. } = *known;
    let (work_ns, wait_ns, processors) = (known.work_ns(), known.wait_ns(), known.machine.processors);
    let input_bytes = known.input_bytes as f64;
    let useful = match settings.split_bytes {
        _ if sample.is_some() => (work_ns + wait_ns) / WORKER_NS,
        // A user who cuts the input finely has a reason.
        Some(bytes) => input_bytes / bytes.max(1) as f64,
        // The first splits are small, so there are several, and what a record costs is not known.
        None if settings.in_order => input_bytes / FIRST_SPLIT_BYTES as f64,
        None if known.input_bytes < WORTH_BYTES => 1.0,
        None => f64::INFINITY,
    };
    let busy = workers_busy(known);
    let workers = busy.min(useful.ceil() as usize).max(1);
    let why = match sample {
        Some(_) => Reason::Work { work_ns, wait_ns, processors },
        None if workers == busy => Reason::Processors(processors),
        None if workers == 1 => Because("the input is so small that one more would cost more than it brings"),
        None => Because("one for each split of the input"),
    };
    (workers, why)
}

/// Returns the number of workers that keep all processors busy: one for each, and if reading waits, more.
fn workers_busy(known: &Known<'_>) -> usize {
    let for_each = match known.wait_ns() {
        0.0 => 1.0,
        wait_ns => (1.0 + wait_ns / known.work_ns()).min(READERS_PER_CPU_MAX),
    };
    (known.machine.processors.usable as f64 * for_each).round() as usize
}

/// Returns true if there is so much work that the start of more processes does not count.
fn is_long(known: &Known<'_>) -> bool {
    if known.sample.is_some() { known.work_ns() >= LONG_NS } else { known.input_bytes >= WORTH_BYTES }
}

/// Chooses the number of workers that map at the same time.
pub(crate) fn map_at_once(known: &Known<'_>, map_workers: usize) -> (usize, Reason) {
    let learned = known.learned.and_then(|learned| Some((learned.best.map_at_once?, Reason::History(learned))));
    let (at_once, why) = match (known.settings.map_at_once, learned) {
        (Some(asked), _) if asked > map_workers => (asked, Reason::FewMap { map_workers }),
        (Some(asked), _) => (asked, Asked),
        (None, Some(learned)) => learned,
        (None, None) => {
            let why = "more would push each other's tables out of the caches; the others reduce, and replace the dead";
            (workers_busy(known), Because(why))
        }
    };
    (at_once.clamp(1, map_workers), why)
}
