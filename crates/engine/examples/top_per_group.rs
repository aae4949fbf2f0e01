//! The largest numbers of each group.
//!
//!     cargo run --release --example top_per_group -- K FILE...
//!
//! A line of the input is a group and a number, such as `north 17.5`.

use std::cmp::Reverse;

use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};

pub(crate) struct Numbers;

impl MapReduce for Numbers {
    type Key = String;
    // Values come to the reduce function in ascending order, so this one brings the largest first.
    type Value = Reverse<f64>;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, Reverse<f64>>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let (group, number) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            out.emit(group, Reverse(number.parse()?));
        }
        Ok(())
    }
}

pub(crate) fn largest(k: usize, input: Input) -> Job<'static, Numbers> {
    Job::new(&Numbers, input).reduce(move |group, numbers, emit| {
        numbers.owned().take(k).for_each(|number| emit(group, number));
        Ok(())
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let k: usize = arguments.next().and_then(|k| k.into_string().ok()).ok_or("how many?")?.parse()?;
    for (group, Reverse(number)) in &largest(k, Input::paths(arguments)).run()?.0 {
        println!("{group}\t{number}");
    }
    Ok(())
}
