//! The size of the values in a buffer, if their width varies.

use crate::data::datum::{Datum, Owned};

/// The size of all values at which a buffer is emptied.
pub(super) const VALUE_BYTES_MAX: usize = 2 << 20;

/// Which changes of a value are measured.
///
/// To find the width of a value may take as long as to write it: a digest has to be sorted first. An item adds little,
/// so one of many is measured, and counts for all of them. That is right on average.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// This one.
    Always,
    /// One in [`ONE_OF`].
    Seldom,
}

/// A prime number, so that of values which take turns each is measured.
const ONE_OF: u32 = 1021;
/// The size from which an item is not a little one.
const ITEM_BYTES: usize = 256;

impl Measure {
    /// Returns how often a value is measured to which such items are added. A new one always is.
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
    fn of_values_that_take_turns_each_is_measured() {
        // One in 1,024 was measured before: of two values that took turns, always the same.
        for values in 2..20 {
            let (mut bytes, mut long, mut other) = (ValueBytes::default(), Vec::new(), Vec::new());
            for turn in 0..400 * ONE_OF {
                if turn % values == 0 {
                    bytes.change::<Bytes>(&mut long, Measure::Seldom, |value| value.push(0));
                } else {
                    bytes.change::<Bytes>(&mut other, Measure::Seldom, |value| _ = value.pop());
                }
            }
            let (found, expected) = (bytes.get() as f64, long.len() as f64);
            assert!((found / expected - 1.0).abs() < 0.1, "{found} of {expected}, with {values} values");
        }
    }

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
