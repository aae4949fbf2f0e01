//! Merges what a task has changed in one OS page of a shared array into the master.
//!
//! A three-way merge of words. Where the twin (the page as it was when the job started) and the task's own copy agree,
//! nothing happens. What the task changed is stored, unless another task changed it to a different value. An element
//! may be smaller than a word, so words are compared lane by lane.

use std::sync::atomic::{AtomicU64, Ordering};

/// Two tasks changed one element to different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    /// The index of the element in the page.
    pub element: usize,
    /// The words that contain it: the original, another task's, and this task's.
    pub words: [u64; 3],
}

/// Merges the differences between `own` and `twin` into `master`, for elements of `ELEMENT` bytes (1, 2, 4 or 8). The
/// caller holds the latch of the page.
///
/// Repeating the merge, whole or in part, changes nothing: an element that already has the value is no conflict. After
/// a conflict, part of the page is merged.
pub(crate) fn merge<const ELEMENT: usize>(twin: &[u64], own: &[u64], master: &[AtomicU64]) -> Result<(), Clash> {
    for (at, ((twin, own), word)) in twin.iter().zip(own).zip(master).enumerate() {
        if own == twin {
            continue;
        }
        // Relaxed: the latch orders the holders.
        let master = word.load(Ordering::Relaxed);
        let merged = if master == *twin {
            *own
        } else {
            let changed = lanes::<ELEMENT>(own ^ twin);
            let clash = changed & lanes::<ELEMENT>(master ^ twin) & lanes::<ELEMENT>(master ^ own);
            if clash != 0 {
                let element = at * (8 / ELEMENT) + first_lane::<ELEMENT>(clash);
                return Err(Clash { element, words: [*twin, master, *own] });
            }
            master & !changed | own & changed
        };
        word.store(merged, Ordering::Relaxed);
    }
    Ok(())
}

/// Returns a mask with all bits of every lane in which some bit is set.
#[inline(always)]
fn lanes<const ELEMENT: usize>(bits: u64) -> u64 {
    let mut mask = 0;
    for lane in 0..8 / ELEMENT {
        let whole = u64::MAX >> (64 - 8 * ELEMENT) << (lane * 8 * ELEMENT);
        mask |= if bits & whole != 0 { whole } else { 0 };
    }
    mask
}

/// Returns the first lane, in memory order, that is set in `mask`.
fn first_lane<const ELEMENT: usize>(mask: u64) -> usize {
    mask.to_ne_bytes().iter().position(|byte| *byte != 0).unwrap_or(0) / ELEMENT
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The result that the merge should have, element by element.
    fn oracle(twin: &[u8], own: &[u8], master: &[u8], element: usize) -> Result<Vec<u8>, usize> {
        let mut merged = master.to_vec();
        for (at, merged) in merged.chunks_exact_mut(element).enumerate() {
            let [twin, own] = [twin, own].map(|bytes| &bytes[at * element..][..element]);
            match own {
                _ if own == twin || own == &*merged => {}
                _ if twin == &*merged => merged.copy_from_slice(own),
                _ => return Err(at),
            }
        }
        Ok(merged)
    }

    fn words(bytes: &[u8]) -> Vec<u64> {
        bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_ne_bytes(*eight)).collect()
    }

    fn check<const ELEMENT: usize>(twin: &[u8], own: &[u8], master: &[u8]) {
        let merged: Vec<AtomicU64> = words(master).into_iter().map(AtomicU64::new).collect();
        let outcome = merge::<ELEMENT>(&words(twin), &words(own), &merged);
        match oracle(twin, own, master, ELEMENT) {
            Ok(expected) => {
                assert_eq!(outcome, Ok(()));
                let bytes: Vec<u8> =
                    merged.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
                assert_eq!(bytes, expected);
                // Repeat it, as a redo does.
                assert_eq!(merge::<ELEMENT>(&words(twin), &words(own), &merged), Ok(()));
            }
            Err(element) => assert_eq!(outcome.map_err(|clash| clash.element), Err(element)),
        }
    }

    proptest! {
        #[test]
        fn merging_words_is_merging_elements(
            // Use few values, so that bytes often agree.
            pages in proptest::collection::vec((0u8..3, 0u8..3, 0u8..3, 0u8..8), 64),
        ) {
            let column = |pick: fn(&(u8, u8, u8, u8)) -> u8| -> Vec<u8> { pages.iter().map(pick).collect() };
            let twin = column(|byte| byte.0);
            // The task and the others each change about one byte in eight.
            let own = column(|byte| if byte.3 == 0 { byte.1 } else { byte.0 });
            let master = column(|byte| if byte.3 < 2 { byte.2 } else { byte.0 });
            check::<1>(&twin, &own, &master);
            check::<4>(&twin, &own, &master);
            check::<8>(&twin, &own, &master);
        }
    }

    #[test]
    fn neighbours_in_a_word_do_not_clash() {
        let master = [AtomicU64::new(u64::from_ne_bytes([9, 0, 0, 0, 0, 0, 0, 0]))];
        assert_eq!(merge::<1>(&[0], &[u64::from_ne_bytes([0, 7, 0, 0, 0, 0, 0, 0])], &master), Ok(()));
        assert_eq!(master[0].load(Ordering::Relaxed).to_ne_bytes(), [9, 7, 0, 0, 0, 0, 0, 0]);
        let clash = merge::<1>(&[0], &[u64::from_ne_bytes([9, 8, 0, 0, 0, 0, 0, 0])], &master).expect_err("a clash");
        assert_eq!(clash.element, 1);
    }
}
