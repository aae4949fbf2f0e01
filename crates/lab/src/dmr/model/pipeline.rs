//! DMR: map workers send pages to reduce workers, which begin with the first page, or behind a barrier with the last.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use gristmill_os::process::{Child, Death, OomKills, fork_worker_of};
use gristmill_os::{Pieces, Window};

use super::application::ModelInput;
use super::buffer::{MapBuffers, pairs_of};
use super::channel::{Inlet, Outlet};
use super::shared::{Pause, Shared, Sizes, Stat, Stats, Used};
use super::strategy::{BufferKind, ChannelKind, CombineAt};
use super::table::Table;

/// DMR with its choices.
pub struct Pipeline<'r> {
    pub input: &'r ModelInput,
    pub words: &'r [AtomicU64],
    pub buffer: BufferKind,
    pub combine: CombineAt,
    pub channel: ChannelKind,
    pub isolated: bool,
    pub barrier: bool,
    pub workers: usize,
}

impl Pipeline<'_> {
    /// Runs it. Each reducer writes its pairs into a piece of `answer`: their count, then keys and values. Returns when
    /// all workers had been started; adds the numbers of all workers to `totals`.
    pub fn run(&self, answer: &Pieces, totals: &[AtomicU64]) -> io::Result<Instant> {
        let sizes = Sizes::new(self.workers, self.barrier, self.input.pairs_max());
        let shared = Shared::new(sizes, self.channel == ChannelKind::Remap)?;
        let map = |number| self.map(&shared, number).map(|stats| stats.publish(shared.words().totals()));
        let reduce = |number| self.reduce(&shared, number, answer).map(|stats| stats.publish(shared.words().totals()));
        let started = if self.isolated { self.in_processes(map, reduce)? } else { self.in_threads(map, reduce)? };
        let of_run = shared.words().totals().iter().map(|total| total.load(Ordering::Relaxed));
        totals.iter().zip(of_run).for_each(|(total, value)| total.store(value, Ordering::Relaxed));
        Ok(started)
    }

    fn in_processes(
        &self,
        map: impl Fn(usize) -> io::Result<()>,
        reduce: impl Fn(usize) -> io::Result<()>,
    ) -> io::Result<Instant> {
        let kills = OomKills::until_now();
        let status = |done: io::Result<()>| done.map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0);
        let mut children: Vec<Child> = Vec::new();
        for number in 0..self.workers {
            children.push(fork_worker_of(kills, || status(reduce(number))).map_err(io::Error::other)?);
        }
        for number in 0..self.workers {
            children.push(fork_worker_of(kills, || status(map(number))).map_err(io::Error::other)?);
        }
        let started = Instant::now();
        for child in &mut children {
            match child.wait()? {
                Death::Exited(0) => {}
                death => return Err(io::Error::other(format!("a worker of the model: {death}"))),
            }
        }
        Ok(started)
    }

    fn in_threads(
        &self,
        map: impl Fn(usize) -> io::Result<()> + Sync,
        reduce: impl Fn(usize) -> io::Result<()> + Sync,
    ) -> io::Result<Instant> {
        let (map, reduce) = (&map, &reduce);
        thread::scope(|scope| {
            let reducers = (0..self.workers).map(|number| scope.spawn(move || reduce(number)));
            let mut workers: Vec<_> = reducers.collect();
            workers.extend((0..self.workers).map(|number| scope.spawn(move || map(number))));
            let started = Instant::now();
            let ends = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
            ends.collect::<io::Result<()>>().map(|()| started)
        })
    }

    /// The work of a map worker.
    fn map(&self, shared: &Shared, number: usize) -> io::Result<Stats> {
        let (began, used, mut stats) = (Instant::now(), Used::now(), Stats::default());
        let outlet = Outlet::new(shared, number, self.channel)?;
        let keys = self.input.keys();
        let mut buffers = MapBuffers::new(outlet, self.workers, self.buffer, self.combine.map, keys);
        stats.add(Stat::SetUpNs, began.elapsed().as_nanos() as u64);
        let (mut emitted, mut failed) = (0, Ok(()));
        loop {
            let task = shared.words().next_task().fetch_add(1, Ordering::Relaxed) as usize;
            if task >= self.input.tasks() || failed.is_err() {
                break;
            }
            self.input.map(self.words, task, &mut |key, value| {
                emitted += 1;
                if let Err(error) = buffers.emit(key, value) {
                    failed = Err(error);
                }
            });
        }
        failed?;
        let (outlet, sent, group_ns) = buffers.finish()?;
        // PAIRS WITH reduce: all pages are sent before.
        shared.words().mapped().fetch_add(1, Ordering::Release);
        stats.add(Stat::Emitted, emitted);
        stats.add(Stat::Sent, sent);
        stats.add(Stat::Pages, outlet.pages);
        stats.add(Stat::GroupNs, group_ns);
        stats.add(Stat::HandOverNs, outlet.hand_over_ns);
        stats.add(Stat::MapNs, began.elapsed().as_nanos() as u64);
        used.add_to(&mut stats, [Stat::MapAllocations, Stat::MapBytes]);
        Ok(stats)
    }

    /// The work of a reduce worker.
    fn reduce(&self, shared: &Shared, number: usize, answer: &Pieces) -> io::Result<Stats> {
        let (began, used, mut stats) = (Instant::now(), Used::now(), Stats::default());
        let mut inlet = Inlet::new(shared, number, self.channel)?;
        let mut table = Table::new(self.input.keys() / self.workers, true, self.combine.reduce);
        let (words, mut pause) = (shared.words(), Pause::default());
        // PAIRS WITH map.
        let is_mapped = || words.mapped().load(Ordering::Acquire) == self.workers as u64;
        while self.barrier && !is_mapped() {
            pause.once();
        }
        loop {
            // What arrives after the last look was sent before this one.
            let is_last = is_mapped();
            let any = inlet.receive(|page| pairs_of(page, |key, value| table.insert(key, value)))?;
            match any {
                true => pause = Pause::default(),
                false if is_last => break,
                false => pause.once(),
            }
        }
        write(&table, answer, number)?;
        stats.add(Stat::HandOverNs, inlet.hand_over_ns);
        stats.add(Stat::ReduceNs, began.elapsed().as_nanos() as u64);
        used.add_to(&mut stats, [Stat::ReduceAllocations, Stat::ReduceBytes]);
        Ok(stats)
    }
}

/// Writes the sums of a table into a piece.
pub fn write(table: &Table, answer: &Pieces, piece: usize) -> io::Result<()> {
    let window = Window::onto(answer, piece)?;
    let (words, mut count) = (window.words(), 0);
    table.sums(|key, sum| {
        words[1 + 2 * count].store(key, Ordering::Relaxed);
        words[2 + 2 * count].store(sum, Ordering::Relaxed);
        count += 1;
    });
    words[0].store(count as u64, Ordering::Relaxed);
    Ok(())
}
