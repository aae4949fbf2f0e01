//! Knowledge of every program's profile, with which the paper measures the potential of the policy.
//!
//! Each program has run alone before, and its demand at every point is known. The executed instructions give its
//! current point. Unknown remain the effect of contention on its progress in the next quantum, and the effect of
//! shared caches.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_schedule::{Arrival, Forecast, Key, Knowledge, Limits, ProgramId, Progress, Quantum};

use super::simulation::{Cursor, Trace};

/// The profiles, and the positions of current executions in them.
#[derive(Clone, Debug)]
pub struct Profiled {
    profiles: BTreeMap<Key, Arc<Trace>>,
    quantum_us: f64,
    /// The bandwidth to fill, instead of the group's ideal average.
    fill: Option<f64>,
    executions: BTreeMap<ProgramId, (Arc<Trace>, Cursor, Option<Progress>)>,
}

impl Profiled {
    /// Makes the knowledge of these programs.
    pub fn new(programs: &[(Key, Arc<Trace>)], quantum_us: f64) -> Profiled {
        let profiles = programs.iter().cloned().collect();
        Profiled { profiles, quantum_us, fill: None, executions: BTreeMap::new() }
    }

    /// Chooses programs that fill this bandwidth, the peak of the memory, as earlier policies do (the paper's section
    /// 2.1).
    pub fn filling(self, peak: f64) -> Profiled {
        Profiled { fill: Some(peak), ..self }
    }
}

impl Knowledge for Profiled {
    fn begin(&mut self, arrival: &Arrival) {
        if let Some(trace) = self.profiles.get(&arrival.key) {
            self.executions.insert(arrival.id, (trace.clone(), Cursor::default(), None));
        }
    }

    fn learn(&mut self, quantum: &Quantum, _: &Limits) {
        for ran in &quantum.ran {
            if let (Some((trace, cursor, progress)), Some(counts)) = (self.executions.get_mut(&ran.id), ran.counts) {
                let before = trace.left(*cursor).alone_us;
                trace.go_on(cursor, counts.instructions);
                let alone_us = before - trace.left(*cursor).alone_us;
                *progress = Some(Progress { ran_us: ran.processor_us / trace.threads as f64, alone_us });
            }
        }
    }

    fn end(&mut self, id: ProgramId, _: bool) {
        self.executions.remove(&id);
    }

    fn forecast(&self, id: ProgramId) -> Option<Forecast> {
        let (trace, cursor, _) = self.executions.get(&id)?;
        let (whole, left) = (trace.left(Cursor::default()), trace.left(*cursor));
        Some(Forecast { demand: trace.demand(*cursor, self.quantum_us), whole, left })
    }

    fn progress(&self, id: ProgramId) -> Option<Progress> {
        self.executions.get(&id)?.2
    }

    fn target(&self, ideal_average: f64) -> f64 {
        self.fill.unwrap_or(ideal_average)
    }
}
