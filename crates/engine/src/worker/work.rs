//! The setup of a job's workers, with the functions of its program.

use std::ops::Deref;

use crate::output::parts::Row;
use crate::output::sink::Sink;
use crate::program::ending::{Program, ReduceOf};
use crate::program::ranges::Ranges;
use crate::worker::setup::Setup;

/// The functions of a program, and what else depends on the types of its pairs.
pub(crate) struct Functions<'w, J: Program> {
    pub program: &'w J::User,
    pub reduce: Option<&'w ReduceOf<'w, J>>,
    /// The bounds of the partitions, if they are ranges of pairs.
    pub ranges: Option<&'w Ranges<J::Key, J::Value>>,
    /// How reducers write a pair of the result to the [`target`](Setup::target), if they do.
    pub row: Option<&'w dyn Row<J::OutKey, J::OutValue>>,
    /// Where reducers write the result to, if they do.
    pub sink: Option<&'w dyn Sink<J::OutKey, J::OutValue>>,
}

/// A setup, and the functions that work on it.
pub(crate) struct Work<'w, J: Program> {
    pub setup: &'w Setup<'w>,
    pub functions: &'w Functions<'w, J>,
}

impl<'w, J: Program> Deref for Work<'w, J> {
    type Target = Setup<'w>;

    fn deref(&self) -> &Setup<'w> {
        self.setup
    }
}
