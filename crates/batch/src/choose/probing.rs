//! Tier B: readings of the memory beside the running programs, where nothing counts their requests.
//!
//! A reading tells how busy the memory is, and the kernel's task clock tells which programs ran meanwhile: its count
//! of a program grows by the time that all processes and threads of the program spent on processors. What the readings
//! say of each program, the policy finds out ([`gristmill_schedule::Pressures`]).

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gristmill_counters::probe::Probe;
use gristmill_counters::traffic::Monitored;
use gristmill_os::perf::{Counter, Event, Space};
use gristmill_schedule::{Counts, ProgramId, Reading};

use super::counts::CountSource;

/// Readings in a quantum. Each takes about 0.2 ms with all that belongs to it, so they cost 0.4 % of a processor.
const READINGS: usize = 2;
/// Readings before the first program begins, and the pause before each.
const UNDISTURBED: usize = 16;
const PAUSE: Duration = Duration::from_micros(100);

/// The probe, and a clock for each program.
pub struct Probing {
    probe: Probe,
    clocks: BTreeMap<ProgramId, Counter>,
    random: fastrand::Rng,
}

impl Probing {
    /// Prepares to read beside programs, or returns the reason why that tells nothing here.
    pub fn here() -> Result<Probing, String> {
        let clock = Counter::start(Event::TaskClock, Space::User).and_then(|clock| clock.count());
        clock.map_err(|error| format!("the kernel's task clock may not be used ({error})"))?;
        let probe = Probe::here().map_err(|error| error.to_string())?;
        Ok(Probing { probe, clocks: BTreeMap::new(), random: fastrand::Rng::new() })
    }

    /// Reads before any program has begun.
    pub fn undisturbed(&mut self) -> Vec<Reading> {
        let mut read = || {
            sleep(PAUSE);
            Reading { took_us: self.probe.time().as_secs_f64() * 1e6, used: Vec::new() }
        };
        (0..UNDISTURBED).map(|_| read()).collect()
    }
}

impl CountSource for Probing {
    fn events(&self) -> &'static [Event] {
        &[Event::TaskClock]
    }

    fn begin(&mut self, id: ProgramId, counters: Vec<Counter>, _: Option<Monitored>) {
        // A program that ends at once has no clock.
        self.clocks.extend(counters.into_iter().map(|clock| (id, clock)));
    }

    fn counts(&self, _: ProgramId) -> Option<Counts> {
        None
    }

    fn processor_us(&self, id: ProgramId) -> Option<u64> {
        Some(self.clocks.get(&id)?.count().ok()? / 1000)
    }

    fn end(&mut self, id: ProgramId) {
        self.clocks.remove(&id);
    }

    fn moments(&mut self, quantum: Duration) -> Vec<Duration> {
        let mut moments: Vec<Duration> = (0..READINGS).map(|_| quantum.mul_f64(self.random.f64())).collect();
        moments.sort_unstable();
        moments
    }

    fn read(&mut self) -> Option<Reading> {
        let now = |clock: &Counter| clock.count().map(|count| (Instant::now(), count));
        let before: Vec<_> = self.clocks.values().map(now).collect();
        let took_us = self.probe.time().as_secs_f64() * 1e6;
        let mut used = Vec::with_capacity(before.len());
        for ((id, clock), before) in self.clocks.iter().zip(before) {
            // Without the clock of one program it is not known who was beside the probe.
            let ((began, from), (ended, to)) = (before.ok()?, now(clock).ok()?);
            let wall_ns = (ended - began).as_nanos().max(1) as f64;
            used.push((*id, to.saturating_sub(from) as f64 / wall_ns));
        }
        Some(Reading { took_us, used })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::Pid;
    use std::process::Command;

    #[test]
    fn a_reading_has_the_processors_that_each_program_used_meanwhile() {
        // A sandbox may forbid the clock; then there is no tier B.
        let Ok(mut probing) = Probing::here() else { return };
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let mut idle = Command::new("sleep").arg("60").spawn().expect("a program");
        let clock = |child| vec![Counter::of(Pid::from_child(child), Event::TaskClock, Space::User).expect("a clock")];
        probing.begin(ProgramId(1), clock(&busy), None);
        probing.begin(ProgramId(2), clock(&idle), None);
        let began = Instant::now();
        let mut readings: Vec<Reading> = Vec::new();
        // On one processor the probe and the program never run at the same time.
        let processors = gristmill_os::machine::cpus_allowed().expect("allowed").len();
        let is_told = |reading: &Reading| (reading.used[0].1 > 0.9 || processors < 2) && reading.used[1].1 < 0.1;
        while !readings.last().is_some_and(is_told) && began.elapsed() < Duration::from_secs(60) {
            sleep(PAUSE);
            readings.push(probing.read().expect("both have clocks"));
        }
        for child in [&mut busy, &mut idle] {
            child.kill().and_then(|()| child.wait()).expect("it ends");
        }
        for reading in &readings {
            let ids: Vec<u32> = reading.used.iter().map(|(id, _)| id.0).collect();
            assert_eq!(ids, [1, 2]);
            assert!(reading.took_us > 0.0);
            assert!(
                reading.used.iter().all(|used| used.1 < 1.5),
                "one thread used more than one processor: {reading:?}"
            );
        }
        assert!(readings.last().is_some_and(is_told), "{readings:?}");
    }

    #[test]
    fn readings_are_at_moments_of_the_quantum_in_order() {
        let Ok(mut probing) = Probing::here() else { return };
        let quantum = Duration::from_millis(100);
        for _ in 0..50 {
            let moments = probing.moments(quantum);
            assert!(moments.len() == READINGS && moments.is_sorted() && moments[READINGS - 1] < quantum);
        }
    }

    #[test]
    fn undisturbed_readings_name_no_program() {
        let Ok(mut probing) = Probing::here() else { return };
        let readings = probing.undisturbed();
        assert_eq!(readings.len(), UNDISTURBED);
        assert!(readings.iter().all(|reading| reading.used.is_empty() && reading.took_us > 0.0));
    }
}
