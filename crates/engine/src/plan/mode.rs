//! The modes of a job: what it does beside mapping its input once and handing the result to the caller.

use crate::error::{Error, Result};
use crate::plan::settings::{CheckpointSettings, Settings};

/// The mode of a job, with what only jobs of this mode have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode<'m> {
    /// The input is mapped once, and the coordinator hands the result to the caller.
    Once {
        /// Map functions write shared outputs.
        writes_outputs: bool,
    },
    /// The input is mapped in stages, each of which is saved, so that the job can be continued.
    Stages(&'m CheckpointSettings),
    /// The job runs in steps. What a step reduces stays in the region.
    Steps {
        /// What the first step sees.
        state: &'m [u8],
        /// Map functions write shared outputs.
        writes_outputs: bool,
    },
    /// The input is mapped once, and reducers write the result: each partition is a range of it.
    Written,
}

impl<'m> Mode<'m> {
    /// The mode of a job that has a `state` if it runs in steps.
    ///
    /// # Errors
    /// Jobs that cannot be continued, or set nothing aside, and are told to.
    pub fn new(
        settings: &'m Settings,
        state: Option<&'m [u8]>,
        writes_outputs: bool,
        writes_result: bool,
    ) -> Result<Mode<'m>> {
        let mode = match (state, &settings.checkpoint) {
            (Some(state), _) => Mode::Steps { state, writes_outputs },
            (None, _) if writes_outputs => Mode::Once { writes_outputs },
            (None, _) if writes_result => Mode::Written,
            (None, Some(checkpoint)) => Mode::Stages(checkpoint),
            (None, None) => Mode::Once { writes_outputs },
        };
        // What a map function has left in a step or a shared output stays there, whatever becomes of its record.
        let leaves_traces = match mode {
            Mode::Steps { .. } => Some("a job in steps"),
            Mode::Once { writes_outputs: true } => Some("a job with shared outputs"),
            _ => None,
        };
        if let Some(job) = leaves_traces.filter(|_| settings.skip_bad_records > 0) {
            return Err(Error::Setting(format!(
                "{job} cannot set records aside: what the records before them have left stays. Leave out Job::skip_bad_records"
            )));
        }
        let runs_once =
            leaves_traces.or(matches!(mode, Mode::Written).then_some("a job whose reducers write its result"));
        if let Some(job) = runs_once.filter(|_| settings.checkpoint.is_some()) {
            return Err(Error::Setting(format!("{job} cannot be continued: leave out Job::checkpoint")));
        }
        Ok(mode)
    }

    /// What the first step sees, if there are steps.
    pub fn state(self) -> Option<&'m [u8]> {
        match self {
            Mode::Steps { state, .. } => Some(state),
            _ => None,
        }
    }

    /// The job runs in steps.
    pub fn iterates(self) -> bool {
        matches!(self, Mode::Steps { .. })
    }

    /// Map functions write shared outputs.
    pub fn writes_outputs(self) -> bool {
        matches!(self, Mode::Once { writes_outputs: true } | Mode::Steps { writes_outputs: true, .. })
    }
}
