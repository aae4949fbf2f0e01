//! Prime factors of numbers that come from memory: a list, an iterator, and a channel that a thread fills.
//!
//!     cargo run --release --example from_memory -- N
//!
//! Prints how often each prime divides the numbers up to N, counted three times.

use std::sync::mpsc::sync_channel;

use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};

pub(crate) struct Factors;

impl MapReduce for Factors {
    type Key = u64;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, u64>) -> Result<(), ProgramError> {
        for (_, record) in chunk.records() {
            let (mut number, mut divisor) = (u64::from_le_bytes(record.try_into()?), 2);
            while divisor * divisor <= number {
                while number.is_multiple_of(divisor) {
                    number /= divisor;
                    out.emit(divisor, 1);
                }
                divisor += 1;
            }
            if number > 1 {
                out.emit(number, 1);
            }
        }
        Ok(())
    }
}

pub(crate) fn factors(input: Input) -> Job<'static, Factors> {
    Job::new(&Factors, input)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let end: u64 = std::env::args().nth(1).ok_or("how many?")?.parse()?;
    let list: Vec<[u8; 8]> = (1..=end).map(u64::to_le_bytes).collect();
    let iterator = (1..=end).map(u64::to_le_bytes);
    // The thread waits when nobody takes its numbers, and has ended before the job begins.
    let (sender, receiver) = sync_channel(1_000);
    let thread = std::thread::spawn(move || (1..=end).try_for_each(|number| sender.send(number.to_le_bytes())));
    let channel = Input::from_records("the channel", receiver)?;
    thread.join().expect("it does not panic")?;

    let input = Input::from_records("the list", &list)?.chain(Input::from_records("the iterator", iterator)?);
    for (prime, count) in &factors(input.chain(channel)).run()?.0 {
        println!("{prime}\t{count}");
    }
    Ok(())
}
