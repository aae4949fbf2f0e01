//! Limits for starting: while the load of the machine is too high, or too little memory is free, no further program
//! begins.
//!
//! A program needs a moment until it shows in either of them, so a burst of starts would pass:
//!
//! - The load is looked at once a second. Until then, programs of the queue that have begun since count as one each,
//!   and those that have ended are taken off.
//! - A program that began less than a second ago counts with the memory that its job asks for, or with the most that
//!   one has used so far. If neither is known, no other program begins until that second is over.

use std::io;
use std::time::{Duration, Instant};

use gristmill::Error;
use gristmill_counters::units::bytes as shown;
use gristmill_os::machine::{load_now, memory_available_bytes, memory_bytes};

use super::slots::Slots;

/// The load and the free memory with which a program may begin.
#[derive(Clone, Copy, Default)]
pub struct StartLimits {
    /// Fewer threads than this run or wait for the disk. One program always runs.
    pub load: Option<Slots>,
    /// This much memory is free.
    pub free_bytes: Option<usize>,
}

impl StartLimits {
    /// Refuses a limit that this machine never meets, and one that it always does.
    ///
    /// # Errors
    ///
    /// A sentence with what there is, or the kernel's error.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Some(wanted) = self.free_bytes else { return Ok(()) };
        if wanted == 0 {
            return Err(Error::Setting("--free-memory is 0, and as much is always free: leave it out".to_owned()));
        }
        let what = "asking for the size of the memory";
        let there_bytes = memory_bytes().map_err(|source| Error::System { what, source })?;
        if wanted as u64 > there_bytes {
            let [wanted, there] = [wanted as u64, there_bytes].map(shown);
            return Err(Error::Setting(format!(
                "--free-memory {wanted}: there are only {there} of memory, so no program would ever begin; name less"
            )));
        }
        Ok(())
    }
}

/// The time between two looks at the load, and after which a program shows in the memory.
const LOOK: Duration = Duration::from_secs(1);

/// A running program, as far as this must know.
pub struct Young {
    pub age: Duration,
    /// The memory that its job asks for; 0 if it says nothing.
    pub memory_bytes: u64,
}

/// Why no program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Load {
        now: usize,
        max: usize,
    },
    Memory {
        free_bytes: u64,
        min_bytes: u64,
    },
    /// Nobody knows yet how much memory a program takes that has just begun.
    Young,
}

impl Held {
    /// A few words for the table.
    pub fn words(self) -> &'static str {
        match self {
            Held::Load { .. } => "held by --load",
            Held::Memory { .. } | Held::Young => "held by --free-memory",
        }
    }

    /// A sentence for standard error; `None` for a wait of a moment.
    fn sentence(self, running: usize) -> Option<String> {
        match self {
            Held::Load { now, max } => Some(format!(
                "{now} threads run or wait for the disk, so no further program begins until there are fewer than {max} (--load)"
            )),
            Held::Memory { free_bytes, min_bytes } => {
                let [free, min] = [free_bytes, min_bytes].map(shown);
                let hint = if running == 0 { "; none runs now, and Ctrl-C ends the queue" } else { "" };
                Some(format!(
                    "{free} of memory are free, so no further program begins until there are {min} (--free-memory){hint}"
                ))
            }
            Held::Young => None,
        }
    }
}

/// Decides whether a further program may begin.
pub struct Admission {
    load_max: Option<usize>,
    free_min_bytes: Option<u64>,
    /// The last look at the load: when, what it was, and the queue's programs then.
    looked: Option<(Instant, usize, usize)>,
    /// The most memory that a program has used.
    used_max_bytes: u64,
    held: Option<Held>,
    /// Whether the user was told of each kind.
    told: [bool; 2],
}

impl Admission {
    pub fn new(limits: StartLimits, processors: usize) -> Admission {
        Admission {
            load_max: limits.load.map(|load| load.of(processors)),
            free_min_bytes: limits.free_bytes.map(|bytes| bytes as u64),
            looked: None,
            used_max_bytes: 0,
            held: None,
            told: [false; 2],
        }
    }

    /// Notes how much memory a program has used.
    pub fn note_used(&mut self, bytes: u64) {
        self.used_max_bytes = self.used_max_bytes.max(bytes);
    }

    /// Returns true if a program may begin beside those that run. Otherwise [`Admission::held`] has the reason.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn admits(&mut self, running: impl ExactSizeIterator<Item = Young>, now: Instant) -> io::Result<bool> {
        self.held = None;
        let own = running.len();
        if let Some(max) = self.load_max {
            let (_, load, own_then) = match self.looked.filter(|(at, ..)| now.duration_since(*at) < LOOK) {
                Some(looked) => looked,
                None => *self.looked.insert((now, load_now()?, own)),
            };
            let load = (load + own).saturating_sub(own_then);
            self.held = (own > 0 && load >= max).then_some(Held::Load { now: load, max });
        }
        if let (None, Some(min_bytes)) = (self.held, self.free_min_bytes) {
            let free_bytes = memory_available_bytes()?;
            let left_bytes = free_bytes.saturating_sub(reserved(running, self.used_max_bytes));
            self.held = match () {
                () if free_bytes < min_bytes => Some(Held::Memory { free_bytes, min_bytes }),
                () => (left_bytes < min_bytes).then_some(Held::Young),
            };
        }
        Ok(self.held.is_none())
    }

    /// Says that no program waits to begin.
    pub fn is_idle(&mut self) {
        self.held = None;
    }

    /// Why no program begins, if that is so.
    pub fn held(&self) -> Option<Held> {
        self.held
    }

    /// When to look again.
    pub fn looks_at(&self, now: Instant) -> Option<Instant> {
        self.held.map(|_| now + LOOK)
    }

    /// Returns the reason if the user must be told: once of the load and of the memory, at the first wait.
    pub fn news(&mut self, running: usize) -> Option<String> {
        let held = self.held?;
        let sentence = held.sentence(running)?;
        let told = &mut self.told[usize::from(matches!(held, Held::Memory { .. }))];
        (!std::mem::replace(told, true)).then_some(sentence)
    }
}

/// The memory that young programs will have taken soon; all there is if that is unknown.
fn reserved(running: impl Iterator<Item = Young>, used_max_bytes: u64) -> u64 {
    let young = running.filter(|program| program.age < LOOK);
    let takes = |program: Young| match program.memory_bytes.max(used_max_bytes) {
        0 => u64::MAX,
        bytes => bytes,
    };
    young.map(takes).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn young(age_ms: u64, memory_bytes: u64) -> Young {
        Young { age: Duration::from_millis(age_ms), memory_bytes }
    }

    #[test]
    fn programs_that_have_just_begun_are_reckoned_with() {
        // Nothing is known of the first, which has begun now.
        assert_eq!(reserved([young(0, 0), young(5000, 0)].into_iter(), 0), u64::MAX);
        // It shows in the memory after a second, and what another one used is a guess.
        assert_eq!(reserved([young(1000, 0)].into_iter(), 0), 0);
        assert_eq!(reserved([young(0, 0), young(10, 50), young(10, 200), young(2000, 900)].into_iter(), 100), 400);
    }

    #[test]
    fn a_burst_does_not_pass_and_one_program_always_runs() {
        let began = Instant::now();
        let running = |count: usize| (0..count).map(|_| young(0, 0)).collect::<Vec<_>>().into_iter();
        let mut admission = Admission { load_max: Some(3), ..Admission::new(StartLimits::default(), 1) };
        let looked = |load, own| Some((began, load, own));
        // 1. Two threads of others run.
        admission.looked = looked(2, 0);
        let admitted = [0, 1, 2].map(|own| admission.admits(running(own), began).expect("no look is needed"));
        assert_eq!(admitted, [true, false, false]);
        assert_eq!(admission.held(), Some(Held::Load { now: 4, max: 3 }));
        // 2. Three of the queue ran; as soon as one ends, another begins.
        admission.looked = looked(3, 3);
        let admitted = [3, 2, 1].map(|own| admission.admits(running(own), began).expect("no look is needed"));
        assert_eq!(admitted, [false, true, true]);
        // 3. A machine that others keep busy: one at a time.
        admission.looked = looked(50, 0);
        let admitted = [0, 1].map(|own| admission.admits(running(own), began).expect("no look is needed"));
        assert_eq!(admitted, [true, false]);
    }
}
