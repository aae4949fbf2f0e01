//! Requests for each hour of a log and each outcome: keys of a type of one's own.
//!
//!     cargo run --release --example custom_keys -- FILE...
//!
//! A line of the input is a time in seconds since 1970 and a status of HTTP, such as `1763900000 404`.

use gristmill::{Chunk, Datum, Emit, Input, Job, Key, MapReduce, ProgramError};

/// The key by which requests are counted. Keys are ordered by their fields, the first one first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Datum, Key)]
pub(crate) struct Group {
    hour: u64,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Default, Datum, Key)]
enum Outcome {
    #[default]
    Answered,
    Redirected,
    /// With its status.
    Failed(u16),
}

pub(crate) struct Requests;

impl MapReduce for Requests {
    type Key = Group;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Group, u64>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let (seconds, status) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            let outcome = match status.parse()? {
                200..300 => Outcome::Answered,
                300..400 => Outcome::Redirected,
                status => Outcome::Failed(status),
            };
            out.emit(Group { hour: seconds.parse::<u64>()? / 3600, outcome }, 1);
        }
        Ok(())
    }
}

pub(crate) fn requests(input: Input) -> Job<'static, Requests> {
    Job::new(&Requests, input)
}

fn main() -> gristmill::Result<()> {
    for (Group { hour, outcome }, count) in &requests(Input::paths(std::env::args_os().skip(1))).run()?.0 {
        println!("{hour}\t{outcome:?}\t{count}");
    }
    Ok(())
}
