//! The programs that run: they begin, they are looked after, and they leave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use gristmill_os::process::end_descendants;
use gristmill_os::program::{now_ended, reap};
use gristmill_os::wake::Watch;

use super::admission::Young;
use crate::program::capture::Capture;
use crate::program::handed::hand_over;
use crate::program::identity::Identity;
use crate::program::ready::Ready;
use crate::program::remains::{Remains, SWEEP};
use crate::program::running::{Attempt, Ending, Means, Running};
use crate::queue::{BatchJob, Outcome};
use crate::report::record::Record;

/// The programs that run.
pub struct Programs<'a> {
    pub means: Means<'a>,
    /// The folder for their output.
    output: Option<PathBuf>,
    /// By job.
    pub running: BTreeMap<usize, Running>,
    remains: Remains,
    sweep_at: Instant,
}

/// A program that has ended by itself, or was ended.
pub struct Ended {
    pub job: usize,
    /// `None` if it was ended on request.
    pub outcome: Option<Outcome>,
}

impl<'a> Programs<'a> {
    pub fn new(means: Means<'a>, output: Option<PathBuf>) -> Programs<'a> {
        let (running, remains) = (BTreeMap::new(), Remains::default());
        Programs { means, output, running, remains, sweep_at: Instant::now() }
    }

    /// Returns the first slot in which no program runs.
    pub fn free_slot(&self) -> usize {
        let taken: BTreeSet<usize> = self.running.values().map(|program| program.slot).collect();
        (1..).find(|slot| !taken.contains(slot)).expect("there are more numbers than programs")
    }

    /// Begins an attempt.
    pub fn begin(&mut self, attempt: &Attempt<'_>, identity: Option<Identity>) -> io::Result<()> {
        let Attempt { number, job, key, .. } = *attempt;
        let captured = Capture::begin(self.output.as_deref(), (number, job), key, attempt.attempt)?;
        hand_over(&self.means.guard, number, &captured.0)?;
        let program = Running::start(attempt, &self.means, captured, identity)?;
        self.running.insert(number, program);
        Ok(())
    }

    /// Waits for the output and the end of a program.
    pub fn watch(&self, job: usize, watch: &Watch) -> io::Result<()> {
        let program = &self.running[&job];
        watch.add(&program.started.pidfd, Ready::End { job }.number())?;
        program.capture.watch(watch)
    }

    /// Keeps what a program has written. One whose output cannot be kept is ended; returns false then.
    pub fn drain(&mut self, job: usize, stream: usize, watch: &Watch) -> io::Result<bool> {
        let Some(program) = self.running.get_mut(&job) else { return Ok(true) };
        let is_kept = program.capture.drain(stream, watch)?;
        if !is_kept {
            program.ask_to_end(Ending::Asked);
        }
        Ok(is_kept)
    }

    /// Returns which of these programs have ended, and how. They stay in the kernel's table.
    pub fn ended(&mut self, jobs: &[usize], watch: &Watch) -> io::Result<Vec<Ended>> {
        let mut all = Vec::new();
        for job in jobs {
            let Some(program) = self.running.get_mut(job) else { continue };
            let Some(status) = now_ended(program.started.pid)? else { continue };
            let incomplete = program.capture.finish(watch)?;
            all.push(Ended { job: *job, outcome: program.outcome(status, incomplete) });
        }
        Ok(all)
    }

    /// Takes a program out that has ended: of the kernel's table, and with all that it left running.
    pub fn take(&mut self, job: usize, watch: &Watch) -> io::Result<(usize, Record, Capture)> {
        let program = self.running.remove(&job).expect("it ran");
        watch.remove(&program.started.pidfd)?;
        self.tell_guard(job);
        let took = program.began.elapsed();
        let used = reap(program.started.pid)?;
        let (group, left_processes) = program.end_rest();
        if left_processes {
            self.remains.add(group);
        }
        let record = Record {
            job,
            attempt: program.attempt,
            at_ms: program.at_ms,
            took,
            ended_with_queue: program.ending == Some(Ending::Killed),
            used,
            left_processes,
            folder: program.capture.folder.clone(),
            chosen: program.chosen(),
            identity: program.identity,
            ..Record::default()
        };
        Ok((program.slot, record, program.capture))
    }

    /// Tells the guard that it need not look after a program any more.
    pub fn tell_guard(&mut self, job: usize) {
        // If the guard has died, the signals say so.
        let _ = self.means.guard.write_all(format!("end {job}\n").as_bytes());
    }

    /// Returns the facts about running programs that decide which others may start.
    pub fn young(&self, jobs: &[BatchJob], now: Instant) -> impl ExactSizeIterator<Item = Young> {
        let age =
            move |program: &Running| Young { age: now - program.began, memory_bytes: jobs[program.job].memory_bytes };
        self.running.values().map(age)
    }

    /// When [`Programs::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Instant> {
        let ticks = self.running.values().filter_map(Running::next_tick);
        ticks.chain((!self.remains.is_empty()).then_some(self.sweep_at)).min()
    }

    /// Ends programs whose time is over, and what others left running.
    pub fn tick(&mut self, now: Instant) {
        self.running.values_mut().for_each(|program| program.tick(now));
        // Programs that print much wake this process far more often.
        if self.sweep_at <= now {
            self.sweep();
            self.sweep_at = now + SWEEP;
        }
    }

    fn sweep(&mut self) {
        let running = &self.running;
        self.remains.sweep(|pid| running.values().any(|program| program.started.pid == pid));
    }

    /// Waits for the end of all that programs left running.
    pub fn finish(&mut self) -> io::Result<()> {
        while !self.remains.is_empty() {
            std::thread::sleep(SWEEP);
            self.sweep();
        }
        // Programs that left their session, where there are no cgroups.
        end_descendants()?;
        Ok(())
    }

    /// Asks those programs to end for which this is true, and returns their number.
    pub fn ask_to_end(&mut self, is_asked: impl Fn(usize) -> bool) -> usize {
        let asked = self.running.iter_mut().filter(|(job, _)| is_asked(**job));
        asked.map(|(_, program)| program.ask_to_end(Ending::Asked)).count()
    }

    /// Kills all programs; their ends are seen later.
    pub fn kill_all(&mut self) {
        self.running.values_mut().for_each(Running::kill);
    }
}
