//! Turns the failures that workers leave in their shared words into errors for the caller.

use gristmill_os::room::TemporaryFolder;

use crate::coordinator::state::Coordinator;
use crate::error::{Error, explain_spill, little_room, overwritten};
use crate::failure::{Doing, Failure};
use crate::input::records::Records;
use crate::plan::mode::Mode;
use crate::plan::settings::CheckpointSettings;
use crate::steps::shelf_writer::pair_bytes_max;
use crate::worker::setup::Setup;

impl Coordinator<'_, '_, '_, '_> {
    /// Returns the error for a failure of the worker in `slot`, with the names of files and folders.
    pub(super) fn explain(&self, slot: usize, failure: Failure) -> Error {
        if !self.is_possible(&failure) {
            return overwritten(Some(slot), "its failure is none that this job can have");
        }
        let step = self.setup.shared.step();
        let source = |source: usize| &self.setup.tasks.sources[source];
        match failure {
            Failure::Read { source: at, offset, errno } => {
                Error::Read { path: source(at).name.clone(), offset, source: std::io::Error::from_raw_os_error(errno) }
            }
            Failure::Truncated { source: at, found } => {
                Error::Truncated { path: source(at).name.clone(), expected: source(at).bytes, found }
            }
            Failure::RecordTooLong { source: at, offset } => Error::RecordTooLong {
                path: source(at).name.clone(),
                offset,
                limit_bytes: self.setup.tasks.record_bytes_max,
            },
            Failure::Conflict { task, what } => {
                let step = if self.setup.mode.iterates() { format!(" in step {step}") } else { String::new() };
                Error::Conflict { place: self.place(task) + &step, what }
            }
            Failure::OtherPairs { task, first, again } => {
                let step = if self.setup.mode.iterates() { format!(" in step {step}") } else { String::new() };
                Error::Unrepeatable { place: self.place(task) + &step, first, again, anew: self.kept.anew }
            }
            Failure::RecordCut { source: at, offset } => {
                let Records::Fixed(record_bytes) = self.setup.tasks.records_of(at) else {
                    unreachable!("only records of a fixed size can be cut");
                };
                Error::RecordCut { path: source(at).name.clone(), offset, record_bytes }
            }
            Failure::QuoteOpen { source: at, offset, is_cut } => Error::QuoteOpen {
                path: source(at).name.clone(),
                offset,
                line: self.setup.tasks.line(at, offset),
                limit_bytes: is_cut.then_some(self.setup.tasks.record_bytes_max),
            },
            Failure::Compressed { source: at, offset, why } => {
                Error::Compressed { path: source(at).name.clone(), offset, why }
            }
            Failure::Rejected { source: at, offset, error } => Error::Rejected {
                path: source(at).name.clone(),
                offset,
                line: self.setup.tasks.line(at, offset),
                why: error.to_string(),
                code: error.number(),
            },
            Failure::Pairs { error } => Error::program(format!("the pairs that step {step} maps"), &error),
            Failure::Reduce { key, error } => Error::program(format!("the reduce function, at the key {key}"), &error),
            Failure::Combine { error } => Error::program("the combiner", &error),
            Failure::Sink { part, error } => Error::program(format!("the sink, at part {part} of the result"), &error),
            Failure::Output { errno, .. } => Error::Output {
                path: self.setup.target.map_or_else(Default::default, |target| target.path.to_owned()),
                source: std::io::Error::from_raw_os_error(errno),
            },
            Failure::ShelfFull => self.explain_shelf(step),
            Failure::PairTooLarge { bytes } => Error::PairTooLarge {
                step,
                bytes,
                limit_bytes: pair_bytes_max(self.setup.shared.pages.shape().extent_bytes),
            },
            Failure::Spill { folder, doing, errno, .. } if folder >= self.setup.plan.spill_dirs.len() => {
                self.explain_checkpoint(doing, errno)
            }
            Failure::Spill { .. } => explain_spill(&self.setup.plan.spill_dirs, failure),
        }
    }

    /// Returns whether a failure names a source, a task or a folder of this job.
    fn is_possible(&self, failure: &Failure) -> bool {
        let Setup { plan, tasks, mode, .. } = self.setup;
        match failure {
            Failure::RecordCut { source, .. } if *source < tasks.sources.len() => {
                matches!(tasks.records_of(*source), Records::Fixed(_))
            }
            Failure::Read { source, .. }
            | Failure::Truncated { source, .. }
            | Failure::RecordTooLong { source, .. }
            | Failure::RecordCut { source, .. }
            | Failure::QuoteOpen { source, .. }
            | Failure::Compressed { source, .. }
            | Failure::Rejected { source, .. } => *source < tasks.sources.len(),
            Failure::Conflict { task, .. } | Failure::OtherPairs { task, .. } => *task < self.attempts.len(),
            Failure::Spill { folder, .. } => *folder < plan.spill_dirs.len() || matches!(mode, Mode::Stages(_)),
            _ => true,
        }
    }

    /// Explains why pairs found no room on the shelf: perhaps its folder takes no file.
    fn explain_shelf(&self, step: u32) -> Error {
        let plan = &self.setup.plan;
        let TemporaryFolder { path, .. } = &plan.spill_dirs[plan.shelf_folder];
        match tempfile::tempfile_in(path) {
            Ok(_) => Error::KeepLimit { step, limit_bytes: self.setup.kept_bytes_max },
            Err(source) => Error::Spill { path: path.clone(), doing: "make a file", spilled_bytes: 0, source },
        }
    }

    /// As above, for the files of a checkpoint.
    fn explain_checkpoint(&self, doing: Doing, errno: i32) -> Error {
        let Mode::Stages(CheckpointSettings { dir: path, .. }) = self.setup.mode else {
            unreachable!("only a job in stages has a checkpoint")
        };
        let path = path.clone();
        match (doing, errno) {
            // A file that is shorter than the log says was damaged or replaced.
            (Doing::Check, _) | (Doing::Read, 0) | (Doing::Open, 0) => Error::CheckpointDamaged { path },
            (Doing::KeepFree, _) => {
                Error::Checkpoint { path, source: little_room(self.setup.plan.checkpoint_kept_free_bytes) }
            }
            _ => Error::Checkpoint { path, source: std::io::Error::from_raw_os_error(errno) },
        }
    }
}
