//! Four ways to gather pairs into pages.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::channel::Outlet;
use super::shared::PAGE_PAIRS;
use super::strategy::BufferKind;
use super::table::{Table, reducer_of};

/// The buffers of a map worker, one for each reducer.
pub struct MapBuffers<'s> {
    outlet: Outlet<'s>,
    gatherings: Vec<Gathering>,
    pub sent: u64,
    pub group_ns: u64,
}

enum Gathering {
    /// The number of pairs in the open page.
    Array(usize),
    SortedArray(Vec<(u64, u64)>),
    Hash(Table),
}

impl<'s> MapBuffers<'s> {
    /// Makes the buffers for `keys` keys in all.
    pub fn new(outlet: Outlet<'s>, reducers: usize, kind: BufferKind, combines: bool, keys: usize) -> MapBuffers<'s> {
        let keys = (keys / reducers).min(PAGE_PAIRS);
        let gathering = || match kind {
            BufferKind::Array => Gathering::Array(0),
            BufferKind::SortedArray => Gathering::SortedArray(Vec::with_capacity(PAGE_PAIRS)),
            BufferKind::Hash => Gathering::Hash(Table::new(keys, false, combines)),
            BufferKind::HashInOrder => Gathering::Hash(Table::new(keys, true, combines)),
        };
        let gatherings = (0..reducers).map(|_| gathering()).collect();
        MapBuffers { outlet, gatherings, sent: 0, group_ns: 0 }
    }

    #[inline]
    pub fn emit(&mut self, key: u64, value: u64) -> io::Result<()> {
        let reducer = reducer_of(key, self.gatherings.len());
        match &mut self.gatherings[reducer] {
            Gathering::Array(count) => {
                put(self.outlet.page(reducer), *count, key, value);
                *count += 1;
                if *count == PAGE_PAIRS {
                    return self.send(reducer);
                }
            }
            Gathering::SortedArray(pairs) => {
                pairs.push((key, value));
                if pairs.len() == PAGE_PAIRS {
                    let began = Instant::now();
                    combine(pairs);
                    self.group_ns += began.elapsed().as_nanos() as u64;
                    // It goes on to fill if that has freed half of it.
                    if pairs.len() > PAGE_PAIRS / 2 {
                        return self.send(reducer);
                    }
                }
            }
            Gathering::Hash(table) => {
                table.insert(key, value);
                if table.pairs() == PAGE_PAIRS {
                    return self.send(reducer);
                }
            }
        }
        Ok(())
    }

    /// Copies what is gathered for a reducer into its page, if it is not there already, and sends it.
    #[cold]
    fn send(&mut self, reducer: usize) -> io::Result<()> {
        let (began, page) = (Instant::now(), self.outlet.page(reducer));
        let mut count = 0;
        match &mut self.gatherings[reducer] {
            Gathering::Array(pairs) => count = std::mem::take(pairs),
            Gathering::SortedArray(pairs) => {
                pairs.iter().enumerate().for_each(|(at, (key, value))| put(page, at, *key, *value));
                count = pairs.len();
                pairs.clear();
            }
            Gathering::Hash(table) => table.drain(|key, value| {
                put(page, count, key, value);
                count += 1;
            }),
        }
        self.group_ns += began.elapsed().as_nanos() as u64;
        self.sent += count as u64;
        self.outlet.send(reducer, count)
    }

    /// Sends what is left, and returns the end of the channels.
    pub fn finish(mut self) -> io::Result<(Outlet<'s>, u64, u64)> {
        for reducer in 0..self.gatherings.len() {
            let is_empty = match &mut self.gatherings[reducer] {
                Gathering::Array(count) => *count == 0,
                Gathering::SortedArray(pairs) => {
                    combine(pairs);
                    pairs.is_empty()
                }
                Gathering::Hash(table) => table.pairs() == 0,
            };
            if !is_empty {
                self.send(reducer)?;
            }
        }
        Ok((self.outlet, self.sent, self.group_ns))
    }
}

/// Sorts pairs, and adds the values of a key.
fn combine(pairs: &mut Vec<(u64, u64)>) {
    pairs.sort_unstable_by_key(|(key, _)| *key);
    pairs.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        earlier.1 += if is_same { later.1 } else { 0 };
        is_same
    });
}

#[inline(always)]
fn put(page: &[AtomicU64], at: usize, key: u64, value: u64) {
    page[1 + 2 * at].store(key, Ordering::Relaxed);
    page[2 + 2 * at].store(value, Ordering::Relaxed);
}

/// Visits the pairs of a page.
#[inline]
pub fn pairs_of(page: &[AtomicU64], mut visit: impl FnMut(u64, u64)) {
    let count = page[0].load(Ordering::Relaxed) as usize;
    for [key, value] in page[1..=2 * count].as_chunks::<2>().0 {
        visit(key.load(Ordering::Relaxed), value.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sorted_array_adds_the_values_of_a_key() {
        let mut pairs = vec![(3, 1), (1, 10), (3, 2), (2, 5), (1, 1)];
        combine(&mut pairs);
        assert_eq!(pairs, [(1, 11), (2, 5), (3, 3)]);
    }
}
