//! The region within one process: limits, kinds of atomics, and what it refuses.

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use gristmill_os::Region;

/// The message with which `action` panics.
fn refusal<T>(action: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(action)) {
        Ok(_) => panic!("it was not refused"),
        Err(payload) => *payload.downcast::<String>().expect("an assertion with a message"),
    }
}

#[test]
fn both_areas_start_at_two_mib_and_read_zero() {
    let region = Region::new(100, 1).unwrap();
    assert_eq!(region.page_area_bytes(), 2 << 20);
    assert_eq!(region.page_area().as_ptr().align_offset(2 << 20), 0);
    assert_eq!(region.u32s(0, 1).as_ptr().align_offset(2 << 20), 0);
    assert_eq!(region.u32s(96, 1)[0].load(Ordering::Relaxed), 0);
}

#[test]
fn the_control_area_may_fill_its_last_huge_page_to_the_brim() {
    for control_bytes in [(2 << 20) - 64, 2 << 20, (2 << 20) + 64] {
        let region = Region::new(control_bytes, 2 << 20).unwrap();
        let all = region.u64s(0, control_bytes / 8);
        all.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        // The borders lie behind the words and the pages behind the borders: neither was overwritten.
        assert_eq!(region.u64s(0, control_bytes / 8).len(), control_bytes / 8);
        // SAFETY: the first byte of the page area, which nobody writes.
        assert_eq!(unsafe { region.page_area().read() }, 0);
    }
}

#[test]
fn atomics_beyond_the_control_area_are_refused() {
    let region = Region::new(100, 2 << 20).unwrap();
    assert_eq!(region.u32s(0, 25).len(), 25);
    assert!(refusal(|| region.u32s(0, 26)).contains("do not fit at byte 0 of a control area of 100 bytes"));
    assert!(refusal(|| region.u32s(usize::MAX - 3, 1)).contains("do not fit"));
    assert!(refusal(|| region.u64s(0, usize::MAX / 4)).contains("do not fit"));
    assert!(refusal(|| region.u64s(96, 1)).contains("do not fit"));
}

#[test]
fn atomics_at_odd_places_are_refused() {
    let region = Region::new(4096, 0).unwrap();
    assert!(refusal(|| region.u32s(2, 1)).contains("1 atomics of 4 bytes do not fit at byte 2"));
    assert!(refusal(|| region.u64s(4, 1)).contains("1 atomics of 8 bytes do not fit at byte 4"));
}

#[test]
fn no_place_is_lent_in_two_sizes() {
    let region = Region::new(4096, 0).unwrap();
    region.u64s(2048, 8);
    region.u32s(0, 16);
    // Again, and further: fine as long as the kinds do not meet.
    assert_eq!(region.u32s(60, 100).len(), 100);
    assert_eq!(region.u64s(464, 1).len(), 1);
    let refused = refusal(|| region.u32s(460, 2));
    assert!(refused.contains("u32s were asked for up to byte 468, and u64s from byte 464 on"), "{refused}");
    assert!(refusal(|| region.u32s(4000, 1)).contains("u32s come first"));

    let region = Region::new(4096, 0).unwrap();
    region.u32s(0, 3);
    assert!(refusal(|| region.u64s(8, 1)).contains("u32s come first"));
}

#[test]
fn a_range_outside_the_page_area_is_refused() {
    let region = Region::new(64, 2 << 20).unwrap();
    // SAFETY: nobody else uses this region, here and below.
    let populate = |range| unsafe { region.populate(range) };
    // SAFETY: as above.
    let discard = |range| unsafe { region.discard(range) };
    assert!(refusal(|| populate(0..(2 << 20) + 1)).contains("do not lie in the page area"));
    assert!(refusal(|| discard(4096..(4 << 20))).contains("do not lie in the page area"));
    assert!(refusal(|| discard(1..4096)).contains("only whole OS pages"));
}

#[test]
fn absurd_sizes_are_an_error() {
    assert!(Region::new(usize::MAX, 0).is_err());
    assert!(Region::new(64, usize::MAX - (3 << 20)).is_err());
    assert!(Region::new(64, isize::MAX as usize).is_err());
}

#[test]
fn asking_for_huge_pages_never_hurts() {
    let region = Region::new(64, 8 << 20).unwrap();
    region.ask_for_huge_pages();
    // SAFETY: nobody else uses this region.
    unsafe { region.populate(0..8 << 20) }.unwrap();
    // SAFETY: inside the page area, which only this thread uses.
    assert_eq!(unsafe { region.page_area().add((8 << 20) - 1).read() }, 0);
}
