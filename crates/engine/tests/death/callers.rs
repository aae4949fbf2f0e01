//! Panics in the functions that a caller passes to a job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use gristmill::stats::Progress;
use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, MapReduce, Next, ProgramError};

use crate::common::{Count, Places, Random, Walk, input_of, random_text};

const PAUSE: Duration = Duration::ZERO;

/// A panic in a function of the caller once hung a job of threads for ever: the threads slept, and the panicking thread
/// waited for them.
pub fn panics() {
    let (_dir, input) = input_of(&random_text(&mut Random(12), 60_000, 300, 8, false));
    let (count, walk, places) = (Count { pause: PAUSE }, Walk::<true> { pause: PAUSE }, Places { pause: PAUSE });
    for isolation in [Isolation::Thread, Isolation::Process] {
        let job = || Job::new(&count, Input::paths([&input])).isolation(isolation).workers(2).split_bytes(2000);
        let steps = || Job::new(&walk, Input::paths([&input])).isolation(isolation).workers(2).split_bytes(2000);
        let jobs: [(&str, &dyn Fn()); 7] = [
            ("visit", &|| drop(job().run_each(|_, _| -> () { panic!("visit") }))),
            ("on_progress", &|| drop(job().on_progress(failing_progress).run())),
            ("on_plan", &|| drop(job().on_plan(|_| panic!("on_plan")).run())),
            ("control", &|| drop(steps().iterate(&[0], |_| panic!("control")))),
            // In the second step, while threads wait for the next one.
            ("later", &|| {
                drop(steps().iterate(&[0], |step| if step.number() == 1 { panic!("later") } else { Next::Pairs }));
            }),
            ("state", &|| {
                drop(steps().iterate(&[0], |step| {
                    step.set_state(&[0; 100]); // The engine panics here, because there is no room for the state.
                    Next::Pairs
                }));
            }),
            ("on_news", &|| {
                // In a job of threads, only a panic is a death.
                let deadly = Job::new(&Panics, Input::paths([&input])).isolation(isolation).workers(2);
                drop(deadly.on_news(|_| panic!("on_news")).run());
            }),
        ];
        for (name, run) in jobs {
            let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
            let words = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).expect("words");
            let expected = if name == "state" { "a state of 100 bytes was set" } else { name };
            assert!(words.starts_with(expected), "{name}, {isolation:?}: {words}");
        }
        let (all, _) =
            Job::new(&places, Input::paths([&input])).isolation(isolation).workers(2).run().expect("it runs");
        assert!(!all.is_empty(), "another job runs after all that");
    }
}

fn failing_progress(_: Progress) {
    panic!("on_progress")
}

struct Panics;

impl MapReduce for Panics {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, _: &mut Chunk<'_>, _: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        panic!("in map");
    }
}
