//! Marks at the places of a table: which of them are taken.
//!
//! A bit for each place. A table of few keys is emptied by its marks, because to look at every place takes longer than
//! anything else then.

const BITS: usize = u64::BITS as usize;

pub(super) struct Marks(Vec<u64>);

impl Marks {
    /// Makes a table of `places` places, none of which is marked.
    pub fn new(places: usize) -> Marks {
        Marks(vec![0; places.div_ceil(BITS)])
    }

    /// Marks a place, and returns whether it was marked before.
    #[inline(always)]
    pub fn set(&mut self, place: usize) -> bool {
        let (word, bit) = (&mut self.0[place / BITS], 1 << (place % BITS));
        let was_set = *word & bit != 0;
        // Written only if it changes, because the next look at this word would have to wait for the write.
        if !was_set {
            *word |= bit;
        }
        was_set
    }

    /// Removes all marks, and calls `visit` with their places in ascending order.
    #[inline(always)]
    pub fn take(&mut self, mut visit: impl FnMut(usize)) {
        for (number, word) in self.0.iter_mut().enumerate() {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                visit(number * BITS + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn marked_places_are_those_of_a_btree_set(rounds in prop::collection::vec(prop::collection::vec(0usize..200, 0..50), 0..4)) {
            let mut marks = Marks::new(200);
            for places in rounds {
                let mut expected = BTreeSet::new();
                for place in places {
                    prop_assert_eq!(marks.set(place), !expected.insert(place));
                }
                let mut taken = Vec::new();
                marks.take(|place| taken.push(place));
                prop_assert!(taken.into_iter().eq(expected));
            }
        }
    }
}
