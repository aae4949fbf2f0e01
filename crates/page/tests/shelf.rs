//! The shelf: written once, read by many, free again by generation.

use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_os::ended::WorkerThread;
use gristmill_os::room::{NoRoom, TemporaryFolder};
use gristmill_page::{NoExtent, Pages, Piece, Reuse, Shape, ShelfFile, Shelver};

const EXTENT: usize = 8192;

fn shape(extents: usize) -> Shape {
    Shape {
        slots: 4,
        pages_per_arena: 1,
        page_bytes: 4096,
        extents,
        extent_bytes: EXTENT,
        extra_words: 2,
        file_extents: 0,
        ..Shape::default()
    }
}

fn pages(extents: usize) -> Pages {
    let pages = Pages::new(shape(extents)).expect("mapped");
    (0..2).for_each(|slot| drop(pages.claim(slot)));
    pages
}

/// Takes an extent and seals `bytes` of it, all of the same value.
fn put(shelver: &mut Shelver<'_>, generation: u32, bytes: usize, value: u8) -> Piece {
    let mut extent = shelver.take(generation).expect("there is a free one");
    extent.room()[..bytes].fill(value);
    extent.seal(bytes)
}

#[test]
fn a_piece_is_read_by_many_as_it_was_sealed() {
    let pages = pages(2);
    let shelf = pages.shelf();
    let mut extent = Shelver::new(shelf, 0).take(1).expect("both are free");
    extent.room()[..3].copy_from_slice(b"abc");
    let first = extent.seal(3);
    assert_eq!(extent.room().len(), EXTENT - 3);
    extent.room()[..2].copy_from_slice(b"de");
    let second = extent.seal(2);
    let reader = shelf.reader(1);
    assert_eq!((reader.read(first), reader.read(first), reader.read(second)), (&b"abc"[..], &b"abc"[..], &b"de"[..]));
}

#[test]
fn a_generation_is_cleared_as_a_whole_and_the_next_one_stays() {
    let pages = pages(3);
    let shelf = pages.shelf();
    let mut shelver = Shelver::new(shelf, 0);
    let old = [put(&mut shelver, 1, 10, 1), put(&mut shelver, 1, 10, 1)];
    let new = put(&mut shelver, 2, EXTENT, 2);
    assert!(matches!(shelver.take(2), Err(NoExtent::Full)), "the shelf is full");
    shelf.clear(2).expect("nobody uses it");
    assert_eq!(shelf.extents_taken(), 1);
    assert!(shelf.reader(0).read(new).iter().all(|byte| *byte == 2));
    let again = put(&mut shelver, 3, 10, 3);
    assert!(old.iter().any(|piece| piece.extent == again.extent), "what is free is taken again");
    assert!(shelf.reader(0).read(new).iter().all(|byte| *byte == 2));
}

#[test]
fn extents_in_a_file_follow_those_in_memory_and_keep_their_room_on_the_disk() {
    for (kept_free_bytes, has_room) in [(0, true), (u64::MAX, false)] {
        let file = tempfile::tempfile().expect("a file");
        let disk = file.try_clone().expect("a second descriptor");
        let folder = TemporaryFolder::new(std::env::temp_dir(), Some(kept_free_bytes));
        let shape = Shape { file_extents: 3, ..shape(5) };
        let pages = Pages::with_file(shape, Some(ShelfFile { folder, file })).expect("mapped");
        (0..2).for_each(|slot| drop(pages.claim(slot)));
        pages.keep_to_arena(0).expect("the kernel notes it");
        let mut shelver = Shelver::new(pages.shelf(), 0);
        shelver.set_reuse(Reuse::Discard);
        let in_memory: Vec<Piece> = (1..3).map(|value| put(&mut shelver, 1, EXTENT, value)).collect();
        assert_eq!(std::os::unix::fs::MetadataExt::blocks(&disk.metadata().expect("a file")), 0);
        if !has_room {
            assert!(matches!(shelver.take(1), Err(NoExtent::Disk(NoRoom::Kept))));
            continue;
        }
        let in_file: Vec<Piece> = (3..6).map(|value| put(&mut shelver, 1, EXTENT, value)).collect();
        assert!(matches!(shelver.take(1), Err(NoExtent::Full)));
        for (value, piece) in (1..).zip(in_memory.iter().chain(&in_file)) {
            assert!(pages.shelf().reader(1).read(*piece).iter().all(|byte| *byte == value));
        }
        let blocks = || std::os::unix::fs::MetadataExt::blocks(&disk.metadata().expect("a file")) * 512;
        assert!(blocks() >= 3 * EXTENT as u64);
        pages.shelf().clear(2).expect("nobody uses it");
        (1..6).for_each(|value| assert_eq!(put(&mut shelver, 2, EXTENT, value).bytes, EXTENT as u32));
        assert!(blocks() >= 3 * EXTENT as u64);
    }
}

#[test]
fn a_writer_takes_its_own_extents_again_and_others_when_there_is_nothing_else() {
    let pages = pages(3);
    let shelf = pages.shelf();
    let (mut first, mut second) = (Shelver::new(shelf, 0), Shelver::new(shelf, 1));
    let (a, b) = (put(&mut first, 1, 1, 1), put(&mut second, 1, 1, 1));
    shelf.clear(2).expect("nobody uses it");
    assert_eq!(put(&mut second, 2, 1, 1).extent, b.extent);
    assert_eq!(put(&mut first, 2, 1, 1).extent, a.extent);
    let c = put(&mut second, 2, 1, 1);
    shelf.clear(3).expect("nobody uses it");
    // The second is dead: what it left is taken by the first.
    let taken: Vec<u32> = (0..3).map(|_| put(&mut first, 3, 1, 1).extent).collect();
    assert_eq!(taken[0], a.extent);
    assert!(taken.contains(&b.extent) && taken.contains(&c.extent));
}

#[test]
fn discarded_memory_reads_zero_and_kept_memory_does_not() {
    for (reuse, expected) in [(Reuse::Discard, 0), (Reuse::Keep, 7)] {
        let pages = pages(1);
        let mut shelver = Shelver::new(pages.shelf(), 0);
        shelver.set_reuse(reuse);
        shelver.set_populate();
        put(&mut shelver, 1, EXTENT, 7);
        pages.shelf().clear(2).expect("nobody uses it");
        let mut extent = shelver.take(2).expect("it is free again");
        assert!(extent.room().iter().all(|byte| *byte == expected), "{reuse:?}");
    }
}

#[test]
#[should_panic(expected = "before its generation is cleared")]
fn a_cleared_piece_is_not_read() {
    let pages = pages(1);
    let piece = put(&mut Shelver::new(pages.shelf(), 0), 1, 1, 1);
    pages.shelf().clear(2).expect("nobody uses it");
    pages.shelf().reader(0).read(piece);
}

#[test]
#[should_panic(expected = "after it was sealed")]
fn only_what_is_sealed_is_read() {
    // A piece is three numbers, and anybody can write down three numbers.
    let pages = pages(1);
    let mut shelver = Shelver::new(pages.shelf(), 0);
    let mut extent = shelver.take(1).expect("it is free");
    let Piece { extent, start, bytes } = extent.seal(8);
    pages.shelf().reader(1).read(Piece { extent, start, bytes: bytes + 1 });
}

#[test]
#[should_panic(expected = "is cleared when the worker of no slot uses it")]
fn nothing_is_cleared_that_somebody_reads() {
    let pages = pages(1);
    let piece = put(&mut Shelver::new(pages.shelf(), 0), 1, 1, 1);
    let reader = pages.shelf().reader(1);
    reader.read(piece);
    pages.shelf().clear(2).expect("nobody uses it");
}

#[test]
#[should_panic(expected = "is cleared when the worker of no slot uses it")]
fn nothing_is_cleared_that_somebody_writes() {
    let pages = pages(2);
    let _extent = Shelver::new(pages.shelf(), 0).take(1);
    pages.shelf().clear(2).expect("nobody uses it");
}

#[test]
#[should_panic(expected = "slot 2 is used by the worker that has claimed it")]
fn who_has_claimed_no_slot_reads_nothing() {
    pages(1).shelf().reader(2);
}

#[test]
fn what_a_dead_worker_was_reading_is_cleared() {
    let pages = pages(1);
    let piece = put(&mut Shelver::new(pages.shelf(), 0), 1, 1, 1);
    let ended = std::thread::scope(|scope| {
        let reads = || {
            drop(pages.claim(3));
            let reader = pages.shelf().reader(3);
            reader.read(piece);
            std::mem::forget(reader);
        };
        WorkerThread::spawn(scope, "reader".to_owned(), reads).expect("started").join()
    });
    let clear = || pages.shelf().clear(2).expect("nobody uses it");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(clear)).is_err(), "it may still be reading");
    pages.declare_dead(3, &ended);
    clear();
    assert_eq!(pages.shelf().extents_taken(), 0);
}

#[test]
fn an_extent_has_one_writer() {
    let pages = pages(64);
    let shelf = pages.shelf();
    let sealed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for value in 1..=4 {
            let sealed = &sealed;
            scope.spawn(move || {
                let mut shelver = Shelver::new(shelf, 0);
                while let Ok(mut extent) = shelver.take(1) {
                    extent.room().fill(value);
                    let piece = extent.seal(EXTENT);
                    assert!(shelf.reader(0).read(piece).iter().all(|byte| *byte == value));
                    sealed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sealed.into_inner(), 64);
}
