//! Pages between two workers, played by two slots of one thread or by two threads.

use gristmill_os::ended::{Ended, WorkerThread};
use gristmill_page::{PageMut, Pages, Reuse, Shape};

fn pages(slots: usize, pages_per_arena: usize) -> Pages {
    Pages::new(Shape { slots, pages_per_arena, page_bytes: 4096, extra_words: 3, ..Shape::default() }).expect("mapped")
}

fn fill(page: &mut PageMut<'_>, byte: u8) {
    page.bytes_mut().fill(byte);
}

#[test]
fn a_page_arrives_as_it_was_written_and_comes_back_to_be_written_again() {
    let pages = pages(2, 1);
    let (mut sender, _) = pages.claim(0);
    let (_, mut receiver) = pages.claim(1);
    for round in 0..100 {
        let mut page = sender.take().expect("the one page is at home");
        fill(&mut page, round);
        assert!(sender.take().is_none(), "and there is no other");
        sender.send(1, page);
        let page = receiver.recv().expect("it has arrived");
        assert!(page.bytes().iter().all(|byte| *byte == round));
        assert_eq!(page.producer(), 0);
        assert!(sender.take().is_none(), "it is not written while it is read");
        receiver.give_back(page);
    }
}

#[test]
fn pages_of_one_producer_arrive_in_order_and_those_of_two_are_told_apart() {
    let pages = pages(3, 4);
    let (mut first, _) = pages.claim(0);
    let (mut second, _) = pages.claim(1);
    let (_, mut receiver) = pages.claim(2);
    for byte in 0..4 {
        for (sender, mark) in [(&mut first, 0), (&mut second, 100)] {
            let mut page = sender.take().expect("four pages each");
            fill(&mut page, mark + byte);
            sender.send(2, page);
        }
    }
    let mut received = [Vec::new(), Vec::new()];
    while let Some(page) = receiver.recv() {
        received[page.producer()].push(page.bytes()[0]);
    }
    assert_eq!(received, [[0, 1, 2, 3], [100, 101, 102, 103]]);
    assert!(receiver.is_empty());
}

/// Runs a worker to its end.
fn end_of_worker(body: impl FnOnce() + Send) -> Ended {
    std::thread::scope(|scope| WorkerThread::spawn(scope, "a worker".to_owned(), body).expect("started").join())
}

/// The coordinator had only to promise that a worker had ended; with a wrong number its pages were written while it
/// read them.
#[test]
#[should_panic(expected = "slot 1 is declared dead when its own worker has ended")]
fn the_end_of_another_worker_is_no_proof() {
    let pages = pages(3, 1);
    let _living = pages.claim(1);
    let ended = end_of_worker(|| drop(pages.claim(2)));
    pages.declare_dead(1, &ended);
}

#[test]
fn a_slot_that_its_worker_never_claimed_is_dead_with_it() {
    let pages = pages(2, 1);
    pages.declare_dead(1, &end_of_worker(|| {}));
    assert!(pages.is_dead(1) && !pages.is_dead(0));
}

#[test]
fn what_a_dead_consumer_held_comes_home_once() {
    let pages = pages(3, 4);
    let (mut sender, _) = pages.claim(0);
    let (_, mut living) = pages.claim(2);
    // One page given back, one held, one not received, and one held by a consumer that lives.
    for consumer in [1, 1, 1, 2] {
        let page = sender.take().expect("four pages");
        sender.send(consumer, page);
    }
    let ended = end_of_worker(|| {
        let (_, mut dying) = pages.claim(1);
        let given_back = dying.recv().expect("the first");
        dying.give_back(given_back);
        let _held = dying.recv().expect("the second");
    });
    let alive = living.recv().expect("the fourth");
    pages.declare_dead(1, &ended);
    sender.reclaim_from_dead(1);
    assert_eq!(sender.free_pages(), 3);
    living.give_back(alive);
    assert_eq!(sender.collect(), 1);
    assert_eq!(sender.free_pages(), 4);
}

#[test]
fn a_page_of_the_reserve_is_like_any_other_once_it_was_taken() {
    let pages = pages(1, 3);
    let (mut sender, _) = pages.claim(0);
    sender.set_reserve(1);
    let usual = [sender.take().expect("the first"), sender.take().expect("the second")];
    assert!(sender.take().is_none() && sender.free_pages() == 0, "the third is in reserve");
    let third = sender.take_reserve().expect("it is asked for");
    assert!(sender.take_reserve().is_none(), "there was one");
    usual.into_iter().chain([third]).for_each(|page| sender.keep(page));
    assert_eq!(sender.free_pages(), 3);
    let taken = std::iter::from_fn(|| sender.take()).count();
    assert_eq!(taken, 3);
}

#[test]
#[should_panic(expected = "slot 1 is declared dead before")]
fn pages_of_a_consumer_that_may_live_are_not_reclaimed() {
    let pages = pages(2, 1);
    let (mut sender, _) = pages.claim(0);
    sender.reclaim_from_dead(1);
}

#[test]
#[should_panic(expected = "slot 0 is claimed once")]
fn a_slot_has_one_owner() {
    let pages = pages(1, 1);
    let _first = pages.claim(0);
    let _second = pages.claim(0);
}

#[test]
fn a_page_that_is_kept_is_taken_again() {
    let pages = pages(1, 1);
    let (mut sender, _) = pages.claim(0);
    let page = sender.take().expect("free");
    sender.keep(page);
    assert!(sender.take().is_some());
}

#[test]
fn discarded_pages_come_back_empty_and_kept_ones_as_they_were() {
    for (reuse, expected) in [(Reuse::Discard, 0), (Reuse::Keep, 7)] {
        let pages = pages(2, 1);
        let (mut sender, _) = pages.claim(0);
        sender.set_reuse(reuse);
        let (_, mut receiver) = pages.claim(1);
        let mut page = sender.take().expect("free");
        fill(&mut page, 7);
        sender.send(1, page);
        let page = receiver.recv().expect("arrived");
        receiver.give_back(page);
        assert_eq!(sender.take().expect("back").bytes()[0], expected, "{reuse:?}");
    }
}

#[test]
fn populated_arenas_are_written_without_faults() {
    let pages = pages(7, 256);
    let faults_of = |slot: usize, populated: bool| {
        let (mut sender, _) = pages.claim(slot);
        if populated {
            sender.populate().expect("populated");
        }
        let before = gristmill_os::usage::Usage::of_thread().minor_faults;
        while let Some(mut page) = sender.take() {
            fill(&mut page, 1);
        }
        gristmill_os::usage::Usage::of_thread().minor_faults - before
    };
    // Compared, because a sanitizer adds faults of its own to both; the first slot is there to warm up. The least of
    // three, because a busy machine adds some, too.
    faults_of(0, true);
    let populated = (1..4).map(|slot| faults_of(slot, true)).min().expect("three");
    let fresh = (4..7).map(|slot| faults_of(slot, false)).min().expect("three");
    assert!(populated + 200 < fresh, "{populated} faults for 256 populated pages, {fresh} for fresh ones");
}

#[test]
fn two_threads_hand_over_a_hundred_thousand_pages() {
    let pages = pages(2, 8);
    let (_, mut receiver) = pages.claim(1);
    const PAGES: u64 = 100_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut sender, _) = pages.claim(0);
            let mut sent = 0u64;
            while sent < PAGES {
                if let Some(mut page) = sender.take() {
                    page.bytes_mut()[..8].copy_from_slice(&sent.to_le_bytes());
                    page.bytes_mut()[4088..].copy_from_slice(&(!sent).to_le_bytes());
                    sender.send(1, page);
                    sent += 1;
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let mut received = 0u64;
        while received < PAGES {
            if let Some(page) = receiver.recv() {
                assert_eq!(page.bytes()[..8], received.to_le_bytes());
                assert_eq!(page.bytes()[4088..], (!received).to_le_bytes());
                receiver.give_back(page);
                received += 1;
            } else {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn words_of_the_layer_above_are_zero_and_its_own() {
    let pages = pages(2, 1);
    assert_eq!(pages.extra_words().len(), 3);
    assert!(pages.extra_words().iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
}

/// The words of a slot are in OS pages of their own, so that the other workers can be kept out.
#[test]
fn words_of_slots_and_guarded_words_share_no_os_page_with_others() {
    let words = Shape { extra_words: 3, slot_words: 5, guarded_words: 4, ..Shape::default() };
    let pages = Pages::new(Shape { slots: 3, pages_per_arena: 2, page_bytes: 4096, ..words }).expect("mapped");
    let (of_slots, distance) = pages.slot_words();
    let os_page_bytes = gristmill_os::machine::os_page_bytes();
    assert_eq!((of_slots.len(), distance % (os_page_bytes / 8)), (3 * distance, 0));
    let addresses =
        [&of_slots[0], &of_slots[distance], &pages.guarded_words()[0]].map(|word| std::ptr::from_ref(word).addr());
    assert!(addresses.iter().all(|address| address.is_multiple_of(os_page_bytes)), "{addresses:x?}");
    assert!(pages.extra_words().last().is_some_and(|word| std::ptr::from_ref(word).addr() < addresses[0]));
}
