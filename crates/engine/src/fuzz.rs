//! Entry points to private parsers for the programs in `fuzz/`, compiled only with `--cfg fuzzing`. For any bytes they
//! return, without a panic and within their memory limit.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::checkpoint::log;
use crate::input::look::in_proc;
use crate::input::quotes::{State, Syntax};
use crate::input::records::{Records, Scan};
use crate::input::source::{Source, TaskMemory};
use crate::memory::Memory;
use crate::spill::run;

/// Reads a file that may be compressed: its first bytes, its cuts, its headers and its content.
pub fn compressed(bytes: &[u8]) {
    const CONTENT_BYTES_MAX: u64 = 1 << 20;
    let mut file: File = memfd_create(c"fuzz", MemfdFlags::CLOEXEC).expect("memory").into();
    file.write_all(bytes).expect("memory");
    let Ok(source) = Source::recognised(PathBuf::from("a"), in_proc(&file), bytes.len() as u64, &file, None) else {
        return;
    };
    let source = source.with_memory(TaskMemory { decoder: Memory::of(9 << 20), unpack: Memory::of(0) });
    let cuts = source.cuts().unwrap_or_default().to_vec();
    assert!(cuts.is_sorted_by(|a, b| a.stored <= b.stored && a.content < b.content), "{cuts:?}");
    // From the beginning, and from one of the cuts in the middle.
    for at in [0, cuts.get(cuts.len() / 2).map_or(0, |cut| cut.content.min(1 << 30))] {
        if let Ok(Some(content)) = source.unpacked_from(at) {
            drop(std::io::copy(&mut content.take(CONTENT_BYTES_MAX), &mut std::io::sink()));
        }
    }
}

/// Parses the log of a checkpoint, as given and with correct checksums in each line: parsing stops at a wrong one.
pub fn checkpoint(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let sealed = lines.flat_map(|line| {
        let checksum = format!("{:08x} ", crc32fast::hash(line));
        [checksum.as_bytes(), line, b"\n"].concat()
    });
    for log in [bytes, &sealed.collect::<Vec<u8>>()] {
        if let Ok((_, end)) = log::parse(log) {
            assert!(end <= log.len() as u64);
        }
    }
}

/// Checks a block of a run after correcting its checksum.
pub fn block(bytes: &[u8]) {
    let mut block = bytes.to_vec();
    if block.len() < run::HEADER_BYTES {
        return assert!(run::check(&block).is_none());
    }
    let checksum = run::checksum(&block);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
    let Some(stored) = run::check(&block).filter(|stored| stored.is_packed) else { return };
    assert!(stored.pairs_bytes <= 255 * block.len());
    let mut pairs = vec![0; stored.pairs_bytes];
    drop(lz4_flex::block::decompress_into(&block[run::HEADER_BYTES..], &mut pairs));
}

/// Finds the ends of records of all kinds; they ascend and lie within the bytes.
pub fn records(bytes: &[u8]) {
    let Some(([kind, delimiter, quote], bytes)) = bytes.split_first_chunk() else { return };
    let records = match kind % 4 {
        0 => Records::Lines,
        1 => Records::EndedBy(*delimiter),
        2 => Records::Separated(|byte| byte.is_ascii_whitespace()),
        _ => Records::Csv(Syntax { delimiter: *delimiter, quote: *quote }),
    };
    let mut scan = Scan::new(records, 0, State::default());
    let mut at = 0;
    while let Some(end) = scan.first_end(&bytes[at..]).filter(|end| *end > 0) {
        at += end;
        assert!(at <= bytes.len());
    }
}
