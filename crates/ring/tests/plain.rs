//! The protocol on real threads, without loom: order, limits, and a long run of each part.

#![cfg(not(loom))]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use gristmill_ring::{CommitWord, Doorbell, Futex, Mailbox, Overwritten};

fn words(count: usize) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(0)).collect()
}

/// The numbers in a mailbox, the oldest first.
fn taken(mailbox: Mailbox<'_>) -> Vec<u32> {
    let mut pages = Vec::new();
    mailbox.take_all(&mut pages).expect("nobody else writes to it");
    pages.reverse();
    pages
}

#[test]
fn pages_come_out_in_the_order_they_went_in() {
    let (firsts, links) = (words(1), words(10));
    let mailbox = Mailbox::new(&firsts[0], &links);
    assert!(mailbox.is_empty());
    [7, 4, 9].into_iter().for_each(|page| mailbox.put(page));
    assert!(!mailbox.is_empty());
    assert_eq!(taken(mailbox), [7, 4, 9]);
    assert!(mailbox.is_empty() && taken(mailbox).is_empty());
}

#[test]
fn a_page_moves_between_mailboxes_that_share_its_link() {
    let (firsts, links) = (words(2), words(3));
    let [there, back] = [0, 1].map(|at| Mailbox::new(&firsts[at], &links));
    for _ in 0..3 {
        [0, 1, 2].into_iter().for_each(|page| there.put(page));
        taken(there).into_iter().for_each(|page| back.put(page));
        assert_eq!(taken(back), [0, 1, 2]);
    }
}

/// A stray pointer that wrote to a link lost the pages behind it, or gave a page to two workers.
#[test]
fn a_chain_in_which_somebody_has_overwritten_a_word_is_refused() {
    let others = |old: u32| [0, 1, 3, 7, u32::MAX].into_iter().chain((0..u32::BITS).map(move |bit| old ^ 1 << bit));
    // Miri takes minutes to make a million words.
    for links in [3, 1000, if cfg!(miri) { 1 << 12 } else { 1 << 20 }] {
        let (firsts, links) = (words(1), words(links));
        let mailbox = Mailbox::new(&firsts[0], &links);
        for word in [&firsts[0], &links[2], &links[0]] {
            let count = others(0).count();
            for nth in 0..count {
                [0, 2, 1].into_iter().for_each(|page| mailbox.put(page));
                let old = word.load(Ordering::Relaxed);
                let new = others(old).nth(nth).expect("below the count");
                word.store(new, Ordering::Relaxed);
                let mut pages = vec![9];
                match mailbox.take_all(&mut pages) {
                    // An overwritten `first` of 0 is an empty mailbox.
                    Ok(()) if new == old => assert_eq!(pages, [9, 1, 2, 0]),
                    Ok(()) => assert!(new == 0 && pages == [9], "{old:x} {new:x} {pages:?}"),
                    Err(Overwritten(_)) => assert_eq!(pages, [9]),
                }
                assert!(mailbox.is_empty());
            }
        }
    }
}

#[test]
fn a_chain_that_somebody_has_tied_to_a_ring_is_refused() {
    let (firsts, links) = (words(1), words(3));
    let mailbox = Mailbox::new(&firsts[0], &links);
    [0, 1, 2].into_iter().for_each(|page| mailbox.put(page));
    // The words are right by themselves.
    links[0].store(firsts[0].load(Ordering::Relaxed), Ordering::Relaxed);
    assert!(mailbox.take_all(&mut Vec::new()).is_err());
}

#[test]
fn epochs_only_grow() {
    let word = AtomicU64::new(0);
    let commits = CommitWord::new(&word);
    assert_eq!(commits.committed(), 0);
    commits.commit(1);
    commits.commit(5);
    assert_eq!(CommitWord::new(&word).committed(), 5);
    let again = std::panic::catch_unwind(|| CommitWord::new(&word).commit(5));
    assert!(again.is_err());
    assert_eq!(commits.committed(), 5);
}

/// A futex made of a lock and a condition variable.
#[derive(Default)]
struct CondvarFutex {
    lock: Mutex<()>,
    woken: Condvar,
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

#[test]
fn three_threads_pass_every_page_once_and_all_sleep_when_idle() {
    const PAGES: u32 = 8;
    let sends: u32 = if cfg!(miri) { 100 } else { 100_000 };
    // Mailbox and doorbell 0 are the consumer's.
    let (firsts, links, bells) = (words(3), words(2 * PAGES as usize), words(3));
    let mailboxes = [0, 1, 2].map(|at| Mailbox::new(&firsts[at], &links));
    let bells = [0, 1, 2].map(|at| Doorbell::new(&bells[at]));
    let futex = CondvarFutex::default();
    // What each page says, as its memory would.
    let said: Vec<AtomicU32> = words(2 * PAGES as usize);

    thread::scope(|scope| {
        for producer in [1, 2] {
            let (said, futex) = (&said, &futex);
            scope.spawn(move || {
                let (own, first_page) = (mailboxes[producer], (producer as u32 - 1) * PAGES);
                let mut home: Vec<u32> = (first_page..first_page + PAGES).collect();
                for number in 0..sends {
                    // Like the engine, a producer has a fixed number of pages and waits for one to return.
                    while home.is_empty() {
                        own.take_all(&mut home).expect("nobody else writes to it");
                        if home.is_empty() {
                            bells[producer].sleep_unless(futex, || !own.is_empty());
                        }
                    }
                    let page = home.pop().expect("one came home");
                    said[page as usize].store(number, Ordering::Relaxed);
                    mailboxes[0].put(page);
                    bells[0].ring(futex);
                }
            });
        }
        let (mut received, mut arrived) = ([0; 2], Vec::new());
        while received != [sends; 2] {
            mailboxes[0].take_all(&mut arrived).expect("nobody else writes to it");
            if arrived.is_empty() {
                bells[0].sleep_unless(&futex, || !mailboxes[0].is_empty());
            }
            while let Some(page) = arrived.pop() {
                let producer = (page / PAGES) as usize;
                assert_eq!(said[page as usize].load(Ordering::Relaxed), received[producer]);
                received[producer] += 1;
                mailboxes[1 + producer].put(page);
                bells[1 + producer].ring(&futex);
            }
        }
    });
}
