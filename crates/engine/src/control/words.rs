//! The words that workers and coordinator share, beside pages and mailboxes.
//!
//! ```text
//!  | job, 24 words | slot 0, 192 words | slot 1 ... | partition 0, 8 words | ... | state | task 0 | task 1 | ... | digests |
//!  | pieces | careful tasks | records set aside | workers that are wanted |
//!
//!  partition:  | owner | since | step + 1 in which it was kept | where: extent, start | bytes | pairs | bytes of pairs | - |
//!  digests:    for each task, what it emitted when it was mapped first:  | pairs | sum |
//!  pieces:     for each task of a step that maps pairs, the piece it maps:  | extent, start | bytes |
//! ```
//!
//! *Who writes.* Job, state and piece words: the coordinator. Partition words: the coordinator, and the owner when it
//! has kept the partition. Slot words: the worker of the slot (the coordinator reads). Task words: a worker when it
//! claims, the coordinator when it puts a task back or opens a round. Digests: the worker that has the task. Wanted: a bit for each
//! slot, set by whoever has sent a page to a worker that was not started.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gristmill_os::futex::SharedFutex;
use gristmill_os::wake::Bell;
use gristmill_page::Pages;
use gristmill_ring::{CommitWord, Futex};

use crate::control::counters::{COUNTERS, Counters};
use crate::control::telling::Telling;
use crate::failure::FAILURE_WORDS;
use crate::testing::kill_points::KillPoint;

pub(crate) const JOB_WORDS: usize = 24;
const _: () = assert!((Job::Failed as usize) < JOB_WORDS);
pub(crate) const PARTITION_WORDS: usize = 8;
pub(crate) const DIGEST_WORDS: usize = 4;
pub(crate) const PIECE_WORDS: usize = 2;
pub(crate) const SET_ASIDE_WORDS: usize = 2;
pub(crate) const SLOT_WORDS: usize = 192;
pub(crate) const MESSAGE_AT: usize = 24;
pub(crate) const MESSAGE_WORDS: usize = 64;
pub(crate) const COUNTERS_AT: usize = MESSAGE_AT + MESSAGE_WORDS;
const _: () = assert!(Slot::Failure as usize + FAILURE_WORDS <= MESSAGE_AT);
const _: () = assert!(COUNTERS_AT + COUNTERS <= SLOT_WORDS);

/// Words of the job.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    Round,
    MappedRound,
    FinishRound,
    Over,
    NextTask,
    PutBack,
    SlotsBorn,
    /// Workers that may still begin to map.
    Permits,
    Announced,
    /// Tasks of the running round.
    Tasks,
    Step,
    /// 1 when the tasks of the running step are pieces of the step before, not parts of the input.
    MapsPairs,
    StateBytes,
    /// Records that are set aside.
    SetAside,
    /// Of a job with a checkpoint: the task of the input that is the first one of this stage.
    FirstTask,
    /// The first round of the running step.
    FirstRound,
    /// 1 when a worker has failed: its slot says of what.
    Failed,
}

/// Words of a slot.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    Commit,
    Task,
    TaskStartNs,
    DrainedRound,
    Permit,
    /// Bytes of the message + 1: it may be empty. 0 while there is none.
    Message,
    /// What is mapped at this moment.
    PlaceSource,
    PlaceOffset,
    /// Twice its bytes, and 1 more if it is a single record; 0 while nothing is mapped.
    PlaceBytes,
    /// The task + 1 that the worker, now dead, died of at that place.
    DiedOf,
    /// Bytes of the files of its task that it has read, as they are stored.
    Reached,
    /// 1 while the worker waits until there is room for what it has to tell of bad records.
    Asks,
    /// A [`Reducing`].
    Reducing,
    /// Bytes + 1 that a reducer has written to a checkpoint in this stage.
    Saved,
    /// The first of [`FAILURE_WORDS`].
    Failure,
}

/// What a worker does with pairs that have arrived.
#[derive(Clone, Copy)]
pub(crate) enum Reducing {
    Nothing,
    /// It takes or combines them.
    Takes,
    /// It makes room for more, and takes no pages meanwhile.
    Spills,
}

/// The slot of the coordinator, which receives results.
pub(crate) const COORDINATOR: usize = 0;

/// The coordinator sleeps in an epoll; its doorbell rings through an eventfd.
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
    /// Wakes the coordinator, which also waits for the kernel to tell of deaths.
    pub bell: CoordinatorBell,
    pub slots: usize,
    pub job: &'p [AtomicU64],
    pub slot_words: &'p [AtomicU64],
    pub partition_words: &'p [AtomicU64],
    pub state_words: &'p [AtomicU64],
    pub task_words: &'p [AtomicU64],
    pub digest_words: &'p [AtomicU64],
    pub piece_words: &'p [AtomicU64],
    pub careful_words: &'p [AtomicU64],
    pub set_aside_words: &'p [AtomicU64],
    pub wanted_words: &'p [AtomicU64],
    /// Of a job that sets records aside.
    pub telling: Option<Telling>,
}

/// How many words of each kind a job needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WordCounts {
    pub slots: usize,
    pub partitions: usize,
    /// Tasks of a round, at most.
    pub tasks: usize,
    /// Of them, tasks of a step that maps pairs.
    pub pieces: usize,
    /// Bytes of the state of a step.
    pub state_bytes: usize,
    /// Records that may be set aside.
    pub bad_records: usize,
}

impl WordCounts {
    /// Words that [`Shared::new`] needs in the region.
    pub fn words(self) -> usize {
        let WordCounts { slots, partitions, tasks, pieces, state_bytes, bad_records } = self;
        let failing = tasks.div_ceil(64) + bad_records * SET_ASIDE_WORDS;
        let state = state_bytes.div_ceil(8);
        let tasks = tasks * (1 + DIGEST_WORDS) + pieces * PIECE_WORDS;
        let wanted = slots.div_ceil(64);
        JOB_WORDS + slots * SLOT_WORDS + partitions * PARTITION_WORDS + state + tasks + failing + wanted
    }
}

impl<'p> Shared<'p> {
    pub fn new(pages: &'p Pages, room: WordCounts) -> io::Result<Shared<'p>> {
        let WordCounts { slots, partitions, tasks, pieces, state_bytes, bad_records } = room;
        let (job, words) = pages.extra_words().split_at(JOB_WORDS);
        let (slot_words, words) = words.split_at(slots * SLOT_WORDS);
        let (partition_words, words) = words.split_at(partitions * PARTITION_WORDS);
        let (state_words, words) = words.split_at(state_bytes.div_ceil(8));
        let (task_words, words) = words.split_at(tasks);
        let (digest_words, words) = words.split_at(tasks * DIGEST_WORDS);
        let (piece_words, words) = words.split_at(pieces * PIECE_WORDS);
        let (careful_words, words) = words.split_at(tasks.div_ceil(64));
        let (set_aside_words, words) = words.split_at(bad_records * SET_ASIDE_WORDS);
        let wanted_words = &words[..slots.div_ceil(64)];
        let bell = CoordinatorBell(Bell::new()?);
        let telling = if bad_records > 0 { Some(Telling::new()?) } else { None };
        Ok(Shared {
            pages,
            bell,
            slots,
            job,
            slot_words,
            partition_words,
            state_words,
            task_words,
            digest_words,
            piece_words,
            careful_words,
            set_aside_words,
            wanted_words,
            telling,
        })
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    pub fn partitions(&self) -> usize {
        self.partition_words.len() / PARTITION_WORDS
    }

    pub fn job(&self, word: Job) -> &AtomicU64 {
        &self.job[word as usize]
    }

    pub fn slot_words(&self, slot: usize) -> &[AtomicU64] {
        &self.slot_words[slot * SLOT_WORDS..][..SLOT_WORDS]
    }

    pub fn slot(&self, slot: usize, word: Slot) -> &AtomicU64 {
        &self.slot_words(slot)[word as usize]
    }

    pub fn partition_words(&self, partition: usize) -> &[AtomicU64] {
        &self.partition_words[partition * PARTITION_WORDS..][..PARTITION_WORDS]
    }

    /// Tasks of the running round.
    pub fn tasks(&self) -> usize {
        self.job(Job::Tasks).load(Ordering::Acquire) as usize
    }

    pub fn task_word(&self, task: usize) -> &AtomicU64 {
        &self.task_words[task]
    }

    /// Tells the worker in `slot` (or the coordinator) to look again.
    #[inline]
    pub fn ring(&self, slot: usize) {
        match slot {
            COORDINATOR => self.pages.doorbell(slot).ring(&self.bell),
            _ => self.pages.doorbell(slot).ring(&SharedFutex),
        }
    }

    /// The same for a worker that may be fated to die of it.
    #[inline]
    pub fn ring_with(&self, kill_point: &KillPoint, slot: usize) {
        match slot {
            COORDINATOR => self.pages.doorbell(slot).ring(&kill_point.at_wake(&self.bell)),
            _ => self.pages.doorbell(slot).ring(&kill_point.at_wake(&SharedFutex)),
        }
    }

    /// Every worker that sleeps looks at the shared words again.
    pub fn ring_all(&self) {
        (1..self.slots_born()).for_each(|slot| self.ring(slot));
    }

    /// The same after a death: the dead may have been about to wake somebody.
    pub fn ring_all_after_death(&self) {
        (1..self.slots_born()).for_each(|slot| self.pages.doorbell(slot).ring_after_death(&SharedFutex));
    }

    // The coordinator's words. Each is published with Release and read with Acquire: what the coordinator
    // did before (owners, task words) is visible to the worker that sees the new value.

    /// Rounds count how often the input is mapped: 0, and one more after each loss of reduce state.
    pub fn round(&self) -> u32 {
        self.job(Job::Round).load(Ordering::Acquire) as u32
    }

    /// True when every task of `round` has been committed.
    pub fn is_mapped(&self, round: u32) -> bool {
        self.job(Job::MappedRound).load(Ordering::Acquire) > u64::from(round)
    }

    pub fn set_mapped(&self, round: u32) {
        self.job(Job::MappedRound).store(u64::from(round) + 1, Ordering::Release);
    }

    /// True when reducers may seal their partitions: nothing is tainted after `round`.
    pub fn may_finish(&self, round: u32) -> bool {
        self.job(Job::FinishRound).load(Ordering::Acquire) > u64::from(round)
    }

    pub fn set_may_finish(&self, round: u32) {
        self.job(Job::FinishRound).store(u64::from(round) + 1, Ordering::Release);
    }

    /// True when workers must end.
    pub fn is_over(&self) -> bool {
        self.job(Job::Over).load(Ordering::Acquire) != 0
    }

    pub fn set_over(&self) {
        self.job(Job::Over).store(1, Ordering::Release);
    }

    /// Slots below this number have, or had, a worker.
    pub fn slots_born(&self) -> usize {
        self.job(Job::SlotsBorn).load(Ordering::Acquire) as usize
    }

    pub fn set_slots_born(&self, slots: usize) {
        self.job(Job::SlotsBorn).store(slots as u64, Ordering::Release);
    }

    /// The slot that reduces `partition`.
    #[inline]
    pub fn owner(&self, partition: usize) -> usize {
        self.partition_words(partition)[0].load(Ordering::Acquire) as usize
    }

    /// The round whose pages make up `partition`, all of them and no others.
    #[inline]
    pub fn since(&self, partition: usize) -> u32 {
        self.partition_words(partition)[1].load(Ordering::Acquire) as u32
    }

    /// Gives `partition` to the reducer in `slot`, to be built from the pages of round `since`.
    pub fn assign(&self, partition: usize, slot: usize, since: u32) {
        let words = self.partition_words(partition);
        words[1].store(u64::from(since), Ordering::Release);
        words[0].store(slot as u64, Ordering::Release);
    }

    // A worker's words.

    /// The commit word of the worker in `slot`.
    pub fn commit(&self, slot: usize) -> CommitWord<'_> {
        CommitWord::new(self.slot(slot, Slot::Commit))
    }

    /// Lets `permits` workers map at the same time.
    pub fn set_permits(&self, permits: usize) {
        self.job(Job::Permits).store(permits as u64, Ordering::Release);
    }

    /// True when `slot` has a permit to map. For the worker itself.
    pub fn holds_permit(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Permit).load(Ordering::Relaxed) == 1
    }

    /// Takes a permit to map for `slot`, unless it has one; true when it has one now.
    pub fn take_permit(&self, slot: usize) -> bool {
        if self.holds_permit(slot) {
            return true;
        }
        // The slot's word first: a worker that dies in between has a permit given back that it never took,
        // which lets one more worker map; the other way round one would be lost.
        self.slot(slot, Slot::Permit).store(1, Ordering::Release);
        let left = |permits: u64| permits.checked_sub(1);
        let taken = self.job(Job::Permits).fetch_update(Ordering::AcqRel, Ordering::Relaxed, left).is_ok();
        if !taken {
            self.slot(slot, Slot::Permit).store(0, Ordering::Release);
        }
        taken
    }

    /// Gives back the permit of `slot`; true when it had one. For the worker itself, and for the coordinator when it is dead.
    pub fn give_permit(&self, slot: usize) -> bool {
        let had = self.slot(slot, Slot::Permit).load(Ordering::Acquire) == 1;
        if had {
            // The count first: a worker that dies in between has its permit given back twice, which lets one
            // more worker map; the other way round one would be lost.
            self.job(Job::Permits).fetch_add(1, Ordering::AcqRel);
            self.slot(slot, Slot::Permit).store(0, Ordering::Release);
        }
        had
    }

    /// True when a worker without a permit may take one.
    pub fn has_permit_left(&self) -> bool {
        self.job(Job::Permits).load(Ordering::Acquire) > 0
    }

    /// Says that `slot` begins to work on `task`.
    pub fn begin_task(&self, slot: usize, task: usize, now_ns: u64) {
        self.slot(slot, Slot::TaskStartNs).store(now_ns, Ordering::Relaxed);
        self.set_reached(slot, 0);
        self.slot(slot, Slot::Task).store(task as u64 + 1, Ordering::Release);
    }

    /// Says how many bytes of the files of its task `slot` has read, as they are stored.
    pub fn set_reached(&self, slot: usize, bytes: u64) {
        self.slot(slot, Slot::Reached).store(bytes, Ordering::Relaxed);
    }

    /// How many bytes of the files of its task `slot` has read.
    pub fn reached(&self, slot: usize) -> u64 {
        self.slot(slot, Slot::Reached).load(Ordering::Relaxed)
    }

    /// Says that `slot` works on no task. The time of its start stays, because the coordinator may be about to
    /// read it for the task that has just ended.
    pub fn end_task(&self, slot: usize) {
        self.slot(slot, Slot::Task).store(0, Ordering::Release);
    }

    /// Stops the clock of the task that `slot` works on, while it waits for others; returns its reading.
    pub fn stop_clock(&self, slot: usize) -> u64 {
        self.slot(slot, Slot::TaskStartNs).swap(u64::MAX, Ordering::Relaxed)
    }

    /// Starts the clock again, as if the task had begun at `start_ns`.
    pub fn start_clock(&self, slot: usize, start_ns: u64) {
        self.slot(slot, Slot::TaskStartNs).store(start_ns, Ordering::Relaxed);
    }

    /// The task that `slot` works on, and since when: a time to come while it waits for others.
    pub fn task(&self, slot: usize) -> Option<(usize, u64)> {
        let task = self.slot(slot, Slot::Task).load(Ordering::Acquire);
        let since_ns = self.slot(slot, Slot::TaskStartNs).load(Ordering::Relaxed);
        task.checked_sub(1).map(|task| (task as usize, since_ns))
    }

    /// Says what `slot` does from now on with pairs that have arrived.
    pub fn set_reducing(&self, slot: usize, reducing: Reducing) {
        self.slot(slot, Slot::Reducing).store(reducing as u64, Ordering::Release);
    }

    /// True while `slot` does something with them: if it dies meanwhile, no task did it.
    pub fn is_reducing(&self, slot: usize) -> bool {
        self.slot(slot, Slot::Reducing).load(Ordering::Acquire) != Reducing::Nothing as u64
    }

    /// True while a worker spills.
    pub fn somebody_spills(&self) -> bool {
        (1..self.slots_born()).any(|slot| {
            self.slot(slot, Slot::Reducing).load(Ordering::Acquire) == Reducing::Spills as u64
                && !self.pages.is_dead(slot)
        })
    }

    /// `slot` has consumed every page of `round`.
    pub fn set_drained(&self, slot: usize, round: u32) {
        self.slot(slot, Slot::DrainedRound).store(u64::from(round) + 1, Ordering::Release);
    }

    pub fn is_drained(&self, slot: usize, round: u32) -> bool {
        self.slot(slot, Slot::DrainedRound).load(Ordering::Acquire) > u64::from(round)
    }

    /// A worker has committed, drained or failed: the coordinator shall look.
    pub fn announce(&self) {
        self.job(Job::Announced).fetch_add(1, Ordering::Release);
        self.ring(COORDINATOR);
    }

    /// Says that a page was sent to `slot`: if its worker was not started, the coordinator starts it.
    pub fn want(&self, slot: usize) {
        if slot == COORDINATOR || self.pages.is_claimed(slot) || self.is_wanted(slot) {
            return;
        }
        // PAIRS WITH `is_wanted` in the coordinator. It comes before the commit of the epoch that the page is of, so a coordinator
        // that finds a round mapped finds all workers wanted that were sent a page of it.
        self.wanted_words[slot / 64].fetch_or(1 << (slot % 64), Ordering::Release);
        self.announce();
    }

    /// True when somebody has sent a page to `slot` that found no worker there.
    pub fn is_wanted(&self, slot: usize) -> bool {
        self.wanted_words[slot / 64].load(Ordering::Acquire) >> (slot % 64) & 1 == 1
    }

    /// Counts announcements.
    pub fn announced(&self) -> u64 {
        self.job(Job::Announced).load(Ordering::Acquire)
    }

    /// Leaves the words of a panic where the coordinator finds them; cut at 512 bytes, between two characters.
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

    /// A worker's counters as it last published them.
    pub fn counters(&self, slot: usize) -> Counters {
        Counters::from_values(self.slot_words(slot)[COUNTERS_AT..].iter().map(|word| word.load(Ordering::Relaxed)))
    }
}

/// What of a message has room.
pub(crate) fn cut_message(message: &str) -> &str {
    let room = message.len().min(MESSAGE_WORDS * 8);
    let end = (0..=room).rev().find(|at| message.is_char_boundary(*at));
    &message[..end.unwrap_or(0)]
}

/// Up to eight bytes as a word.
pub(crate) fn word_of(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}
