//! Quanta of programs that compute until they are killed.

use super::*;
use crate::list::values::Values;
use crate::list::{Defaults, List};
use crate::queue::{Halt, Rules};
use crate::report::printer::Style;
use crate::report::reporter::Reports;
use crate::run::admission::{Admission, StartLimits};
use crate::run::before::Before;
use crate::run::guard::Link;
use gristmill_counters::traffic::Monitored;
use gristmill_os::perf::{Counter, Event};
use gristmill_os::program::Freezer;
use std::os::unix::net::UnixStream;

/// Counts that were recorded elsewhere: the same in each quantum.
#[derive(Default)]
struct Recorded {
    reads: std::cell::Cell<f64>,
    all: Option<f64>,
    ended: Vec<ProgramId>,
}

impl CountSource for Recorded {
    fn events(&self) -> &'static [Event] {
        &[]
    }
    fn begin(&mut self, _: ProgramId, _: Vec<Counter>, _: Option<Monitored>) {}
    fn counts(&self, _: ProgramId) -> Option<Counts> {
        self.reads.set(self.reads.get() + 1.0);
        Some(Counts { instructions: 1e6 * self.reads.get(), requests: 1e3 * self.reads.get() })
    }
    fn all_requests(&self) -> Option<f64> {
        self.all
    }
    fn end(&mut self, id: ProgramId) {
        self.ended.push(id);
    }
}

/// Runs `test` with two programs that compute until they are killed.
fn with_two_programs(freezer: &Freezer, test: impl FnOnce(&mut Here<'_, '_, Recorded>)) {
    let (_told, tell) = UnixStream::pair().expect("a socket");
    let (signals, _send) = io::pipe().expect("a pipe");
    let style = Style { held_max: 16, ..Style::default() };
    let reports = Reports { output: None, style, history: None, log: None, json: false, quiet: true };
    // They end if the test does not end them.
    let words = ["sh", "-c", "i=0; while [ $i -lt 50000000 ]; do i=$((i+1)); done", ":::", "1", "2"];
    let list = List::open(None, &words.map(Into::into), &Values::default(), Defaults::default()).expect("two jobs");
    let queue = Before::default().queue(&list, Rules { slots: 2, memory_bytes: u64::MAX, halt: Halt::NEVER });
    let link = Link { tell, signals };
    let begin = (Before::default(), queue, Admission::new(StartLimits::default(), 2));
    let mut runner = Runner::new(reports, list, begin, None, freezer, link).expect("a runner");
    let limits = Limits { processors: 1, quota: f64::INFINITY, memory_bytes: u64::MAX, peak: 100.0 };
    test(&mut Here::new(&mut runner, Recorded::default(), None, limits));
    runner.end_programs();
    while runner.round(Some(Instant::now() + Duration::from_millis(5)), false).expect("they end") != RoundEnd::Queue {}
    freezer.remove();
}

#[test]
fn programs_that_share_the_processors_with_many_have_too_few_samples() {
    // In 100 ms, two processors give 200 samples.
    assert_eq!(
        [0, 2, 12, 13, 32].map(|programs| has_enough_samples(1e5, 2, programs)),
        [true, true, true, false, false]
    );
}

fn ran(quantum: Option<Quantum>) -> Vec<u32> {
    quantum.expect("it goes on").ran.iter().map(|ran| ran.id.0).collect()
}

fn quantum(here: &mut Here<'_, '_, Recorded>, run: Choice) -> Option<Quantum> {
    Machine::run(here, &Decision { begin: Vec::new(), run, sample: true }, 60_000.0).expect("a quantum")
}

fn only_the_chosen_program_runs(freezer: &Freezer) {
    with_two_programs(freezer, |here| {
        let first = quantum(here, Choice::System).expect("it goes on");
        assert_eq!(first.arrived.iter().map(|arrival| arrival.id.0).collect::<Vec<_>>(), [1, 2]);
        // The first quantum in which a program is stopped may see the last of it, and on a busy machine the chosen one
        // may have to wait for a processor.
        for chosen in [2, 1] {
            let runs: Vec<Vec<u32>> =
                (0..30).map(|_| ran(quantum(here, Choice::Only(vec![ProgramId(chosen)])))).collect();
            assert!(runs.windows(3).any(|three| three.iter().all(|ran| *ran == [chosen])), "{runs:?}");
        }
        let all = (0..50).any(|_| ran(quantum(here, Choice::System)) == [1, 2]);
        assert!(all, "a program stayed stopped");
        quantum(here, Choice::Only(vec![]));
        let none = quantum(here, Choice::Only(vec![])).expect("it goes on");
        // Stopped is not waiting.
        assert_eq!((none.ran.len(), none.waiting.len()), (0, 0));
    });
}

#[test]
fn only_the_chosen_program_of_each_cgroup_runs() {
    only_the_chosen_program_runs(&Freezer::here("gristmill-test-machine"));
}

#[test]
fn only_the_chosen_program_of_each_session_runs() {
    only_the_chosen_program_runs(&Freezer::Sessions);
}

#[test]
fn recorded_counts_are_reported_by_quantum_with_foreign_ones_and_ended_programs() {
    with_two_programs(&Freezer::Sessions, |here| {
        here.source.all = Some(5e9);
        quantum(here, Choice::System);
        // On a busy machine, a quantum may end before a program has had a processor.
        let mut reports = (6..100).map(|total| {
            here.source.all = Some(f64::from(total) * 1e9);
            quantum(here, Choice::System).expect("it goes on")
        });
        let report = reports.find(|report| !report.ran.is_empty()).expect("they run");
        let ours: f64 = report.ran.iter().filter_map(|ran| ran.counts).map(|counts| counts.requests).sum();
        assert_eq!(report.foreign_requests, 1e9 - ours);
        for ran in &report.ran {
            let counts = ran.counts.expect("they are counted");
            assert!(counts.instructions >= 1e6 && counts.requests * 1e3 == counts.instructions, "{counts:?}");
            assert!(ran.processor_us > 0.0);
        }
        here.runner.end_programs();
        let mut ended = Vec::new();
        while let Some(quantum) = quantum(here, Choice::System) {
            ended.extend(quantum.ended);
        }
        ended.sort_by_key(|ended| ended.id);
        assert_eq!(ended, [1, 2].map(|id| Ended { id: ProgramId(id), whole: false }));
        assert_eq!(here.source.ended.len(), 2);
    });
}
