//! Groups rows by key.
//!
//! ```text
//!  any keys and values    map: Grouped, so that the values of a key in a batch travel together       reduce: the engine brings them together
//!  whole keys, numbers    map: deal, so that rows travel in blocks of a partition                   reduce: PartGroups, of all its rows
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::{FixedState, RandomState};
use pyo3::{pyclass, pymethods};

use crate::batches::{BatchPart, BatchRow, Values};
use crate::keys::{self, Types};
use crate::values::Kind;

/// The rows of a batch by key.
pub struct Grouped {
    /// The encoded keys, one behind the other.
    keys: Vec<u8>,
    /// For each group, the end of its key in `keys`, the types of the numbers in it, and the end of its rows in `rows`.
    groups: Vec<(usize, Types, usize)>,
    rows: Vec<u32>,
}

impl Grouped {
    /// Groups the rows of a batch, given the columns of their keys.
    pub fn new(rows: usize, key: &BatchPart<'_>) -> Grouped {
        if let BatchPart::Column { values: Values::Int(numbers), valid: None } = key {
            return Grouped::of(key, &groups_of(numbers.iter()), &[]);
        }
        let (mut keys, mut ends, mut types) = (Vec::new(), vec![0], vec![Types::default(); rows]);
        for (number, types) in types.iter_mut().enumerate() {
            keys::encode_row(BatchRow { part: key, number }, types, &mut keys);
            ends.push(keys.len());
        }
        let of_rows = groups_of(ends.windows(2).map(|bounds| &keys[bounds[0]..bounds[1]]));
        Grouped::of(key, &of_rows, &types)
    }

    /// Makes groups, given the group of each row. `types` are those of each row, or none if they are all the same.
    fn of(key: &BatchPart<'_>, of_rows: &[u32], types: &[Types]) -> Grouped {
        let (mut keys, mut groups) = (Vec::new(), Vec::new());
        for (number, group) in of_rows.iter().enumerate() {
            let group = *group as usize;
            if group == groups.len() {
                let mut types = Types::default();
                keys::encode_row(BatchRow { part: key, number }, &mut types, &mut keys);
                groups.push((keys.len(), types, 0));
            }
            if let Some(types) = types.get(number) {
                groups[group].1.0 |= types.0;
            }
        }
        let (rows, ends) = by_group(0..of_rows.len() as u32, of_rows, groups.len());
        for (group, end) in groups.iter_mut().zip(ends) {
            group.2 = end as usize;
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

/// Returns items group by group, in their order, and where each group ends. `of_items` are the numbers of their groups.
fn by_group<T: Copy + Default>(items: impl Iterator<Item = T>, of_items: &[u32], groups: usize) -> (Vec<T>, Vec<u32>) {
    assert!(u32::try_from(of_items.len()).is_ok(), "less than 2^32 rows are grouped at once");
    let mut nexts = vec![0; groups];
    of_items.iter().for_each(|group| nexts[*group as usize] += 1);
    let mut end = 0;
    for next in &mut nexts {
        end += *next;
        *next = end - *next;
    }
    let mut grouped = vec![T::default(); of_items.len()];
    for (item, group) in items.zip(of_items) {
        let next = &mut nexts[*group as usize];
        grouped[*next as usize] = item;
        *next += 1;
    }
    // Behind its last item, the place of a group's next one is its end.
    (grouped, nexts)
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
#[pyclass(frozen, from_py_object)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partitions {
    bits: usize,
    seed: u64,
}

#[pymethods]
impl Partitions {
    /// Makes `1 << bits` partitions. Nobody can choose keys that all fall into one.
    #[new]
    fn new(bits: usize) -> Partitions {
        Partitions { bits: bits.min(BITS_MAX), seed: RandomState::default().hash_one(bits) }
    }
}

/// Deals rows to partitions by key. Calls `emit` with the key and the value of each block.
///
/// A block has rows of one partition: where they come from, [`HEADER_BYTES`] with the kind of their numbers, and
/// the rows. The pairs of a job are then few and large, so that sorting and spilling them costs next to nothing,
/// and a reducer has all rows of a partition at once. They fit in the caches while they are grouped.
pub fn deal(
    Partitions { bits, seed }: Partitions,
    place: BlockPlace,
    kind: Kind,
    (keys, numbers): (&[[u8; 8]], &[[u8; 8]]),
    mut emit: impl FnMut(&[u8], &[u8]),
) {
    let state = FixedState::with_seed(seed);
    let part_of = |key: &[u8; 8]| state.hash_one(u64::from_le_bytes(*key)) >> 1 >> (u64::BITS as usize - 1 - bits);
    let of_rows: Vec<u32> = keys.iter().map(|key| part_of(key) as u32).collect();
    let rows = keys.iter().zip(numbers).map(|(key, number)| [*key, *number]);
    let (dealt, ends) = by_group(rows, &of_rows, 1 << bits);
    let (mut value, mut start) = (Vec::new(), 0);
    for (part, end) in ends.into_iter().enumerate() {
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

/// The groups of the rows of a partition.
pub struct PartGroups {
    keys: Vec<[u8; 8]>,
    /// Where the numbers of each group end.
    ends: Vec<u32>,
    numbers: Vec<[u8; 8]>,
}

impl PartGroups {
    /// Groups rows.
    pub fn new(rows: &[Pair]) -> PartGroups {
        let of_rows = groups_of(rows.iter().map(|[key, _]| *key));
        let mut keys = Vec::new();
        for ([key, _], group) in rows.iter().zip(&of_rows) {
            if *group as usize == keys.len() {
                keys.push(*key);
            }
        }
        let (numbers, ends) = by_group(rows.iter().map(|[_, number]| *number), &of_rows, keys.len());
        PartGroups { keys, ends, numbers }
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
