//! Counts words as long as it may: until a file named `stop` appears, or some seconds have passed.
//!
//!     cargo run --release --example cancelling -- SECONDS FILE...

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use gristmill::{Bytes, Chunk, Emit, Error, Input, Job, MapReduce, ProgramError};

pub(crate) struct Words;

impl MapReduce for Words {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        let words = chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.for_each(|word| out.emit(word, 1));
        Ok(())
    }
}

pub(crate) fn words(input: Input, seconds: f64) -> Job<'static, Words> {
    Job::new(&Words, input)
        .deadline(Duration::from_secs_f64(seconds))
        .on_progress(|_| if Path::new("stop").exists() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let seconds = arguments.next().and_then(|seconds| seconds.into_string().ok()).ok_or("how long?")?.parse()?;
    match words(Input::paths(arguments), seconds).run() {
        Ok((counts, _)) => println!("{} different words", counts.len()),
        Err(Error::Cancelled) => println!("stopped"),
        Err(error @ Error::Deadline { .. }) => println!("{error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
