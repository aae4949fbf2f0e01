//! Phoenix: threads and a global array of hash tables, with a row for each map worker and a column for each reduce
//! worker. No one reduces before all have mapped.
//!
//! ```text
//!            reducer 0   reducer 1 ...
//!  mapper 0   table       table           a map worker writes its row; then, behind the barrier,
//!  mapper 1   table       table           a reduce worker reads its column
//! ```

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use gristmill_os::Pieces;

use super::application::ModelInput;
use super::pipeline::write;
use super::shared::{Stat, Stats, Used};
use super::table::{Table, reducer_of};

/// Phoenix with its choices.
pub struct Phoenix<'r> {
    pub input: &'r ModelInput,
    pub words: &'r [AtomicU64],
    pub combine: bool,
    pub workers: usize,
}

impl Phoenix<'_> {
    /// As [`Pipeline::run`](super::pipeline::Pipeline::run).
    pub fn run(&self, answer: &Pieces, totals: &[AtomicU64]) -> io::Result<Instant> {
        let next_task = AtomicU64::new(0);
        let next_task = &next_task;
        let (rows, started) = thread::scope(|scope| {
            let mappers: Vec<_> = (0..self.workers).map(|_| scope.spawn(move || self.map(next_task, totals))).collect();
            let started = Instant::now();
            let rows = mappers.into_iter().map(|mapper| mapper.join().expect("a map worker does not panic"));
            (rows.collect::<Vec<Vec<Table>>>(), started)
        });
        let rows = &rows;
        thread::scope(|scope| {
            let reduce = |column| scope.spawn(move || self.reduce(rows, column, answer, totals));
            let reducers: Vec<_> = (0..self.workers).map(reduce).collect();
            reducers.into_iter().try_for_each(|reducer| reducer.join().expect("a reduce worker does not panic"))
        })?;
        Ok(started)
    }

    /// Fills a row.
    fn map(&self, next_task: &AtomicU64, totals: &[AtomicU64]) -> Vec<Table> {
        let (began, used, mut stats) = (Instant::now(), Used::now(), Stats::default());
        let keys = self.input.keys() / self.workers;
        let mut row: Vec<Table> = (0..self.workers).map(|_| Table::new(keys, true, self.combine)).collect();
        stats.add(Stat::SetUpNs, began.elapsed().as_nanos() as u64);
        let mut emitted = 0;
        loop {
            let task = next_task.fetch_add(1, Ordering::Relaxed) as usize;
            if task >= self.input.tasks() {
                break;
            }
            self.input.map(self.words, task, &mut |key, value| {
                emitted += 1;
                row[reducer_of(key, self.workers)].insert(key, value);
            });
        }
        stats.add(Stat::Emitted, emitted);
        stats.add(Stat::Sent, row.iter().map(|table| table.pairs() as u64).sum());
        stats.add(Stat::MapNs, began.elapsed().as_nanos() as u64);
        used.add_to(&mut stats, [Stat::MapAllocations, Stat::MapBytes]);
        stats.publish(totals);
        row
    }

    /// Merges a column.
    fn reduce(&self, rows: &[Vec<Table>], column: usize, answer: &Pieces, totals: &[AtomicU64]) -> io::Result<()> {
        let (began, used, mut stats) = (Instant::now(), Used::now(), Stats::default());
        let mut merged = Table::new(self.input.keys() / self.workers, true, self.combine);
        for row in rows {
            row[column].pairs_of_all(|key, value| merged.insert(key, value));
        }
        write(&merged, answer, column)?;
        stats.add(Stat::ReduceNs, began.elapsed().as_nanos() as u64);
        used.add_to(&mut stats, [Stat::ReduceAllocations, Stat::ReduceBytes]);
        stats.publish(totals);
        Ok(())
    }
}
