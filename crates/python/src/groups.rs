//! Groups rows by key.
//!
//! ```text
//!  any keys and values    map: Grouped, so that the values of a key in a batch travel together       reduce: the engine brings them together
//!  whole keys, numbers    map: deal, so that rows travel in blocks of a partition                   reduce: PartGroups, of all its rows
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::{FixedState, RandomState};

use crate::batches::{Part, Row, Values};
use crate::keys::{self, Types};
use crate::values::Kind;

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

/// A row of two columns: a whole key, and a number as bytes.
pub type Pair = [[u8; 8]; 2];

/// The greatest number of partitions, as a power of two: map functions write to as many places at once.
const BITS_MAX: usize = 12;
/// The most rows of a block.
const BLOCK_ROWS: usize = 1024;

/// Where the rows of a block come from. Blocks are read in the order of their inputs.
#[derive(Clone, Copy)]
pub struct BlockPlace {
    pub source: usize,
    pub offset: u64,
    pub batch: u32,
}

/// How rows are dealt to partitions: by the first bits of a hash, which is the same in all workers of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partitions {
    bits: usize,
    seed: u64,
}

impl Partitions {
    /// Makes `1 << bits` partitions. Nobody can choose keys that all fall into one.
    pub fn new(bits: usize) -> Partitions {
        Partitions { bits: bits.min(BITS_MAX), seed: RandomState::default().hash_one(bits) }
    }
}

/// Deals rows to partitions by key. Calls `emit` with the key and the value of each block.
///
/// A block has rows of one partition: where they come from, [`HEADER_BYTES`] with the kind of their numbers, and the rows. The pairs of a job are
/// then few and large, so that sorting and spilling them costs next to nothing, and a reducer has all rows of a partition at once. They fit in the
/// caches while they are grouped.
pub fn deal(
    Partitions { bits, seed }: Partitions,
    place: BlockPlace,
    kind: Kind,
    (keys, numbers): (&[[u8; 8]], &[[u8; 8]]),
    mut emit: impl FnMut(&[u8], &[u8]),
) {
    assert!(u32::try_from(keys.len()).is_ok(), "a batch has less than 2^32 rows");
    let state = FixedState::with_seed(seed);
    let part_of = |key: &[u8; 8]| (hash(&state, key) >> 1 >> (u64::BITS as usize - 1 - bits)) as usize;
    let mut nexts = vec![0; 1 << bits];
    keys.iter().for_each(|key| nexts[part_of(key)] += 1);
    starts_of(&mut nexts);
    let mut dealt = vec![Pair::default(); keys.len()];
    for (key, number) in keys.iter().zip(numbers) {
        let next = &mut nexts[part_of(key)];
        dealt[*next as usize] = [*key, *number];
        *next += 1;
    }
    let (mut value, mut start) = (Vec::new(), 0);
    for (part, end) in nexts.into_iter().enumerate() {
        let end = end as usize;
        for (number, rows) in dealt[start..end].chunks(BLOCK_ROWS).enumerate() {
            value.clear();
            value.extend_from_slice(&(place.source as u32).to_be_bytes());
            value.extend_from_slice(&place.offset.to_be_bytes());
            value.extend_from_slice(&place.batch.to_be_bytes());
            value.extend_from_slice(&(number as u32).to_be_bytes());
            value.push(u8::from(kind == Kind::Floats));
            value.extend_from_slice(rows.as_flattened().as_flattened());
            emit(&(part as u16).to_be_bytes(), &value);
        }
        start = end;
    }
}

/// The bytes of a block before its rows.
const HEADER_BYTES: usize = 21;

/// Returns the kind of the numbers of a block that [`deal`] made, and its rows.
pub fn read_block(block: &[u8]) -> (Kind, &[Pair]) {
    let (header, rows) = block.split_at(HEADER_BYTES);
    let kind = if header[HEADER_BYTES - 1] == 0 { Kind::Ints } else { Kind::Floats };
    (kind, rows.as_chunks().0.as_chunks().0)
}

fn hash(state: &impl BuildHasher, key: &[u8; 8]) -> u64 {
    state.hash_one(u64::from_le_bytes(*key))
}

/// Makes the start of each of several stretches of their lengths.
fn starts_of(lengths: &mut [u32]) {
    let mut end = 0;
    for length in lengths {
        end += *length;
        *length = end - *length;
    }
}

/// The groups of the rows of a partition.
#[derive(Default)]
pub struct PartGroups {
    /// The number of a group + 1 at a place that its key's hash gives, or at one of the next; 0 where there is none.
    slots: Vec<u32>,
    /// The number of the group of each row.
    of_rows: Vec<u32>,
    keys: Vec<[u8; 8]>,
    /// Where the numbers of each group end.
    ends: Vec<u32>,
    numbers: Vec<[u8; 8]>,
}

impl PartGroups {
    /// Groups rows.
    pub fn new(rows: &[Pair]) -> PartGroups {
        assert!(u32::try_from(rows.len()).is_ok(), "a partition has less than 2^32 rows");
        let state = RandomState::default();
        let mut groups = PartGroups::default();
        let PartGroups { slots, of_rows, keys, ends, numbers } = &mut groups;
        let mask = (rows.len() * 2).next_power_of_two() - 1;
        slots.resize(mask + 1, 0);
        for [key, _] in rows {
            let mut at = hash(&state, key) as usize & mask;
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
        for ([_, number], group) in rows.iter().zip(of_rows) {
            let next = &mut ends[*group as usize];
            numbers[*next as usize] = *number;
            *next += 1;
        }
        groups
    }

    /// Calls `visit` with each key and its numbers, in their order, until it fails.
    pub fn try_for_each<E>(&self, mut visit: impl FnMut(i64, &[[u8; 8]]) -> Result<(), E>) -> Result<(), E> {
        let mut start = 0;
        for (key, end) in self.keys.iter().zip(&self.ends) {
            visit(i64::from_le_bytes(*key), &self.numbers[start..*end as usize])?;
            start = *end as usize;
        }
        Ok(())
    }
}
