//! The sessions of each user: a session ends when nothing has happened for half an hour.
//!
//!     cargo run --release --example sessions -- FILE...
//!
//! A line of the input is a user and a time in seconds, such as `ann 1763900000`.

use gristmill::{Chunk, Emit, Input, Job, Made, MapReduce, ProgramError};

const PAUSE_SECONDS: u64 = 30 * 60;

pub(crate) struct Visits;

impl MapReduce for Visits {
    type Key = String;
    type Value = u64;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<String, u64>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let (user, time) = str::from_utf8(line)?.split_once(' ').ok_or_else(|| {
                chunk.reject(chunk.place_of(line), "a line is a user and a time, with a space between them")
            })?;
            out.emit(user, time.parse()?);
        }
        Ok(())
    }
}

/// User and beginning of a session; its end and the number of its visits.
type Sessions = Made<(String, u64), (u64, u64)>;

pub(crate) fn sessions(input: Input) -> Job<'static, Visits, Sessions> {
    Job::new(&Visits, input).reduce_to::<(String, u64), (u64, u64)>(|user, times, emit| {
        let times: Vec<u64> = times.owned().collect();
        for session in times.chunk_by(|before, after| after - before < PAUSE_SECONDS) {
            let (begin, end) = (session[0], session[session.len() - 1]);
            emit((user, begin), (end, session.len() as u64));
        }
        Ok(())
    })
}

fn main() -> gristmill::Result<()> {
    for ((user, begin), (end, visits)) in &sessions(Input::paths(std::env::args_os().skip(1))).run()?.0 {
        println!("{user}\t{begin}\t{end}\t{visits}");
    }
    Ok(())
}
