//! The words of a job in steps (the current step, what its tasks map, the state that they see, where its partitions are
//! on the shelf) and of a job in stages (what is saved).

use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_page::Piece;

use crate::control::result_parts::{BYTES, PAIRS, is_sealed, seal_words};
use crate::control::words::{JobWord, PIECE_WORDS, Shared, Slot, seal, word_of};
use crate::error::{Result, overwritten};

/// The indexes, in the words of a partition, of the step in which it was put on the shelf, and of its description.
const KEPT_IN: usize = 0; // See `seal_words`.
const LAST_PIECE: std::ops::Range<usize> = 1..3;

/// A partition on the shelf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptPartition {
    /// The piece that was written last. `None` for a partition without pairs.
    pub last: Option<Piece>,
    pub pairs: u64,
    /// The bytes of its pairs.
    pub bytes: u64,
}

impl Shared<'_> {
    /// Returns the current step, from 0. It changes before a round of it is opened.
    pub fn step(&self) -> u32 {
        self.job(JobWord::Step).load(Ordering::Acquire) as u32
    }

    /// Starts a step. Its tasks are `pieces` of the previous step, or the input again.
    pub fn set_step(&self, step: u32, pieces: Option<&[Piece]>) {
        for (words, piece) in self.piece_words.chunks_exact(PIECE_WORDS).zip(pieces.unwrap_or_default()) {
            encode_piece(words, *piece);
        }
        self.job(JobWord::MapsPairs).store(u64::from(pieces.is_some()), Ordering::Release);
        self.job(JobWord::Step).store(u64::from(step), Ordering::Release);
    }

    /// Returns the piece that `task` maps, in a step that maps pairs.
    pub fn piece(&self, task: usize) -> Option<Piece> {
        let maps_pairs = self.job(JobWord::MapsPairs).load(Ordering::Acquire) == 1;
        maps_pairs.then(|| decode_piece(&self.piece_words[task * PIECE_WORDS..]))
    }

    /// Returns the task of the input that is `task` of the current stage.
    pub fn input_task(&self, task: usize) -> usize {
        task + self.job(JobWord::FirstTask).load(Ordering::Acquire) as usize
    }

    /// Starts a stage at this task of the input. Nothing of it is saved yet.
    pub fn set_first_task(&self, task: usize) {
        (1..self.slots_born()).for_each(|slot| self.slot(slot, Slot::Saved).store(0, Ordering::Release));
        self.job(JobWord::FirstTask).store(task as u64, Ordering::Release);
    }

    /// Notes that the reducer in `slot` has written and synced this many bytes to the checkpoint.
    pub fn set_saved(&self, slot: usize, bytes: u64) {
        self.slot(slot, Slot::SavedSeal).store(seal([bytes + 1]), Ordering::Relaxed);
        self.slot(slot, Slot::Saved).store(bytes + 1, Ordering::Release);
    }

    /// Returns the bytes that the reducer in `slot` has saved in this stage, if it has saved.
    ///
    /// # Errors
    /// The word was overwritten.
    pub fn saved(&self, slot: usize) -> Result<Option<u64>> {
        let word = self.slot(slot, Slot::Saved).load(Ordering::Acquire);
        if word != 0 && self.slot(slot, Slot::SavedSeal).load(Ordering::Relaxed) != seal([word]) {
            return Err(overwritten(Some(slot), "how much it has saved"));
        }
        Ok(word.checked_sub(1))
    }

    /// Sets the state that the next step sees. No worker maps meanwhile.
    ///
    /// # Panics
    /// If the state is too long.
    pub fn set_state(&self, state: &[u8]) {
        let room = self.state_words.len() * 8;
        assert!(
            state.len() <= room,
            "a state of {} bytes was set, and the job began with room for {room}: begin with the largest",
            state.len()
        );
        for (word, eight) in self.state_words.iter().zip(state.chunks(8)) {
            word.store(word_of(eight), Ordering::Relaxed);
        }
        self.job(JobWord::StateBytes).store(state.len() as u64, Ordering::Release);
    }

    /// Copies the state of the current step. At the end of a step the copy may mix two states, but no task can be
    /// claimed then.
    pub fn copy_state(&self, to: &mut Vec<u8>) {
        to.clear();
        to.extend(self.state_words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()));
        to.truncate(self.job(JobWord::StateBytes).load(Ordering::Acquire) as usize);
    }

    /// Publishes that the owner of `partition` has put it on the shelf, as the result of `step`.
    pub fn publish(&self, partition: usize, step: u32, kept: KeptPartition) {
        let words = self.partition_words(partition);
        encode_piece(&words[LAST_PIECE], kept.last.unwrap_or(Piece { extent: 0, start: 0, bytes: 0 }));
        words[PAIRS].store(kept.pairs, Ordering::Relaxed);
        words[BYTES].store(kept.bytes, Ordering::Relaxed);
        let kept_in = u64::from(step) + 1;
        seal_words(words, kept_in);
        // PAIRS WITH the load in `is_kept`.
        words[KEPT_IN].store(kept_in, Ordering::Release);
    }

    /// Returns whether `partition` of `step` was published.
    pub fn is_kept(&self, partition: usize, step: u32) -> bool {
        // PAIRS WITH the store in `publish`: the earlier words are visible, and so is the data that they describe.
        let words = self.partition_words(partition);
        words[KEPT_IN].load(Ordering::Acquire) == u64::from(step) + 1 && is_sealed(words)
    }

    /// Returns where `partition` was last published.
    pub fn kept(&self, partition: usize) -> KeptPartition {
        let words = self.partition_words(partition);
        let last = decode_piece(&words[LAST_PIECE]);
        let number = |at: usize| words[at].load(Ordering::Relaxed);
        KeptPartition { last: (last.bytes > 0).then_some(last), pairs: number(PAIRS), bytes: number(BYTES) }
    }
}

fn encode_piece(words: &[AtomicU64], piece: Piece) {
    words[0].store(u64::from(piece.extent) << 32 | u64::from(piece.start), Ordering::Relaxed);
    words[1].store(u64::from(piece.bytes), Ordering::Relaxed);
}

fn decode_piece(words: &[AtomicU64]) -> Piece {
    let place = words[0].load(Ordering::Relaxed);
    let bytes = words[1].load(Ordering::Relaxed) as u32;
    Piece { extent: (place >> 32) as u32, start: place as u32, bytes }
}
