//! The code that programs execute: sampled instruction addresses, by the file that they belong to.
//!
//! Each process has its code at other addresses, and each execution too. So an address is told as the place in its
//! file: the upper 24 bits are a digest of the file's name, the rest is the place. Code that belongs to no file, as a
//! compiler at run time makes it, is told by its place in its mapping.
//!
//! A program that reports stages ([`crate::program::heartbeat`]) needs no samples: a stage stands for its code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::rc::Rc;

use crate::queue::digest;
use gristmill_os::samples::{Followed, Sampler};
use gristmill_schedule::ProgramId;

/// The bits of a place in a file.
const PLACE_BITS: u32 = 40;
/// The number of processes whose mappings are remembered. All are forgotten at once when there are more.
const PROCESSES_MAX: usize = 4096;

/// The sampled addresses of the running programs.
pub struct Addresses {
    sampler: Rc<Sampler>,
    followed: BTreeMap<ProgramId, Followed>,
    code: BTreeMap<i32, Vec<Mapping>>,
    taken: BTreeMap<ProgramId, Vec<u64>>,
    is_paused: bool,
}

/// Executable memory of a process.
#[derive(Debug, PartialEq)]
struct Mapping {
    addresses: Range<u64>,
    /// The number that stands for the first of them.
    told: u64,
}

impl Addresses {
    pub fn new(sampler: Rc<Sampler>) -> Addresses {
        Addresses {
            sampler,
            followed: BTreeMap::new(),
            code: BTreeMap::new(),
            taken: BTreeMap::new(),
            is_paused: false,
        }
    }

    /// Takes over the events of a program that has begun; `None` if it cannot be sampled.
    pub fn begin(&mut self, id: ProgramId, followed: Option<Followed>) {
        if let Some(followed) = followed {
            if self.is_paused {
                followed.pause(true);
            }
            self.followed.insert(id, followed);
        }
    }

    pub fn end(&mut self, id: ProgramId) {
        self.followed.remove(&id);
        self.taken.remove(&id);
    }

    /// Interrupts the sampling of all programs that have begun, or continues it.
    pub fn pause(&mut self, is_paused: bool) {
        if is_paused != self.is_paused {
            self.followed.values().for_each(|followed| followed.pause(is_paused));
            self.is_paused = is_paused;
        }
    }

    /// Takes the samples since the last call.
    pub fn take_in(&mut self) {
        self.taken.clear();
        let mut looked_at = BTreeSet::new();
        for sample in self.sampler.take() {
            let Some((id, _)) = self.followed.iter().find(|(_, followed)| followed.is_of(&sample)) else { continue };
            let mut told = place(self.code.get(&sample.process), sample.address);
            if told.is_none() && looked_at.insert(sample.process) {
                // It is new, or has mapped more since. One that has ended has no file any more, and its samples are
                // lost.
                if let Ok(maps) = fs::read_to_string(format!("/proc/{}/maps", sample.process)) {
                    if self.code.len() >= PROCESSES_MAX {
                        self.code.clear();
                    }
                    self.code.insert(sample.process, mappings(&maps));
                }
                told = place(self.code.get(&sample.process), sample.address);
            }
            self.taken.entry(*id).or_default().extend(told);
        }
    }

    /// Returns the addresses of a program among those that were taken last.
    pub fn of(&mut self, id: ProgramId) -> Vec<u64> {
        self.taken.remove(&id).unwrap_or_default()
    }
}

fn place(mappings: Option<&Vec<Mapping>>, address: u64) -> Option<u64> {
    let mapping = mappings?.iter().find(|mapping| mapping.addresses.contains(&address))?;
    Some(mapping.told + (address - mapping.addresses.start))
}

/// Returns the executable mappings of `/proc/PID/maps`.
fn mappings(maps: &str) -> Vec<Mapping> {
    let mapping = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let (addresses, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let name = fields.nth(2).unwrap_or("").trim();
        let (start, end) = addresses.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let file = digest([name.as_bytes()]) << PLACE_BITS;
        let told = file | (number(offset)? & ((1 << PLACE_BITS) - 1));
        access.contains('x').then_some(Mapping { addresses: number(start)?..number(end)?, told })
    };
    maps.lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_as_its_place_in_its_file_wherever_it_is_mapped() {
        let maps = |base: u64| {
            let end = base + 0x2000;
            format!(
                "{base:x}-{end:x} r-xp 00001000 fe:00 12   /usr/bin/a b\n7000-8000 rw-p 00000000 00:00 0 \n9000-a000 r-xp 00000000 00:00 0 \n"
            )
        };
        let told_at = |base: u64, address: u64| place(Some(&mappings(&maps(base))), address);
        let told = told_at(0x10000, 0x10040).expect("it is code");
        assert_eq!(told & 0xffff, 0x1040);
        assert_eq!(told_at(0x50000, 0x50040), Some(told));
        assert_eq!((told_at(0x10000, 0x7000), told_at(0x10000, 0x12000)), (None, None));
        assert!(told_at(0x10000, 0x9000).is_some_and(|other| other >> PLACE_BITS != told >> PLACE_BITS));
        assert_eq!(mappings("nonsense\n\n1-2\n"), []);
    }
}
