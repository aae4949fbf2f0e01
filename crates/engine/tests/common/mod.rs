//! Shared by the tests of deaths: a supervisor that runs and watches each test in its own process, programs whose
//! result ten sequential lines compute, and random jobs.

#![allow(dead_code)] // Each test program uses a part.

pub mod arrays;
pub mod random_case;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gristmill::internal::Moment;
use gristmill::options::{Buffer, Combining, Exchange, PagePolicy, Placement};
use gristmill::sinks::{PartFiles, Row};
use gristmill::stats::{Event, PHASES};
use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, Next, Order, Pairs, ProgramError, Summary};
use rustix::process::{Pid, Signal, kill_process};

/// The time after which a job is considered to hang.
pub const WATCHDOG: Duration = Duration::from_secs(20);
/// The time after a job within which its processes must be gone.
pub const GONE_WITHIN: Duration = Duration::from_secs(1);
/// The largest number of tests that run at the same time.
const AT_ONCE_MAX: usize = 4;
/// The environment variable by which the supervisor finds every process of a test, including orphans.
const MARK: &str = "GRISTMILL_TEST_MARK";

/// Pseudo-random numbers that depend only on the seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

// Supervisor.

/// A process under watch, and everything that it starts.
pub struct Watched {
    pub child: Child,
    mark: String,
    pub temp: tempfile::TempDir,
}

/// Starts this program again with `arguments`. Its output goes to `out` in its temporary directory.
pub fn start(arguments: &[&str]) -> Watched {
    start_with(arguments, &[])
}

/// As [`start`], with additional environment variables.
pub fn start_with(arguments: &[&str], variables: &[(&str, &Path)]) -> Watched {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}.{count}", std::process::id());
    let temp = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(temp.path().join("tmp")).expect("made");
    let out = fs::File::create(temp.path().join("out")).expect("made");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .env(MARK, &mark)
        .env("TMPDIR", temp.path().join("tmp"))
        .stdin(Stdio::null())
        .stdout(out.try_clone().expect("a second descriptor"))
        .stderr(out);
    gristmill_os::signals::heed(&mut command);
    let child = command.spawn().expect("this program starts again");
    Watched { child, mark, temp }
}

impl Watched {
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Returns what it has printed so far.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.temp.path().join("out")).expect("read")).into_owned()
    }

    /// Returns the processes that it has started, without itself.
    pub fn workers(&self) -> Vec<i32> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid())).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Waits for its end; an error if that takes longer than `limit`, not counting the time for which its processes had
    /// to wait for a processor: on a machine under load it is late and does not hang.
    pub fn wait(
        &mut self,
        limit: Duration,
        mut meanwhile: impl FnMut(&Self),
    ) -> Result<std::process::ExitStatus, String> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Ok(status);
            }
            if began.elapsed() > limit && began.elapsed() > limit + self.waited_for_processors().min(9 * limit) {
                let state = self.state();
                self.end();
                return Err(format!("it hangs\n{state}"));
            }
            meanwhile(self);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns an error if it leaves anything behind after its end: processes, temporary files, shared memory.
    pub fn leftovers(&self) -> Result<(), String> {
        let began = Instant::now();
        let mut left = processes_with(&self.mark);
        while !left.is_empty() && began.elapsed() < GONE_WITHIN {
            std::thread::sleep(Duration::from_millis(2));
            left = processes_with(&self.mark);
        }
        if !left.is_empty() {
            let state = self.state();
            self.end();
            return Err(format!("processes {left:?} are left\n{state}"));
        }
        let files: Vec<_> = fs::read_dir(self.temp.path().join("tmp")).expect("listed").flatten().collect();
        if !files.is_empty() {
            return Err(format!("temporary files are left: {files:?}"));
        }
        let shared = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let shared: Vec<_> = shared.filter(|entry| entry.file_name().to_string_lossy().contains("gristmill")).collect();
        if shared.is_empty() { Ok(()) } else { Err(format!("shared memory is left: {shared:?}")) }
    }

    /// Returns the time for which its processes could run and had no processor.
    fn waited_for_processors(&self) -> Duration {
        let waited_ns = |pid: &i32| -> Option<u64> {
            let numbers = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
            numbers.split(' ').nth(1)?.parse().ok()
        };
        Duration::from_nanos(processes_with(&self.mark).iter().filter_map(waited_ns).sum())
    }

    /// Describes what its processes are doing.
    fn state(&self) -> String {
        let mut state = String::new();
        for pid in processes_with(&self.mark) {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            state +=
                &format!("  pid {pid}: {}  in {} {}\n", read("stat").trim(), read("wchan"), read("syscall").trim());
            let stack = Command::new("gdb").args(["-p", &pid.to_string(), "-batch", "-ex", "bt 16"]).output();
            if let Ok(stack) = stack {
                let stack = String::from_utf8_lossy(&stack.stdout).into_owned();
                stack.lines().filter(|line| line.starts_with('#')).for_each(|line| state += &format!("    {line}\n"));
            }
        }
        state + "  it printed: " + &self.printed()
    }

    fn end(&self) {
        for pid in processes_with(&self.mark) {
            kill(pid, Signal::KILL);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.end();
        let _ = self.child.wait();
    }
}

pub fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal); // It may have ended by itself.
    }
}

/// Returns every living process whose environment has the mark.
fn processes_with(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let pids = fs::read_dir("/proc").expect("listed").flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

/// A test; its name is a claim.
pub type Test = (&'static str, fn());

/// Runs `tests`, each in its own process, as the `main` of a test program without harness. `helpers` are the bodies of
/// processes that tests start.
pub fn run(tests: &[Test], helpers: &[Test]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = &arguments[..]
        && flag == "--alone"
    {
        let (_, test) = tests.iter().chain(helpers).find(|(known, _)| known == name).expect("a test of this name");
        return test();
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-')).cloned().unwrap_or_default();
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| name.contains(&filter)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Many tests wait for most of their time.
    let at_once = std::thread::available_parallelism().map_or(1, |processors| processors.get().min(AT_ONCE_MAX));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((name, _)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    failed.fetch_add(usize::from(!passes(name)), Ordering::Relaxed);
                }
            });
        }
    });
    let failed = failed.into_inner();
    println!("{} claims passed, {failed} failed", chosen.len() - failed);
    std::process::exit(i32::from(failed > 0));
}

/// Runs a test in a process of its own, prints the outcome, and returns whether it has passed.
fn passes(name: &str) -> bool {
    let began = Instant::now();
    let mut test = start(&["--alone", name]);
    let outcome = test.wait(WATCHDOG * 6, |_| {}).and_then(|status| {
        test.leftovers()?;
        if status.success() { Ok(()) } else { Err(format!("{status}\n{}", test.printed())) }
    });
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    let why = outcome.as_ref().err().map_or(String::new(), |why| format!("\n{why}"));
    println!("{name} ... {word} ({:.1} s){why}", began.elapsed().as_secs_f64());
    outcome.is_ok()
}

// Programs and their oracle.

fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let start = text.as_ptr() as usize;
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - start, word))
}

/// Counts the occurrences of each word. It emits a hundred words together, the next hundred alone, and so on.
pub struct Count {
    /// The time that the map function waits on each call.
    pub pause: Duration,
}

impl MapReduce for Count {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        rest(self.pause);
        let text = chunk.bytes();
        let places: Vec<[u32; 2]> = words(text).map(|(at, word)| [at as u32, (at + word.len()) as u32]).collect();
        for (number, hundred) in places.chunks(100).enumerate() {
            if number % 2 == 0 {
                out.emit_each(text, hundred, 1);
            } else {
                hundred.iter().for_each(|[start, end]| out.emit(&text[*start as usize..*end as usize], 1));
            }
        }
        Ok(())
    }
}

/// Emits every word with its place in the file. No two pairs are the same, so any missing pair is noticed.
pub struct Places {
    pub pause: Duration,
}

impl MapReduce for Places {
    type Key = Bytes;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        rest(self.pause);
        let offset = chunk.offset();
        words(chunk.bytes()).for_each(|(at, word)| out.emit(word, offset + at as u64));
        Ok(())
    }
}

/// Pairs that travel from step to step: every word loses its first letter, and a new one starts from its mirror image.
pub struct Walk<const COMBINES: bool> {
    pub pause: Duration,
}

impl<const COMBINES: bool> MapReduce for Walk<COMBINES> {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        if COMBINES { Some(|a, b| a + b) } else { None }
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        rest(self.pause);
        let state = u64::from(chunk.state()[0]);
        words(chunk.bytes()).for_each(|(_, word)| out.emit(word, 1 + state));
        Ok(())
    }

    fn map_pairs(&self, pairs: &Pairs<'_, Bytes, u64>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        rest(self.pause);
        for (word, number) in pairs.iter() {
            walk(word, number, u64::from(pairs.state()[0]), |word, number| out.emit(word, number));
        }
        Ok(())
    }
}

fn walk(word: &[u8], number: u64, state: u64, mut emit: impl FnMut(&[u8], u64)) {
    emit(word.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(word), number);
    let mirrored: Vec<u8> = word.iter().rev().copied().collect();
    emit(&mirrored, 1 + state);
}

/// Returns what a job of `steps` steps maps after step `number`.
fn next_of(number: u32, steps: u32) -> Next {
    match number {
        last if last + 1 == steps => Next::Stop,
        third if third % 3 == 2 => Next::Input,
        _ => Next::Pairs,
    }
}

/// Returns the sorted pairs of each step, computed by ten sequential lines.
fn walk_oracle(text: &[u8], combines: bool, steps: u32) -> Vec<Answer> {
    let mut all: Vec<Answer> = Vec::new();
    for number in 0..steps {
        let (state, mut pairs) = (u64::from(number), Answer::new());
        match number.checked_sub(1).map(|before| next_of(before, steps)) {
            None | Some(Next::Input) => words(text).for_each(|(_, word)| pairs.push((word.to_vec(), 1 + state))),
            _ => all[number as usize - 1].iter().for_each(|(word, number)| {
                walk(word, *number, state, |word, number| pairs.push((word.to_vec(), number)));
            }),
        }
        if combines {
            let mut sums = BTreeMap::<Vec<u8>, u64>::new();
            pairs.into_iter().for_each(|(word, number)| *sums.entry(word).or_default() += number);
            pairs = sums.into_iter().collect();
        }
        pairs.sort();
        all.push(pairs);
    }
    all
}

fn rest(pause: Duration) {
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
}

/// Pairs in the requested order.
pub type Answer = Vec<(Vec<u8>, u64)>;

/// Returns the result as computed by ten sequential lines.
pub fn oracle(text: &[u8], count: bool, order: Order, limit: usize) -> Answer {
    let mut pairs: Answer = if count {
        let mut counts = BTreeMap::<&[u8], u64>::new();
        words(text).for_each(|(_, word)| *counts.entry(word).or_default() += 1);
        counts.into_iter().map(|(word, count)| (word.to_vec(), count)).collect()
    } else {
        words(text).map(|(at, word)| (word.to_vec(), at as u64)).collect()
    };
    pairs.sort();
    if order == Order::ByValueDescending {
        pairs.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    pairs.truncate(limit);
    pairs
}

// Jobs.

/// All properties of a job except its input.
#[derive(Clone, Debug)]
pub struct Case {
    /// Whether to count words; otherwise lists their places.
    pub count: bool,
    pub workers: usize,
    /// Separate map and reduce workers.
    pub split: Option<(usize, usize)>,
    pub exchange: Exchange,
    pub buffer: Buffer,
    pub combine: Combining,
    pub pages: PagePolicy,
    pub page_bytes: usize,
    pub split_bytes: u64,
    pub order: Order,
    pub limit: usize,
    pub retries: u32,
    pub map_pause: Duration,
    /// The receiver of the result waits this long after every 512 pairs.
    pub take_pause: Duration,
    pub progress: bool,
    /// The number of steps of an iterated job; 0 for other jobs.
    pub steps: u32,
    /// Whether the job gets the least memory that it can run with.
    pub least_memory: bool,
    pub deterministic: bool,
    /// Whether reducers write the result to files. Not for jobs in steps.
    pub sink: bool,
    pub timeline: bool,
    /// Whether the job believes that the machine has two nodes, each of which reduces its own pairs where that is
    /// possible.
    pub by_node: bool,
    pub task_timeout: Option<Duration>,
    /// A worker, a moment, the ordinal of that moment, and a seed: there the worker overwrites a shared word.
    pub overwrite: Option<(usize, Moment, u64, u64)>,
}

impl Case {
    /// Small pages and splits, so that there are many hand-overs.
    pub fn fused(workers: usize) -> Case {
        Case {
            count: true,
            workers,
            split: None,
            exchange: Exchange::Pipelined,
            buffer: Buffer::Auto,
            combine: Combining::Both,
            pages: PagePolicy::Reuse,
            page_bytes: 4096,
            split_bytes: 2000,
            order: Order::ByKey,
            limit: usize::MAX,
            retries: 2,
            map_pause: Duration::ZERO,
            take_pause: Duration::ZERO,
            progress: false,
            steps: 0,
            least_memory: false,
            deterministic: false,
            sink: false,
            timeline: true,
            by_node: false,
            task_timeout: None,
            overwrite: None,
        }
    }

    pub fn split(map: usize, reduce: usize) -> Case {
        Case { split: Some((map, reduce)), ..Case::fused(0) }
    }

    fn settle<'j, J: MapReduce>(&self, program: &'j J, input: &Path) -> Job<'j, J> {
        let mut job = Job::new(program, Input::paths([input]))
            .records(gristmill::Records::Separated(|byte| byte.is_ascii_whitespace()))
            .exchange(self.exchange)
            .buffer(self.buffer)
            .combine(self.combine)
            .pages(self.pages)
            .page_bytes(self.page_bytes)
            .split_bytes(self.split_bytes)
            .deterministic(self.deterministic)
            .retries(self.retries)
            .timeline(self.timeline);
        if let Some(limit) = self.task_timeout {
            job = job.task_timeout(limit);
        }
        if let Some((worker, moment, nth, seed)) = self.overwrite {
            job = job.overwrite_at(worker, moment, nth, seed);
        }
        if self.by_node {
            job = job.nodes(&[&[0], &[1]]).placement(Placement::ByNode);
        }
        job = match self.split {
            Some((map, reduce)) => job.map_workers(map).reduce_workers(reduce),
            None => job.workers(self.workers),
        };
        if self.limit < usize::MAX { job.top(self.limit) } else { job.order(self.order) }
    }

    /// Runs an iterated job and compares the pairs of each step with the oracle's.
    fn check_steps<const COMBINES: bool>(
        &self,
        program: &Walk<COMBINES>,
        input: &Path,
        fates: &[(usize, gristmill::internal::Moment, u64)],
    ) -> Result<Summary, String> {
        let expected = walk_oracle(&fs::read(input).expect("read"), COMBINES, self.steps);
        let job = || self.settle(program, input).keep_bytes(64 << 20);
        let tight = || job().memory(least_memory_in_steps(job()));
        let mut job = with_fates(if self.least_memory { tight() } else { job() }, fates);
        if self.progress {
            job = job.on_progress(|_| {});
        }
        let mut wrong = None;
        let outcome = job.iterate(&[0], |step| {
            let (number, mut found) = (step.number(), Answer::new());
            step.for_each(|word, number| found.push((word.to_vec(), number)));
            found.sort();
            let expected = &expected[number as usize];
            assert_eq!(step.pairs(), found.len() as u64);
            if found != *expected {
                let message = format!("step {number}: {} pairs instead of {}", found.len(), expected.len());
                wrong.get_or_insert(message);
            }
            if let Some((word, _)) = found.first() {
                assert!(step.get(word).is_some(), "a key that is there is found");
            }
            rest(self.take_pause);
            step.set_state(&[number as u8 + 1]);
            next_of(number, self.steps)
        });
        let summary = outcome.map_err(|error| error.to_string())?;
        assert_eq!(summary.steps, self.steps);
        self.check_timeline(&summary);
        match wrong {
            None => Ok(summary),
            Some(wrong) => Err(format!("WRONG ANSWER: {wrong}. Deaths: {:#?}", summary.deaths)),
        }
    }

    /// Runs the job after `change` has modified it.
    pub fn run_with<J>(
        &self,
        program: &J,
        input: &Path,
        change: impl FnOnce(Job<J>) -> Job<J>,
    ) -> gristmill::Result<(Answer, Summary)>
    where
        J: MapReduce<Key = Bytes, Value = u64>,
    {
        let job = || self.settle(program, input);
        let mut job = change(if self.least_memory { job().memory(least_memory(job())) } else { job() });
        if self.progress {
            job = job.on_progress(|_| {});
        }
        if self.sink {
            let dir = tempfile::tempdir().expect("a folder");
            let summary = job.run_into(&PartFiles::new(dir.path().join("result"), &Pair).expect("made"))?;
            return Ok((self.read_parts(dir.path(), &summary), summary));
        }
        let mut pairs = Answer::new();
        let summary = job.run_each(|key, value| {
            pairs.push((key.to_vec(), value));
            if pairs.len().is_multiple_of(512) {
                rest(self.take_pause);
            }
        })?;
        Ok((pairs, summary))
    }

    /// Reads what reducers have written to `result` in this folder, and checks that each part is in order.
    fn read_parts(&self, dir: &Path, summary: &Summary) -> Answer {
        let names = |dir: &Path| {
            let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
            entries.collect::<Vec<PathBuf>>()
        };
        assert_eq!(names(dir), [dir.join("result")], "nothing else is left");
        let order = if self.limit < usize::MAX { Order::ByValueDescending } else { self.order };
        let by_order = |a: &(Vec<u8>, u64), b: &(Vec<u8>, u64)| match order {
            Order::Unordered => std::cmp::Ordering::Equal,
            Order::ByKey => a.cmp(b),
            Order::ByValueDescending => b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)),
            _ => panic!("the oracle does not know {order:?}"),
        };
        let mut all = Answer::new();
        for path in names(&dir.join("result")) {
            let bytes = fs::read(&path).expect("read");
            let (mut rest, mut part) = (&bytes[..], Answer::new());
            while let Some((key_bytes, after)) = rest.split_first_chunk() {
                let (key, after) = after.split_at(u64::from_le_bytes(*key_bytes) as usize);
                let (value, after) = after.split_first_chunk().expect("a value");
                part.push((key.to_vec(), u64::from_le_bytes(*value)));
                rest = after;
            }
            assert!(part.is_sorted_by(|a, b| by_order(a, b).is_le()), "{} is out of order", path.display());
            all.extend(part);
        }
        assert_eq!(summary.pairs, all.len() as u64);
        all.sort_by(by_order);
        all
    }

    /// Runs the job and compares its result with the oracle's.
    pub fn check(&self, input: &Path, fates: &[(usize, gristmill::internal::Moment, u64)]) -> Result<Summary, String> {
        let pause = self.map_pause;
        if self.steps > 0 && self.count {
            return self.check_steps(&Walk::<true> { pause }, input, fates);
        } else if self.steps > 0 {
            return self.check_steps(&Walk::<false> { pause }, input, fates);
        }
        let ran = if self.count {
            self.run_with(&Count { pause }, input, |job| with_fates(job, fates))
        } else {
            self.run_with(&Places { pause }, input, |job| with_fates(job, fates))
        };
        let (pairs, summary) = ran.map_err(|error| error.to_string())?;
        self.check_timeline(&summary);
        self.judge(input, pairs).map_err(|why| format!("{why}. Deaths: {:#?}", summary.deaths))?;
        Ok(summary)
    }

    /// Compares the timeline of a run with its statistics.
    fn check_timeline(&self, summary: &Summary) {
        assert_eq!(summary.timeline.is_some(), self.timeline);
        // What a worker reports may be what was overwritten.
        let Some(timeline) = summary.timeline.as_ref().filter(|_| self.overwrite.is_none()) else { return };
        let context = || format!("{timeline:?}\nof {summary:?}");
        // 1. Every death is marked, and so is every round but the first, and every step.
        let is = |test: fn(&Event) -> bool| timeline.marks.iter().filter(|mark| test(&mark.event)).count();
        assert_eq!(is(|event| matches!(event, Event::Death { .. })), summary.deaths.len(), "{}", context());
        assert_eq!(is(|event| matches!(event, Event::Step(_))) + 1, summary.steps as usize);
        let rounds = is(|event| matches!(event, Event::Redo | Event::Step(_))) + 1;
        assert_eq!((rounds, timeline.marked_every), (summary.rounds as usize, 1));
        assert!(timeline.marks.is_sorted_by_key(|mark| mark.at_ns));
        for worker in &summary.workers {
            let total_ns: u64 = PHASES.iter().map(|phase| worker.counters.time_ns(*phase)).sum();
            let Some(track) = timeline.tracks.iter().find(|track| track.number == worker.number) else {
                assert_eq!(total_ns, 0, "a worker without a track was never started");
                continue;
            };
            // 2. The phases of a worker follow each other without a gap, to its death or to the end of the job.
            assert_eq!(PHASES.map(|phase| track.time_ns(phase)).iter().sum::<u64>(), track.end_ns);
            assert!(track.born_ns <= track.end_ns && track.end_ns <= timeline.wall_ns, "{}", context());
            for (at, bucket) in track.buckets.iter().enumerate() {
                let filled_ns = (track.end_ns - at as u64 * track.width_ns).min(track.width_ns);
                assert_eq!(bucket.iter().sum::<u64>(), filled_ns, "bucket {at} of {track:?}");
            }
            let death = timeline.marks.iter().find_map(|mark| match mark.event {
                Event::Death { worker: dead, .. } if dead == worker.number => Some(mark.at_ns),
                _ => None,
            });
            match death {
                // It had told less than it had done.
                Some(at_ns) => assert!(track.end_ns == at_ns && total_ns <= at_ns, "{}", context()),
                // 3. What a worker has told when it ends is what it has recorded.
                None if total_ns == track.end_ns => {
                    let told = PHASES.map(|phase| worker.counters.time_ns(phase));
                    assert_eq!(PHASES.map(|phase| track.time_ns(phase)), told, "{}", context());
                }
                // It was ended by the end of the job.
                None => assert!(total_ns < track.end_ns, "{}", context()),
            }
        }
    }

    /// Compares a result with the oracle's.
    pub fn judge(&self, input: &Path, mut pairs: Answer) -> Result<(), String> {
        if self.order == Order::Unordered && self.limit == usize::MAX {
            pairs.sort();
        }
        let text = fs::read(input).expect("read");
        let order = if self.limit < usize::MAX { Order::ByValueDescending } else { self.order };
        let expected = oracle(&text, self.count, order, self.limit);
        match expected.iter().zip(&pairs).position(|(expected, found)| expected != found) {
            None if expected.len() == pairs.len() => Ok(()),
            at => Err(format!(
                "WRONG ANSWER: {} pairs instead of {}; the first that differs is number {at:?}",
                pairs.len(),
                expected.len(),
            )),
        }
    }
}

/// A pair in a file: the length of the key, the key, and the value.
struct Pair;

impl Row<Bytes, u64> for Pair {
    fn write(&self, key: &[u8], value: u64, to: &mut Vec<u8>) {
        to.extend_from_slice(&(key.len() as u64).to_le_bytes());
        to.extend_from_slice(key);
        to.extend_from_slice(&value.to_le_bytes());
    }
}

fn with_fates<'j, J: MapReduce>(job: Job<'j, J>, fates: &[(usize, gristmill::internal::Moment, u64)]) -> Job<'j, J> {
    fates.iter().fold(job, |job, (worker, moment, nth)| job.die_at(*worker, *moment, *nth))
}

/// Runs `case` repeatedly. `worker` dies at its first `moment`, then at the one that `next` returns, until it no longer
/// reaches it. Returns the number of deaths.
pub fn die_at_every(case: &Case, input: &Path, worker: usize, moment: Moment, next: impl Fn(u64) -> u64) -> usize {
    until_nobody_dies(next, |nth| {
        case.check(input, &[(worker, moment, nth)]).unwrap_or_else(|why| {
            panic!("worker {worker} at its {nth}. {moment:?}: {why}\n{case:?}");
        })
    })
}

/// Calls `run` with the ordinal of the moment at which a worker dies: first 1, then the one that `next` returns, until
/// no worker reaches it. Returns the number of deaths.
pub fn until_nobody_dies(next: impl Fn(u64) -> u64, run: impl Fn(u64) -> Summary) -> usize {
    let (mut died, mut survived, mut nth) = (0, 0, 1);
    loop {
        let summary = run(nth);
        died += summary.deaths.len();
        // Chance decides which worker gets which task, so a single survival proves nothing.
        survived = if summary.deaths.is_empty() { survived + 1 } else { 0 };
        if survived == if died == 0 { 10 } else { 2 } {
            return died;
        }
        nth = if died == 0 { nth } else { next(nth) };
    }
}

/// Returns the least memory that `job` can run with, which it reports when it is given less.
pub fn least_memory<J: MapReduce>(job: Job<J>) -> usize {
    least_of(job.memory(1).run().map(|_| ()))
}

/// As [`least_memory`], for a job in steps.
pub fn least_memory_in_steps<J: MapReduce>(job: Job<J>) -> usize {
    least_of(job.memory(1).iterate(&[0], |_| Next::Stop).map(|_| ()))
}

fn least_of(outcome: Result<(), gristmill::Error>) -> usize {
    let why = outcome.expect_err("one byte is enough for no job").to_string();
    let (_, least) = why.split_once("needs at least ").unwrap_or_else(|| panic!("it should name the least: {why}"));
    let mib: usize = least.split(' ').next().and_then(|mib| mib.parse().ok()).expect("a number of MiB");
    mib << 20
}

/// Returns about `bytes` bytes of text: words of `vocabulary`, and sometimes one that is longer than a page.
pub fn random_text(random: &mut Random, bytes: usize, vocabulary: u64, word_bytes: u64, giants: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 64);
    while text.len() < bytes {
        let word = random.below(vocabulary);
        let length = 1 + Random(word).below(word_bytes);
        text.extend_from_slice(format!("{word:x}").as_bytes());
        text.extend(std::iter::repeat_n(b'a' + (word % 26) as u8, length as usize));
        if giants && random.below(200) == 0 {
            text.extend(std::iter::repeat_n(b'g', 3000 + random.below(9000) as usize));
        }
        text.push(random.pick(b"  \n\t"));
    }
    text
}

/// Writes `text` to a file that a job can read.
pub fn input_of(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    fs::write(&path, text).expect("written");
    (dir, path)
}

/// Returns the kilobytes of memory of this process, its children and the shared pages that they touched.
pub fn resident_kib() -> u64 {
    let resident = |pid: &str| {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        // What lies in files can be given up at any time.
        let kinds = ["Pss_Anon:", "Pss_Shmem:"];
        let of_kind = |kind| rollup.lines().find_map(|line| line.strip_prefix(kind)).unwrap_or_default();
        kinds
            .map(|kind| of_kind(kind).trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0))
            .into_iter()
            .sum::<u64>()
    };
    let own = std::process::id();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    resident("self") + children.split_whitespace().map(resident).sum::<u64>()
}
