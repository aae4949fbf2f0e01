//! The protocol on real threads, without loom: order, limits, and a long run of each part.

#![cfg(not(loom))]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use gristmill_ring::{Cells, CommitWord, Consumer, Doorbell, Full, Futex, Producer};

fn words(capacity: usize) -> Vec<AtomicU32> {
    (0..Cells::words(capacity)).map(|_| AtomicU32::new(0)).collect()
}

#[test]
fn pages_come_out_in_the_order_they_went_in() {
    let words = words(4);
    let cells = Cells::in_words(&words, 4);
    let (mut producer, mut consumer) = (Producer::attach(cells), Consumer::attach(cells));
    assert!(consumer.is_empty());
    for page in [7, 4, 9] {
        producer.push(page).unwrap();
    }
    assert!(!consumer.is_empty());
    assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [Some(7), Some(4), Some(9)]);
    assert_eq!(consumer.pop(), None);
}

#[test]
fn a_full_ring_refuses_and_changes_nothing() {
    let words = words(2);
    let cells = Cells::in_words(&words, 2);
    let (mut producer, mut consumer) = (Producer::attach(cells), Consumer::attach(cells));
    producer.push(1).unwrap();
    producer.push(2).unwrap();
    assert_eq!(producer.push(3), Err(Full));
    assert_eq!(consumer.pop(), Some(1));
    producer.push(4).unwrap();
    assert_eq!(consumer.pop(), Some(2));
    assert_eq!(consumer.pop(), Some(4));
    assert_eq!(consumer.pop(), None);
}

#[test]
fn the_counts_wrap_at_two_to_the_32() {
    let words = words(4);
    let cells = Cells::in_words(&words, 4);
    cells.head.store(u32::MAX - 1, Ordering::Relaxed);
    cells.tail.store(u32::MAX - 1, Ordering::Relaxed);
    let (mut producer, mut consumer) = (Producer::attach(cells), Consumer::attach(cells));
    for page in 0..4 {
        producer.push(page).unwrap();
    }
    assert_eq!(producer.push(4), Err(Full));
    for page in 0..4 {
        assert_eq!(consumer.pop(), Some(page));
    }
    assert!(consumer.is_empty());
    assert_eq!(cells.tail.load(Ordering::Relaxed), 2);
}

#[test]
fn an_end_attached_later_goes_on_where_the_ring_stands() {
    let words = words(4);
    let cells = Cells::in_words(&words, 4);
    let mut producer = Producer::attach(cells);
    producer.push(1).unwrap();
    producer.push(2).unwrap();
    assert_eq!(Consumer::attach(cells).pop(), Some(1));
    Producer::attach(cells).push(3).unwrap();
    let mut consumer = Consumer::attach(cells);
    assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [Some(2), Some(3), None]);
}

#[test]
#[should_panic(expected = "power of two")]
fn a_capacity_that_is_no_power_of_two_is_refused() {
    let words = words(4);
    let cells = Cells { head: &words[0], tail: &words[1], slots: &words[2..5] };
    Producer::attach(cells);
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
fn two_threads_pass_every_page_once_and_both_sleep_when_idle() {
    const CAPACITY: usize = 8;
    let pages: u32 = if cfg!(miri) { 200 } else { 200_000 };
    let (there, back) = (words(CAPACITY), words(CAPACITY));
    let (full, empty) = (Cells::in_words(&there, CAPACITY), Cells::in_words(&back, CAPACITY));
    let bells = [AtomicU32::new(0), AtomicU32::new(0)];
    let futex = CondvarFutex::default();

    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut sent, mut returned) = (Producer::attach(full), Consumer::attach(empty));
            let (own, peer) = (Doorbell::new(&bells[0]), Doorbell::new(&bells[1]));
            for page in 0..pages {
                // Like the engine, the producer has a fixed number of pages and waits for one to return.
                if page >= CAPACITY as u32 {
                    while returned.pop().is_none() {
                        own.sleep_unless(&futex, || !returned.is_empty());
                    }
                }
                sent.push(page).expect("the ring has room for every page");
                peer.ring(&futex);
            }
        });
        let (mut inbound, mut give_back) = (Consumer::attach(full), Producer::attach(empty));
        let (own, peer) = (Doorbell::new(&bells[1]), Doorbell::new(&bells[0]));
        for expected in 0..pages {
            let page = loop {
                match inbound.pop() {
                    Some(page) => break page,
                    None => own.sleep_unless(&futex, || !inbound.is_empty()),
                }
            };
            assert_eq!(page, expected);
            give_back.push(page).expect("the return ring has room for every page");
            peer.ring(&futex);
        }
    });
}
