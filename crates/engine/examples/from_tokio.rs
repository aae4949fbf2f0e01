//! Counts the words of each file, all at the same time, from asynchronous code.
//!
//!     cargo run --release --example from_tokio -- FILES

use std::sync::Arc;

use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError, Starter};
use tokio::runtime::Runtime;

struct Words;

impl MapReduce for Words {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).for_each(|word| out.emit(word, 1));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Before the runtime, which has threads.
    let count = Arc::new(Starter::<String, (u64, u64)>::new(|path, answers| {
        let (mut words, mut distinct) = (0, 0);
        Job::new(&Words, Input::paths([path])).run_each(|_, count| {
            words += count;
            distinct += 1;
        })?;
        answers.push((words, distinct));
        Ok(())
    })?);
    Runtime::new()?.block_on(async {
        let calls: Vec<_> = std::env::args()
            .skip(1)
            .map(|path| {
                let count = count.clone();
                let call = move || count.call(&path)?.next().transpose().map(|counted| (path, counted));
                tokio::task::spawn_blocking(call)
            })
            .collect();
        for call in calls {
            if let (path, Some((words, distinct))) = call.await?? {
                println!("{path}\t{words}\t{distinct}");
            }
        }
        Ok(())
    })
}
