//! Sums of amounts by account, written by all workers at once to a folder of CSV files.
//!
//!     cargo run --release --example sinks -- FOLDER FILE...
//!
//! A line of the input is an account and an amount in cents, such as `rent -95000`. The folder appears when all files
//! are complete.

use gristmill::sinks::{PartFiles, Row};
use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};

pub(crate) struct Amounts;

impl MapReduce for Amounts {
    type Key = String;
    type Value = i64;

    fn combiner(&self) -> Option<impl Fn(i64, i64) -> i64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, i64>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let (account, cents) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            out.emit(account, cents.parse()?);
        }
        Ok(())
    }
}

/// A line of CSV.
pub(crate) struct Csv;

impl Row<String, i64> for Csv {
    fn write(&self, account: &str, cents: i64, to: &mut Vec<u8>) {
        to.extend_from_slice(format!("{account},{cents}\n").as_bytes());
    }
}

pub(crate) fn sums(input: Input) -> Job<'static, Amounts> {
    Job::new(&Amounts, input)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let summary = sums(Input::paths(arguments)).run_into(&PartFiles::new(folder, &Csv)?)?;
    println!("{} accounts", summary.pairs);
    Ok(())
}
