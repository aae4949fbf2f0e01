//! The words that workers and coordinator share, besides pages and mailboxes.
//!
//! ```text
//!  words that all workers write:  | common, 16 words | partition 0, 8 words | ... | task 0 | task 1 | ... | digests | workers that are wanted |
//!                                 | shares | node reads | accumulators | tracks of a timeline |
//!  words of each slot:            | 256 words |
//!  guarded words:                 | job, 24 words | partition 0, 4 words | ... | state | pieces | careful tasks | records set aside |
//!
//!  partition:  | step + 1 in which it was kept | where: extent, start | bytes | pairs | bytes of pairs | checksum | closed | seal |
//!  guarded:    | owner | since | start | - |
//!  digests:    for each task, what it emitted when it was mapped first:  | pairs | sum | changes | stays | seal |
//!  shares:     for each task of a job with several shares, the one that its pairs belong to
//!  node reads: for each pair of nodes, the bytes of pages that the second one has read in the memory of the first
//!  pieces:     for each task of a step that maps pairs, the piece it maps:  | extent, start | bytes |
//! ```
//!
//! Writers: only the coordinator writes guarded words, and only the worker of a slot writes the words of that slot,
//! besides the coordinator. The kernel ends a worker process that writes to others. All workers write the rest: the
//! owner of a partition its words, a worker that claims a task its word (and the coordinator, which puts a task back
//! or opens a round), the worker that has the task its digest. The wanted words have a bit for each slot, set by a
//! worker that sends a page to a worker that was not started.
//!
//! A function of the program may write there through a stray pointer. So whoever reads a word that another process
//! writes believes it only within bounds, words that change the answer carry a [`seal`], and what was mapped, sent and
//! received is added up ([`ledger`](super::ledger)).

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::futex::SharedFutex;
use gristmill_os::wake::Bell;
use gristmill_page::Pages;
use gristmill_ring::{CommitWord, Futex};

use crate::control::counters::{COUNTERS, Counters};
use crate::control::telling::Telling;
use crate::control::track::{Recorded, Recorder, TRACK_WORDS};
use crate::failure::FAILURE_WORDS;
use crate::testing::kill_points::KillPoint;

/// The words of one accumulator of a task: see `accumulated`.
pub(crate) const ACCUMULATED_WORDS: usize = 3;
pub(crate) const JOB_WORDS: usize = 24;
const _: () = assert!((JobWord::FirstRound as usize) < JOB_WORDS);
pub(crate) const COMMON_WORDS: usize = 16;
const _: () = assert!((Common::Failed as usize) < COMMON_WORDS);
pub(crate) const PARTITION_WORDS: usize = 8;
pub(crate) const ASSIGNED_WORDS: usize = 4;
pub(crate) const DIGEST_WORDS: usize = 5;
pub(crate) const PIECE_WORDS: usize = 2;
pub(crate) const SET_ASIDE_WORDS: usize = 2;
/// The words of an entry in the ledger of a worker, and of its two entries: see `ledger`.
pub(crate) const ENTRY_WORDS: usize = 4;
const LEDGER_WORDS: usize = 2 * ENTRY_WORDS;
pub(crate) const SLOT_WORDS: usize = 256;
pub(crate) const MESSAGE_AT: usize = 40;
pub(crate) const MESSAGE_WORDS: usize = 64;
pub(crate) const COUNTERS_AT: usize = MESSAGE_AT + MESSAGE_WORDS;
const _: () = assert!(Slot::Ledger as usize + LEDGER_WORDS <= MESSAGE_AT);
const _: () = assert!(COUNTERS_AT + COUNTERS <= SLOT_WORDS);

/// The words of the job that the coordinator writes.
#[derive(Clone, Copy)]
pub(crate) enum JobWord {
    Round,
    MappedRound,
    FinishRound,
    Over,
    PutBack,
    SlotsBorn,
    /// The number of tasks in the current round.
    Tasks,
    Step,
    /// 1 if the tasks of the current step are pieces of the previous step, not parts of the input.
    MapsPairs,
    StateBytes,
    /// The number of records that are set aside.
    SetAside,
    /// For a job with a checkpoint: the task of the input that is the first one of this stage.
    FirstTask,
    /// The first round of the current step.
    FirstRound,
}

/// The words of the job that all workers write.
#[derive(Clone, Copy)]
pub(crate) enum Common {
    NextTask,
    /// The number of workers that may still start to map; less than 0 (two's complement) if more map than should.
    Permits,
    Announced,
    /// 1 if a worker has failed; its slot has the failure.
    Failed,
}

/// The words of a slot.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    Commit,
    Task,
    TaskStartNs,
    DrainedRound,
    Permit,
    /// The length of the message + 1, because a message may be empty. 0 while there is none.
    Message,
    /// The place that is being mapped.
    PlaceSource,
    PlaceOffset,
    /// Twice its length, plus 1 if it is a single record. 0 while nothing is being mapped.
    PlaceBytes,
    /// The task + 1 of which the worker, now dead, died at that place.
    DiedOf,
    /// The number of stored bytes of its task's files that it has read.
    Reached,
    /// 1 while the worker waits for room to report bad records.
    Asks,
    /// The value of a [`Reducing`].
    Reducing,
    /// The number of bytes + 1 that a reducer has saved in this stage, and its seal.
    Saved,
    SavedSeal,
    /// The round + 1 of which it has received pages, and their sum: see [`ledger`](super::ledger).
    ReceivedRound,
    Received,
    /// 1 while the worker merges into shared outputs.
    Merges,
    /// The first of [`FAILURE_WORDS`].
    Failure,
    /// The first of [`LEDGER_WORDS`].
    Ledger = Slot::Failure as isize + FAILURE_WORDS as isize,
}

/// A worker's way with pairs that arrive.
#[derive(Clone, Copy)]
pub(crate) enum Reducing {
    Nothing,
    /// It receives or combines them.
    Takes,
    /// It makes room for more, and receives no pages meanwhile.
    Spills,
}

/// The slot of the coordinator, which receives results.
pub(crate) const COORDINATOR: usize = 0;

/// The coordinator sleeps in an epoll, so its doorbell rings an eventfd.
pub(crate) struct CoordinatorBell(pub Bell);

impl Futex for CoordinatorBell {
    fn wait(&self, _: &AtomicU32, _: u32) {
        unreachable!("the coordinator waits for deaths and for this bell together");
    }

    fn wake(&self, _: &AtomicU32) {
        self.0.ring();
    }
}

/// Typed access to the shared words.
pub(crate) struct Shared<'p> {
    pub pages: &'p Pages,
    /// Wakes the coordinator, which also waits for the kernel to report deaths.
    pub bell: CoordinatorBell,
    pub slots: usize,
    pub job: &'p [AtomicU64],
    pub common: &'p [AtomicU64],
    pub slot_words: &'p [AtomicU64],
    /// The distance from the words of one slot to those of the next.
    pub slot_distance: usize,
    pub partition_words: &'p [AtomicU64],
    pub assigned_words: &'p [AtomicU64],
    pub state_words: &'p [AtomicU64],
    pub task_words: &'p [AtomicU64],
    pub digest_words: &'p [AtomicU64],
    pub piece_words: &'p [AtomicU64],
    pub careful_words: &'p [AtomicU64],
    pub set_aside_words: &'p [AtomicU64],
    pub wanted_words: &'p [AtomicU64],
    pub share_words: &'p [AtomicU64],
    pub node_words: &'p [AtomicU64],
    pub accumulated_words: &'p [AtomicU64],
    /// For a job with a timeline.
    pub track_words: &'p [AtomicU64],
    /// For a job that sets records aside.
    pub telling: Option<Telling>,
}

/// The number of words of each kind that a job needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordCounts {
    pub slots: usize,
    pub partitions: usize,
    /// The most tasks of a round.
    pub tasks: usize,
    /// The most of them in a step that maps pairs.
    pub pieces: usize,
    /// The length of the state of a step.
    pub state_bytes: usize,
    /// The number of records that may be set aside.
    pub bad_records: usize,
    pub accumulators: usize,
    /// Whether the job has a timeline.
    pub tracks: bool,
    pub shares: usize,
    /// The number of nodes whose reads are counted; 0 if none are.
    pub nodes: usize,
}

impl WordCounts {
    /// Returns the lengths of the parts that all workers write, in the order in which [`Shared::new`] names them.
    fn written(self) -> [usize; 9] {
        let WordCounts { slots, partitions, tasks, accumulators, shares, nodes, .. } = self;
        [
            COMMON_WORDS,
            partitions * PARTITION_WORDS,
            tasks,
            tasks * DIGEST_WORDS,
            slots.div_ceil(64),
            if shares > 1 { tasks } else { 0 },
            nodes * nodes,
            tasks * accumulators * ACCUMULATED_WORDS,
            if self.tracks { slots * TRACK_WORDS } else { 0 },
        ]
    }

    /// Returns the lengths of the parts that only the coordinator writes.
    fn guarded(self) -> [usize; 6] {
        let WordCounts { partitions, tasks, pieces, state_bytes, bad_records, .. } = self;
        [
            JOB_WORDS,
            partitions * ASSIGNED_WORDS,
            state_bytes.div_ceil(8),
            pieces * PIECE_WORDS,
            tasks.div_ceil(64),
            bad_records * SET_ASIDE_WORDS,
        ]
    }

    /// Returns the number of words that [`Shared::new`] needs in the region and that all workers write.
    pub fn words(self) -> usize {
        self.written().iter().sum()
    }

    /// Returns the number of words that only the coordinator writes.
    pub fn guarded_words(self) -> usize {
        self.guarded().iter().sum()
    }
}

/// Cuts words into parts of these lengths.
fn parts<const N: usize>(mut words: &[AtomicU64], lengths: [usize; N]) -> [&[AtomicU64]; N] {
    lengths.map(|length| words.split_off(..length).expect("the region has as many words as were counted"))
}

impl<'p> Shared<'p> {
    pub fn new(pages: &'p Pages, room: WordCounts) -> io::Result<Shared<'p>> {
        let (slot_words, slot_distance) = pages.slot_words();
        let [job, assigned_words, state_words, piece_words, careful_words, set_aside_words] =
            parts(pages.guarded_words(), room.guarded());
        let [
            common,
            partition_words,
            task_words,
            digest_words,
            wanted_words,
            share_words,
            node_words,
            accumulated_words,
            track_words,
        ] = parts(pages.extra_words(), room.written());
        let bell = CoordinatorBell(Bell::new()?);
        let telling = if room.bad_records > 0 { Some(Telling::new()?) } else { None };
        Ok(Shared {
            pages,
            bell,
            slots: room.slots,
            job,
            common,
            slot_words,
            slot_distance,
            partition_words,
            assigned_words,
            state_words,
            task_words,
            digest_words,
            piece_words,
            careful_words,
            set_aside_words,
            wanted_words,
            share_words,
            node_words,
            accumulated_words,
            track_words,
            telling,
        })
    }

    pub fn partitions(&self) -> usize {
        self.partition_words.len() / PARTITION_WORDS
    }

    pub fn job(&self, word: JobWord) -> &AtomicU64 {
        &self.job[word as usize]
    }

    pub fn common(&self, word: Common) -> &AtomicU64 {
        &self.common[word as usize]
    }

    pub fn slot_words(&self, slot: usize) -> &[AtomicU64] {
        &self.slot_words[slot * self.slot_distance..][..SLOT_WORDS]
    }

    pub fn slot(&self, slot: usize, word: Slot) -> &AtomicU64 {
        &self.slot_words(slot)[word as usize]
    }

    pub fn partition_words(&self, partition: usize) -> &[AtomicU64] {
        &self.partition_words[partition * PARTITION_WORDS..][..PARTITION_WORDS]
    }

    /// Returns the words of `partition` that the coordinator writes.
    pub fn assigned_words(&self, partition: usize) -> &[AtomicU64] {
        &self.assigned_words[partition * ASSIGNED_WORDS..][..ASSIGNED_WORDS]
    }

    /// Returns the number of tasks in the current round.
    pub fn tasks(&self) -> usize {
        self.job(JobWord::Tasks).load(Ordering::Acquire) as usize
    }

    pub fn task_word(&self, task: usize) -> &AtomicU64 {
        &self.task_words[task]
    }

    /// Makes the worker in `slot`, or the coordinator, look again.
    #[inline]
    pub fn ring(&self, slot: usize) {
        match slot {
            COORDINATOR => self.pages.doorbell(slot).ring(&self.bell),
            _ => self.pages.doorbell(slot).ring(&SharedFutex),
        }
    }

    /// As [`Shared::ring`], for a worker that may have a kill point there.
    #[inline]
    pub fn ring_with(&self, kill_point: &KillPoint<'_>, slot: usize) {
        match slot {
            COORDINATOR => self.pages.doorbell(slot).ring(&kill_point.at_wake(&self.bell)),
            _ => self.pages.doorbell(slot).ring(&kill_point.at_wake(&SharedFutex)),
        }
    }

    /// Makes every sleeping worker look at the shared words again.
    pub fn ring_all(&self) {
        (1..self.slots_born()).for_each(|slot| self.ring(slot));
    }

    /// As [`Shared::ring_all`] after a death, because the dead worker may have been about to wake another.
    pub fn ring_all_after_death(&self) {
        (1..self.slots_born()).for_each(|slot| self.wake(slot));
    }

    /// Wakes the worker in `slot`, whatever its doorbell says.
    pub fn wake(&self, slot: usize) {
        self.pages.doorbell(slot).ring_after_death(&SharedFutex);
    }

    // The coordinator's words. Each is published with Release and read with Acquire: what the coordinator
    // did before (owners, task words) is visible to the worker that sees the new value.

    /// Returns the current round: how often the input has been mapped because reduce state was lost.
    pub fn round(&self) -> u32 {
        self.job(JobWord::Round).load(Ordering::Acquire) as u32
    }

    /// Returns whether every task of `round` has been committed.
    pub fn is_mapped(&self, round: u32) -> bool {
        self.job(JobWord::MappedRound).load(Ordering::Acquire) > u64::from(round)
    }

    pub fn set_mapped(&self, round: u32) {
        self.job(JobWord::MappedRound).store(u64::from(round) + 1, Ordering::Release);
    }

    /// Returns whether reducers may finish their partitions: nothing is tainted after `round`.
    pub fn may_finish(&self, round: u32) -> bool {
        self.job(JobWord::FinishRound).load(Ordering::Acquire) > u64::from(round)
    }

    pub fn set_may_finish(&self, round: u32) {
        self.job(JobWord::FinishRound).store(u64::from(round) + 1, Ordering::Release);
    }

    /// Returns whether workers must end.
    pub fn is_over(&self) -> bool {
        self.job(JobWord::Over).load(Ordering::Acquire) != 0
    }

    pub fn set_over(&self) {
        self.job(JobWord::Over).store(1, Ordering::Release);
    }

    /// Returns the number of slots that have or had a worker.
    pub fn slots_born(&self) -> usize {
        self.job(JobWord::SlotsBorn).load(Ordering::Acquire) as usize
    }

    pub fn set_slots_born(&self, slots: usize) {
        self.job(JobWord::SlotsBorn).store(slots as u64, Ordering::Release);
    }

    /// Returns the slot that reduces `partition`.
    #[inline]
    pub fn owner(&self, partition: usize) -> usize {
        self.assigned_words(partition)[0].load(Ordering::Acquire) as usize
    }

    /// Returns the round whose pages, and no others, make up `partition`.
    #[inline]
    pub fn since(&self, partition: usize) -> u32 {
        self.assigned_words(partition)[1].load(Ordering::Acquire) as u32
    }

    /// Assigns `partition` to the reducer in `slot`, to be made from the pages of round `since`.
    pub fn assign(&self, partition: usize, slot: usize, since: u32) {
        let words = self.assigned_words(partition);
        words[1].store(u64::from(since), Ordering::Release);
        words[0].store(slot as u64, Ordering::Release);
    }

    // A worker's words.

    /// Returns the commit word of the worker in `slot`.
    pub fn commit(&self, slot: usize) -> CommitWord<'_> {
        CommitWord::new(self.slot(slot, Slot::Commit))
    }

    /// Lets `permits` workers map at the same time.
    pub fn set_permits(&self, permits: usize) {
        self.common(Common::Permits).store(permits as u64, Ordering::Release);
    }

    /// Returns whether `slot` has a permit to map. For the worker itself.
    pub fn holds_permit(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Permit).load(Ordering::Relaxed) == 1
    }

    /// Takes a permit to map for `slot`, unless it has one. Returns whether it has one now.
    pub fn take_permit(&self, slot: usize) -> bool {
        if self.holds_permit(slot) {
            return true;
        }
        // Set the slot's word first: if the worker dies in between, a permit is given back that was never taken, and
        // one more worker maps. In the other order a permit would be lost.
        self.slot(slot, Slot::Permit).store(1, Ordering::Release);
        let left = |permits: u64| (permits as i64 > 0).then(|| permits - 1);
        let taken = self.common(Common::Permits).fetch_update(Ordering::AcqRel, Ordering::Relaxed, left).is_ok();
        if !taken {
            self.slot(slot, Slot::Permit).store(0, Ordering::Release);
        }
        taken
    }

    /// Gives the permit of `slot` back. Returns whether it had one. For the worker itself, and for the coordinator
    /// after its death.
    pub fn give_permit(&self, slot: usize) -> bool {
        let had = self.slot(slot, Slot::Permit).load(Ordering::Acquire) == 1;
        if had {
            // Set the count first: if the worker dies in between, its permit is given back twice, and one more worker
            // maps. In the other order a permit would be lost.
            self.common(Common::Permits).fetch_add(1, Ordering::AcqRel);
            self.slot(slot, Slot::Permit).store(0, Ordering::Release);
        }
        had
    }

    /// Returns whether a worker without a permit may take one.
    pub fn has_permit_left(&self) -> bool {
        self.common(Common::Permits).load(Ordering::Acquire) as i64 > 0
    }

    /// Returns whether a worker must give its permit back, because more workers map than should.
    pub fn wants_permit_back(&self) -> bool {
        (self.common(Common::Permits).load(Ordering::Acquire) as i64) < 0
    }

    /// Lets so many workers fewer map at the same time.
    pub fn withdraw_permits(&self, permits: usize) {
        self.common(Common::Permits).fetch_sub(permits as u64, Ordering::AcqRel);
    }

    /// Notes that `slot` starts to work on `task`.
    pub fn begin_task(&self, slot: usize, task: usize, now_ns: u64) {
        self.slot(slot, Slot::TaskStartNs).store(now_ns, Ordering::Relaxed);
        self.set_reached(slot, 0);
        self.slot(slot, Slot::Task).store(task as u64 + 1, Ordering::Release);
    }

    /// Notes how many stored bytes of its task's files `slot` has read.
    pub fn set_reached(&self, slot: usize, bytes: u64) {
        self.slot(slot, Slot::Reached).store(bytes, Ordering::Relaxed);
    }

    /// Returns how many stored bytes of its task's files `slot` has read.
    pub fn reached(&self, slot: usize) -> u64 {
        self.slot(slot, Slot::Reached).load(Ordering::Relaxed)
    }

    /// Notes that `slot` works on no task. Its start time stays, because the coordinator may be about to read it for
    /// the task that has just ended.
    pub fn end_task(&self, slot: usize) {
        self.slot(slot, Slot::Task).store(0, Ordering::Release);
    }

    /// Stops the clock of the current task of `slot` while it waits for others. Returns the reading.
    pub fn stop_clock(&self, slot: usize) -> u64 {
        self.slot(slot, Slot::TaskStartNs).swap(u64::MAX, Ordering::Relaxed)
    }

    /// Starts the clock again, as if the task had begun at `start_ns`.
    pub fn start_clock(&self, slot: usize, start_ns: u64) {
        self.slot(slot, Slot::TaskStartNs).store(start_ns, Ordering::Relaxed);
    }

    /// Returns the task that `slot` works on, and its start time, which lies in the future while it waits for others.
    pub fn task(&self, slot: usize) -> Option<(usize, u64)> {
        let task = self.slot(slot, Slot::Task).load(Ordering::Acquire);
        let since_ns = self.slot(slot, Slot::TaskStartNs).load(Ordering::Relaxed);
        task.checked_sub(1).map(|task| (task as usize, since_ns)).filter(|(task, _)| *task < self.tasks())
    }

    /// Notes what `slot` now does with arrived pairs.
    pub fn set_reducing(&self, slot: usize, reducing: Reducing) {
        self.slot(slot, Slot::Reducing).store(reducing as u64, Ordering::Release);
    }

    /// Returns whether `slot` works on arrived pairs. If it dies meanwhile, its task is not to blame.
    pub fn is_reducing(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Reducing).load(Ordering::Acquire) != Reducing::Nothing as u64
    }

    /// Notes whether `slot` merges into shared outputs. It takes latches only meanwhile.
    pub fn set_merging(&self, slot: usize, merges: bool) {
        self.slot(slot, Slot::Merges).store(u64::from(merges), Ordering::Release);
    }

    pub fn is_merging(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Merges).load(Ordering::Acquire) == 1
    }

    /// Returns whether a worker is spilling.
    pub fn somebody_spills(&self) -> bool {
        (1..self.slots_born()).any(|slot| {
            self.pages.is_claimed(slot)
                && self.slot(slot, Slot::Reducing).load(Ordering::Acquire) == Reducing::Spills as u64
                && !self.pages.is_dead(slot)
        })
    }

    /// Notes that `slot` has consumed every page of `round`.
    pub fn set_drained(&self, slot: usize, round: u32) {
        self.slot(slot, Slot::DrainedRound).store(u64::from(round) + 1, Ordering::Release);
    }

    pub fn is_drained(&self, slot: usize, round: u32) -> bool {
        self.slot(slot, Slot::DrainedRound).load(Ordering::Acquire) > u64::from(round)
    }

    /// Makes the coordinator look, after a commit, a drained round or a failure.
    pub fn announce(&self) {
        self.common(Common::Announced).fetch_add(1, Ordering::Release);
        self.ring(COORDINATOR);
    }

    /// Notes that a page was sent to `slot`. The coordinator starts its worker if it was not started.
    pub fn want(&self, slot: usize) {
        if slot == COORDINATOR || self.pages.is_claimed(slot) || self.is_wanted(slot) {
            return;
        }
        // PAIRS WITH `is_wanted` in the coordinator. This comes before the commit of the page's epoch, so a coordinator
        // that finds a round mapped finds all workers wanted that were sent a page of it.
        self.wanted_words[slot / 64].fetch_or(1 << (slot % 64), Ordering::Release);
        self.announce();
    }

    /// Returns whether `slot` has been sent a page before its worker was started.
    pub fn is_wanted(&self, slot: usize) -> bool {
        self.wanted_words[slot / 64].load(Ordering::Acquire) >> (slot % 64) & 1 == 1
    }

    /// Returns the number of announcements.
    pub fn announced(&self) -> u64 {
        self.common(Common::Announced).load(Ordering::Acquire)
    }

    /// Stores the message of a panic for the coordinator, cut at 512 bytes between two characters.
    pub fn set_message(&self, slot: usize, message: &str) {
        let words = &self.slot_words(slot)[MESSAGE_AT..][..MESSAGE_WORDS];
        let bytes = cut_message(message).as_bytes();
        for (word, eight) in words.iter().zip(bytes.chunks(8)) {
            word.store(word_of(eight), Ordering::Relaxed);
        }
        self.slot(slot, Slot::Message).store(bytes.len() as u64 + 1, Ordering::Release);
    }

    pub fn message(&self, slot: usize) -> Option<String> {
        let bytes = self.slot(slot, Slot::Message).load(Ordering::Acquire).checked_sub(1)? as usize;
        let words = &self.slot_words(slot)[MESSAGE_AT..][..MESSAGE_WORDS];
        let mut text: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).take(bytes).collect();
        text.truncate(bytes);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Publishes a worker's counters.
    pub fn set_counters(&self, slot: usize, counters: &Counters) {
        for (word, value) in self.slot_words(slot)[COUNTERS_AT..].iter().zip(counters.values()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Begins the track of the worker in `slot`, if the job has a timeline. For the worker itself.
    pub fn recorder(&self, slot: usize, start_ns: u64) -> Option<Recorder<'p>> {
        self.track(slot).map(|words| Recorder::new(words, start_ns))
    }

    /// Returns the track of the worker in `slot`, which has ended, if it was started and the job has a timeline.
    pub fn recorded(&self, slot: usize) -> Option<Recorded> {
        self.track(slot).and_then(Recorded::read)
    }

    fn track(&self, slot: usize) -> Option<&'p [AtomicU64]> {
        self.track_words.get(slot * TRACK_WORDS..(slot + 1) * TRACK_WORDS)
    }

    /// Returns a worker's counters as it last published them.
    pub fn counters(&self, slot: usize) -> Counters {
        if !self.pages.is_claimed(slot) {
            return Counters::default();
        }
        Counters::from_values(self.slot_words(slot)[COUNTERS_AT..].iter().map(|word| word.load(Ordering::Relaxed)))
    }
}

/// Returns the check of some words that belong together: of equal words it is the same, and it is never 0.
pub(crate) fn seal(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(1, |seal, word| mix(seal ^ word)) | 1
}

/// Spreads the bits of a number (the finisher of splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Returns the part of a message that fits.
pub(crate) fn cut_message(message: &str) -> &str {
    let room = message.len().min(MESSAGE_WORDS * 8);
    let end = (0..=room).rev().find(|at| message.is_char_boundary(*at));
    &message[..end.unwrap_or(0)]
}

/// Returns up to eight bytes as a word.
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}
