//! A job for each line of standard input, such as a service runs them: how many different words it has.
//!
//!     cargo run --release --example many_jobs < FILE

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError};

pub(crate) struct Words;

impl MapReduce for Words {
    type Key = Bytes;
    type Value = ();

    fn combiner(&self) -> Option<impl Fn((), ())> {
        Some(|(), ()| ())
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, ()>) -> Result<(), ProgramError> {
        let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.for_each(|word| out.emit(word, ()));
        Ok(())
    }
}

pub(crate) fn words(line: &str) -> gristmill::Result<Job<'static, Words>> {
    Ok(Job::new(&Words, Input::bytes("the line", line.as_bytes())?))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lines() {
        println!("{}", words(&line?)?.run()?.0.len());
    }
    Ok(())
}
