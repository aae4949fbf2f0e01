//! A job as its caller has described it.

use crate::control::progress::Progress;
use crate::interrupt::CancelToken;
use crate::plan::explain::Choice;
use crate::plan::settings::Settings;
use crate::program::map_reduce::{MapReduce, Reduce};
use crate::shared_output::array::Scope;

/// The arguments of [`run`](crate::coordinator::run).
pub(crate) struct Request<'j, J: MapReduce> {
    pub program: &'j J,
    pub settings: Settings,
    pub reduce: Option<Box<Reduce<'j, J::Key, J::Value>>>,
    /// Returns whether the job must stop.
    pub progress: Option<Box<dyn FnMut(Progress) -> bool + 'j>>,
    pub on_news: Option<Box<dyn FnMut(&str) + 'j>>,
    pub on_plan: Option<Box<dyn FnMut(&[Choice]) + 'j>>,
    pub cancel: Option<CancelToken>,
    /// Shared outputs that map functions write.
    pub outputs: Vec<&'j Scope>,
}

impl<'j, J: MapReduce> Request<'j, J> {
    pub fn new(program: &'j J, settings: Settings) -> Request<'j, J> {
        Request {
            program,
            settings,
            reduce: None,
            progress: None,
            on_news: None,
            on_plan: None,
            cancel: None,
            outputs: Vec::new(),
        }
    }
}
