//! A million records that are added to sketches of 1 KiB: by hand with one thread, as values of their own, and in
//! place.
//!
//!     cargo bench --package gristmill --bench aggregates -- [ROUNDS]
//!
//! Prints a line of JSON for each run: the way, the round, and the milliseconds from a file in the page cache to the
//! result.

use std::fs;
use std::path::Path;
use std::time::Instant;

use gristmill::{Aggregate, Chunk, Datum, Emit, Input, Job, MapReduce, ProgramError, Records};

const RECORDS: u64 = 1_000_000;
const KEYS: u64 = 16;
const REGISTERS: usize = 1024;

/// HyperLogLog (Flajolet et al. 2007) of numbers that are hashes.
#[derive(Clone, Debug, Default, Datum)]
#[datum(borrowed = SketchRef, exact)]
struct Sketch {
    registers: Vec<u8>,
}

#[inline(always)]
fn add(registers: &mut [u8], hash: u64) {
    let register = &mut registers[hash as usize % REGISTERS];
    *register = (*register).max((hash >> 10).leading_zeros() as u8);
}

impl Aggregate for Sketch {
    type Item = u64;

    fn add(sketch: &mut Sketch, hash: u64) {
        sketch.registers.resize(REGISTERS, 0);
        add(&mut sketch.registers, hash);
    }

    fn merge(sketch: &mut Sketch, other: Sketch) {
        sketch.registers.resize(REGISTERS, 0);
        sketch.registers.iter_mut().zip(other.registers).for_each(|(ours, theirs)| *ours = (*ours).max(theirs));
    }
}

/// Adds each record in place, or emits a sketch of it.
struct Sketches {
    in_place: bool,
}

impl MapReduce for Sketches {
    type Key = u64;
    type Value = Sketch;

    fn combiner(&self) -> Option<impl Fn(Sketch, Sketch) -> Sketch> {
        Some(Sketch::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, Sketch>) -> Result<(), ProgramError> {
        for record in chunk.bytes().chunks_exact(8) {
            let hash = u64::from_le_bytes(record.try_into()?);
            if self.in_place {
                out.add(hash >> 60, hash);
            } else {
                let mut sketch = Sketch::default();
                <Sketch as Aggregate>::add(&mut sketch, hash);
                out.emit(hash >> 60, SketchRef { registers: &sketch.registers });
            }
        }
        Ok(())
    }
}

fn by_hand(path: &Path) -> gristmill::Result<u64> {
    let records = fs::read(path).expect("the file that was written");
    let mut sketches = vec![[0; REGISTERS]; KEYS as usize];
    for record in records.chunks_exact(8) {
        let hash = u64::from_le_bytes(record.try_into().expect("eight bytes"));
        add(&mut sketches[(hash >> 60) as usize], hash);
    }
    Ok(sketches.iter().flatten().map(|register| u64::from(*register)).sum())
}

fn by_job(path: &Path, in_place: bool) -> gristmill::Result<u64> {
    let sketches = Sketches { in_place };
    let (found, _) = Job::new(&sketches, Input::paths([path])).records(Records::Fixed(8)).run()?;
    Ok(found.iter().flat_map(|(_, sketch)| sketch.registers).map(|register| u64::from(*register)).sum())
}

fn main() -> gristmill::Result<()> {
    let rounds: u32 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(9);
    let hash = |number: u64| {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let records: Vec<u8> = (0..RECORDS).flat_map(|number| hash(number).to_le_bytes()).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("records");
    fs::write(&path, records).expect("there is room");
    let expected = by_hand(&path)?;
    for round in 1..=rounds {
        for way in ["by hand", "emitted", "in place"] {
            let began = Instant::now();
            let found = match way {
                "by hand" => by_hand(&path)?,
                _ => by_job(&path, way == "in place")?,
            };
            let ms = began.elapsed().as_secs_f64() * 1e3;
            assert_eq!(found, expected, "{way}");
            println!("{{\"way\": \"{way}\", \"round\": {round}, \"ms\": {ms:.2}}}");
        }
    }
    Ok(())
}
