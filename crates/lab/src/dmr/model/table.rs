//! Keys with their values, in buckets: Phoenix's hash table, and DMR's hash buffer.

/// A table of keys with their values.
pub struct Table {
    buckets: Vec<Vec<Entry>>,
    /// The keys of a bucket are in order and found by halves; otherwise they are compared one by one.
    in_order: bool,
    /// The values of a key are added; otherwise they are listed.
    combines: bool,
    values: usize,
}

struct Entry {
    key: u64,
    /// The sum of the values, if they are combined.
    sum: u64,
    /// The values, if they are not.
    list: Vec<u64>,
}

/// Keys that are expected in a bucket.
const KEYS_OF_BUCKET: usize = 8;

/// Spreads keys, which may be small numbers.
#[inline(always)]
pub fn hash(key: u64) -> u64 {
    let mixed = (key ^ key >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Returns the reducer of a key. Buckets are chosen by the low bits of the hash, reducers by the high ones.
#[inline(always)]
pub fn reducer_of(key: u64, reducers: usize) -> usize {
    (((hash(key) >> 32) * reducers as u64) >> 32) as usize
}

impl Table {
    pub fn new(keys: usize, in_order: bool, combines: bool) -> Table {
        let buckets = (keys / KEYS_OF_BUCKET).next_power_of_two().max(16);
        let buckets = (0..buckets).map(|_| Vec::new()).collect();
        Table { buckets, in_order, combines, values: 0 }
    }

    /// The number of pairs that [`Table::drain`] would give.
    #[inline]
    pub fn pairs(&self) -> usize {
        self.values
    }

    #[inline]
    pub fn insert(&mut self, key: u64, value: u64) {
        let place = hash(key) as usize & (self.buckets.len() - 1);
        let bucket = &mut self.buckets[place];
        let found = match self.in_order {
            true => bucket.binary_search_by_key(&key, |entry| entry.key),
            false => bucket.iter().position(|entry| entry.key == key).ok_or(bucket.len()),
        };
        let at = found.unwrap_or_else(|at| {
            bucket.insert(at, Entry { key, sum: 0, list: Vec::new() });
            at
        });
        let entry = &mut bucket[at];
        match self.combines {
            true => {
                entry.sum += value;
                self.values += usize::from(found.is_err());
            }
            false => {
                entry.list.push(value);
                self.values += 1;
            }
        }
    }

    /// Gives all pairs and forgets them: the sum of a key, or each of its values.
    pub fn drain(&mut self, mut visit: impl FnMut(u64, u64)) {
        for entry in self.buckets.iter_mut().flat_map(|bucket| bucket.drain(..)) {
            match self.combines {
                true => visit(entry.key, entry.sum),
                false => entry.list.iter().for_each(|value| visit(entry.key, *value)),
            }
        }
        self.values = 0;
    }

    /// Visits the sum of each key.
    pub fn sums(&self, mut visit: impl FnMut(u64, u64)) {
        for entry in self.buckets.iter().flatten() {
            visit(entry.key, entry.sum + entry.list.iter().sum::<u64>());
        }
    }

    /// Visits all pairs: the sum of a key, or each of its values.
    pub fn pairs_of_all(&self, mut visit: impl FnMut(u64, u64)) {
        for entry in self.buckets.iter().flatten() {
            match self.combines {
                true => visit(entry.key, entry.sum),
                false => entry.list.iter().for_each(|value| visit(entry.key, *value)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_adds_or_lists_the_values_of_a_key() {
        for (in_order, combines) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut table = Table::new(4, in_order, combines);
            (0..100).for_each(|number| table.insert(number % 7, number));
            assert_eq!(table.pairs(), if combines { 7 } else { 100 });
            let mut sums = [0; 7];
            table.sums(|key, sum| sums[key as usize] = sum);
            assert_eq!(sums, [735, 750, 665, 679, 693, 707, 721]);
            let (mut total, mut count) = (0, 0);
            table.drain(|_, value| (total, count) = (total + value, count + 1));
            assert_eq!((total, count), (4950, if combines { 7 } else { 100 }));
            assert_eq!(table.pairs(), 0);
        }
    }

    #[test]
    fn each_reducer_gets_its_share_of_small_keys() {
        let mut counts = [0; 4];
        (0..768).for_each(|key| counts[reducer_of(key, 4)] += 1);
        assert!(counts.iter().all(|count| (96..384).contains(count)), "{counts:?}");
    }
}
