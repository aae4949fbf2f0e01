//! About how many different users each page has had, in 1 KiB for each page.
//!
//!     cargo run --release --example distinct_users -- FILE...
//!
//! A line of the input is a page and a user, such as `/index.html 10.0.0.7`. A sketch of the users takes the same
//! memory however many they are (HyperLogLog, Flajolet et al. 2007); with 1,024 registers its standard error is 3.3 %.

use std::hash::{DefaultHasher, Hasher};

use gristmill::{Aggregate, Chunk, Datum, Emit, Input, Job, MapReduce, ProgramError};

const REGISTERS: usize = 1024;

/// Each register has the most zeros that a hash began with, plus one.
#[derive(Clone, Debug, Default, Datum)]
#[datum(borrowed = SketchRef, exact)]
pub(crate) struct Sketch {
    registers: Vec<u8>,
}

impl Aggregate for Sketch {
    type Item = String;

    fn add(sketch: &mut Sketch, user: &str) {
        sketch.registers.resize(REGISTERS, 0);
        let mut hasher = DefaultHasher::new(); // The same in every process.
        hasher.write(user.as_bytes());
        let hash = hasher.finish();
        let register = &mut sketch.registers[hash as usize % REGISTERS];
        let zeros = (hash / REGISTERS as u64).leading_zeros() - REGISTERS.ilog2();
        *register = (*register).max(zeros as u8 + 1);
    }

    fn merge(sketch: &mut Sketch, other: Sketch) {
        sketch.registers.resize(REGISTERS, 0);
        sketch.registers.iter_mut().zip(other.registers).for_each(|(ours, theirs)| *ours = (*ours).max(theirs));
    }
}

impl SketchRef<'_> {
    /// Estimates the number of different users.
    pub(crate) fn estimate(&self) -> f64 {
        let registers = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|zeros| 0.5_f64.powi(i32::from(*zeros))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / registers) * registers * registers / sum;
        let unused = self.registers.iter().filter(|zeros| **zeros == 0).count();
        match unused {
            1.. if estimate <= 2.5 * registers => registers * (registers / unused as f64).ln(),
            _ => estimate,
        }
    }
}

pub(crate) struct Users;

impl MapReduce for Users {
    type Key = String;
    type Value = Sketch;

    fn combiner(&self) -> Option<impl Fn(Sketch, Sketch) -> Sketch> {
        Some(Sketch::merged)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, Sketch>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let at = chunk.place_of(line);
            let words = str::from_utf8(line)?.split_once(' ');
            let (page, user) = words.ok_or_else(|| chunk.reject(at, "a line has a page and a user"))?;
            out.add(page, user);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job::new(&Users, Input::paths(std::env::args_os().skip(1)));
    for (page, sketch) in &job.run()?.0 {
        println!("{page}\t{:.0}", sketch.estimate());
    }
    Ok(())
}
