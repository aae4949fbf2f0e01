//! Arrays that map functions write to: they contain what a plain loop would write, whichever worker dies; conflicting
//! tasks are detected; failures leave no trace.

mod common;

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use common::arrays::{BOTH, Team, numbers, numbers_of, output, scramble};
use common::input_of;
use gristmill::internal::Moment;
use gristmill::stats::Count;
use gristmill::types::Plain;
use gristmill::{Chunk, Emit, Error, Isolation, Job, MapReduce, ProgramError, Result, SharedOutput, Summary};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn main() {
    common::run(
        &[
            ("several_outputs_of_every_type_equal_a_plain_loop", several),
            ("outputs_of_any_length_hold_all_their_elements", lengths),
            ("a_job_sees_the_writes_of_the_job_before", iterations),
            ("a_job_sees_the_values_set_by_its_caller", filled),
            ("a_task_does_not_see_writes_of_other_tasks", isolated),
            ("a_job_that_emits_and_writes_does_both", emits),
            ("conflicting_tasks_are_an_error_that_names_the_place", conflicts),
            ("tasks_may_write_the_same_value", agreement),
            ("neighbours_in_one_word_do_not_conflict", neighbours),
            ("a_worker_killed_at_any_moment_leaves_the_same_array", killed),
            ("all_workers_may_die_while_they_merge", all_killed),
            ("lost_reduce_state_leaves_the_same_array", rounds),
            ("a_task_that_panics_leaves_no_trace", panics),
            ("a_job_that_fails_leaves_the_array_unchanged", failures),
            ("a_panic_of_the_caller_leaves_the_array_unchanged", caller_panics),
            ("a_job_that_fails_to_start_leaves_the_array_unchanged_and_usable", failed_starts),
            ("invalid_writes_are_refused", refusals),
            ("writes_of_a_reduce_function_are_refused", written_in_reduce),
            ("a_job_without_outputs_maps_no_view", no_cost),
        ],
        &[],
    );
}

/// A count of workers inside an array once missed the death of the last one, so nobody could read the array any more.
fn caller_panics() {
    let mut array = output::<u64>("array", 100);
    array.values_mut()[0] = 7;
    let endless = Each(|_: &[u64]| {
        array.write(|array| {
            array[0] = 9;
            loop {
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
        })
    });
    let mut calls = 0;
    let job = numbers(&endless, 10, 10).writes(&array).workers(1).on_progress(|_| {
        calls += 1;
        assert!(calls < 4, "as a caller may");
    });
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.run().map(drop)));
    assert!(ended.is_err(), "{ended:?}");
    assert_eq!(array.values()[..2], [7, 0]);
}

fn failed_starts() {
    // Under a limit of file sizes an array of 7 and 9 once became one of zeros, because the job reverted data that it
    // had not kept yet. With too few descriptors the caller panicked, and the array stayed "in use" for ever.
    const LARGE: usize = 1 << 23; // Larger than everything else of the job.
    let (mut before, mut array) = (output::<u64>("before", 600), output::<u64>("array", LARGE));
    let check = |before: &mut SharedOutput<u64>, array: &mut SharedOutput<u64>, what: &str| {
        assert!(before.values().iter().all(|value| *value == 5), "{what}");
        assert_eq!((array.values()[0], array.values()[LARGE - 1]), (7, 9), "{what}");
    };
    before.values_mut().fill(5);
    (array.values_mut()[0], array.values_mut()[LARGE - 1]) = (7, 9);
    // The limit must hold only for the job, not for the input that is made here.
    let attempt = |before: &SharedOutput<u64>, array: &SharedOutput<u64>, isolation, limited: Resource, to: u64| {
        let program = Each(|numbers: &[u64]| {
            array.write(|array| numbers.iter().for_each(|number| array[*number as usize + 100] = 1));
        });
        let job = numbers(&program, 100, 50).writes(before).writes(array);
        let maximum = getrlimit(limited).maximum;
        let limit = |current| setrlimit(limited, Rlimit { current, maximum }).expect("it is below the maximum");
        std::panic::set_hook(Box::new(|_| ())); // Workers without descriptors panic.
        limit(Some(to));
        let outcome = run(job, isolation).map_err(|why| why.to_string()); // The message names the current limit.
        limit(maximum);
        drop(std::panic::take_hook());
        outcome
    };
    for isolation in BOTH {
        // 1. The first array can be kept and the second is too large. The signal for that has not been requested.
        let mut limited = 0;
        for bytes in (12..).map(|bits| 1 << bits) {
            let Err(why) = attempt(&before, &array, isolation, Resource::Fsize, bytes) else { break };
            assert!(why.contains(&format!("File too large (os error 27): a file may have {bytes} bytes")), "{why}");
            limited += u32::from(why.starts_with("keeping what a shared output held before the job"));
            check(&mut before, &mut array, "a limit of file sizes");
        }
        assert!(limited > 0, "the array was never too large");
        array.values_mut()[100..200].fill(0);
        // 2. No descriptor is free, then one more each time, until there are enough.
        let free = fs::File::open("/dev/null").expect("opened").as_raw_fd() as u64;
        let enough = (free..free + 60).find(|descriptors| {
            let outcome = attempt(&before, &array, isolation, Resource::Nofile, *descriptors);
            if outcome.is_err() {
                check(&mut before, &mut array, "few descriptors");
            }
            outcome.is_ok()
        });
        let failed = enough.expect("with 60 descriptors it starts") - free;
        assert!(failed > 3, "it failed {failed} times only");
        assert_eq!(array.values()[100..200], [1; 100]);
        array.values_mut()[100..200].fill(0);
    }
}

/// A program that only calls a function with the numbers in its split.
struct Each<F>(F);

impl<F: Fn(&[u64]) + Sync> MapReduce for Each<F> {
    type Key = u64;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, _: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        (self.0)(&numbers_of(chunk));
        Ok(())
    }
}

fn run<J: MapReduce>(job: Job<'_, J>, isolation: Isolation) -> Result<Summary> {
    job.workers(3).map_at_once(3).isolation(isolation).run().map(|(_, summary)| summary)
}

fn several() {
    fn round<T: Plain + PartialEq>(isolation: Isolation, value: impl Fn(u64) -> T + Sync) {
        // Two arrays of this type and one of bytes in one job; tasks end in the middle of OS pages.
        let (mut one, mut two) = (output::<T>("one", 5000), output::<T>("two", 9999));
        let mut bytes = output::<u8>("bytes", 5000);
        let program = Each(|numbers: &[u64]| {
            for number in numbers {
                one.write(|one| one[*number as usize] = value(*number));
                two.write(|two| two[2 * *number as usize] = value(*number + 1));
            }
            bytes.write(|bytes| numbers.iter().for_each(|number| bytes[*number as usize] = *number as u8));
        });
        let summary =
            run(numbers(&program, 5000, 77).writes(&one).writes(&bytes).writes(&two), isolation).expect("ran");
        assert_eq!(summary.deaths, Vec::<String>::new());
        for number in 0..5000 {
            assert!(one.values()[number] == value(number as u64));
            assert!(two.values()[2 * number] == value(number as u64 + 1));
            assert_eq!(bytes.values()[number], number as u8);
        }
    }
    for isolation in BOTH {
        round(isolation, |number| scramble(number) as f64 / 7.0);
        round(isolation, |number| scramble(number) as f32 / 7.0);
        round(isolation, scramble);
        round(isolation, |number| scramble(number) as i64);
        round(isolation, |number| scramble(number) as u32);
        round(isolation, |number| scramble(number) as i32);
        round(isolation, |number| scramble(number) as u8);
    }
}

fn lengths() {
    for isolation in BOTH {
        for len in [0, 1, 511, 512, 513, 1023, 1025, 300_000] {
            let mut array = output::<f64>("array", len);
            let program = Each(|numbers: &[u64]| {
                array.write(|array| {
                    assert_eq!(array.len(), len);
                    numbers.iter().for_each(|number| array[*number as usize] = *number as f64 + 0.5);
                });
            });
            run(numbers(&program, len as u64, 1000).writes(&array), isolation).expect("ran");
            assert_eq!((array.len(), array.is_empty(), array.values().len()), (len, len == 0, len));
            assert!(array.values().iter().enumerate().all(|(number, value)| *value == number as f64 + 0.5));
        }
    }
}

fn iterations() {
    for isolation in BOTH {
        let mut array = output::<u64>("array", 3000);
        for round in 1..5u64 {
            let program = Each(|numbers: &[u64]| {
                array.write(|array| {
                    // Only a part of the array each time, and never a whole OS page.
                    for number in numbers.iter().filter(|number| !number.is_multiple_of(round + 1)) {
                        array[*number as usize] = 10 * array[*number as usize] + round;
                    }
                });
            });
            run(numbers(&program, 3000, 100).writes(&array), isolation).expect("ran");
        }
        let expected = |number: u64| {
            (1..5).filter(|round| !number.is_multiple_of(round + 1)).fold(0, |value, round| 10 * value + round)
        };
        assert!((0..).zip(array.values()).all(|(number, value)| *value == expected(number)));
    }
}

fn filled() {
    for isolation in BOTH {
        let mut array = output::<i32>("array", 2500);
        array.values_mut().iter_mut().zip(0..).for_each(|(value, number)| *value = -number);
        let program = Each(|numbers: &[u64]| {
            array.write(|array| {
                for number in numbers.iter().map(|number| *number as usize) {
                    assert_eq!(array[number], -(number as i32));
                    array[number] -= 1;
                }
            });
        });
        run(numbers(&program, 1200, 70).writes(&array), isolation).expect("ran");
        let expected = |number: i32| if number < 1200 { -number - 1 } else { -number };
        assert!((0..).zip(array.values()).all(|(number, value)| *value == expected(number)));
    }
}

fn isolated() {
    for isolation in BOTH {
        let mut array = output::<u32>("array", 2000);
        let program = Each(|numbers: &[u64]| {
            array.write(|array| {
                // One worker runs many tasks in one epoch: writes of the task before must be gone.
                assert!(array.iter().all(|value| *value == 0));
                numbers.iter().for_each(|number| array[*number as usize] = 1);
            });
        });
        let job = numbers(&program, 2000, 50).writes(&array).workers(1).isolation(isolation);
        let (_, summary) = job.run().expect("ran");
        assert!(summary.tasks == 40 && summary.workers[0].counters.get(Count::Epochs) == 1, "{summary:?}");
        assert!(array.values().iter().all(|value| *value == 1));
    }
}

/// Emits each number modulo 10, and writes its square.
struct Both<'o>(&'o SharedOutput<u64>);

impl MapReduce for Both<'_> {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        for number in numbers_of(chunk) {
            out.emit(number % 10, 1);
            self.0.write(|squares| squares[number as usize] = number * number);
        }
        Ok(())
    }
}

fn emits() {
    for isolation in BOTH {
        let mut squares = output("squares", 7000);
        let program = Both(&squares);
        let job = numbers(&program, 7000, 100).writes(&squares).workers(2).isolation(isolation);
        let (counts, _) = job.run().expect("ran");
        assert!((0..10).all(|digit| counts.get(digit) == Some(700)));
        assert!((0..).zip(squares.values()).all(|(number, square)| *square == number * number));
    }
}

fn conflicts() {
    for isolation in BOTH {
        for workers in [1, 3] {
            let (other, mut array) = (output::<u8>("other", 10), output::<f64>("grain", 4000));
            // Tasks 0 and 1 both write element 2222, with different values.
            let program = Each(|numbers: &[u64]| {
                array.write(|array| array[2222] = if numbers[0] < 200 { numbers[0] as f64 - 0.5 } else { 0.0 });
                other.write(|other| other[3] = 1);
            });
            let job = numbers(&program, 1000, 100).writes(&other).writes(&array).workers(workers).isolation(isolation);
            let error = job.run().map(|_| ()).expect_err("they disagree");
            assert!(matches!(error, Error::Conflict { .. }), "{error}");
            let error = error.to_string();
            let either = [
                "one task made it -0.5, and another 99.5 (that on numbers bytes 800..1600)",
                "one task made it 99.5, and another -0.5 (that on numbers bytes 0..800)",
            ];
            assert!(error.starts_with("element 2222 of the shared output grain was 0; "), "{error}");
            assert!(either.iter().any(|words| error.contains(words)), "{error}");
            assert!(array.values().iter().all(|value| *value == 0.0), "the array is as it was");
        }
    }
}

fn agreement() {
    for isolation in BOTH {
        let mut array = output::<f32>("array", 4000);
        let program = Each(|_: &[u64]| array.write(|array| array[17..3000].fill(2.5)));
        run(numbers(&program, 1000, 10).writes(&array), isolation).expect("all write the same");
        assert!(
            (0..).zip(array.values()).all(|(at, value)| *value == if (17..3000).contains(&at) { 2.5 } else { 0.0 })
        );
    }
}

fn neighbours() {
    for isolation in BOTH {
        let (mut bytes, mut halves) = (output::<u8>("bytes", 9000), output::<i32>("halves", 9000));
        // Task n writes every element whose index is n modulo 8.
        let program = Each(|numbers: &[u64]| {
            for number in numbers {
                bytes.write(|bytes| {
                    bytes.iter_mut().skip(*number as usize).step_by(8).for_each(|byte| *byte = 1 + *number as u8)
                });
                halves.write(|halves| {
                    halves.iter_mut().skip(*number as usize).step_by(8).for_each(|half| *half = -(*number as i32) - 1)
                });
            }
        });
        run(numbers(&program, 8, 1).writes(&bytes).writes(&halves), isolation).expect("nobody disagrees");
        assert!((0..).zip(bytes.values()).all(|(at, byte)| *byte == 1 + (at % 8) as u8));
        assert!((0..).zip(halves.values()).all(|(at, half)| *half == -(at % 8) - 1));
    }
}

/// Writes every element of an array of 20 OS pages that had other content before; several tasks share an OS page.
/// `kills` names the workers to be killed.
fn square_up(kills: &[(usize, Moment, u64)], team: Team) -> Summary {
    let mut array = output::<u32>("array", 20_000);
    array.values_mut().fill(7);
    let program = Each(|numbers: &[u64]| {
        array.write(|array| numbers.iter().for_each(|number| array[*number as usize] = scramble(*number) as u32));
    });
    let job = numbers(&program, 20_000, 1500).writes(&array).map_at_once(2);
    let job = team.set(job);
    let job = kills.iter().fold(job, |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth));
    let (_, summary) = job.run().unwrap_or_else(|error| panic!("{kills:?}: {error}"));
    let wrong = (0..).zip(array.values()).find(|(number, value)| **value != scramble(*number) as u32);
    assert_eq!(wrong, None, "{kills:?} {:?}", summary.deaths);
    summary
}

const MOMENTS: [Moment; 6] =
    [Moment::Drawn, Moment::Claimed, Moment::Latched, Moment::Merged, Moment::Flushed, Moment::Committed];

fn killed() {
    for moment in MOMENTS {
        let mut died = 0;
        for nth in 1.. {
            // Chance decides which worker gets which task, unless there is only one worker.
            let teams = [Team::Fused, Team::Chunk, Team::Alone];
            let deaths = teams.map(|team| square_up(&[(1, moment, nth)], team).deaths.len());
            died += deaths.iter().sum::<usize>();
            if deaths[2] == 0 {
                break;
            }
        }
        println!("{died} deaths at {moment:?}");
        assert!(died > 0, "nobody died at {moment:?}");
    }
}

fn all_killed() {
    let mut died = 0;
    for moment in [Moment::Latched, Moment::Merged] {
        for nth in 1..12 {
            died += square_up(&[1, 2, 3, 4].map(|worker| (worker, moment, nth)), Team::Fused).deaths.len();
        }
    }
    assert!(died > 22, "only {died} died");
}

/// A reducer that dies with pairs makes every task map, and write, once more.
fn rounds() {
    for nth in 1..4 {
        let mut squares = output("squares", 7000);
        let program = Both(&squares);
        let job = Team::Chunk.set(numbers(&program, 7000, 500).writes(&squares));
        let job = job.die_at(3, Moment::Drained, nth).die_at(4, Moment::Latched, 2);
        let (counts, summary) = job.run().unwrap_or_else(|error| panic!("{nth}: {error}"));
        assert!((0..10).all(|digit| counts.get(digit) == Some(700)), "{nth}");
        assert!((0..).zip(squares.values()).all(|(number, square)| *square == number * number), "{nth}");
        if nth == 1 {
            assert!(summary.rounds > 1, "the reducer died with its state: {:?}", summary.deaths);
        }
    }
}

/// Runs a job that panics in the task with the number 700, after it has written; every time, or once.
fn panicking(array: &SharedOutput<u64>, once: Option<PathBuf>, isolation: Isolation) -> Result<Summary> {
    let program = Each(|numbers: &[u64]| {
        array.write(|array| {
            if numbers.contains(&700) {
                array.fill(999);
                if once.as_ref().is_none_or(|mark| fs::File::create_new(mark).is_ok()) {
                    panic!("a stone in the mill");
                }
                array.fill(0);
            }
            numbers.iter().for_each(|number| array[*number as usize] = number + 1);
        });
    });
    run(numbers(&program, 3000, 100).writes(array), isolation)
}

fn panics() {
    for isolation in BOTH {
        let (dir, _) = input_of(b"");
        let mut array = output::<u64>("array", 3000);
        let summary = panicking(&array, Some(dir.path().join("mark")), isolation).expect("it panics once");
        assert_eq!(summary.deaths.len(), 1, "{:?}", summary.deaths);
        assert!((1..).zip(array.values()).all(|(expected, value)| *value == expected));
    }
}

fn failures() {
    for isolation in BOTH {
        let mut array = output::<u64>("array", 3000);
        for round in 0..2 {
            let error = panicking(&array, None, isolation).expect_err("it always panics").to_string();
            assert!(error.contains("a stone in the mill"), "{error}");
            // Zeros at first, and then the values that the caller wrote.
            assert!((0..).zip(array.values()).all(|(number, value)| *value == round * number));
            array.values_mut().iter_mut().zip(0..).for_each(|(value, number)| *value = number);
        }
        // The array can be used in another job.
        let program = Each(|numbers: &[u64]| array.write(|array| array[numbers[0] as usize] = 1));
        run(numbers(&program, 3000, 100).writes(&array), isolation).expect("nothing is wrong with this one");
        assert!((0..).zip(array.values()).all(|(number, value)| *value == if number % 100 == 0 { 1 } else { number }));
    }
}

fn refusals() {
    let error_of = |error: Result<Summary>| error.expect_err("refused").to_string();
    for isolation in BOTH {
        let (array, other) = (output::<u8>("array", 10), output::<u8>("other", 10));
        let nested = Each(|_: &[u64]| array.write(|_| array.write(|inner| inner[0] = 1)));
        let error = error_of(run(numbers(&nested, 10, 10).writes(&array), isolation));
        assert!(error.contains("the shared output array is written inside another write to it"), "{error}");
        let unnamed = Each(|_: &[u64]| other.write(|other| other[0] = 1));
        let error = error_of(run(numbers(&unnamed, 10, 10).writes(&array), isolation));
        assert!(error.contains("the shared output other is written where it has no view"), "{error}");
        let twice = error_of(run(numbers(&unnamed, 10, 10).writes(&other).writes(&other), isolation));
        assert!(twice.starts_with("the shared output other is named twice"), "{twice}");
        // Writing two arrays at once is not a nested write.
        let both = Each(|_: &[u64]| array.write(|array| other.write(|other| other[0] = array[0] + 1)));
        run(numbers(&both, 10, 10).writes(&array).writes(&other), isolation).expect("two arrays");
    }
    let error = SharedOutput::<f64>::new("all", usize::MAX / 9).map(|_| ()).expect_err("too much").to_string();
    assert!(error.starts_with("mapping a shared output: "), "{error}");
}

/// A job whose reduce function wrote to an array once succeeded without these writes, because nobody merged them.
fn written_in_reduce() {
    for isolation in BOTH {
        let mut array = output::<u64>("array", 100);
        let program = Both(&array);
        let job = numbers(&program, 100, 10).writes(&array).reduce(|_, _, _| {
            array.write(|array| array[7] = 1);
            Ok(())
        });
        let error = run(job, isolation).expect_err("refused").to_string();
        assert!(error.contains("the shared output array is written where it has no view"), "{error}");
        assert!(array.values().iter().all(|value| *value == 0));
    }
}

/// Emits the number of mappings in its worker.
struct Mappings;

impl MapReduce for Mappings {
    type Key = u64;
    type Value = u64;

    fn map(&self, _: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        let maps = fs::read_to_string("/proc/self/maps").expect("read");
        let originals = maps.lines().filter(|line| line.contains("gristmill original")).count();
        out.emit(maps.lines().count() as u64, originals as u64);
        Ok(())
    }
}

fn no_cost() {
    let (mut array, mut idle) = (output::<u64>("array", 100_000), output::<u64>("idle", 100_000));
    array.values_mut()[1] = 1;
    idle.values_mut()[1] = 1;
    let count = |job: Job<'_, Mappings>| {
        let (mappings, summary) = job.workers(1).run().expect("ran");
        let pair = mappings.iter().next().expect("one task");
        (
            pair,
            gristmill::stats::Counters::sum(summary.workers.iter().map(|worker| &worker.counters))
                .get(Count::OsPagesMerged),
        )
    };
    let ((without, originals), merged) = count(numbers(&Mappings, 10, 10));
    assert_eq!((originals, merged), (0, 0));
    // A view and its twin for each named array and for no other; and as nothing is written, nothing is merged.
    let ((with, originals), merged) = count(numbers(&Mappings, 10, 10).writes(&array));
    assert_eq!((originals, merged), (2, 0));
    assert!(with >= without + 2, "{with} mappings, {without} without the output");
}
