//! The protocol under loom, which runs each model in every interleaving of its threads, with every
//! value a weakly ordered load may return. Run by `ci/loom.sh`.
//!
//! A page's memory is modelled by [`Page`]: loom fails a model in which a write to it is not ordered
//! against every other access. A sleeper that nobody wakes is a deadlock, which loom reports too.

#![cfg(loom)]
// For one line: `Page` is shared between threads so that loom can watch it.
#![allow(unsafe_code)]

use gristmill_ring::sync::{AtomicU32, AtomicU64, Ordering};
use gristmill_ring::{CommitWord, Doorbell, Futex, Latch, Mailbox};
use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread;

/// Memory that every thread of a model shares.
fn share<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// The words of mailboxes and of their links, owned.
struct Words<const MAILBOXES: usize> {
    firsts: [AtomicU32; MAILBOXES],
    links: Vec<AtomicU32>,
}

impl<const MAILBOXES: usize> Words<MAILBOXES> {
    fn new(pages: usize) -> Words<MAILBOXES> {
        Words {
            firsts: std::array::from_fn(|_| AtomicU32::new(0)),
            links: (0..pages).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    fn mailboxes(&self) -> [Mailbox<'_>; MAILBOXES] {
        self.firsts.each_ref().map(|first| Mailbox::new(first, &self.links))
    }
}

/// The numbers in a mailbox, the oldest first.
fn taken(mailbox: Mailbox<'_>) -> Vec<u32> {
    let mut pages = Vec::new();
    mailbox.take_all(&mut pages).expect("nobody else writes to it");
    pages.reverse();
    pages
}

/// Waits until a mailbox has something in it.
fn taken_soon(mailbox: Mailbox<'_>) -> Vec<u32> {
    loop {
        let pages = taken(mailbox);
        if !pages.is_empty() {
            return pages;
        }
        thread::yield_now();
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
fn a_page_holds_what_was_written_before_it_was_put_in() {
    loom::model(|| {
        let (words, pages) = share((Words::new(2), pages::<2>()));
        let [mailbox] = words.mailboxes();
        let other = thread::spawn(move || {
            for page in 0..2 {
                pages[page as usize].write(10 + page);
                mailbox.put(page);
            }
        });
        let mut received = Vec::new();
        while received.len() < 2 {
            for page in taken_soon(mailbox) {
                assert_eq!(pages[page as usize].read(), 10 + page);
                received.push(page);
            }
        }
        assert_eq!(received, [0, 1]);
        assert!(mailbox.is_empty());
        other.join().unwrap();
    });
}

#[test]
fn of_two_workers_that_put_pages_in_at_once_none_is_lost_and_each_keeps_its_order() {
    // The consumer takes the second page of a chain without having seen the put that brought it: the put after it
    // passes on what that one published.
    bounded(3).check(|| {
        let (words, pages) = share((Words::new(4), pages::<4>()));
        let [mailbox] = words.mailboxes();
        let others = [[0, 1], [2, 3]].map(|own: [u32; 2]| {
            thread::spawn(move || {
                for page in own {
                    pages[page as usize].write(10 + page);
                    mailbox.put(page);
                }
            })
        });
        let mut received = Vec::new();
        while received.len() < 4 {
            for page in taken_soon(mailbox) {
                assert_eq!(pages[page as usize].read(), 10 + page);
                received.push(page);
            }
        }
        let pages_of = |worker: u32| received.iter().copied().filter(|page| page / 2 == worker).collect::<Vec<_>>();
        assert_eq!((pages_of(0), pages_of(1)), (vec![0, 1], vec![2, 3]));
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn a_page_is_written_again_only_after_it_was_returned() {
    loom::model(|| {
        let (words, page) = share((Words::new(1), Page::new()));
        let [there, back] = words.mailboxes();
        let other = thread::spawn(move || {
            page.write(1);
            there.put(0);
            assert_eq!(taken_soon(back), [0]);
            page.write(2);
            there.put(0);
        });
        assert_eq!(taken_soon(there), [0]);
        assert_eq!(page.read(), 1);
        back.put(0);
        assert_eq!(taken_soon(there), [0]);
        assert_eq!(page.read(), 2);
        other.join().unwrap();
    });
}

/// The word that names the newest page holds the same number again although the chain under it has changed: a
/// compare-and-swap that began before must not join the new chain to the old one.
#[test]
fn a_number_that_comes_back_between_the_look_and_the_swap_does_no_harm() {
    bounded(4).check(|| {
        let words = share(Words::new(3));
        let [there, back] = words.mailboxes();
        there.put(0);
        let slow = thread::spawn(move || there.put(2));
        let owner = thread::spawn(move || {
            // The page goes home and is put in again, with another one under it.
            let mut received = taken(there);
            received.iter().for_each(|page| back.put(*page));
            for page in taken(back).into_iter().filter(|page| *page == 0) {
                there.put(1);
                there.put(page);
            }
            received.retain(|page| *page == 2);
            received
        });
        slow.join().unwrap();
        let mut received = owner.join().unwrap();
        received.extend(taken(there));
        received.extend(taken(back));
        received.sort();
        received.dedup();
        assert_eq!(received, [0, 1, 2]);
    });
}

#[test]
fn no_wake_up_is_lost() {
    loom::model(|| {
        let (words, word, futex) = share((Words::new(8), AtomicU32::new(0), CondvarFutex::new()));
        let ([mailbox], bell) = (words.mailboxes(), Doorbell::new(word));
        let other = thread::spawn(move || {
            mailbox.put(7);
            bell.ring(futex);
        });
        let pages = loop {
            let pages = taken(mailbox);
            if !pages.is_empty() {
                break pages;
            }
            bell.sleep_unless(futex, || !mailbox.is_empty());
        };
        assert_eq!(pages, [7]);
        other.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost_between_two_ringers() {
    bounded(4).check(|| {
        let (words, word, futex) = share((Words::new(2), AtomicU32::new(0), CondvarFutex::new()));
        let ([mailbox], bell) = (words.mailboxes(), Doorbell::new(word));
        let others = [0, 1].map(|page| {
            thread::spawn(move || {
                mailbox.put(page);
                bell.ring(futex);
            })
        });
        let mut received = 0;
        while received < 2 {
            let count = taken(mailbox).len();
            received += count;
            if count == 0 {
                bell.sleep_unless(futex, || !mailbox.is_empty());
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
    /// The futex of a process that dies before the call.
    struct NeverCalled;
    impl Futex for NeverCalled {
        fn wait(&self, _word: &AtomicU32, _seen: u32) {}
        fn wake(&self, _word: &AtomicU32) {}
    }
    loom::model(|| {
        let (words, word, futex) = share((Words::new(8), AtomicU32::new(0), CondvarFutex::new()));
        let ([mailbox], bell) = (words.mailboxes(), Doorbell::new(word));
        let other = thread::spawn(move || {
            // The worker puts a page in, marks the sleeper awake, and dies; the coordinator hears of it.
            mailbox.put(7);
            bell.ring(&NeverCalled);
            bell.ring_after_death(futex);
        });
        while taken(mailbox).is_empty() {
            bell.sleep_unless(futex, || !mailbox.is_empty());
        }
        other.join().unwrap();
    });
}

#[test]
fn pages_put_in_before_a_commit_are_found_after_it() {
    loom::model(|| {
        let (words, pages, word) = share((Words::new(2), pages::<2>(), AtomicU64::new(0)));
        let ([mailbox], commits) = (words.mailboxes(), CommitWord::new(word));
        let other = thread::spawn(move || {
            for page in 0..2 {
                pages[page as usize].write(5);
                mailbox.put(page);
            }
            commits.commit(1);
        });
        // The consumer may have looked before: its last view of the mailbox is old then.
        let early = taken(mailbox).len();
        if commits.committed() == 1 {
            assert_eq!(early + taken(mailbox).len(), 2);
            assert!(pages.iter().all(|page| page.read() == 5));
        }
        other.join().unwrap();
    });
}

/// Two workers and two tasks, of which the first worker has begun one. Who finds nothing left to begin when it has
/// committed tells the coordinator, which then looks for both commits: if one is missing, it must be told again.
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
        let (words, word) = share((Words::new(3), AtomicU64::new(0)));
        let ([mailbox], commits) = (words.mailboxes(), CommitWord::new(word));
        let other = thread::spawn(move || {
            mailbox.put(1);
            commits.commit(1);
            mailbox.put(2);
        });
        let mut waiting = taken(mailbox);
        // Joined: what reaping the process is to the coordinator.
        other.join().unwrap();
        waiting.extend(taken(mailbox));
        let last = commits.committed();
        waiting.retain(|&epoch| u64::from(epoch) <= last);
        assert_eq!(waiting, [1]);
    });
}

/// A worker that dies in the middle of putting a page in has written its link, and no more.
#[test]
fn a_worker_that_dies_while_it_puts_a_page_in_leaves_the_mailbox_whole() {
    loom::model(|| {
        let words = share(Words::new(3));
        let [mailbox] = words.mailboxes();
        let dying = thread::spawn(move || {
            mailbox.put(0);
            words.links[1].store(1, Ordering::Relaxed);
        });
        mailbox.put(2);
        let early = taken(mailbox);
        dying.join().unwrap();
        let mut received = [early, taken(mailbox)].concat();
        received.sort();
        assert_eq!(received, [0, 2]);
    });
}

#[test]
fn of_a_dead_consumer_every_page_comes_home_once() {
    loom::model(|| {
        let (words, pages) = share((Words::new(2), pages::<2>()));
        let [there, back] = words.mailboxes();
        let other = thread::spawn(move || {
            // It returns the first page that it takes out, and dies with the others, or before it takes them out.
            for (at, page) in taken(there).into_iter().enumerate() {
                pages[page as usize].read();
                if at == 0 {
                    back.put(page);
                }
            }
        });
        let mut noted = Vec::new();
        for page in 0..2 {
            pages[page as usize].write(page);
            noted.push(page);
            there.put(page);
        }
        let mut home = taken(back);
        // The coordinator has reaped it. First what was returned, then what is still noted to it.
        other.join().unwrap();
        home.extend(taken(back));
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
        page: u32,
        inbound: Mailbox<'static>,
        returned: Mailbox<'static>,
        peer_inbound: Mailbox<'static>,
        peer_returned: Mailbox<'static>,
        own: Doorbell<'static>,
        peer: Doorbell<'static>,
    }

    impl Worker {
        /// Sends its page twice. Waiting for the page or for the end, it takes in what has arrived.
        fn work(self, futex: &impl Futex) {
            let (mut home, mut sends, mut received) = (true, 0, 0);
            while sends < SENDS || received < SENDS {
                let mut idle = true;
                if home && sends < SENDS {
                    self.peer_inbound.put(self.page);
                    self.peer.ring(futex);
                    (home, sends, idle) = (false, sends + 1, false);
                }
                for page in taken(self.inbound) {
                    self.peer_returned.put(page);
                    self.peer.ring(futex);
                    (received, idle) = (received + 1, false);
                }
                if !taken(self.returned).is_empty() {
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
        let words = share(Words::new(2));
        let bells = share([AtomicU32::new(0), AtomicU32::new(0)]);
        let futex = share(CondvarFutex::new());
        let [to_a, to_b, back_to_a, back_to_b] = words.mailboxes();
        let [bell_a, bell_b] = bells.each_ref().map(Doorbell::new);
        let a = Worker {
            page: 0,
            inbound: to_a,
            returned: back_to_a,
            peer_inbound: to_b,
            peer_returned: back_to_b,
            own: bell_a,
            peer: bell_b,
        };
        let b = Worker {
            page: 1,
            inbound: to_b,
            returned: back_to_b,
            peer_inbound: to_a,
            peer_returned: back_to_a,
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
