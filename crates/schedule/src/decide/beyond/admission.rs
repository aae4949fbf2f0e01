//! Admission: decides which programs may begin. A program that has begun keeps its memory, running or not.

use std::collections::VecDeque;

/// Programs that have not begun, in order of arrival, and the memory of those that have.
///
/// Programs begin in order of arrival, so one that needs much memory waits only for earlier ones. A program that
/// needs more than there is begins when it is alone.
#[derive(Clone, Debug)]
pub struct Admission<P> {
    waiting: VecDeque<(P, u64)>,
    begun: usize,
    used_bytes: u64,
}

impl<P> Default for Admission<P> {
    fn default() -> Admission<P> {
        Admission { waiting: VecDeque::new(), begun: 0, used_bytes: 0 }
    }
}

impl<P> Admission<P> {
    /// Adds a program that has arrived.
    pub fn arrive(&mut self, program: P, memory_bytes: u64) {
        self.waiting.push_back((program, memory_bytes));
    }

    /// Returns the programs that begin now.
    pub fn begin(&mut self, capacity_bytes: u64) -> Vec<P> {
        let mut beginning = Vec::new();
        while let Some((_, memory_bytes)) = self.waiting.front() {
            let needed = self.used_bytes.saturating_add(*memory_bytes);
            if needed > capacity_bytes && self.begun > 0 {
                break;
            }
            self.used_bytes = needed;
            self.begun += 1;
            beginning.extend(self.waiting.pop_front().map(|(program, _)| program));
        }
        beginning
    }

    /// Removes programs that a user has cancelled before they began.
    pub fn cancel(&mut self, is_cancelled: impl Fn(&P) -> bool) {
        self.waiting.retain(|(program, _)| !is_cancelled(program));
    }

    /// Records that a program that had begun has ended.
    pub fn end(&mut self, memory_bytes: u64) {
        self.begun -= 1;
        self.used_bytes -= memory_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(programs: &[u64]) -> Admission<usize> {
        let mut admission = Admission::default();
        programs.iter().enumerate().for_each(|(program, bytes)| admission.arrive(program, *bytes));
        admission
    }

    #[test]
    fn programs_begin_while_their_memory_fits() {
        let mut admission = admission(&[40, 40, 40, 1]);
        assert_eq!(admission.begin(100), [0, 1]);
        assert_eq!(admission.begin(100), [], "the last one does not overtake");
        admission.end(40);
        assert_eq!(admission.begin(100), [2, 3]);
    }

    #[test]
    fn a_cancelled_program_does_not_begin() {
        let mut admission = admission(&[60, 200, 40]);
        assert_eq!(admission.begin(100), [0]);
        admission.cancel(|program| *program == 1);
        assert_eq!(admission.begin(100), [2]);
    }

    #[test]
    fn a_program_that_needs_more_than_there_is_begins_alone() {
        let mut admission = admission(&[1, 200, 1]);
        assert_eq!(admission.begin(100), [0]);
        admission.end(1);
        assert_eq!(admission.begin(100), [1]);
        admission.end(200);
        assert_eq!(admission.begin(100), [2]);
    }
}
