//! The partitions of one worker in which values combine.
//!
//! A job has more partitions than a worker reduces, the more the more workers it has. So only those that have pairs
//! are here.

use crate::data::datum::{Datum, Key};
use crate::gather::combined::Gathered;

/// Partitions with pairs, in the order in which their first pairs came.
pub(crate) struct Partitions<K: Key, V: Datum> {
    /// For each partition of the job, where it is in the list, + 1; 0 if it is not.
    places: Vec<u32>,
    /// They are numbered by this order.
    pub list: Vec<Gathered<K, V>>,
}

impl<K: Key, V: Datum> Partitions<K, V> {
    /// No pairs, in a job of so many partitions.
    pub fn new(partitions: usize) -> Partitions<K, V> {
        Partitions { places: vec![0; partitions], list: Vec::new() }
    }

    /// How many partitions the job has.
    pub fn of_job(&self) -> usize {
        self.places.len()
    }

    /// A partition, if it has pairs.
    pub fn get(&self, partition: usize) -> Option<&Gathered<K, V>> {
        (self.places[partition] as usize).checked_sub(1).map(|place| &self.list[place])
    }

    /// A partition; it is added if it is not there.
    #[inline]
    pub fn of(&mut self, partition: usize) -> &mut Gathered<K, V> {
        if self.places[partition] == 0 {
            self.list.push(Gathered::new(self.places.len()));
            self.places[partition] = self.list.len() as u32;
        }
        &mut self.list[self.places[partition] as usize - 1]
    }

    /// Takes out the pairs of one partition.
    pub fn take(&mut self, partition: usize) -> Partitions<K, V> {
        let mut taken = Partitions::new(1);
        if self.places[partition] != 0 {
            std::mem::swap(taken.of(0), self.of(partition));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_keeps_its_own_partitions_and_not_those_of_the_job() {
        // Each of 1,024 workers laid out all 2,048 partitions of the job, 96 bytes each, to reduce two of them.
        let mut partitions: Partitions<u64, u64> = Partitions::new(2048);
        partitions.of(2000);
        partitions.of(5);
        partitions.of(2000);
        assert_eq!((partitions.list.len(), partitions.of_job()), (2, 2048));
        assert!(partitions.get(5).is_some() && partitions.get(6).is_none());
        assert_eq!((partitions.take(5).list.len(), partitions.take(6).list.len()), (1, 0));
    }
}
