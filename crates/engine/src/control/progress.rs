//! Progress, as the caller of a job sees it.

/// The progress of a job at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The bytes of input that are mapped in this step.
    pub done_bytes: u64,
    /// The bytes of input of this step in total.
    pub total_bytes: u64,
    /// The number of living workers.
    pub workers: usize,
    /// The number of workers that have died.
    pub deaths: usize,
    /// The step of an iterated job, from 0.
    pub step: u32,
    /// The number of times that the input of the step was mapped again because reduce state was lost.
    pub round: u32,
    /// Whether everything is mapped and the result is being made.
    pub finishing: bool,
}
