//! Groups the rows of a batch by key, so that the values of a key travel together.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;

use crate::batches::{Part, Row, Values};
use crate::keys::{self, Types};

/// The rows of a batch by key.
pub struct Grouped {
    /// The encoded keys, one behind the other.
    keys: Vec<u8>,
    /// Of each group where its key ends in `keys`, the types of the numbers in it, and where its rows end in `rows`.
    groups: Vec<(usize, Types, usize)>,
    rows: Vec<u32>,
}

impl Grouped {
    /// Groups the rows of a batch, given the columns of their keys.
    pub fn new(rows: usize, key: &Part<'_>) -> Grouped {
        if let Part::Column { values: Values::Int(numbers), valid: None } = key {
            return Grouped::of(key, &groups_of(numbers.iter()), &[]);
        }
        let (mut keys, mut ends, mut types) = (Vec::new(), vec![0], vec![Types::default(); rows]);
        for (number, types) in types.iter_mut().enumerate() {
            keys::encode_row(Row { part: key, number }, types, &mut keys);
            ends.push(keys.len());
        }
        let of_rows = groups_of(ends.windows(2).map(|bounds| &keys[bounds[0]..bounds[1]]));
        Grouped::of(key, &of_rows, &types)
    }

    /// Makes groups, given the group of each row. `types` are those of each row, or none if they are all the same.
    fn of(key: &Part<'_>, of_rows: &[u32], types: &[Types]) -> Grouped {
        let (mut keys, mut groups, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (number, group) in of_rows.iter().enumerate() {
            let group = *group as usize;
            if group == groups.len() {
                let mut types = Types::default();
                keys::encode_row(Row { part: key, number }, &mut types, &mut keys);
                groups.push((keys.len(), types, 0));
                counts.push(0);
            }
            counts[group] += 1;
            if let Some(types) = types.get(number) {
                groups[group].1.0 |= types.0;
            }
        }
        let mut end = 0;
        for (group, count) in groups.iter_mut().zip(&mut counts) {
            group.2 = end + *count;
            *count = end;
            end = group.2;
        }
        // Each count has become the place of the group's next row.
        let mut rows = vec![0; of_rows.len()];
        for (row, group) in of_rows.iter().enumerate() {
            let next = &mut counts[*group as usize];
            rows[*next] = row as u32;
            *next += 1;
        }
        Grouped { keys, groups, rows }
    }

    /// Returns each key, the types of the numbers in it, and its rows.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Types, &[u32])> {
        let starts = std::iter::once((0, 0)).chain(self.groups.iter().map(|group| (group.0, group.2)));
        starts
            .zip(&self.groups)
            .map(|((key, rows), group)| (&self.keys[key..group.0], group.1, &self.rows[rows..group.2]))
    }
}

/// Returns the number of each row's group, where groups are numbered as they appear.
fn groups_of<K: Eq + Hash>(keys: impl Iterator<Item = K>) -> Vec<u32> {
    let mut found = HashMap::<K, u32, RandomState>::default();
    let mut number = |key| {
        let next = found.len() as u32;
        *found.entry(key).or_insert(next)
    };
    keys.map(&mut number).collect()
}

/// The rows that are grouped together, about: a table for their keys fits in the caches.
const PART_ROWS: usize = 4096;
/// The greatest number of parts, as a power of two: there is an open cache line for each.
const PART_BITS_MAX: u32 = 8;

/// Calls `visit` with each whole key and its numbers, in their order, until it fails.
///
/// The rows are first partitioned by the hash of their keys, and then each partition is grouped alone. Its table of keys and its numbers fit in the
/// caches. One table of all keys would miss them for nearly every row.
pub fn for_each_key<E>(
    keys: &[[u8; 8]],
    numbers: &[[u8; 8]],
    mut visit: impl FnMut(i64, &[[u8; 8]]) -> Result<(), E>,
) -> Result<(), E> {
    assert!(u32::try_from(keys.len()).is_ok(), "a batch has less than 2^32 rows");
    let state = RandomState::default();
    let hash = |key: &[u8; 8]| state.hash_one(u64::from_le_bytes(*key));
    let bits = (keys.len() / PART_ROWS).max(1).ilog2().min(PART_BITS_MAX);
    let part_of = |key| (hash(key) >> 1 >> (u64::BITS - 1 - bits)) as usize;
    let mut nexts = vec![0; 1 << bits];
    keys.iter().for_each(|key| nexts[part_of(key)] += 1);
    starts_of(&mut nexts);
    let mut dealt = vec![([0; 8], [0; 8]); keys.len()];
    for (key, number) in keys.iter().zip(numbers) {
        let next = &mut nexts[part_of(key)];
        dealt[*next as usize] = (*key, *number);
        *next += 1;
    }
    let (mut groups, mut start) = (PartGroups::default(), 0);
    for end in nexts {
        groups.find(&dealt[start..end as usize], hash);
        groups.try_for_each(&mut visit)?;
        start = end as usize;
    }
    Ok(())
}

/// Makes the start of each of several stretches of their lengths.
fn starts_of(lengths: &mut [u32]) {
    let mut end = 0;
    for length in lengths {
        end += *length;
        *length = end - *length;
    }
}

/// The groups of a part.
#[derive(Default)]
struct PartGroups {
    /// The number of a group + 1 at a place that its key's hash gives, or at one of the next; 0 where there is none.
    slots: Vec<u32>,
    of_rows: Vec<u32>,
    keys: Vec<[u8; 8]>,
    /// Where the numbers of each group end.
    ends: Vec<u32>,
    numbers: Vec<[u8; 8]>,
}

impl PartGroups {
    /// Replaces what it has by the groups of these rows.
    fn find(&mut self, rows: &[([u8; 8], [u8; 8])], hash: impl Fn(&[u8; 8]) -> u64) {
        let PartGroups { slots, of_rows, keys, ends, numbers } = self;
        let mask = (rows.len() * 2).next_power_of_two() - 1;
        slots.clear();
        slots.resize(mask + 1, 0);
        of_rows.clear();
        keys.clear();
        ends.clear();
        for (key, _) in rows {
            let mut at = hash(key) as usize & mask;
            while slots[at] != 0 && keys[slots[at] as usize - 1] != *key {
                at = (at + 1) & mask;
            }
            if slots[at] == 0 {
                keys.push(*key);
                ends.push(0);
                slots[at] = keys.len() as u32;
            }
            of_rows.push(slots[at] - 1);
            ends[slots[at] as usize - 1] += 1;
        }
        starts_of(ends);
        numbers.resize(rows.len(), [0; 8]);
        for ((_, number), group) in rows.iter().zip(of_rows) {
            let next = &mut ends[*group as usize];
            numbers[*next as usize] = *number;
            *next += 1;
        }
    }

    fn try_for_each<E>(&self, visit: &mut impl FnMut(i64, &[[u8; 8]]) -> Result<(), E>) -> Result<(), E> {
        let mut start = 0;
        for (key, end) in self.keys.iter().zip(&self.ends) {
            visit(i64::from_le_bytes(*key), &self.numbers[start..*end as usize])?;
            start = *end as usize;
        }
        Ok(())
    }
}
