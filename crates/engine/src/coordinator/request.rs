//! A job as its caller has described it.

use crate::control::progress::Progress;
use crate::interrupt::{CancelToken, Interrupt};
use crate::plan::explain::Choice;
use crate::plan::settings::Settings;
use crate::program::accumulator::Kind;
use crate::program::ending::{Program, ReduceOf};
use crate::shared_output::array::Scope;

/// The arguments of [`run`](crate::coordinator::run).
pub(crate) struct Request<'j, J: Program> {
    pub program: &'j J::User,
    pub reduce: Option<Box<ReduceOf<'j, J>>>,
    pub terms: Terms<'j>,
}

/// Everything about a job but its functions.
#[derive(Default)]
pub(crate) struct Terms<'j> {
    pub settings: Settings,
    /// Returns whether the job must stop.
    pub progress: Option<Box<dyn FnMut(Progress) -> bool + Send + 'j>>,
    pub on_news: Option<Box<dyn FnMut(&str) + Send + 'j>>,
    pub on_plan: Option<Box<dyn FnMut(&[Choice]) + Send + 'j>>,
    pub cancel: Option<CancelToken>,
    /// Interrupts the search for the input. Its deadline binds the job, too.
    pub search: Interrupt,
    /// Shared outputs that map functions write.
    pub outputs: Vec<&'j Scope>,
    /// Accumulators that map functions add to.
    pub accumulators: Vec<Kind>,
}
