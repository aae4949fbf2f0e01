//! Arrays that the steps of a job write in turn: each step finds what the one before wrote, whichever worker dies, and
//! a failed step leaves no trace.

mod common;

use std::fs;

use common::arrays::{BOTH, Team, numbers, numbers_of, output};
use common::until_nobody_dies;
use gristmill::internal::Moment;
use gristmill::stats::{Count, Counters};
use gristmill::{
    Chunk, Emit, Error, Isolation, Job, MapReduce, Next, Pairs, ProgramError, Result, SharedOutput, Step, Summary,
};

fn main() {
    common::run(
        &[
            ("each_step_and_the_control_function_see_the_writes_of_the_step_before", steps),
            ("a_worker_killed_at_any_moment_of_any_step_leaves_the_same_array", killed),
            ("a_lost_reducer_of_any_step_leaves_the_same_array", reducer_killed),
            ("all_workers_may_die_in_a_step", all_killed),
            ("conflicting_tasks_of_a_step_are_an_error_that_names_the_step", conflicts),
            ("a_job_that_fails_keeps_the_result_of_its_last_complete_step", failures),
            ("views_persist_and_only_changes_are_merged", cost),
            ("a_step_shows_only_outputs_of_its_job", strangers),
        ],
        &[],
    );
}

/// In each step, changes the elements whose indexes are its numbers, and passes the numbers on as pairs.
struct Change<'o, F> {
    array: &'o SharedOutput<u32>,
    /// Returns the new value of an element in a step; the old one for no change.
    next: F,
}

impl<F: Fn(u32, u64, u32) -> u32> Change<'_, F> {
    fn change(&self, state: &[u8], numbers: &[u64]) {
        let step = step_of(state);
        self.array.write(|array| {
            for number in numbers {
                let value = &mut array[*number as usize];
                *value = (self.next)(step, *number, *value);
            }
        });
    }
}

impl<F: Fn(u32, u64, u32) -> u32 + Sync> MapReduce for Change<'_, F> {
    type Key = u64;
    type Value = ();

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, ()>) -> Result<(), ProgramError> {
        let numbers = numbers_of(chunk);
        self.change(chunk.state(), &numbers);
        numbers.iter().for_each(|number| out.emit(*number, ()));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, u64, ()>, out: &mut impl Emit<u64, ()>) -> Result<(), ProgramError> {
        let numbers: Vec<u64> = pairs.iter().map(|(number, ())| number).collect();
        self.change(pairs.state(), &numbers);
        numbers.iter().for_each(|number| out.emit(*number, ()));
        Ok(())
    }
}

/// Returns the number of a step, which is its state.
fn step_of(state: &[u8]) -> u32 {
    u32::from_le_bytes(state.try_into().expect("four bytes"))
}

fn iterate<J: MapReduce>(job: Job<'_, J>, mut control: impl FnMut(&mut Step<'_, J>) -> Next) -> Result<Summary> {
    job.iterate(&0u32.to_le_bytes(), |step| {
        let next = control(step);
        step.set_state(&(step.number() + 1).to_le_bytes());
        next
    })
}

/// Returns the value of an element after a step. Other orders of steps give other values, no step changes all elements,
/// and one changes none.
fn climb(step: u32, number: u64, value: u32) -> u32 {
    if step == 3 || number.is_multiple_of(u64::from(step) + 2) {
        value
    } else {
        value.wrapping_mul(3).wrapping_add(number as u32 + step)
    }
}

const LEN: u64 = 9_000;

type Climb<'o> = Change<'o, fn(u32, u64, u32) -> u32>;

/// Runs steps from the input and from pairs, and compares the array with a plain loop after each of them.
fn climb_up(start: u32, settings: impl for<'j, 'o> Fn(Job<'j, Climb<'o>>) -> Job<'j, Climb<'o>>) -> Summary {
    let mut array = output::<u32>("array", LEN as usize);
    if start > 0 {
        array.values_mut().fill(start);
    }
    let mut expected = vec![start; LEN as usize];
    let wrong = |values: &[u32], expected: &[u32]| {
        assert_eq!(values.len(), expected.len());
        values.iter().zip(expected).position(|(value, expected)| value != expected)
    };
    let program = Climb { array: &array, next: climb };
    let then = [Next::Pairs, Next::Pairs, Next::Input, Next::Pairs, Next::Input, Next::Stop];
    let summary = iterate(settings(numbers(&program, LEN, 1000).writes(&array)), |step| {
        let number = step.number();
        expected.iter_mut().zip(0..).for_each(|(value, index)| *value = climb(number, index, *value));
        assert_eq!(wrong(step.values(&array), &expected), None, "after step {number}");
        assert_eq!(step.pairs(), LEN);
        then[number as usize]
    });
    let summary = summary.expect("the job runs");
    assert_eq!(wrong(array.values(), &expected), None, "{:?}", summary.deaths);
    summary
}

fn steps() {
    for isolation in BOTH {
        for start in [0, 7] {
            let fused = climb_up(start, |job| job.workers(3).map_at_once(3).isolation(isolation));
            let split = climb_up(start, |job| job.map_workers(2).reduce_workers(2).isolation(isolation));
            assert_eq!([fused.steps, split.steps, fused.rounds], [6; 3]);
        }
    }
}

/// Runs the job with `worker` killed the first, second ... time that it reaches `moment`, until it no longer does.
fn die_at_every(worker: usize, moment: Moment, teams: &[Team]) {
    let climb_up = |team: Team, nth| {
        let summary = climb_up(7, |job| team.set(job).die_at(worker, moment, nth));
        assert!(summary.deaths.len() < 2, "{:?}", summary.deaths);
        summary
    };
    let died = until_nobody_dies(
        |nth| nth + 1 + nth / 5 * 2,
        // Chance decides which worker gets which task, but not in the first of the teams.
        |nth| {
            teams[1..].iter().for_each(|team| drop(climb_up(*team, nth)));
            climb_up(teams[0], nth)
        },
    );
    println!("{died} deaths of worker {worker} at {moment:?}");
    assert!(died > 0, "nobody died at {moment:?}");
}

fn killed() {
    for moment in [Moment::Drawn, Moment::Claimed, Moment::Latched, Moment::Merged, Moment::Flushed, Moment::Committed]
    {
        die_at_every(1, moment, &[Team::Alone, Team::Fused]);
    }
}

fn reducer_killed() {
    for moment in [Moment::Received, Moment::Drained, Moment::Keeping, Moment::Kept] {
        die_at_every(3, moment, &[Team::Chunk]);
    }
}

fn all_killed() {
    let mut died = 0;
    for moment in [Moment::Latched, Moment::Merged, Moment::Committed] {
        for nth in [1, 2, 5, 12, 20] {
            let summary = climb_up(0, |job| {
                let job = job.workers(2).map_at_once(2).retries(10);
                (1..5).fold(job, |job, worker| job.die_at(worker, moment, nth))
            });
            died += summary.deaths.len();
        }
    }
    assert!(died > 15, "only {died} died");
}

fn conflicts() {
    // In every step a different task changes one element; in step 2 two tasks do.
    struct Turns<'o>(&'o SharedOutput<u32>);
    impl MapReduce for Turns<'_> {
        type Key = u64;
        type Value = ();

        fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, ()>) -> Result<(), ProgramError> {
            let (step, task) = (step_of(chunk.state()), numbers_of(chunk)[0] / 100);
            if task == u64::from(step) || (step, task) == (2, 7) {
                self.0.write(|array| array[2222] = 10 * step + task as u32);
            }
            out.emit(task, ());
            Ok(())
        }
    }
    for isolation in BOTH {
        for workers in [1, 3] {
            let mut array = output::<u32>("grain", 4000);
            let program = Turns(&array);
            let job = numbers(&program, 1000, 100).writes(&array).workers(workers).isolation(isolation);
            let mut seen = Vec::new();
            let error = iterate(job, |step| {
                seen.push(step.values(&array)[2222]);
                Next::Input
            });
            let error = error.expect_err("two tasks of step 2 disagree");
            assert!(matches!(error, Error::Conflict { .. }), "{error}");
            let either = [
                "was 11; one task made it 22, and another 27 (that on numbers bytes 5600..6400 in step 2)",
                "was 11; one task made it 27, and another 22 (that on numbers bytes 1600..2400 in step 2)",
            ];
            let error = error.to_string();
            assert!(error.starts_with("element 2222 of the shared output grain "), "{error}");
            assert!(either.iter().any(|words| error.contains(words)), "{error}");
            assert_eq!((seen, array.values()[2222]), (vec![0, 11], 11), "what step 1 has made");
        }
    }
}

fn failures() {
    for isolation in BOTH {
        let mut array = output::<u32>("array", 3000);
        let program = Change {
            array: &array,
            next: |step, number, value| {
                assert!((step, number) != (2, 1777), "a stone in the mill");
                value + number as u32 + step
            },
        };
        let job = numbers(&program, 3000, 100).writes(&array).workers(2).isolation(isolation);
        let then = [Next::Input, Next::Pairs];
        let error = iterate(job, |step| then[step.number() as usize]).expect_err("step 2 always panics").to_string();
        assert!(error.contains("a stone in the mill") && error.contains("of the pairs of step 1"), "{error}");
        // Twice the index, plus the steps 0 and 1.
        assert!((0..).zip(array.values()).all(|(number, value)| *value == 2 * number + 1));
        // The array can be used in another job.
        let program = Change { array: &array, next: |_, _, value| value + 1 };
        let job = numbers(&program, 3000, 100).writes(&array).workers(2).isolation(isolation);
        iterate(job, |_| Next::Stop).expect("nothing is wrong with this one");
        assert!((0..).zip(array.values()).all(|(number, value)| *value == 2 * number + 2));
    }
}

/// Emits the number of mappings of an original in its worker, and changes one element in each step.
struct Mappings<'o>(&'o SharedOutput<u32>);

impl MapReduce for Mappings<'_> {
    type Key = u64;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        self.0.write(|array| array[1500 * step_of(chunk.state()) as usize] += 1);
        let maps = fs::read_to_string("/proc/self/maps").expect("read");
        out.emit(0, maps.lines().filter(|line| line.contains("gristmill original")).count() as u64);
        Ok(())
    }
}

fn cost() {
    let mut array = output::<u32>("array", 100 * 1500);
    array.values_mut().fill(1);
    let program = Mappings(&array);
    let job = numbers(&program, 10, 10).writes(&array).workers(1).isolation(Isolation::Process);
    let summary = iterate(job, |step| {
        // A view and its twin.
        assert_eq!(step.get(0), Some(2));
        if step.number() == 99 { Next::Stop } else { Next::Input }
    });
    let summary = summary.expect("the job runs");
    let merged = Counters::sum(summary.workers.iter().map(|worker| &worker.counters)).get(Count::OsPagesMerged);
    assert_eq!((summary.steps, merged), (100, 100), "one OS page in each step");
    assert!((0..).zip(array.values()).all(|(at, value)| *value == if at % 1500 == 0 { 2 } else { 1 }));
}

fn strangers() {
    let (array, other) = (output::<u32>("array", 10), output::<u32>("other", 10));
    let program = Change { array: &array, next: |_, _, value| value };
    let outcome = std::panic::catch_unwind(|| {
        iterate(numbers(&program, 10, 10).writes(&array).workers(1), |step| {
            assert_eq!(step.values(&array), [0; 10]);
            assert_eq!(step.values(&other), [0; 10]);
            Next::Stop
        })
    });
    let panic = outcome.expect_err("it is not shown");
    let words = panic.downcast_ref::<String>().expect("words");
    assert!(words.contains("the shared output other is not one that this job writes"), "{words}");
}
