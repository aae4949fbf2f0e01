//! The greatest items.
//!
//! ```text
//!  written:  number of items | item | item | ...   the greatest first
//! ```
//!
//! Numbers take 4 bytes, little-endian. An item of variable width has its length in front, likewise.

use std::cmp::Ordering;
use std::fmt::{self, Debug, Formatter};

use crate::data::datum::{Datum, Key};
use crate::data::key::width;
use crate::program::aggregate::Aggregate;

/// The bytes of a number of items, and of a length.
const NUMBER_BYTES: usize = 4;

/// The `K` greatest items, in the order of [`Datum::compare`]. An item that is there several times counts as several.
///
/// With [`Reverse`](std::cmp::Reverse) it keeps the smallest. A tuple is ordered by its first field, so that
/// `Top<(u64, Bytes), 10>` keeps ten texts with the greatest numbers. Floating-point numbers are ordered by
/// [`f64::total_cmp`]: a NaN is greater than all numbers, or less if its sign is negative.
///
/// An item that is kept takes a step in a list of `K`: this is for lists of up to a few thousand.
///
/// ```
/// use std::cmp::Reverse;
///
/// use gristmill::{Aggregate, Bytes};
/// use gristmill::aggregates::Top;
///
/// let mut deepest = Top::<(u32, Bytes), 2>::default();
/// let mut least = Top::<Reverse<u32>, 2>::default();
/// for (depth, pond) in [(3, "mill"), (8, "moor"), (5, "park"), (1, "yard")] {
///     Top::add(&mut deepest, (depth, pond.as_bytes()));
///     Top::add(&mut least, Reverse(depth));
/// }
/// assert_eq!(deepest.iter().collect::<Vec<_>>(), [(8, &b"moor"[..]), (5, b"park")]);
/// assert_eq!(least.iter().collect::<Vec<_>>(), [Reverse(1), Reverse(3)]);
/// ```
pub struct Top<T: Key, const K: usize> {
    /// The greatest first.
    kept: Vec<T::Owned>,
}

/// The borrowed form of [`Top`].
pub struct TopRef<'a, T: Key, const K: usize>(Form<'a, T>);

/// The items of a [`Top`], the greatest first.
pub struct TopItems<'a, T: Key>(Form<'a, T>);

enum Form<'a, T: Key> {
    Live(&'a [T::Owned]),
    /// Without the number of items.
    Written(usize, &'a [u8]),
}

impl<T: Key, const K: usize> Top<T, K> {
    /// Returns the items, the greatest first.
    pub fn iter(&self) -> TopItems<'_, T> {
        TopItems(Form::Live(&self.kept))
    }

    /// Returns the number of items: `K`, or as many as there were.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns whether no item was added.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

impl<'a, T: Key, const K: usize> TopRef<'a, T, K> {
    /// Returns the items, the greatest first.
    pub fn iter(self) -> TopItems<'a, T> {
        TopItems(self.0)
    }

    /// Returns the number of items: `K`, or as many as there were.
    pub fn len(self) -> usize {
        self.iter().len()
    }

    /// Returns whether no item was added.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a, T: Key> Iterator for TopItems<'a, T> {
    type Item = T::Ref<'a>;

    fn next(&mut self) -> Option<T::Ref<'a>> {
        match &mut self.0 {
            Form::Live(items) => items.split_off_first().map(T::lend),
            Form::Written(number, bytes) => {
                *number = number.checked_sub(1)?;
                let item_bytes = T::WIDTH.unwrap_or_else(|| read_number(bytes));
                Some(T::read(bytes.split_off(..item_bytes).expect("an item was written")))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self.0 {
            Form::Live(items) => items.len(),
            Form::Written(number, _) => number,
        };
        (left, Some(left))
    }
}

impl<T: Key> ExactSizeIterator for TopItems<'_, T> {}

/// Removes a number from the front of `bytes`.
fn read_number(bytes: &mut &[u8]) -> usize {
    let (number, rest) = bytes.split_first_chunk().expect("a number was written");
    *bytes = rest;
    u32::from_le_bytes(*number) as usize
}

/// Writes a number to the front of `to`, and returns the rest.
fn write_number(number: usize, to: &mut [u8]) -> &mut [u8] {
    let (here, rest) = to.split_at_mut(NUMBER_BYTES);
    here.copy_from_slice(&u32::try_from(number).expect("a value has less than 4 GiB").to_le_bytes());
    rest
}

impl<T: Key, const K: usize> Datum for Top<T, K> {
    type Ref<'a> = TopRef<'a, T, K>;
    type Owned = Top<T, K>;
    const WIDTH: Option<usize> = None;
    /// It does not matter which of two equal keys is kept.
    const EXACT: bool = true;

    fn width(top: TopRef<'_, T, K>) -> usize {
        let lengths = if T::WIDTH.is_none() { NUMBER_BYTES * top.len() } else { 0 };
        NUMBER_BYTES + lengths + top.iter().map(width::<T>).sum::<usize>()
    }

    fn write(top: TopRef<'_, T, K>, to: &mut [u8]) {
        let mut to = write_number(top.len(), to);
        for item in top.iter() {
            let item_bytes = width::<T>(item);
            if T::WIDTH.is_none() {
                to = write_number(item_bytes, to);
            }
            let (here, rest) = to.split_at_mut(item_bytes);
            T::write(item, here);
            to = rest;
        }
    }

    fn read(mut from: &[u8]) -> TopRef<'_, T, K> {
        let number = read_number(&mut from);
        TopRef(Form::Written(number, from))
    }

    fn own(top: TopRef<'_, T, K>) -> Top<T, K> {
        Top { kept: top.iter().map(T::own).collect() }
    }

    fn lend(top: &Top<T, K>) -> TopRef<'_, T, K> {
        TopRef(Form::Live(&top.kept))
    }

    fn compare(a: TopRef<'_, T, K>, b: TopRef<'_, T, K>) -> Ordering {
        let orders = a.iter().zip(b.iter()).map(|(a, b)| T::compare(a, b));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
    }

    fn prefix(top: TopRef<'_, T, K>) -> u64 {
        top.iter().next().map_or(0, T::prefix)
    }

    fn to_text(top: TopRef<'_, T, K>, to: &mut Vec<u8>) {
        for (number, item) in top.iter().enumerate() {
            if number > 0 {
                to.push(b'\t');
            }
            T::to_text(item, to);
        }
    }
}

impl<T: Key, const K: usize> Aggregate for Top<T, K> {
    type Item = T;

    fn add(top: &mut Top<T, K>, item: T::Ref<'_>) {
        const { assert!(K > 0, "Top<T, 0> would keep nothing") };
        let kept = &mut top.kept;
        if kept.len() == K {
            if T::compare(item, T::lend(&kept[K - 1])).is_le() {
                return;
            }
            kept.pop();
        }
        let at = kept.partition_point(|other| T::compare(T::lend(other), item).is_ge());
        kept.insert(at, T::own(item));
    }

    fn merge(top: &mut Top<T, K>, other: Top<T, K>) {
        let mut others = other.kept.into_iter().peekable();
        let mut kept = std::mem::take(&mut top.kept).into_iter().peekable();
        let greatest = std::iter::from_fn(|| match (kept.peek(), others.peek()) {
            (Some(own), Some(other)) if T::compare(T::lend(own), T::lend(other)).is_lt() => others.next(),
            (Some(_), _) => kept.next(),
            (None, _) => others.next(),
        });
        top.kept.extend(greatest.take(K));
    }
}

impl<T: Key, const K: usize> Default for Top<T, K> {
    fn default() -> Top<T, K> {
        Top { kept: Vec::new() }
    }
}

impl<T: Key, const K: usize> Clone for Top<T, K> {
    fn clone(&self) -> Top<T, K> {
        Top { kept: self.kept.clone() }
    }
}

impl<T: Key, const K: usize> Clone for TopRef<'_, T, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Key, const K: usize> Copy for TopRef<'_, T, K> {}

impl<T: Key> Clone for TopItems<'_, T> {
    fn clone(&self) -> Self {
        TopItems(self.0)
    }
}

impl<T: Key> Clone for Form<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Key> Copy for Form<'_, T> {}

impl<T: Key, const K: usize> Debug for Top<T, K> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.iter().fmt(to)
    }
}

impl<T: Key, const K: usize> Debug for TopRef<'_, T, K> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.iter().fmt(to)
    }
}

impl<T: Key> Debug for TopItems<'_, T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;
    use crate::data::contract::check_datum;

    fn top<T: Key, const K: usize>(items: &[T::Owned]) -> Top<T, K> {
        items.iter().fold(Top::default(), |mut top, item| {
            Top::add(&mut top, T::lend(item));
            top
        })
    }

    /// Returns what a sorted list has in front.
    fn sorted<T: Ord + Clone>(items: &[T], number: usize) -> Vec<T> {
        let mut sorted = items.to_vec();
        sorted.sort_by(|a, b| b.cmp(a));
        sorted.truncate(number);
        sorted
    }

    proptest! {
        #[test]
        fn the_greatest_are_those_of_a_sorted_list_however_the_parts_are_merged(
            items in prop::collection::vec((0u8..9, "[ab]{0,3}"), 0..40), cut in 0usize..40
        ) {
            let cut = cut.min(items.len());
            let parts = |(a, b): (&[_], &[_])| Top::<(u8, String), 5>::merged(top(a), top(b));
            let found = parts(items.split_at(cut));
            prop_assert_eq!(&found.kept, &sorted(&items, 5));
            let mut bytes = vec![0; Top::<(u8, String), 5>::width(Top::lend(&found))];
            Top::<(u8, String), 5>::write(Top::lend(&found), &mut bytes);
            prop_assert_eq!(Top::<(u8, String), 5>::own(Top::read(&bytes)).kept, found.kept);

            let turned: Vec<_> = items.iter().map(|(number, _)| Reverse(*number)).collect();
            let (a, b) = turned.split_at(cut);
            prop_assert_eq!(Top::<Reverse<u8>, 3>::merged(top(a), top(b)).kept, sorted(&turned, 3));
        }
    }

    #[test]
    fn the_greatest_keep_the_contract_of_a_datum() {
        let numbers =
            [&[][..], &[0.0], &[-0.0], &[1.0, 2.0], &[1.0, 1.0], &[f64::NAN, 7.0, 3.0, 9.0]].map(top::<f64, 3>);
        check_datum::<Top<f64, 3>>(numbers.iter().map(Top::lend));
        let words = [&["", "a"][..], &["a"], &["a", "b", "c"], &[]];
        let words =
            words.map(|words| top::<String, 2>(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()));
        check_datum::<Top<String, 2>>(words.iter().map(Top::lend));
        let units = [top::<(), 4>(&[(), ()]), top(&[(); 9])];
        check_datum::<Top<(), 4>>(units.iter().map(Top::lend));
        assert_eq!(units.map(|top| top.len()), [2, 4]);
        assert_eq!(format!("{:?}", words[2]), r#"["c", "b"]"#);
    }
}
