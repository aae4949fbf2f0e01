//! Progress, as the caller of a job sees it.

/// What a run looks like at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of input in committed tasks of this step.
    pub done_bytes: u64,
    /// Bytes of input of this step in all.
    pub total_bytes: u64,
    /// Workers alive.
    pub workers: usize,
    /// Workers that died.
    pub deaths: usize,
    /// The step of an iterated job, from 0.
    pub step: u32,
    /// 0, and one more for each time that the input of the step is mapped again because reduce state was lost.
    pub round: u32,
    /// Everything is mapped and the result is being made.
    pub finishing: bool,
}
