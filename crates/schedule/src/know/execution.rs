//! A current execution of a program: the phases it goes through, and the work it has done in them.

use std::collections::BTreeMap;

use crate::know::blocks::BlockVector;
use crate::know::knowledge::{Order, Progress};
use crate::know::learning::{Learning, RAN_MIN};
use crate::know::store::{KnownProgram, Store};
use crate::know::transitions::Transitions;
use crate::machine::{Arrival, Counts, Key, Ran};

/// Returns whether an execution counts as a chosen one (true) or as one in the system's order (false), by the share of
/// its processor time in which programs were chosen. `None` for a mixture, which tells nothing.
pub fn is_chosen(share: f64) -> Option<bool> {
    match share {
        share if share >= 0.7 => Some(true),
        share if share <= 0.1 => Some(false),
        _ => None,
    }
}

/// A current execution.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) key: Key,
    pub(crate) threads: usize,
    pub(crate) transitions: Transitions,
    pub(crate) phase: Option<usize>,
    pub(crate) requests: f64,
    /// The executed instructions by phase.
    pub(crate) instructions: BTreeMap<usize, f64>,
    pub(crate) progress: Option<Progress>,
    /// Processor time in the system's order, and in quanta whose programs were chosen.
    processor_us: [f64; 2],
    /// It was the turn of the scheduler's order in one of its quanta.
    is_tried: bool,
}

/// A quantum of an execution.
pub(crate) struct PhasePiece {
    pub(crate) phase: usize,
    /// The time that it ran.
    pub(crate) ran_us: f64,
    pub(crate) counts: Counts,
    /// It ran for long enough to say something of its phase.
    pub(crate) is_sample: bool,
}

impl Execution {
    pub(crate) fn new(arrival: &Arrival) -> Execution {
        Execution {
            key: arrival.key.clone(),
            threads: arrival.threads.max(1),
            transitions: Transitions::default(),
            phase: None,
            requests: 0.0,
            instructions: BTreeMap::new(),
            progress: None,
            processor_us: [0.0; 2],
            is_tried: false,
        }
    }

    /// Recognises the phase of a quantum, and adds what it executed; `order` says how its programs were put in order.
    /// `None` if it executed nothing that was counted.
    pub(crate) fn take_in(
        &mut self,
        ran: &Ran,
        counts: Option<Counts>,
        order: Order,
        quantum_us: f64,
        (program, learning): (&mut KnownProgram, &Learning),
    ) -> Option<PhasePiece> {
        self.progress = None;
        self.processor_us[usize::from(order.is_chosen)] += ran.processor_us;
        self.is_tried |= order.is_tried;
        let counts = counts?;
        let ran_us = ran.processor_us / self.threads as f64;
        if ran_us <= 0.0 {
            return None;
        }
        // The only sample of a program that ends at once. Without it, the program would never be covered.
        let is_first = self.phase.is_none();
        let is_sample = is_first || ran_us >= RAN_MIN * quantum_us;
        let phase = match self.phase {
            // Too short to determine the phase, so the previous phase continues.
            Some(phase) if !is_sample || ran.addresses.len() < learning.addresses_min => phase,
            _ => {
                let vector = BlockVector::of(&ran.addresses);
                program.phases.recognise(&vector, &learning.similarity)
            }
        };
        self.phase = Some(phase);
        self.requests += counts.requests;
        *self.instructions.entry(phase).or_default() += counts.instructions;
        if is_sample {
            self.transitions.observe(phase);
        }
        Some(PhasePiece { phase, ran_us, counts, is_sample })
    }

    /// Returns the phase that is expected next: by this execution, or else by earlier ones if `program` has them.
    pub(crate) fn next_phase(&self, program: Option<&KnownProgram>) -> Option<usize> {
        let current = self.transitions.current()?;
        let earlier = || program.and_then(|program| program.followed.next(current));
        Some(self.transitions.followed().next(current).or_else(earlier).unwrap_or(current))
    }

    /// Keeps what this execution tells the next ones. `whole` says whether it ended by itself.
    pub(crate) fn end(self, store: &mut Store, whole: bool) {
        if self.phase.is_none() {
            return;
        }
        let program = store.programs.entry(self.key.build).or_default();
        program.followed.take_in(self.transitions.followed());
        if !whole {
            return;
        }
        let input = program.inputs.entry(self.key.input).or_default();
        input.take_in(self.requests, &self.instructions);
        input.times.tried += u64::from(self.is_tried);
        let all_us: f64 = self.processor_us.iter().sum();
        match is_chosen(self.processor_us[1] / all_us) {
            Some(true) => input.times.chosen.take_in(all_us),
            Some(false) => input.times.usual.take_in(all_us),
            None => {}
        }
    }
}
