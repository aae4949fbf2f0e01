//! A survey of reading: whether the bytes of the input are in the page cache, or a reader waits for a disk or a
//! network.
//!
//! It reads a little at places spread over the input, in the way in which workers read. The time that it waits is the
//! time that passes less the processor time, of reads that gave the processor away. What it reads from a disk is then
//! in the page cache, for the worker that needs it.

use std::os::unix::fs::FileExt;

use gristmill_os::clock::monotonic_ns;
use gristmill_os::usage::Usage;

use crate::input::reader::advise;
use crate::input::source::Source;

/// The number of places. Few are enough: a disk is cold for most of an input, or for little of it.
const PLACES: u64 = 4;
/// The bytes read at each place: several times what the kernel reads ahead at first, and a whole small file.
const PLACE_BYTES: usize = 256 << 10;
/// The time after which no further place is read. A fast disk takes less for all of them.
const PATIENCE_NS: u64 = 2_000_000;

/// Bytes that were read, and the nanoseconds that this waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub bytes: u64,
    pub wait_ns: u64,
}

/// Reads at some places of `sources`. Files that are decompressed are left out: that takes longer than to read them.
pub(super) fn read_places(sources: &[Source]) -> Reading {
    let mut reading = Reading::default();
    let mut buffer = vec![0; PLACE_BYTES];
    let began_ns = monotonic_ns();
    for (source, offset) in places(sources) {
        // An error is of no interest here; the job will meet it again.
        if let Some((bytes, wait_ns)) = read_at(source, offset, &mut buffer) {
            reading.bytes += bytes;
            reading.wait_ns += wait_ns;
        }
        if monotonic_ns() - began_ns > PATIENCE_NS {
            break;
        }
    }
    reading
}

/// Returns the places: equally far from each other if all files lay end to end, and none at the start of a large file,
/// which was read when the input was found. Of a file that is hardly larger than what is read at a place, that is the
/// start.
fn places(sources: &[Source]) -> impl Iterator<Item = (&Source, u64)> {
    let is_plain = |source: &&Source| source.is_plain() && source.bytes > 0;
    let total: u64 = sources.iter().filter(is_plain).map(|source| source.bytes).sum();
    let mut at = (0..PLACES)
        .map(move |number| (total as u128 * (2 * number as u128 + 1) / (2 * PLACES as u128)) as u64)
        .peekable();
    let mut before = 0;
    sources.iter().filter(is_plain).flat_map(move |source| {
        let end = before + source.bytes;
        let inside = std::iter::from_fn(|| at.next_if(|at| *at < end));
        let last = source.bytes.saturating_sub(PLACE_BYTES as u64);
        let mut offsets: Vec<u64> = inside.map(|at| (at - before).min(last)).collect();
        offsets.dedup();
        before = end;
        offsets.into_iter().map(move |offset| (source, offset))
    })
}

/// Returns the number of bytes read at a place, and the nanoseconds that this waited.
fn read_at(source: &Source, offset: u64, buffer: &mut [u8]) -> Option<(u64, u64)> {
    let (usage, began_ns) = (Usage::of_thread(), monotonic_ns());
    let file = source.open_file().ok()?;
    if source.bytes > buffer.len() as u64 {
        advise(&file);
    }
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64).ok()? {
            0 => break,
            read => done += read,
        }
    }
    let (took_ns, used) = (monotonic_ns() - began_ns, Usage::of_thread() - usage);
    let waited_ns = took_ns.saturating_sub((used.user_us + used.sys_us) * 1000);
    // Time that passes without a wait belongs to other programs.
    Some((done as u64, if used.voluntary_switches == 0 { 0 } else { waited_ns }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn source(name: &str, bytes: u64) -> Source {
        Source::plain(PathBuf::from(name), PathBuf::from(name), bytes)
    }

    #[test]
    fn places_are_spread_over_files_and_within_them() {
        const MIB: u64 = 1 << 20;
        let names_and_places = |sources: &[Source]| {
            let name = |source: &Source| source.name.display().to_string();
            places(sources).map(|(source, offset)| (name(source), offset)).collect::<Vec<_>>()
        };
        assert_eq!(names_and_places(&[]), []);
        assert_eq!(names_and_places(&[source("a", 8 * MIB)]), [1, 3, 5, 7].map(|at| ("a".to_owned(), at * MIB)));
        // A small file is read whole, once.
        assert_eq!(names_and_places(&[source("a", 10)]), [("a".to_owned(), 0)]);
        let small: Vec<Source> = (0..8).map(|number| source(&number.to_string(), 1000)).collect();
        assert_eq!(names_and_places(&small), ["1", "3", "5", "7"].map(|name| (name.to_owned(), 0)));
        assert_eq!(
            names_and_places(&[source("a", 4 * MIB), source("b", 0), source("c", 4 * MIB)])[2],
            ("c".to_owned(), MIB)
        );
    }

    #[test]
    fn everything_of_a_small_file_is_read_and_a_missing_one_is_left_to_the_job() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("small");
        std::fs::write(&path, "frog").expect("written");
        let there = Source::plain(path.clone(), path, 4);
        assert_eq!(read_places(&[there, source("/nowhere", 4)]).bytes, 4);
    }
}
