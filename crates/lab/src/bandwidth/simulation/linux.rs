//! The system's order: each processor serves a queue in turn, and queues are kept equally long.

use std::collections::VecDeque;

use fastrand::Rng;
use gristmill_schedule::ProgramId;

/// The queues of all processors. A program is in them once per thread.
#[derive(Clone, Debug)]
pub struct Linux {
    queues: Vec<VecDeque<ProgramId>>,
}

impl Linux {
    /// Makes empty queues.
    pub fn new(processors: usize) -> Linux {
        Linux { queues: vec![VecDeque::new(); processors.max(1)] }
    }

    /// Adds a program: each of its threads goes to one of the shortest queues.
    pub fn begin(&mut self, id: ProgramId, threads: usize, rng: &mut Rng) {
        for _ in 0..threads {
            let shortest = self.queues.iter().map(VecDeque::len).min().unwrap_or(0);
            let short: Vec<usize> = (0..self.queues.len()).filter(|at| self.queues[*at].len() == shortest).collect();
            self.queues[short[rng.usize(0..short.len())]].push_back(id);
        }
    }

    /// Removes programs that have ended.
    pub fn end(&mut self, has_ended: impl Fn(ProgramId) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|id| !has_ended(*id)));
    }

    /// Ends a slice: the programs that ran go to the end of their queues. Queues longer by two or more give to
    /// shorter ones. One exchange of two programs models all that makes a real system's order irregular.
    pub fn turn(&mut self, rng: &mut Rng) {
        self.queues.iter_mut().filter(|queue| queue.len() > 1).for_each(|queue| queue.rotate_left(1));
        loop {
            let by_length = |at: &usize| self.queues[*at].len();
            let (Some(short), Some(long)) =
                ((0..self.queues.len()).min_by_key(by_length), (0..self.queues.len()).max_by_key(by_length))
            else {
                break;
            };
            if self.queues[long].len() < self.queues[short].len() + 2 {
                break;
            }
            let place = rng.usize(0..self.queues[long].len());
            let moved = self.queues[long].remove(place);
            self.queues[short].extend(moved);
        }
        let (one, other) = (rng.usize(0..self.queues.len()), rng.usize(0..self.queues.len()));
        if one != other && !self.queues[one].is_empty() && !self.queues[other].is_empty() {
            let places = [one, other].map(|queue| rng.usize(0..self.queues[queue].len()));
            let id = self.queues[one][places[0]];
            self.queues[one][places[0]] = std::mem::replace(&mut self.queues[other][places[1]], id);
        }
    }

    /// Returns one program per processor: the first of its queue that can run, or a waiting one of another queue.
    pub fn running(&mut self, can_run: impl Fn(ProgramId) -> bool) -> Vec<ProgramId> {
        let mut idle = Vec::new();
        let mut running = Vec::with_capacity(self.queues.len());
        for (at, queue) in self.queues.iter_mut().enumerate() {
            match queue.iter().position(|id| can_run(*id)) {
                Some(place) => {
                    queue.swap(0, place);
                    running.push(queue[0]);
                }
                None => idle.push(at),
            }
        }
        for at in idle {
            let waiting = |queue: &VecDeque<ProgramId>| queue.iter().skip(1).position(|id| can_run(*id));
            let busy = self.queues.iter().enumerate().max_by_key(|(_, queue)| queue.len()).map(|(busy, _)| busy);
            let Some((from, place)) = busy.and_then(|busy| Some((busy, waiting(&self.queues[busy])?))) else {
                continue;
            };
            if let Some(id) = self.queues[from].remove(place + 1) {
                self.queues[at].push_front(id);
                running.push(id);
            }
        }
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(programs: u32, processors: usize) -> (Linux, Rng) {
        let (mut linux, mut rng) = (Linux::new(processors), Rng::with_seed(1));
        (0..programs).for_each(|id| linux.begin(ProgramId(id), 1, &mut rng));
        (linux, rng)
    }

    #[test]
    fn all_programs_get_the_same_time_in_the_long_run() {
        let (mut linux, mut rng) = queues(28, 8);
        let mut turns = [0; 28];
        for _ in 0..7000 {
            linux.running(|_| true).into_iter().for_each(|id| turns[id.0 as usize] += 1);
            linux.turn(&mut rng);
        }
        assert!(turns.iter().all(|count| (1700..2300).contains(count)), "{turns:?}");
    }

    #[test]
    fn no_processor_is_idle_while_a_program_can_run() {
        let (mut linux, mut rng) = queues(9, 4);
        for ended in 0..6 {
            linux.end(|id| id.0 < ended);
            assert_eq!(linux.running(|_| true).len(), 4.min(9 - ended as usize));
            linux.turn(&mut rng);
        }
        // Most of the remaining programs wait.
        assert_eq!(linux.running(|id| id.0 == 7), [ProgramId(7)]);
    }
}
