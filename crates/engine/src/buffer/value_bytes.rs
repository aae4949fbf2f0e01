//! The size of the values in a buffer, if their width varies.

use crate::data::datum::{Datum, Owned};

/// Which changes of a value are measured.
///
/// The width of a value is known only when it is written, for all the engine knows: a digest must be sorted first. An
/// item adds little, so one of many is measured, and counts for all of them. That is right on average.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// This one.
    Always,
    /// One in [`ONE_OF`].
    Seldom,
}

const ONE_OF: u32 = 1024;
/// The size from which an item is not a little one.
const ITEM_BYTES: usize = 256;

impl Measure {
    /// Returns what is measured when an item is added to a value, which is new or not.
    #[inline(always)]
    pub fn of_item<I: Datum>(item: I::Ref<'_>, is_new: bool) -> Measure {
        let bytes = I::WIDTH.unwrap_or_else(|| I::width(item));
        if is_new || bytes >= ITEM_BYTES { Measure::Always } else { Measure::Seldom }
    }
}

#[derive(Default)]
pub(super) struct ValueBytes {
    bytes: usize,
    /// The number of changes that were not always to be measured.
    changes: u32,
}

impl ValueBytes {
    /// Returns the size of all values; nothing if their width is fixed.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.bytes
    }

    /// Counts a value that is new.
    #[inline(always)]
    pub fn add<V: Datum>(&mut self, value: &Owned<V>) {
        if V::WIDTH.is_none() {
            self.bytes += V::width(V::lend(value));
        }
    }

    /// Changes a value that was counted.
    #[inline(always)]
    pub fn change<V: Datum>(&mut self, value: &mut Owned<V>, measure: Measure, change: impl FnOnce(&mut Owned<V>)) {
        if V::WIDTH.is_some() {
            return change(value);
        }
        let times = match measure {
            Measure::Always => 1,
            Measure::Seldom => {
                self.changes = self.changes.wrapping_add(1);
                if !self.changes.is_multiple_of(ONE_OF) {
                    return change(value);
                }
                ONE_OF as isize
            }
        };
        let before = V::width(V::lend(value)) as isize;
        change(value);
        let grown = V::width(V::lend(value)) as isize - before;
        self.bytes = self.bytes.saturating_add_signed(grown.saturating_mul(times));
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::datum::Bytes;

    #[test]
    fn values_that_grow_by_little_items_are_measured_right_on_average() {
        let (mut bytes, mut value) = (ValueBytes::default(), Vec::new());
        bytes.add::<Bytes>(&value);
        bytes.change::<Bytes>(&mut value, Measure::Always, |value| value.resize(1000, 0));
        assert_eq!(bytes.get(), 1000);
        for _ in 0..10 * ONE_OF {
            let measure = Measure::of_item::<u64>(7, false);
            bytes.change::<Bytes>(&mut value, measure, |value| value.extend([0; 8]));
        }
        assert_eq!(bytes.get(), value.len());
        let measure = Measure::of_item::<Bytes>(&[0; 5000], false);
        bytes.change::<Bytes>(&mut value, measure, |value| value.extend([0; 5000]));
        assert_eq!(bytes.get(), value.len());
        bytes.change::<Bytes>(&mut value, Measure::Always, Vec::clear);
        assert_eq!(bytes.get(), 0);
    }
}
