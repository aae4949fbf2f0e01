//! The protocol under loom, which runs each model in every interleaving of its threads, with every
//! value a weakly ordered load may return. Run by `ci/loom.sh`.
//!
//! A page's memory is modelled by [`Page`]: loom fails a model in which a write to it is not ordered
//! against every other access. A sleeper that nobody wakes is a deadlock, which loom reports too.

#![cfg(loom)]
// For one line: `Page` is shared between threads so that loom can watch it.
#![allow(unsafe_code)]

use gristmill_ring::sync::{AtomicU32, AtomicU64, Ordering};
use gristmill_ring::{Cells, CommitWord, Consumer, Doorbell, Full, Futex, Producer};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// The words of a ring, owned, so that threads can share them.
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

    fn cells(&self) -> Cells<'_> {
        Cells {
            head: &self.head,
            tail: &self.tail,
            slots: &self.slots,
        }
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
        Page {
            access: UnsafeCell::new(()),
            value: AtomicU32::new(0),
        }
    }

    fn write(&self, value: u32) {
        self.access
            .with_mut(|_| self.value.store(value, Ordering::Relaxed));
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
        CondvarFutex {
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
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

#[test]
fn a_popped_page_holds_what_was_written_before_the_push() {
    loom::model(|| {
        let shared = Arc::new((Ring::new(2), pages::<2>()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (ring, pages) = &*theirs;
            let mut producer = Producer::attach(ring.cells());
            for page in 0..2 {
                pages[page as usize].write(10 + page);
                producer.push(page).unwrap();
            }
        });
        let (ring, pages) = &*shared;
        let mut consumer = Consumer::attach(ring.cells());
        for expected in 0..2 {
            let page = pop_soon(&mut consumer);
            assert_eq!(page, expected);
            assert_eq!(pages[page as usize].read(), 10 + page);
        }
        assert!(consumer.is_empty());
        producer.join().unwrap();
    });
}

#[test]
fn a_slot_is_written_again_only_after_it_was_read_also_where_the_counts_wrap() {
    loom::model(|| {
        let shared = Arc::new(Ring::at(u32::MAX, 1));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let mut producer = Producer::attach(theirs.cells());
            for page in 0..3 {
                while producer.push(page) == Err(Full) {
                    thread::yield_now();
                }
            }
        });
        let mut consumer = Consumer::attach(shared.cells());
        for expected in 0..3 {
            assert_eq!(pop_soon(&mut consumer), expected);
        }
        assert_eq!(consumer.pop(), None);
        producer.join().unwrap();
    });
}

#[test]
fn a_page_is_written_again_only_after_it_was_returned() {
    loom::model(|| {
        let shared = Arc::new((Ring::new(1), Ring::new(1), Page::new()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (there, back, page) = &*theirs;
            let (mut sent, mut returned) = (
                Producer::attach(there.cells()),
                Consumer::attach(back.cells()),
            );
            page.write(1);
            sent.push(0).unwrap();
            assert_eq!(pop_soon(&mut returned), 0);
            page.write(2);
            sent.push(0).unwrap();
        });
        let (there, back, page) = &*shared;
        let (mut inbound, mut give_back) = (
            Consumer::attach(there.cells()),
            Producer::attach(back.cells()),
        );
        assert_eq!(pop_soon(&mut inbound), 0);
        assert_eq!(page.read(), 1);
        give_back.push(0).unwrap();
        assert_eq!(pop_soon(&mut inbound), 0);
        assert_eq!(page.read(), 2);
        producer.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let shared = Arc::new((Ring::new(1), AtomicU32::new(0), CondvarFutex::new()));
        let theirs = shared.clone();
        let ringer = thread::spawn(move || {
            let (ring, word, futex) = &*theirs;
            Producer::attach(ring.cells()).push(7).unwrap();
            Doorbell::new(word).ring(futex);
        });
        let (ring, word, futex) = &*shared;
        let mut consumer = Consumer::attach(ring.cells());
        let page = loop {
            match consumer.pop() {
                Some(page) => break page,
                None => Doorbell::new(word).sleep_unless(futex, || !consumer.is_empty()),
            }
        };
        assert_eq!(page, 7);
        ringer.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost_between_two_ringers() {
    loom::model(|| {
        let shared = Arc::new((
            [Ring::new(1), Ring::new(1)],
            AtomicU32::new(0),
            CondvarFutex::new(),
        ));
        let ringers = [0, 1].map(|ringer| {
            let theirs = shared.clone();
            thread::spawn(move || {
                let (rings, word, futex) = &*theirs;
                Producer::attach(rings[ringer].cells())
                    .push(ringer as u32)
                    .unwrap();
                Doorbell::new(word).ring(futex);
            })
        });
        let (rings, word, futex) = &*shared;
        let mut consumers = [0, 1].map(|ringer: usize| Consumer::attach(rings[ringer].cells()));
        let mut received = 0;
        while received < 2 {
            let popped = consumers.iter_mut().filter_map(Consumer::pop).count();
            received += popped;
            if popped == 0 {
                Doorbell::new(word).sleep_unless(futex, || {
                    consumers.iter().any(|consumer| !consumer.is_empty())
                });
            }
        }
        for ringer in ringers {
            ringer.join().unwrap();
        }
    });
}

#[test]
fn who_is_rung_awake_sees_the_work() {
    loom::model(|| {
        let shared = Arc::new((Page::new(), AtomicU32::new(0)));
        let theirs = shared.clone();
        let ringer = thread::spawn(move || {
            let (page, word) = &*theirs;
            // Wait for the sleeper, so that it cannot find the work by itself.
            while word.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            page.write(7);
            Doorbell::new(word).ring(&RestlessFutex);
        });
        let (page, word) = &*shared;
        Doorbell::new(word).sleep_unless(&RestlessFutex, || false);
        assert_eq!(page.read(), 7);
        ringer.join().unwrap();
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
        let shared = Arc::new((Ring::new(1), AtomicU32::new(0), CondvarFutex::new()));
        let theirs = shared.clone();
        let coordinator = thread::spawn(move || {
            let (ring, word, futex) = &*theirs;
            // The worker pushes, marks the sleeper awake, and dies; the coordinator hears of it.
            Producer::attach(ring.cells()).push(7).unwrap();
            Doorbell::new(word).ring(&NeverCalled);
            Doorbell::new(word).ring_after_death(futex);
        });
        let (ring, word, futex) = &*shared;
        let mut consumer = Consumer::attach(ring.cells());
        while consumer.pop().is_none() {
            Doorbell::new(word).sleep_unless(futex, || !consumer.is_empty());
        }
        coordinator.join().unwrap();
    });
}

#[test]
fn pages_pushed_before_a_commit_are_found_after_it() {
    loom::model(|| {
        let shared = Arc::new((Ring::new(2), pages::<2>(), AtomicU64::new(0)));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (ring, pages, word) = &*theirs;
            let mut producer = Producer::attach(ring.cells());
            for page in 0..2 {
                pages[page as usize].write(5);
                producer.push(page).unwrap();
            }
            CommitWord::new(word).commit(1);
        });
        let (ring, pages, word) = &*shared;
        let mut consumer = Consumer::attach(ring.cells());
        // The consumer may have looked at the ring before: its last view of the tail is old then.
        let early = consumer.pop().is_some() as usize;
        if CommitWord::new(word).committed() == 1 {
            let found = early + std::iter::from_fn(|| consumer.pop()).count();
            assert_eq!(found, 2);
            assert!(pages.iter().all(|page| page.read() == 5));
        }
        producer.join().unwrap();
    });
}

#[test]
fn of_a_dead_producer_the_committed_pages_count_and_no_others() {
    loom::model(|| {
        // Page e holds epoch e. The producer commits epoch 1 and dies in epoch 2.
        let shared = Arc::new((Ring::new(4), AtomicU64::new(0)));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (ring, word) = &*theirs;
            let mut producer = Producer::attach(ring.cells());
            producer.push(1).unwrap();
            CommitWord::new(word).commit(1);
            producer.push(2).unwrap();
        });
        let (ring, word) = &*shared;
        let mut consumer = Consumer::attach(ring.cells());
        let mut waiting: Vec<u32> = consumer.pop().into_iter().collect();
        // Joined: what reaping the process is to the coordinator.
        producer.join().unwrap();
        waiting.extend(std::iter::from_fn(|| consumer.pop()));
        let last = CommitWord::new(word).committed();
        waiting.retain(|&epoch| u64::from(epoch) <= last);
        assert_eq!(waiting, [1]);
    });
}

#[test]
fn of_a_dead_consumer_every_page_comes_home_once() {
    loom::model(|| {
        let shared = Arc::new((Ring::new(2), Ring::new(2), pages::<2>()));
        let theirs = shared.clone();
        let consumer = thread::spawn(move || {
            // It returns one page, holds perhaps one more, and dies; perhaps one it never popped.
            let (there, back, pages) = &*theirs;
            let (mut inbound, mut give_back) = (
                Consumer::attach(there.cells()),
                Producer::attach(back.cells()),
            );
            if let Some(page) = inbound.pop() {
                pages[page as usize].read();
                give_back.push(page).unwrap();
            }
            if let Some(page) = inbound.pop() {
                pages[page as usize].read();
            }
        });
        let (there, back, pages) = &*shared;
        let (mut sent, mut returned) = (
            Producer::attach(there.cells()),
            Consumer::attach(back.cells()),
        );
        let mut noted = Vec::new();
        for page in 0..2 {
            pages[page as usize].write(page);
            noted.push(page);
            sent.push(page).unwrap();
        }
        let mut home: Vec<u32> = returned.pop().into_iter().collect();
        // The coordinator has reaped it. First the return ring, then what is still noted to it.
        consumer.join().unwrap();
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
    struct Shared {
        /// `data[w]` goes from worker w to the other, `back[w]` brings its page home.
        data: [Ring; 2],
        back: [Ring; 2],
        bells: [AtomicU32; 2],
        futex: CondvarFutex,
    }

    const SENDS: u32 = 2;

    /// Sends its page twice. Whenever it waits, for the page or for the end, it drains what comes in.
    fn work(shared: &Shared, me: usize) {
        let other = 1 - me;
        let (mut sent, mut returned) = (
            Producer::attach(shared.data[me].cells()),
            Consumer::attach(shared.back[me].cells()),
        );
        let (mut inbound, mut give_back) = (
            Consumer::attach(shared.data[other].cells()),
            Producer::attach(shared.back[other].cells()),
        );
        let (own, peer) = (
            Doorbell::new(&shared.bells[me]),
            Doorbell::new(&shared.bells[other]),
        );
        let (mut home, mut sends, mut received) = (true, 0, 0);
        while sends < SENDS || received < SENDS {
            let mut idle = true;
            if home && sends < SENDS {
                sent.push(0).unwrap();
                peer.ring(&shared.futex);
                (home, sends, idle) = (false, sends + 1, false);
            }
            if let Some(page) = inbound.pop() {
                give_back.push(page).unwrap();
                peer.ring(&shared.futex);
                (received, idle) = (received + 1, false);
            }
            if returned.pop().is_some() {
                (home, idle) = (true, false);
            }
            if idle {
                own.sleep_unless(&shared.futex, || {
                    !inbound.is_empty() || !returned.is_empty()
                });
            }
        }
    }

    let mut model = loom::model::Builder::new();
    // Every interleaving with up to this many preemptions; without a bound the model takes hours.
    model.preemption_bound = Some(2);
    model.check(|| {
        let shared = Arc::new(Shared {
            data: [Ring::new(1), Ring::new(1)],
            back: [Ring::new(1), Ring::new(1)],
            bells: [AtomicU32::new(0), AtomicU32::new(0)],
            futex: CondvarFutex::new(),
        });
        let theirs = shared.clone();
        let other = thread::spawn(move || work(&theirs, 1));
        work(&shared, 0);
        other.join().unwrap();
    });
}
