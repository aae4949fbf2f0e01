//! Records that are wrong: the job names the first one and ends, or sets some aside and goes on.
//!
//!     cargo run --release --example failing -- LIMIT FILE...
//!
//! A line of the input should be a number. Prints their sum, and at most LIMIT lines that are none.

use std::process::ExitCode;

use gristmill::{Chunk, Emit, Error, Input, Job, MapReduce, ProgramError};

/// The code of a number that is too large; whatever is no number at all has none.
const TOO_LARGE: i32 = 7;

pub(crate) struct Sum;

impl MapReduce for Sum {
    type Key = ();
    type Value = i64;

    fn combiner(&self) -> Option<impl Fn(i64, i64) -> i64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<(), i64>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let number: i64 = str::from_utf8(line)?.parse()?;
            if number.abs() > 1_000_000_000 {
                return Err(chunk.reject(chunk.place_of(line), "more than a billion").code(TOO_LARGE));
            }
            out.emit((), number);
        }
        Ok(())
    }
}

pub(crate) fn sum(input: Input, limit: u32) -> Job<'static, Sum> {
    Job::new(&Sum, input).skip_bad_records(limit)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let limit = arguments.next().and_then(|limit| limit.into_string().ok()).ok_or("how many?")?.parse()?;
    match sum(Input::paths(arguments), limit).run() {
        Ok((sums, summary)) => {
            println!("{}", sums.get(()).unwrap_or(0));
            for bad in &summary.bad_records {
                println!("{}:{}: {}", bad.path.display(), bad.line.unwrap_or(0), bad.cause);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(Error::Rejected { path, line, why, code, .. }) => {
            let hint = if code == Some(TOO_LARGE) { "; give amounts in thousands" } else { "" };
            eprintln!("{}:{}: {why}{hint}", path.display(), line.unwrap_or(0));
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}
