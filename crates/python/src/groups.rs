//! Groups the rows of a batch by key, so that the values of a key travel together.

use std::collections::HashMap;
use std::hash::Hash;

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
