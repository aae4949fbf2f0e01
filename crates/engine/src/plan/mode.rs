//! The modes of a job: the variations of mapping an input once and handing the result to the caller.

use crate::error::{Error, Result};
use crate::plan::settings::{CheckpointSettings, Settings};

/// The mode of a job, with the data that only jobs of this mode have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode<'m> {
    /// The input is mapped once, and the coordinator hands the result to the caller.
    Once {
        /// Whether map functions write shared outputs.
        writes_outputs: bool,
    },
    /// The input is mapped in stages. Each is saved, so that the job can be continued.
    Stages(&'m CheckpointSettings),
    /// The job runs in steps. The pairs that a step reduces stay in the region.
    Steps {
        /// The state that the first step sees.
        state: &'m [u8],
        /// Whether map functions write shared outputs.
        writes_outputs: bool,
    },
    /// The input is mapped once, and reducers write the result; each partition is a range of it.
    OpenTarget,
}

impl<'m> Mode<'m> {
    /// Returns the mode of a job, which runs in steps if there is a `state`.
    ///
    /// # Errors
    /// The settings ask for a checkpoint, or to set records aside, which this mode does not support.
    pub fn new(
        settings: &'m Settings,
        state: Option<&'m [u8]>,
        writes_outputs: bool,
        writes_result: bool,
    ) -> Result<Mode<'m>> {
        let mode = match (state, &settings.checkpoint) {
            (Some(state), _) => Mode::Steps { state, writes_outputs },
            (None, _) if writes_outputs => Mode::Once { writes_outputs },
            (None, _) if writes_result => Mode::OpenTarget,
            (None, Some(checkpoint)) => Mode::Stages(checkpoint),
            (None, None) => Mode::Once { writes_outputs },
        };
        // Changes that a map function makes in a step or a shared output cannot be undone if its record fails.
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
            leaves_traces.or(matches!(mode, Mode::OpenTarget).then_some("a job whose reducers write its result"));
        if let Some(job) = runs_once.filter(|_| settings.checkpoint.is_some()) {
            return Err(Error::Setting(format!("{job} cannot be continued: leave out Job::checkpoint")));
        }
        Ok(mode)
    }

    /// Returns the state that the first step sees, if there are steps.
    pub fn state(self) -> Option<&'m [u8]> {
        match self {
            Mode::Steps { state, .. } => Some(state),
            _ => None,
        }
    }

    /// Returns whether the job runs in steps.
    pub fn iterates(self) -> bool {
        matches!(self, Mode::Steps { .. })
    }

    /// Returns whether map functions write shared outputs.
    pub fn writes_outputs(self) -> bool {
        matches!(self, Mode::Once { writes_outputs: true } | Mode::Steps { writes_outputs: true, .. })
    }
}
