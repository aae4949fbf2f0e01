//! The words of a job in steps (which step runs, what its tasks map, the state that they see, where the partitions lie that it leaves)
//! and of a job in stages (which are saved).

use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_page::Piece;

use crate::control::words::{Job, PIECE_WORDS, Shared, Slot, word_of};

/// Where in the words of a partition the step stands in which it was kept, and what was kept.
const KEPT_IN: usize = 2;
const LAST_PIECE: std::ops::Range<usize> = 3..5;
const PAIRS: usize = 5;
const BYTES: usize = 6;

/// A partition on the shelf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptPartition {
    /// The piece that was written last; `None` of a partition without pairs.
    pub last: Option<Piece>,
    pub pairs: u64,
    /// Bytes of pairs.
    pub bytes: u64,
}

impl Shared<'_> {
    /// The running step, from 0; it changes before a round of it is opened.
    pub fn step(&self) -> u32 {
        self.job(Job::Step).load(Ordering::Acquire) as u32
    }

    /// Begins a step whose tasks are `pieces` of the step before, or parts of the input again.
    pub fn set_step(&self, step: u32, pieces: Option<&[Piece]>) {
        for (words, piece) in self.piece_words.chunks_exact(PIECE_WORDS).zip(pieces.unwrap_or_default()) {
            encode_piece(words, *piece);
        }
        self.job(Job::MapsPairs).store(u64::from(pieces.is_some()), Ordering::Release);
        self.job(Job::Step).store(u64::from(step), Ordering::Release);
    }

    /// The piece that `task` maps in a step that maps pairs.
    pub fn piece(&self, task: usize) -> Option<Piece> {
        let maps_pairs = self.job(Job::MapsPairs).load(Ordering::Acquire) == 1;
        maps_pairs.then(|| decode_piece(&self.piece_words[task * PIECE_WORDS..]))
    }

    /// The task of the input that is `task` of the running stage.
    pub fn input_task(&self, task: usize) -> usize {
        task + self.job(Job::FirstTask).load(Ordering::Acquire) as usize
    }

    /// The stage that is opened next begins with this task of the input; nobody has saved anything of it yet.
    pub fn set_first_task(&self, task: usize) {
        (1..self.slots_born()).for_each(|slot| self.slot(slot, Slot::Saved).store(0, Ordering::Release));
        self.job(Job::FirstTask).store(task as u64, Ordering::Release);
    }

    /// The reducer in `slot` has written so many bytes to the checkpoint, and the disk has them.
    pub fn set_saved(&self, slot: usize, bytes: u64) {
        self.slot(slot, Slot::Saved).store(bytes + 1, Ordering::Release);
    }

    /// What the reducer in `slot` has written in this stage, if it has.
    pub fn saved(&self, slot: usize) -> Option<u64> {
        self.slot(slot, Slot::Saved).load(Ordering::Acquire).checked_sub(1)
    }

    /// Sets the state that the next step sees. Nobody maps meanwhile.
    ///
    /// # Panics
    /// When there is no room for it.
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
        self.job(Job::StateBytes).store(state.len() as u64, Ordering::Release);
    }

    /// Copies the state of the running step. It may be half of the next one when the step is over: nobody can claim
    /// a task then.
    pub fn copy_state(&self, to: &mut Vec<u8>) {
        to.clear();
        to.extend(self.state_words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()));
        to.truncate(self.job(Job::StateBytes).load(Ordering::Acquire) as usize);
    }

    /// Says that the owner of `partition` has left it on the shelf, as the result of `step`.
    pub fn publish(&self, partition: usize, step: u32, kept: KeptPartition) {
        let words = self.partition_words(partition);
        encode_piece(&words[LAST_PIECE], kept.last.unwrap_or(Piece { extent: 0, start: 0, bytes: 0 }));
        words[PAIRS].store(kept.pairs, Ordering::Relaxed);
        words[BYTES].store(kept.bytes, Ordering::Relaxed);
        // PAIRS WITH the load in `is_kept`.
        words[KEPT_IN].store(u64::from(step) + 1, Ordering::Release);
    }

    /// True when `partition` of `step` was published.
    pub fn is_kept(&self, partition: usize, step: u32) -> bool {
        // PAIRS WITH the store in `publish`: the words before it are there, and so is what they name.
        self.partition_words(partition)[KEPT_IN].load(Ordering::Acquire) == u64::from(step) + 1
    }

    /// Where `partition` lies that was published last.
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
