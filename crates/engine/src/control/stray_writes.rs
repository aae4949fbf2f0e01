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
    /// Overwrites one word that is in use, and prints which one. `seed` chooses a kind of words, one of them, and its new value.
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
