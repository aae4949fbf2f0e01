//! For tests: a worker overwrites one word that it shares with others, as a stray pointer in a map function would.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::control::counters::COUNTERS;
use crate::control::track::TRACK_WORDS;
use crate::control::words::{ACCUMULATED_WORDS, COUNTERS_AT, DIGEST_WORDS, MESSAGE_AT, PIECE_WORDS, Shared, mix};

/// Words of one kind, those in use.
enum Words<'s> {
    Short(Vec<&'s AtomicU32>),
    Long(Vec<&'s AtomicU64>),
}

impl Shared<'_> {
    /// Overwrites one word that is in use, and prints which one. `seed` chooses a kind of words, one of them, and its
    /// new value.
    #[cold]
    pub fn overwrite_a_word(&self, seed: u64) {
        let draw = |nth: u64| mix(seed ^ mix(nth));
        let kinds: Vec<(&str, Words<'_>)> = self.kinds().into_iter().filter(|(_, words)| !words.is_empty()).collect();
        let (kind, words) = &kinds[draw(1) as usize % kinds.len()];
        let at = draw(2) as usize % words.len();
        let (old, bits) = match words {
            Words::Short(words) => (u64::from(words[at].load(Ordering::Relaxed)), u32::BITS),
            Words::Long(words) => (words[at].load(Ordering::Relaxed), u64::BITS),
        };
        let flipped = old ^ 1 << (draw(4) % u64::from(bits));
        let values = [0, 1, u64::MAX, draw(5), flipped, flipped, old.wrapping_add(1)];
        let new = values[draw(3) as usize % values.len()];
        eprintln!("{kind}, word {at} of {}: {old:#x} becomes {new:#x}", words.len());
        match words {
            Words::Short(words) => words[at].store(new as u32, Ordering::SeqCst),
            Words::Long(words) => words[at].store(new, Ordering::SeqCst),
        }
    }

    fn kinds(&self) -> Vec<(&'static str, Words<'_>)> {
        let born = self.slots_born();
        let tasks = self.tasks();
        let of_slots = |range: std::ops::Range<usize>| {
            Words::Long((1..born).flat_map(|slot| &self.slot_words(slot)[range.clone()]).collect())
        };
        let short = self.pages.words_in_use(born).into_iter().map(|(kind, words)| (kind, Words::Short(words)));
        let mut kinds = vec![
            ("job", long(self.job)),
            ("common", long(&self.common[..4])),
            // Twice, because they are so many.
            ("slots", of_slots(0..MESSAGE_AT)),
            ("slots", of_slots(0..MESSAGE_AT)),
            ("messages", of_slots(MESSAGE_AT..COUNTERS_AT)),
            ("counters", of_slots(COUNTERS_AT..COUNTERS_AT + COUNTERS)),
            ("partitions", long(self.partition_words)),
            ("owners", long(self.assigned_words)),
            ("state", long(self.state_words)),
            ("tasks", long(&self.task_words[..tasks])),
            ("tasks", long(&self.task_words[..tasks])),
            ("digests", long(&self.digest_words[..tasks * DIGEST_WORDS])),
            ("pieces", long(&self.piece_words[..self.piece_words.len().min(tasks * PIECE_WORDS)])),
            ("careful tasks", long(self.careful_words)),
            ("set aside", long(self.set_aside_words)),
            ("wanted", long(self.wanted_words)),
            ("shares", long(self.share_words)),
            ("node reads", long(self.node_words)),
            (
                "accumulated",
                long(&self.accumulated_words[..self.accumulated_words.len().min(tasks * ACCUMULATED_WORDS)]),
            ),
            ("tracks", long(&self.track_words[..self.track_words.len().min(born * TRACK_WORDS)])),
        ];
        kinds.extend(short);
        kinds
    }
}

fn long(words: &[AtomicU64]) -> Words<'_> {
    Words::Long(words.iter().collect())
}

impl Words<'_> {
    fn len(&self) -> usize {
        match self {
            Words::Short(words) => words.len(),
            Words::Long(words) => words.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::ledger::Sums;
    use crate::control::result_parts::PartSize;
    use crate::control::steps::KeptPartition;
    use crate::control::words::{SLOT_WORDS, Slot, WordCounts};
    use crate::data::digest::Digest;
    use crate::program::accumulator::Accumulator;
    use gristmill_page::{Pages, Piece, Shape};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const ROOM: WordCounts = WordCounts {
        slots: 4,
        partitions: 2,
        tasks: 3,
        pieces: 0,
        state_bytes: 0,
        bad_records: 0,
        accumulators: 1,
        tracks: false,
        shares: 2,
        nodes: 0,
    };

    fn pages() -> Pages {
        let words = Shape {
            extra_words: ROOM.words(),
            slot_words: SLOT_WORDS,
            guarded_words: ROOM.guarded_words(),
            ..Shape::default()
        };
        let pages = Pages::new(Shape { slots: ROOM.slots, pages_per_arena: 1, page_bytes: 4096, ..words });
        let pages = pages.expect("mapped");
        (0..3).for_each(|slot| drop(pages.claim(slot)));
        pages
    }

    /// Overwrites each of these words with many values, one at a time, after `set` has set them. Then `is_right` must
    /// say that they are wrong.
    fn overwrite_each(words: &[AtomicU64], set: impl Fn(), is_right: impl Fn() -> bool) {
        for word in words {
            set();
            assert!(is_right());
            let old = word.load(Ordering::Relaxed);
            let flipped = (0..u64::BITS).map(|bit| old ^ 1 << bit);
            for new in flipped.chain([0, 1, u64::MAX, mix(old)]).filter(|new| *new != old) {
                word.store(new, Ordering::Relaxed);
                assert!(!is_right(), "{old:x} became {new:x}");
            }
            word.store(old, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_sealed_word_that_was_overwritten_is_not_believed() {
        // A stray pointer in a map function changed the total of an accumulator, the size of a part, or what a task
        // had emitted.
        let pages = pages();
        let shared = Shared::new(&pages, ROOM).expect("a bell");
        shared.set_slots_born(3);
        let kinds = [Accumulator::sum().kind];
        overwrite_each(
            &shared.accumulated_words[..ACCUMULATED_WORDS],
            || shared.set_accumulated(0, &kinds, &vec![(kinds[0], 7)]),
            || shared.add_accumulated(&kinds, &mut Vec::new()).is_ok(),
        );
        shared.clear_accumulated();
        overwrite_each(
            shared.partition_words(0),
            || {
                shared.set_part_size(0, PartSize { pairs: 5, bytes: 99 });
                shared.set_checksum(0, 17);
            },
            || shared.check_partition(0).is_ok(),
        );
        let last = Some(Piece { extent: 3, start: 64, bytes: 128 });
        overwrite_each(
            shared.partition_words(1),
            || shared.publish(1, 6, KeptPartition { last, pairs: 5, bytes: 99 }),
            || shared.is_kept(1, 6) && shared.check_partition(1).is_ok(),
        );
        overwrite_each(
            &shared.slot_words(1)[Slot::Saved as usize..=Slot::SavedSeal as usize],
            || shared.set_saved(1, 4096),
            || matches!(shared.saved(1), Ok(Some(4096))),
        );
        let quietly = |right: &dyn Fn() -> bool| catch_unwind(AssertUnwindSafe(right)).unwrap_or(false);
        let digest = Digest { pairs: 3, sum: 4, changes: 5 };
        overwrite_each(
            &shared.digest_words[..3],
            || shared.prove(0, 0, digest, false).expect("the first"),
            || quietly(&|| shared.prove(0, 1, digest, false).is_ok()),
        );
        overwrite_each(
            &shared.share_words[..1],
            || assert_eq!(shared.share(0, 0, 1), 1),
            || quietly(&|| shared.share(0, 1, 0) == 1),
        );
    }

    #[test]
    fn a_round_adds_up_if_each_task_is_mapped_once_and_each_page_received() {
        // A claim that was overwritten with "free" counted its task twice, and one that named a committed epoch left
        // it out.
        let pages = pages();
        let shared = Shared::new(&pages, ROOM).expect("a bell");
        shared.set_slots_born(3);
        let sums = |tasks: &[usize], pages: u32| {
            let mut sums = Sums::default();
            tasks.iter().for_each(|task| sums.add_task(*task));
            (0..pages).for_each(|serial| sums.add_page(1, serial));
            sums
        };
        shared.open_round(0, 3);
        shared.set_permits(1);
        for task in 0..2 {
            assert_eq!(shared.claim_new(0, 1, 1, || ()), Some(task));
        }
        shared.enter(1, 1, 0, sums(&[0, 1], 5));
        assert!(matches!(shared.is_done(1, 0), Ok(false)));
        shared.commit(1).commit(1);
        assert!(matches!((shared.is_done(1, 0), shared.is_done(2, 0)), (Ok(true), Ok(false))));
        assert_eq!(shared.claim_new(0, 1, 2, || ()), Some(2));
        // What is not committed does not count, whatever its entry says.
        shared.enter(1, 2, 0, sums(&[0, 1, 2], 7));
        assert_eq!(shared.entered(0).expect("entered"), sums(&[0, 1], 5));
        shared.commit(1).commit(2);
        assert_eq!(shared.entered(0).expect("entered"), sums(&[0, 1, 2], 7));
        assert_eq!(shared.entered(1).expect("entered"), Sums::default());
        shared.check_counters(0, 1).expect("as workers leave them");
        // A worker commits an epoch that it has not entered; claims that no worker makes.
        shared.slot(1, Slot::Commit).store(6, Ordering::Relaxed);
        assert!(shared.entered(0).is_err());
        shared.slot(1, Slot::Commit).store(2, Ordering::Relaxed);
        let claim = shared.task_word(0).load(Ordering::Relaxed);
        for wrong in [0, u64::MAX, claim | 7 << 32, claim | 8, claim ^ 1 << 50, claim & !0xffff_ffff] {
            shared.task_word(0).store(wrong, Ordering::Relaxed);
            assert!(shared.is_done(0, 0).is_err(), "{wrong:x}");
        }
        for (word, wrong) in [(0, u64::MAX), (0, 9), (0, 1 << 32), (1, 1 << 40), (1, 1 << 63)] {
            let old = shared.common[word].swap(wrong, Ordering::Relaxed);
            assert!(shared.check_counters(0, 1).is_err(), "{wrong:x}");
            shared.common[word].store(old, Ordering::Relaxed);
        }
    }
}
