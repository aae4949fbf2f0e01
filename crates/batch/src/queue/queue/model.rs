//! Random runs of the queue beside a slow model, which derives everything anew from what has happened so far.

use std::time::Duration;

use proptest::prelude::*;

use super::tests::whole;
use super::{Counts, Queue, Rules, State};
use crate::queue::{BatchJob, Halt, Outcome, Shell};

/// The jobs, and what has happened to each.
struct Model {
    jobs: Vec<BatchJob>,
    rules: Rules,
    /// The ends of each job in this queue, with the time; `None` for one on request.
    ends: Vec<Vec<(Option<bool>, u64)>>,
    begun: Vec<usize>,
    past: Vec<Option<bool>>,
    now: u64,
}

impl Model {
    fn runs(&self, job: usize) -> bool {
        self.begun[job] > self.ends[job].len()
    }

    /// The success or failure of a job that is not tried again.
    fn outcome(&self, job: usize) -> Option<bool> {
        let tries = self.jobs[job].retries.unwrap_or(0) as usize + 1;
        let before = &self.jobs[job].after_any;
        match self.ends[job].last() {
            Some((Some(true), _)) => Some(true),
            Some((Some(false), _)) if self.ends[job].len() >= tries => Some(false),
            None if !self.runs(job) && before.iter().all(|at| self.is_settled(*at) && self.begun[*at] == 0) => {
                self.past[job]
            }
            _ => None,
        }
    }

    fn is_skipped(&self, job: usize) -> bool {
        let fails = |at: &usize| self.outcome(*at) == Some(false) || self.is_skipped(*at);
        self.outcome(job).is_none() && self.jobs[job].after.iter().any(fails)
    }

    fn has_halted(&self) -> bool {
        let counted = |job: &usize| self.begun[*job] > 0 && self.outcome(*job) == Some(self.rules.halt.is_of_success);
        let count = (0..self.jobs.len()).filter(counted).count();
        self.rules.halt.ends.is_some_and(|ends| count >= ends as usize)
    }

    /// A job without an outcome that does not begin any more, because the queue has halted.
    fn is_left(&self, job: usize) -> bool {
        let is_open = self.has_halted() && self.outcome(job).is_none() && !self.runs(job);
        is_open && (self.jobs[job].after_any.is_empty() || self.jobs[job].after.iter().any(|at| self.is_left(*at)))
    }

    fn is_settled(&self, job: usize) -> bool {
        self.outcome(job).is_some() || self.is_skipped(job) || self.is_left(job)
    }

    /// When a job may begin, if nothing but slots, memory and time is missing.
    fn begins_at(&self, job: usize) -> Option<u64> {
        let BatchJob { after, after_any, .. } = &self.jobs[job];
        let is_free =
            after.iter().all(|at| self.outcome(*at) == Some(true)) && after_any.iter().all(|at| self.is_settled(*at));
        let waits = !self.runs(job) && !self.is_settled(job) && is_free;
        let delay = self.jobs[job].retry_delay.unwrap_or_default().as_millis() as u64;
        waits.then(|| self.ends[job].last().map_or(0, |(_, at_ms)| at_ms + delay))
    }

    /// The job that begins next.
    fn next(&self) -> Option<usize> {
        let running: Vec<usize> = (0..self.jobs.len()).filter(|job| self.runs(*job)).collect();
        let mut free: Vec<usize> =
            (0..self.jobs.len()).filter(|job| self.begins_at(*job).is_some_and(|at| at <= self.now)).collect();
        free.sort_by_key(|job| -i64::from(self.jobs[*job].priority));
        let first = *free.first()?;
        let memory: u64 = running.iter().chain([&first]).map(|job| self.jobs[*job].memory_bytes).sum();
        let has_room = running.is_empty() || memory <= self.rules.memory_bytes;
        (running.len() < self.rules.slots && has_room).then_some(first)
    }

    fn next_retry(&self) -> Option<u64> {
        (0..self.jobs.len()).filter_map(|job| self.begins_at(job)).filter(|at| *at > self.now).min()
    }

    fn counts(&self) -> Counts {
        let count = |is: &dyn Fn(usize) -> bool| (0..self.jobs.len()).filter(|job| is(*job)).count();
        let (succeeded, failed) =
            (count(&|job| self.outcome(job) == Some(true)), count(&|job| self.outcome(job) == Some(false)));
        let (running, skipped) = (count(&|job| self.runs(job)), count(&|job| self.is_skipped(job)));
        let ended_before = count(&|job| self.begun[job] == 0 && self.outcome(job).is_some());
        Counts {
            ended_before,
            waiting: self.jobs.len() - succeeded - failed - running - skipped,
            running,
            succeeded,
            failed,
            skipped,
        }
    }
}

/// A random job; `after` and `after_any` are places among the earlier ones.
#[derive(Clone, Debug)]
struct Drawn {
    after: Vec<prop::sample::Index>,
    after_any: Vec<prop::sample::Index>,
    numbers: (u32, u64, i32, u64),
    past: Option<bool>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let before = || prop::collection::vec(any::<prop::sample::Index>(), 0..2);
    let numbers = (0..3_u32, 0..80_u64, -1..2_i32, prop_oneof![Just(0_u64), 1..9_u64]);
    let past = prop_oneof![3 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let make = |(after, after_any, numbers, past)| Drawn { after, after_any, numbers, past };
    (before(), before(), numbers, past).prop_map(make)
}

fn halt() -> impl Strategy<Value = Halt> {
    let ends = prop_oneof![2 => Just(None), 3 => (1..3_u32).prop_map(Some)];
    let make = |(ends, is_of_success, ends_running)| Halt { ends, is_of_success, ends_running };
    (ends, any::<bool>(), any::<bool>()).prop_map(make)
}

impl Model {
    fn new(drawn: &[Drawn], rules: Rules) -> Model {
        let job = |(at, drawn): (usize, &Drawn)| {
            let place = |index: &prop::sample::Index| index.index(at);
            let places = |list: &[prop::sample::Index]| if at == 0 { vec![] } else { list.iter().map(place).collect() };
            let (retries, memory_bytes, priority, delay_ms) = drawn.numbers;
            BatchJob {
                after: places(&drawn.after),
                after_any: places(&drawn.after_any),
                retries: Some(retries),
                retry_delay: Some(Duration::from_millis(delay_ms)),
                priority,
                memory_bytes,
                ..Shell::default().job("true".into())
            }
        };
        let jobs: Vec<BatchJob> = drawn.iter().enumerate().map(job).collect();
        let count = jobs.len();
        // Those that wait for a success are not restored: what their past would mean depends on that of others.
        let past = drawn.iter().zip(&jobs).map(|(drawn, job)| drawn.past.filter(|_| job.after.is_empty())).collect();
        Model { jobs, rules, ends: vec![vec![]; count], begun: vec![0; count], past, now: 0 }
    }
}

fn status(success: bool) -> Outcome {
    Outcome::Exited(i32::from(!success))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_queue_does_in_every_step_what_a_slow_model_does(
        drawn in prop::collection::vec(drawn(), 1..12),
        halt in halt(),
        slots in 1..4_usize,
        chance in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0..6_u64, 0..4_u8), 1..64),
        backwards in any::<bool>(),
    ) {
        let rules = Rules { slots, memory_bytes: 100, halt };
        let mut model = Model::new(&drawn, rules);
        let mut queue = whole(&model.jobs, rules);
        let mut places: Vec<usize> = (0..model.jobs.len()).collect();
        if backwards {
            places.reverse();
        }
        for job in places {
            if let Some(success) = model.past[job] {
                queue.restore(job, status(success));
            }
        }
        for (success, which, passes, asks) in chance.iter().cycle() {
            model.now += passes;
            queue.set_now(Duration::from_millis(model.now));
            loop {
                let next = model.next();
                prop_assert_eq!(queue.next_job(), next);
                prop_assert_eq!(queue.begin(), next);
                let Some(job) = next else { break };
                model.begun[job] += 1;
            }
            prop_assert_eq!(queue.counts(), model.counts());
            prop_assert_eq!(queue.halted().is_some(), model.has_halted());
            prop_assert_eq!(queue.next_retry(), model.next_retry().map(Duration::from_millis));
            let running: Vec<usize> = (0..model.jobs.len()).filter(|job| model.runs(*job)).collect();
            let Some(retry) = model.next_retry() else {
                prop_assert_eq!(queue.is_over(), running.is_empty());
                if running.is_empty() {
                    break;
                }
                end(&mut queue, &mut model, running[which.index(running.len())], *success, *asks);
                continue;
            };
            prop_assert!(!queue.is_over());
            match running.is_empty() {
                true => model.now = retry,
                false => end(&mut queue, &mut model, running[which.index(running.len())], *success, *asks),
            }
        }
        for (job, state) in queue.states().iter().enumerate() {
            match state {
                State::Ended(outcome) => prop_assert_eq!(Some(outcome.is_success()), model.outcome(job)),
                State::Skipped(_) => prop_assert!(model.is_skipped(job)),
                State::Waiting => prop_assert!(model.is_left(job)),
                State::Running => prop_assert!(false, "{} runs", job),
            }
        }
    }
}

/// Ends a job in the queue and in the model: on request if the queue has halted and chance has it.
fn end(queue: &mut Queue, model: &mut Model, job: usize, success: bool, asks: u8) {
    if model.has_halted() && asks == 0 && model.jobs[job].after_any.is_empty() {
        queue.interrupt(job);
        model.ends[job].push((None, model.now));
    } else {
        queue.end(job, status(success));
        model.ends[job].push((Some(success), model.now));
    }
}
