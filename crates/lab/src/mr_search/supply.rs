//! Where the memory of buffers, tables and lists comes from.
//!
//! MR-Search compares malloc each time with memory that is kept for the next step (reuse), that comes from a pool, and
//! that its owner has touched before the search (prealloc).

use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;

/// The source of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MemorySource {
    /// From malloc each time, and freed after use: by the worker that read it
    Malloc,
    /// From malloc, and kept by its worker for the next step
    Reuse,
    /// From a pool of all workers of a process, and put back after use
    Pool,
    /// From malloc, as large as needed and touched before the search by its worker, and then kept
    Prealloc,
}

/// The use of a list of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Pairs for one partition.
    Buffer,
    /// The pairs of a partition, by key.
    Table,
    /// The pairs of a partition after a step: the input of the next.
    List,
}

/// The number of roles.
pub const ROLES: usize = 3;

/// Memory that is free, by the logarithm of its size: any worker may take any of it.
pub struct Pool(Vec<Mutex<Vec<Vec<u64>>>>);

impl Default for Pool {
    fn default() -> Pool {
        Pool((0..usize::BITS).map(|_| Mutex::default()).collect())
    }
}

impl Pool {
    fn class(&self, words: usize) -> &Mutex<Vec<Vec<u64>>> {
        &self.0[words.next_power_of_two().trailing_zeros() as usize]
    }

    fn take(&self, words: usize) -> Vec<u64> {
        let words = words.max(WORDS_MIN).next_power_of_two();
        let free = self.class(words).lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| Vec::with_capacity(words))
    }

    fn put(&self, list: Vec<u64>) {
        self.class(list.capacity()).lock().unwrap_or_else(PoisonError::into_inner).push(list);
    }
}

/// The words of the smallest memory.
const WORDS_MIN: usize = 512;

/// The memory of one worker.
pub struct Supply<'p> {
    source: MemorySource,
    pool: &'p Pool,
    /// For each role, what is free.
    kept: [Vec<Vec<u64>>; ROLES],
    /// For each role, the words of its largest memory so far.
    most: [usize; ROLES],
}

impl<'p> Supply<'p> {
    pub fn new(source: MemorySource, pool: &'p Pool) -> Supply<'p> {
        Supply { source, pool, kept: Default::default(), most: [0; ROLES] }
    }

    /// Whether memory goes back to the worker that had it first, and not to whoever used it last.
    pub fn is_kept(&self) -> bool {
        matches!(self.source, MemorySource::Reuse | MemorySource::Prealloc)
    }

    /// For each role, the words of its largest memory so far.
    pub fn most(&self) -> [usize; ROLES] {
        self.most
    }

    /// Makes `count` pieces of memory with room for so many words, and touches every OS page of them.
    pub fn prepare(&mut self, role: Role, count: usize, words: usize) {
        for _ in 0..count {
            let mut list = Vec::with_capacity(words);
            // A zero might be left to the kernel.
            list.resize(words, 1);
            self.give_back(role, list);
        }
    }

    /// Returns an empty list with room for so many words.
    pub fn take(&mut self, role: Role, words: usize) -> Vec<u64> {
        let mut list = match self.source {
            MemorySource::Malloc => Vec::new(),
            MemorySource::Pool => self.pool.take(words),
            MemorySource::Reuse | MemorySource::Prealloc => self.kept[role as usize].pop().unwrap_or_default(),
        };
        list.clear();
        list.reserve(words);
        self.note(role, &list);
        list
    }

    /// Returns a list of zeros.
    pub fn zeros(&mut self, role: Role, words: usize) -> Vec<u64> {
        if self.source == MemorySource::Malloc {
            // As calloc has them: large ones come from the kernel.
            let list = vec![0; words];
            self.note(role, &list);
            return list;
        }
        let mut list = self.take(role, words);
        list.resize(words, 0);
        list
    }

    /// Makes room for more words: twice as many.
    pub fn grow(&mut self, role: Role, list: &mut Vec<u64>) {
        let words = (2 * list.capacity()).max(WORDS_MIN);
        if self.source == MemorySource::Pool {
            let mut larger = self.pool.take(words);
            larger.clear();
            larger.extend_from_slice(list);
            self.pool.put(std::mem::replace(list, larger));
        } else {
            list.reserve_exact(words - list.len());
        }
        self.note(role, list);
    }

    /// Takes memory back that is not used any more.
    pub fn give_back(&mut self, role: Role, list: Vec<u64>) {
        match self.source {
            MemorySource::Malloc => drop(list),
            MemorySource::Pool if list.capacity() > 0 => self.pool.put(list),
            MemorySource::Pool => {}
            MemorySource::Reuse | MemorySource::Prealloc => {
                // The largest is taken first.
                let kept = &mut self.kept[role as usize];
                let place = kept.partition_point(|other| other.capacity() < list.capacity());
                kept.insert(place, list);
            }
        }
    }

    fn note(&mut self, role: Role, list: &Vec<u64>) {
        let most = &mut self.most[role as usize];
        *most = list.capacity().max(*most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_memory_and_memory_of_a_pool_are_the_same_again() {
        let pool = Pool::default();
        for source in [MemorySource::Reuse, MemorySource::Pool, MemorySource::Prealloc] {
            let mut supply = Supply::new(source, &pool);
            let mut list = supply.take(Role::List, 1000);
            list.extend(0..1000);
            supply.grow(Role::List, &mut list);
            assert!(list.capacity() >= 2000 && list.iter().copied().eq(0..1000), "{source:?}");
            let (at, room) = (list.as_ptr(), list.capacity());
            supply.give_back(Role::List, list);
            let again = supply.zeros(Role::List, room);
            assert!(again.as_ptr() == at && again.iter().all(|word| *word == 0), "{source:?}");
            assert_eq!(supply.most()[Role::List as usize], room, "{source:?}");
        }
    }

    #[test]
    fn the_pool_is_of_all_workers_and_what_is_kept_is_of_one() {
        let pool = Pool::default();
        for (source, is_shared) in [(MemorySource::Pool, true), (MemorySource::Reuse, false)] {
            let [mut one, mut other] = [(), ()].map(|()| Supply::new(source, &pool));
            let list = one.take(Role::Buffer, 4096);
            let at = list.as_ptr();
            one.give_back(Role::Buffer, list);
            let taken = other.take(Role::Buffer, 4096);
            assert_eq!(taken.as_ptr() == at, is_shared, "{source:?}");
        }
    }

    #[test]
    fn what_was_prepared_is_large_enough() {
        let pool = Pool::default();
        let mut supply = Supply::new(MemorySource::Prealloc, &pool);
        supply.prepare(Role::Buffer, 2, 5000);
        let [one, other] = [(), ()].map(|()| supply.take(Role::Buffer, 1).capacity());
        assert!(one >= 5000 && other >= 5000);
    }
}
