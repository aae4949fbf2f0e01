//! The protocol under loom, which runs each model in every interleaving of its threads, with every
//! value a weakly ordered load may return. Run by `ci/loom.sh`.
//!
//! Both ends of a ring are attached before the second thread starts: loom remembers only the last
//! access to a word, and a thread's own load on attaching would hide the other's from it.
//!
//! A page's memory is modelled by [`Page`]: loom fails a model in which a write to it is not ordered
//! against every other access. A sleeper that nobody wakes is a deadlock, which loom reports too.

#![cfg(loom)]
// For one line: `Page` is shared between threads so that loom can watch it.
#![allow(unsafe_code)]

use gristmill_ring::sync::{AtomicU32, AtomicU64, Ordering};
use gristmill_ring::{Cells, CommitWord, Consumer, Doorbell, Full, Futex, Latch, Producer};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;

/// Memory that every thread of a model shares.
fn share<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The words of a ring, owned.
struct Ring {
    head: AtomicU32,
    tail: AtomicU32,
    slots: Vec<AtomicU32>,
}

impl Ring {
    fn new(capacity: usize) -> Ring {
        Ring::at(0, capacity)
    }

    /// An empty ring through which `count` numbers have gone already.
    fn at(count: u32, capacity: usize) -> Ring {
        Ring {
            head: AtomicU32::new(count),
            tail: AtomicU32::new(count),
            slots: (0..capacity).map(|_| AtomicU32::new(u32::MAX)).collect(),
        }
    }

    fn ends(&self) -> (Producer<'_>, Consumer<'_>) {
        let cells = Cells { head: &self.head, tail: &self.tail, slots: &self.slots };
        (Producer::attach(cells), Consumer::attach(cells))
    }
}

/// The memory of a page: one value that only one side may touch at a time.
struct Page {
    access: UnsafeCell<()>,
    value: AtomicU32,
}

// SAFETY: the cell holds nothing; it is there for loom to check the order of accesses to it.
unsafe impl Sync for Page {}

impl Page {
    fn new() -> Page {
        Page { access: UnsafeCell::new(()), value: AtomicU32::new(0) }
    }

    fn write(&self, value: u32) {
        self.access.with_mut(|_| self.value.store(value, Ordering::Relaxed));
    }

    fn read(&self) -> u32 {
        self.access.with(|_| self.value.load(Ordering::Relaxed))
    }
}

fn pages<const N: usize>() -> [Page; N] {
    std::array::from_fn(|_| Page::new())
}

fn pop_soon(consumer: &mut Consumer<'_>) -> u32 {
    loop {
        match consumer.pop() {
            Some(page) => return page,
            None => thread::yield_now(),
        }
    }
}

/// The kernel's futex as far as sleeping goes: who waits is asleep until somebody wakes it.
struct CondvarFutex {
    lock: Mutex<()>,
    woken: Condvar,
}

impl CondvarFutex {
    fn new() -> CondvarFutex {
        CondvarFutex { lock: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Futex for CondvarFutex {
    fn wait(&self, word: &AtomicU32, seen: u32) {
        let guard = self.lock.lock().unwrap();
        if word.load(Ordering::Relaxed) == seen {
            drop(self.woken.wait(guard).unwrap());
        }
    }

    fn wake(&self, _word: &AtomicU32) {
        let _guard = self.lock.lock().unwrap();
        self.woken.notify_all();
    }
}

/// A futex that never lets anybody sleep. Unlike the one above it orders nothing (no lock), so what
/// a woken sleeper sees it sees because of the doorbell alone.
struct RestlessFutex;

impl Futex for RestlessFutex {
    fn wait(&self, _word: &AtomicU32, _seen: u32) {
        thread::yield_now();
    }

    fn wake(&self, _word: &AtomicU32) {}
}

/// Runs a model in all interleavings with at most so many preemptions (switches away from a thread
/// that could have gone on); for models too large to run in all.
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model
}

#[test]
fn a_popped_page_holds_what_was_written_before_the_push() {
    loom::model(|| {
        let (ring, pages) = share((Ring::new(2), pages::<2>()));
        let (mut producer, mut consumer) = ring.ends();
        let other = thread::spawn(move || {
            for page in 0..2 {
                pages[page as usize].write(10 + page);
                producer.push(page).unwrap();
            }
        });
        for expected in 0..2 {
            let page = pop_soon(&mut consumer);
            assert_eq!(page, expected);
            assert_eq!(pages[page as usize].read(), 10 + page);
        }
        assert!(consumer.is_empty());
        other.join().unwrap();
    });
}

#[test]
fn a_slot_is_written_again_only_after_it_was_read_also_where_the_counts_wrap() {
    loom::model(|| {
        let (mut producer, mut consumer) = share(Ring::at(u32::MAX, 1)).ends();
        let other = thread::spawn(move || {
            for page in 0..3 {
                while producer.push(page) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        for expected in 0..3 {
            assert_eq!(pop_soon(&mut consumer), expected);
        }
        assert_eq!(consumer.pop(), None);
        other.join().unwrap();
    });
}

#[test]
fn a_page_is_written_again_only_after_it_was_returned() {
    loom::model(|| {
        let (there, back, page) = share((Ring::new(1), Ring::new(1), Page::new()));
        let (mut sent, mut inbound) = there.ends();
        let (mut give_back, mut returned) = back.ends();
        let other = thread::spawn(move || {
            page.write(1);
            sent.push(0).unwrap();
            assert_eq!(pop_soon(&mut returned), 0);
            page.write(2);
            sent.push(0).unwrap();
        });
        assert_eq!(pop_soon(&mut inbound), 0);
        assert_eq!(page.read(), 1);
        give_back.push(0).unwrap();
        assert_eq!(pop_soon(&mut inbound), 0);
        assert_eq!(page.read(), 2);
        other.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let (ring, word, futex) = share((Ring::new(1), AtomicU32::new(0), CondvarFutex::new()));
        let (mut producer, mut consumer) = ring.ends();
        let bell = Doorbell::new(word);
        let other = thread::spawn(move || {
            producer.push(7).unwrap();
            bell.ring(futex);
        });
        let page = loop {
            match consumer.pop() {
                Some(page) => break page,
                None => bell.sleep_unless(futex, || !consumer.is_empty()),
            }
        };
        assert_eq!(page, 7);
        other.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost_between_two_ringers() {
    // With 5 preemptions it takes 16 seconds, and passes too; unbounded, hours.
    bounded(4).check(|| {
        let (rings, word, futex) = share(([Ring::new(1), Ring::new(1)], AtomicU32::new(0), CondvarFutex::new()));
        let bell = Doorbell::new(word);
        let [(first, first_end), (second, second_end)] = [rings[0].ends(), rings[1].ends()];
        let others = [first, second].map(|mut producer| {
            thread::spawn(move || {
                producer.push(7).unwrap();
                bell.ring(futex);
            })
        });
        let mut consumers = [first_end, second_end];
        let mut received = 0;
        while received < 2 {
            let popped = consumers.iter_mut().filter_map(Consumer::pop).count();
            received += popped;
            if popped == 0 {
                bell.sleep_unless(futex, || consumers.iter().any(|end| !end.is_empty()));
            }
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn who_is_rung_awake_sees_the_work() {
    loom::model(|| {
        let (page, word) = share((Page::new(), AtomicU32::new(0)));
        let bell = Doorbell::new(word);
        let other = thread::spawn(move || {
            // Wait for the sleeper, so that it cannot find the work by itself.
            while word.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            page.write(7);
            bell.ring(&RestlessFutex);
        });
        bell.sleep_unless(&RestlessFutex, || false);
        assert_eq!(page.read(), 7);
        other.join().unwrap();
    });
}

#[test]
fn a_ringer_that_dies_before_the_wake_leaves_a_sleeper_that_the_coordinator_wakes() {
    /// What is left of the futex call when the process dies before it.
    struct NeverCalled;
    impl Futex for NeverCalled {
        fn wait(&self, _word: &AtomicU32, _seen: u32) {}
        fn wake(&self, _word: &AtomicU32) {}
    }
    loom::model(|| {
        let (ring, word, futex) = share((Ring::new(1), AtomicU32::new(0), CondvarFutex::new()));
        let (mut producer, mut consumer) = ring.ends();
        let bell = Doorbell::new(word);
        let other = thread::spawn(move || {
            // The worker pushes, marks the sleeper awake, and dies; the coordinator hears of it.
            producer.push(7).unwrap();
            bell.ring(&NeverCalled);
            bell.ring_after_death(futex);
        });
        while consumer.pop().is_none() {
            bell.sleep_unless(futex, || !consumer.is_empty());
        }
        other.join().unwrap();
    });
}

#[test]
fn pages_pushed_before_a_commit_are_found_after_it() {
    loom::model(|| {
        let (ring, pages, word) = share((Ring::new(2), pages::<2>(), AtomicU64::new(0)));
        let (mut producer, mut consumer) = ring.ends();
        let commits = CommitWord::new(word);
        let other = thread::spawn(move || {
            for page in 0..2 {
                pages[page as usize].write(5);
                producer.push(page).unwrap();
            }
            commits.commit(1);
        });
        // The consumer may have looked at the ring before: its last view of the tail is old then.
        let early = consumer.pop().is_some() as usize;
        if commits.committed() == 1 {
            let found = early + std::iter::from_fn(|| consumer.pop()).count();
            assert_eq!(found, 2);
            assert!(pages.iter().all(|page| page.read() == 5));
        }
        other.join().unwrap();
    });
}

/// Two workers and two tasks, of which the first worker has begun one. Who finds nothing left to begin when it has committed tells
/// the coordinator, which then looks for both commits: if one is missing, it must be told again.
fn last_commit_is_told(commit: fn(CommitWord<'_>, &AtomicU32) -> bool) {
    loom::model(move || {
        let (begun, bell) = share((AtomicU32::new(1), AtomicU32::new(0)));
        let commits = share([0, 0].map(AtomicU64::new));
        let first = thread::spawn(move || commit(CommitWord::new(&commits[0]), begun));
        begun.fetch_add(1, Ordering::Relaxed);
        assert!(commit(CommitWord::new(&commits[1]), begun), "it has begun the last task");
        Doorbell::new(bell).ring(&RestlessFutex);
        // The coordinator sees what this thread does, which rang it.
        let both = commits.iter().all(|word| CommitWord::new(word).committed() == 1);
        assert!(first.join().unwrap() || both, "the coordinator sleeps for ever");
    });
}

#[test]
fn somebody_tells_of_the_last_commit() {
    last_commit_is_told(|word, begun| word.commit_and_look(1, || begun.load(Ordering::Relaxed) == 2));
}

/// The worker that had sent no page in its epoch, and so had passed no fence, left the coordinator asleep.
#[test]
#[should_panic(expected = "the coordinator sleeps for ever")]
fn nobody_may_tell_of_the_last_commit_when_the_look_is_not_ordered_behind_it() {
    last_commit_is_told(|word, begun| {
        word.commit(1);
        begun.load(Ordering::Relaxed) == 2
    });
}

#[test]
fn of_a_dead_producer_the_committed_pages_count_and_no_others() {
    loom::model(|| {
        // Page e holds epoch e. The producer commits epoch 1 and dies in epoch 2.
        let (ring, word) = share((Ring::new(4), AtomicU64::new(0)));
        let (mut producer, mut consumer) = ring.ends();
        let commits = CommitWord::new(word);
        let other = thread::spawn(move || {
            producer.push(1).unwrap();
            commits.commit(1);
            producer.push(2).unwrap();
        });
        let mut waiting: Vec<u32> = consumer.pop().into_iter().collect();
        // Joined: what reaping the process is to the coordinator.
        other.join().unwrap();
        waiting.extend(std::iter::from_fn(|| consumer.pop()));
        let last = commits.committed();
        waiting.retain(|&epoch| u64::from(epoch) <= last);
        assert_eq!(waiting, [1]);
    });
}

#[test]
fn of_a_dead_consumer_every_page_comes_home_once() {
    loom::model(|| {
        let (there, back, pages) = share((Ring::new(2), Ring::new(2), pages::<2>()));
        let (mut sent, mut inbound) = there.ends();
        let (mut give_back, mut returned) = back.ends();
        let other = thread::spawn(move || {
            // It returns one page, holds perhaps one more, and dies; perhaps one it never popped.
            if let Some(page) = inbound.pop() {
                pages[page as usize].read();
                give_back.push(page).unwrap();
            }
            if let Some(page) = inbound.pop() {
                pages[page as usize].read();
            }
        });
        let mut noted = Vec::new();
        for page in 0..2 {
            pages[page as usize].write(page);
            noted.push(page);
            sent.push(page).unwrap();
        }
        let mut home: Vec<u32> = returned.pop().into_iter().collect();
        // The coordinator has reaped it. First the return ring, then what is still noted to it.
        other.join().unwrap();
        home.extend(std::iter::from_fn(|| returned.pop()));
        noted.retain(|page| !home.contains(page));
        home.extend(noted);
        home.sort();
        assert_eq!(home, [0, 1]);
        pages.iter().for_each(|page| page.write(9));
    });
}

#[test]
fn two_workers_that_send_to_each_other_with_one_page_each_do_not_deadlock() {
    const SENDS: u32 = 2;

    struct Worker {
        sent: Producer<'static>,
        returned: Consumer<'static>,
        inbound: Consumer<'static>,
        give_back: Producer<'static>,
        own: Doorbell<'static>,
        peer: Doorbell<'static>,
    }

    impl Worker {
        /// Sends its page twice. Waiting for the page or for the end, it drains what comes in.
        fn work(mut self, futex: &impl Futex) {
            let (mut home, mut sends, mut received) = (true, 0, 0);
            while sends < SENDS || received < SENDS {
                let mut idle = true;
                if home && sends < SENDS {
                    self.sent.push(0).unwrap();
                    self.peer.ring(futex);
                    (home, sends, idle) = (false, sends + 1, false);
                }
                if let Some(page) = self.inbound.pop() {
                    self.give_back.push(page).unwrap();
                    self.peer.ring(futex);
                    (received, idle) = (received + 1, false);
                }
                if self.returned.pop().is_some() {
                    (home, idle) = (true, false);
                }
                if idle {
                    let has_work = || !self.inbound.is_empty() || !self.returned.is_empty();
                    self.own.sleep_unless(futex, has_work);
                }
            }
        }
    }

    bounded(3).check(|| {
        let rings = share([Ring::new(1), Ring::new(1), Ring::new(1), Ring::new(1)]);
        let bells = share([AtomicU32::new(0), AtomicU32::new(0)]);
        let futex = share(CondvarFutex::new());
        let [a_to_b, b_to_a, back_to_a, back_to_b] = rings.each_ref().map(Ring::ends);
        let [bell_a, bell_b] = bells.each_ref().map(Doorbell::new);
        let a = Worker {
            sent: a_to_b.0,
            returned: back_to_a.1,
            inbound: b_to_a.1,
            give_back: back_to_b.0,
            own: bell_a,
            peer: bell_b,
        };
        let b = Worker {
            sent: b_to_a.0,
            returned: back_to_b.1,
            inbound: a_to_b.1,
            give_back: back_to_a.0,
            own: bell_b,
            peer: bell_a,
        };
        let other = thread::spawn(move || b.work(futex));
        a.work(futex);
        other.join().unwrap();
    });
}

/// Three workers change one page. The third dies with the latch in its hand; the two others may both find out and both
/// try to take over.
#[test]
fn a_latch_is_held_by_one_worker_at_a_time_and_taken_from_the_dead_by_one() {
    loom::model(|| {
        let word = share(AtomicU32::new(0));
        let death = share(AtomicU32::new(0));
        let page = share(Page::new());
        let change = move |worker: u32| {
            let latch = Latch::new(word);
            // PAIRS WITH the store of the death below.
            if latch.try_take(worker, |holder| holder == 3 && death.load(Ordering::Acquire) == 1) {
                page.write(page.read() + 1);
                latch.release();
                1
            } else {
                0
            }
        };
        let doomed = thread::spawn(move || {
            if Latch::new(word).try_take(3, |_| false) {
                page.write(page.read() + 1);
                // The coordinator says that it is dead, which it certainly is by then.
                death.store(1, Ordering::Release);
                return 1;
            }
            0
        });
        let other = thread::spawn(move || change(1));
        let changes = change(2) + other.join().unwrap() + doomed.join().unwrap();
        // Whoever came in saw what everybody before did.
        if Latch::new(word).try_take(4, |_| true) {
            assert_eq!(page.read(), changes);
        }
    });
}
