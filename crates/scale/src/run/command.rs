//! Runs a command once, with all the processes that it starts.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use gristmill_counters::load::{Load, Watch};
use gristmill_counters::memory;
use gristmill_os::allocations::REFUSED;
use gristmill_os::process::{Child, Death, end_descendants, fork_worker};
use gristmill_os::room::{no_temporary, temporary_folder};
use gristmill_os::stop::Stop;
use gristmill_os::usage::Usage;
use gristmill_os::wake::poll;
use gristmill_report::messages::printable;
use rustix::process::{getpid, set_child_subreaper};

use super::beside;
use super::circumstances::Circumstances;
use super::look::Look;
use super::own::Own;
use super::phases::Phases;
use super::words::filled;

/// A command that is run with several numbers of workers.
pub struct Launcher {
    what: What,
    timeout: Duration,
    /// The command's standard error.
    said: File,
    stop: Rc<Stop>,
}

/// The words of a program.
pub struct What {
    /// The command; at least one word.
    pub words: Vec<OsString>,
    /// Follow the command once for each worker but the first: input that grows with the workers.
    pub repeated: Vec<OsString>,
    /// A shell command that is run before each run, and not timed.
    pub prepare: Option<OsString>,
    /// Set if it is one of our own applications.
    pub own: Option<Own>,
}

/// The end of a run, or why the command failed, or was ended because its time was over.
pub type End = Result<Once, String>;

/// The end of all runs before their time.
pub enum BrokenOff {
    /// This program was asked to end by this signal.
    Asked(i32),
    /// The system refuses.
    Failed(io::Error),
}

impl From<io::Error> for BrokenOff {
    fn from(source: io::Error) -> BrokenOff {
        BrokenOff::Failed(source)
    }
}

/// A run that succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// The time from the start of the command to its end.
    pub seconds: f64,
    /// The resources used by the command and all its processes.
    pub usage: Usage,
    /// The load of other programs during the run.
    pub load: Option<Load>,
    /// The number of processes that it left running.
    pub left: usize,
    /// The phases of its workers, if it is one of our own applications.
    pub phases: Option<Phases>,
}

impl Launcher {
    /// Makes programs. From now on, processes they leave running become children of this process.
    pub fn all(all: Vec<What>, timeout: Duration) -> io::Result<Vec<Launcher>> {
        set_child_subreaper(Some(getpid()))?;
        let stop = Rc::new(Stop::new()?);
        let program = |what| {
            Ok(Launcher {
                what,
                timeout,
                said: tempfile::tempfile_in(temporary_folder()).map_err(no_temporary)?,
                stop: stop.clone(),
            })
        };
        all.into_iter().map(program).collect()
    }

    /// The application that it runs, if it is one of our own.
    pub fn own(&self) -> Option<&Own> {
        self.what.own.as_ref()
    }

    /// Runs the command once with this many workers.
    pub fn run(&self, workers: u64) -> Result<End, BrokenOff> {
        self.prepared(workers, None, &Circumstances::default())
    }

    /// Runs it once under changed circumstances.
    pub fn run_under(&self, workers: u64, circumstances: &Circumstances) -> Result<End, BrokenOff> {
        self.prepared(workers, None, circumstances)
    }

    /// Runs it while `look` takes samples.
    pub fn watch(&self, workers: u64, look: &mut Look) -> Result<End, BrokenOff> {
        self.prepared(workers, Some(look), &Circumstances::default())
    }

    fn prepared(&self, workers: u64, look: Option<&mut Look>, circumstances: &Circumstances) -> Result<End, BrokenOff> {
        if let Some(prepare) = &self.what.prepare {
            let words = [OsStr::new("sh"), OsStr::new("-c"), prepare].map(|word| filled(word, workers));
            if let Err(why) = self.once(&words, None, &Circumstances::default())? {
                return Ok(Err(format!("what prepares it failed: {why}")));
            }
        }
        let again = (1..workers).flat_map(|_| &self.what.repeated);
        let mut words: Vec<OsString> = self.what.words.iter().chain(again).map(|word| filled(word, workers)).collect();
        circumstances.change(&mut words, self.what.own.as_ref().map(|_| Own::OPTIONS_AT));
        let end = self.once(&words, look, circumstances)?;
        Ok(match (end, &self.what.own) {
            (Ok(once), Some(own)) => Ok(Once { phases: Some(own.phases()?), ..once }),
            (end, _) => end,
        })
    }

    fn once(
        &self,
        words: &[OsString],
        mut look: Option<&mut Look>,
        circumstances: &Circumstances,
    ) -> Result<End, BrokenOff> {
        (&self.said).seek(SeekFrom::Start(0))?;
        self.said.set_len(0)?;
        // They begin before the pipe is made: it ends when no process holds it any more.
        let beside = circumstances.beside.map_or(Ok(Vec::new()), |(work, count)| beside::start(work, count))?;
        let kills = memory::kills();
        let (watch, before, began) = (Watch::start(), Usage::of_children(), Instant::now());
        let (mut child, refused) = self.begin(words, circumstances)?;
        if let Some(look) = &mut look {
            look.begin();
        }
        let (ended, stopped) = self.wait_for(&child, began, look)?;
        if ended.is_none() {
            child.kill()?;
        }
        let death = child.wait()?;
        // What others do beside it is not in its time.
        let usage = Usage::of_children() - before;
        let is_beside = !beside.is_empty();
        drop(beside);
        let left = end_descendants()?;
        // A shell tells only that what it started was killed.
        let killed = match (kills, memory::kills()) {
            (Some(before), Some(after)) if after > before => {
                "; meanwhile the kernel killed a process for lack of memory"
            }
            _ => "",
        };
        if let Some(signal) = stopped {
            return Err(BrokenOff::Asked(signal));
        }
        if let Some(error) = refused {
            return Ok(Err(format!("{} cannot be started: {error}", printable(&words[0].to_string_lossy()))));
        }
        Ok(match (ended, death) {
            (None, _) => Err(format!(
                "it had not ended after {} and was ended; --timeout allows more",
                humantime::format_duration(self.timeout)
            )),
            (Some(time), Death::Exited(0)) => Ok(Once {
                seconds: time.as_secs_f64(),
                usage: if is_beside { usage } else { Usage::of_children() - before },
                load: watch.load(),
                left,
                phases: None,
            }),
            // This status has a meaning only for this program's own processes.
            (Some(_), Death::MemoryRefused) => {
                Err(format!("it ended with exit status {REFUSED}{killed}{}", self.last_words()?))
            }
            (Some(_), death) => Err(format!("it ended with {death}{killed}{}", self.last_words()?)),
        })
    }

    /// Starts a command. Returns the error as well if it could not be started.
    fn begin(&self, words: &[OsString], circumstances: &Circumstances) -> io::Result<(Child, Option<io::Error>)> {
        let (mut told, tell) = io::pipe()?;
        let said = self.said.try_clone()?;
        let child = fork_worker(|| {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
            circumstances.set(&mut command);
            let error = command.exec();
            // Nobody reads it if the other process has ended.
            let _ = (&tell).write_all(&error.raw_os_error().unwrap_or(0).to_ne_bytes());
            127
        })
        .map_err(io::Error::other)?;
        // The command has started when no process can write to the pipe any more.
        drop(tell);
        let mut refused = Vec::new();
        told.read_to_end(&mut refused)?;
        let error = |bytes: &[u8; 4]| io::Error::from_raw_os_error(i32::from_ne_bytes(*bytes));
        Ok((child, refused.first_chunk().map(error)))
    }

    /// Waits until a command ends, its time is over, or this program is asked to end. Returns the time of its end, or
    /// the signal.
    fn wait_for(
        &self,
        child: &Child,
        began: Instant,
        mut look: Option<&mut Look>,
    ) -> io::Result<(Option<Duration>, Option<i32>)> {
        loop {
            let left = self.timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok((None, None));
            }
            let next = look.as_mut().map(|look| look.once());
            let wait_ms = (next.unwrap_or(left).min(left).as_millis() + 1).min(u128::from(u32::MAX)) as u32;
            let ready = poll(&[child.pidfd(), self.stop.fd()], Some(wait_ms))?;
            if ready.contains(&0) {
                return Ok((Some(began.elapsed()), None));
            }
            if let Some(signal) = ready.contains(&1).then(|| self.stop.taken()).flatten() {
                return Ok((None, Some(signal)));
            }
        }
    }

    /// Returns the last line of the command's standard error that gives a reason.
    fn last_words(&self) -> io::Result<String> {
        const BYTES: u64 = 4096;
        const HELP: &str = "For more information, try ";
        let mut file = &self.said;
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(end.saturating_sub(BYTES)))?;
        let mut text = Vec::new();
        file.take(BYTES).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let reason = match last {
            // The parser of our options, and of many other programs, gives the reason first.
            Some(help) if help.starts_with(HELP) => {
                text.lines().rev().find_map(|line| line.strip_prefix("error: ")).or(last)
            }
            _ => last,
        };
        Ok(reason.map_or(String::new(), |line| format!(": {line}")))
    }

    /// Ends this process as the signal would have.
    pub fn end_by(mut programs: Vec<Launcher>, signal: i32) {
        let Some(stop) = programs.pop().map(|last| last.stop) else { return };
        drop(programs);
        if let Ok(stop) = Rc::try_unwrap(stop) {
            stop.end_by(signal);
        }
    }
}
