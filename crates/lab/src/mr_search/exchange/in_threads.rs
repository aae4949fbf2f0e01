//! Lists in a grid, one for each two threads.
//!
//! 1. A worker fills a list for each other, in memory from its supply.
//! 2. At the end of a step it puts the lists into its row of the grid, and waits for all others.
//! 3. It reads the lists in its column. Where memory is kept, they stay there, and their owner takes them back at the
//!    end of the step after next. Otherwise the reader frees them, as a MapReduce does that shares an allocator.
//!
//! There are two grids, used in turn: nobody puts a list where another is still read, because two steps lie between.

use std::io;
use std::mem;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::ends::Exchange;
use crate::mr_search::supply::{Role, Supply};

/// The grids and the barrier of all threads.
pub struct Grid {
    workers: usize,
    lists: [Vec<Mutex<Vec<u64>>>; 2],
    all: Barrier,
}

/// The end of one thread.
pub struct InThreads<'g> {
    grid: &'g Grid,
    worker: usize,
    step: usize,
    /// For each worker, the pairs for it.
    filled: Vec<Vec<u64>>,
    pub supply: Supply<'g>,
}

impl Grid {
    pub fn new(workers: usize) -> Grid {
        let lists = [(), ()].map(|()| (0..workers * workers).map(|_| Mutex::default()).collect());
        Grid { workers, lists, all: Barrier::new(workers) }
    }

    fn list(&self, step: usize, from: usize, to: usize) -> MutexGuard<'_, Vec<u64>> {
        self.lists[step % 2][from * self.workers + to].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'g> InThreads<'g> {
    pub fn new(grid: &'g Grid, worker: usize, supply: Supply<'g>) -> InThreads<'g> {
        InThreads { grid, worker, step: 0, filled: (0..grid.workers).map(|_| Vec::new()).collect(), supply }
    }
}

impl Exchange for InThreads<'_> {
    #[inline]
    fn give(&mut self, to: usize, pair: [u64; 2], _take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        let list = &mut self.filled[to];
        if list.len() + 2 > list.capacity() {
            match list.capacity() {
                0 => *list = self.supply.take(Role::Buffer, 2),
                _ => self.supply.grow(Role::Buffer, list),
            }
        }
        list.extend_from_slice(&pair);
        Ok(())
    }

    fn end_step(&mut self, take: &mut impl FnMut([u64; 2])) -> io::Result<()> {
        for (to, list) in self.filled.iter_mut().enumerate() {
            let before = mem::replace(&mut *self.grid.list(self.step, self.worker, to), mem::take(list));
            if before.capacity() > 0 {
                self.supply.give_back(Role::Buffer, before);
            }
        }
        self.grid.all.wait();
        for from in 0..self.grid.workers {
            let mut list = self.grid.list(self.step, from, self.worker);
            list.as_chunks::<2>().0.iter().copied().for_each(&mut *take);
            if !self.supply.is_kept() {
                self.supply.give_back(Role::Buffer, mem::take(&mut list));
            }
        }
        self.step += 1;
        Ok(())
    }
}
