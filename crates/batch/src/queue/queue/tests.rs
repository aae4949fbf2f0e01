//! Which job begins, and when the queue is over.

use super::*;
use crate::queue::Shell;
use proptest::prelude::*;

const RULES: Rules = Rules { slots: 2, memory_bytes: 100, halt: Halt::NEVER };

/// Makes jobs from what each waits for, its retries and its memory.
fn jobs(needs: &[(&[usize], u32, u64)]) -> Vec<BatchJob> {
    let job = |(after, retries, memory): &(&[usize], u32, u64)| BatchJob {
        after: after.to_vec(),
        retries: Some(*retries),
        memory_bytes: *memory,
        ..Shell::default().job("true".into())
    };
    needs.iter().map(job).collect()
}

/// Makes a queue of a whole list, in which every job waits.
pub(super) fn whole(jobs: &[BatchJob], rules: Rules) -> Queue {
    let mut queue = Queue::open(rules);
    queue.add(jobs);
    queue.close();
    queue
}

/// A job that waits for nothing.
const PLAIN: (&[usize], u32, u64) = (&[], 0, 0);
const GOOD: Outcome = Outcome::Exited(0);
const BAD: Outcome = Outcome::Exited(1);

#[test]
fn as_many_jobs_run_as_there_are_slots_in_the_order_of_the_list() {
    let mut queue = whole(&jobs(&[PLAIN; 4]), RULES);
    assert_eq!([queue.begin(), queue.begin(), queue.begin()], [Some(0), Some(1), None]);
    assert!(!queue.end(1, GOOD));
    assert_eq!([queue.begin(), queue.begin()], [Some(2), None]);
}

#[test]
fn a_job_begins_when_all_before_it_have_succeeded() {
    let mut queue = whole(&jobs(&[(&[1, 2], 0, 0), (&[], 0, 0), (&[], 0, 0)]), RULES);
    assert_eq!([queue.begin(), queue.begin()], [Some(1), Some(2)]);
    queue.end(1, GOOD);
    assert_eq!(queue.begin(), None);
    queue.end(2, GOOD);
    assert_eq!(queue.begin(), Some(0));
}

#[test]
fn jobs_behind_a_failed_one_are_skipped_and_others_run() {
    let mut queue = whole(&jobs(&[(&[], 0, 0), (&[0], 0, 0), (&[1], 0, 0), (&[], 0, 0)]), RULES);
    assert_eq!([queue.begin(), queue.begin()], [Some(0), Some(3)]);
    queue.end(0, BAD);
    queue.end(3, GOOD);
    assert_eq!(queue.states()[1..3], [State::Skipped(0), State::Skipped(0)]);
    assert!(queue.is_over());
    assert_eq!(queue.counts(), Counts { succeeded: 1, failed: 1, skipped: 2, ..Counts::default() });
}

#[test]
fn without_keep_going_nothing_begins_after_a_failure() {
    let mut queue = whole(&jobs(&[PLAIN; 3]), Rules { halt: Halt::SOON, ..RULES });
    assert_eq!([queue.begin(), queue.begin()], [Some(0), Some(1)]);
    queue.end(0, BAD);
    assert_eq!((queue.begin(), queue.is_over()), (None, false));
    queue.end(1, GOOD);
    assert!(queue.is_over());
    assert_eq!(queue.counts().waiting, 1);
}

#[test]
fn jobs_that_arrive_after_a_halt_do_not_begin_and_the_queue_is_over_without_the_end_of_its_list() {
    let mut queue = Queue::open(Rules { halt: Halt::SOON, ..RULES });
    queue.add(&jobs(&[PLAIN]));
    assert_eq!(queue.begin(), Some(0));
    queue.end(0, BAD);
    queue.add(&jobs(&[PLAIN]));
    assert_eq!((queue.begin(), queue.is_stopped(), queue.is_over()), (None, true, true));
    assert_eq!(queue.counts().waiting, 1);
}

#[test]
fn a_failed_job_is_tried_as_often_as_it_may() {
    let mut queue = whole(&jobs(&[(&[], 2, 0)]), RULES);
    for again in [true, true, false] {
        assert_eq!(queue.begin(), Some(0));
        assert_eq!(queue.end(0, BAD), again);
    }
    assert_eq!((queue.attempts(0), queue.is_over()), (3, true));
}

#[test]
fn a_failure_with_an_attempt_left_is_not_final_although_the_queue_was_stopped() {
    let mut queue = whole(&jobs(&[(&[], 1, 0)]), RULES);
    queue.begin();
    queue.stop();
    assert!(queue.end(0, BAD));
    assert_eq!((queue.is_over(), queue.counts().waiting), (true, 1));
}

#[test]
fn jobs_wait_for_memory_and_one_that_needs_too_much_runs_alone() {
    let mut queue = whole(&jobs(&[(&[], 0, 60), (&[], 0, 60), (&[], 0, 1), (&[], 0, 900)]), RULES);
    assert_eq!([queue.begin(), queue.begin()], [Some(0), None]);
    queue.end(0, GOOD);
    assert_eq!([queue.begin(), queue.begin()], [Some(1), Some(2)]);
    queue.end(2, GOOD);
    assert_eq!(queue.begin(), None);
    queue.end(1, GOOD);
    assert_eq!([queue.begin(), queue.begin()], [Some(3), None]);
}

#[test]
fn an_interrupted_job_has_no_outcome_and_nothing_begins_after_it() {
    let mut queue = whole(&jobs(&[PLAIN; 2]), RULES);
    queue.begin();
    queue.interrupt(0);
    assert_eq!((queue.begin(), queue.is_over(), queue.states()[0].clone()), (None, true, State::Waiting));
}

/// A list was read to its end before its first job began, so `tail -f list | gristmill batch` never began.
#[test]
fn jobs_begin_as_they_are_added_and_the_queue_is_over_when_it_is_closed() {
    let mut queue = Queue::open(Rules { slots: 1, ..RULES });
    assert_eq!((queue.begin(), queue.is_over()), (None, false));
    let two = jobs(&[PLAIN; 2]);
    queue.add(&two[..1]);
    assert_eq!(queue.begin(), Some(0));
    queue.add(&two[1..]);
    assert!(!queue.end(0, GOOD));
    assert_eq!(queue.begin(), Some(1));
    queue.close();
    assert!(!queue.is_over());
    queue.end(1, BAD);
    assert_eq!((queue.is_over(), queue.counts().failed), (true, 1));
}

proptest! {
    /// Jobs with random dependencies on earlier ones, each with a random outcome of each attempt.
    #[test]
    fn every_job_ends_once_and_only_after_those_before_it(
        needs in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0..3_u32, 0..80_u64), 1..40),
        outcomes in prop::collection::vec(any::<bool>(), 1..64),
        slots in 1..5_usize,
    ) {
        let jobs: Vec<BatchJob> = needs.iter().enumerate().map(|(at, (after, retries, memory))| {
            let after = if at == 0 { vec![] } else { after.iter().map(|index| index.index(at)).collect() };
            BatchJob { after, retries: Some(*retries), memory_bytes: *memory, ..Shell::default().job("true".into()) }
        }).collect();
        let mut queue = whole(&jobs, Rules { slots, ..RULES });
        let (mut running, mut drawn) = (Vec::new(), 0);
        while !queue.is_over() {
            while let Some(job) = queue.begin() {
                for before in &jobs[job].after {
                    prop_assert_eq!(&queue.states()[*before], &State::Ended(GOOD));
                }
                running.push(job);
            }
            prop_assert!(running.len() <= slots);
            let memory: u64 = running.iter().map(|job| jobs[*job].memory_bytes).sum();
            prop_assert!(memory <= RULES.memory_bytes || running.len() == 1);
            // A queue that is not over always has a job that runs: nothing is forgotten.
            prop_assert!(!running.is_empty());
            let job = running.remove(drawn % running.len());
            let outcome = if outcomes[drawn % outcomes.len()] { GOOD } else { BAD };
            drawn += 1;
            queue.end(job, outcome);
        }
        for (at, state) in queue.states().iter().enumerate() {
            match state {
                State::Ended(_) => prop_assert!(queue.attempts(at) >= 1 && queue.attempts(at) <= jobs[at].retries.unwrap_or(0) + 1),
                State::Skipped(_) => prop_assert_eq!(queue.attempts(at), 0),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
