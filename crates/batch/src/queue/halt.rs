//! The rule by which a queue begins no further jobs, in the words of GNU parallel's `--halt`. `queue.rs` follows it.

/// When a queue begins no further jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    /// The number of ends that halt it; `None` for never.
    pub ends: Option<u32>,
    /// Successes are counted instead of failures.
    pub is_of_success: bool,
    /// Jobs that run then are ended.
    pub ends_running: bool,
}

impl Halt {
    /// Whatever fails, the queue goes on.
    pub const NEVER: Halt = Halt { ends: None, is_of_success: false, ends_running: false };

    /// After a failure no further job begins, and running ones end by themselves.
    pub const SOON: Halt = Halt { ends: Some(1), ..Halt::NEVER };

    /// Reads `never`, `soon` or `now`, the last two with `,fail=N` or `,success=N` if that is not the first failure.
    ///
    /// # Errors
    ///
    /// A sentence with the known forms.
    ///
    /// ```
    /// use gristmill_batch::queue::Halt;
    ///
    /// assert_eq!(Halt::parse("soon"), Ok(Halt::SOON));
    /// assert_eq!(Halt::parse("soon,fail=3"), Ok(Halt { ends: Some(3), ..Halt::SOON }));
    /// assert!(Halt::parse("now,success=1").is_ok_and(|halt| halt.ends_running && halt.is_of_success));
    /// assert!(Halt::parse("soon,done=1").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Halt, String> {
        let known = || {
            "the known forms are never, soon, now, soon,fail=N, now,fail=N, soon,success=N and now,success=N, with N from 1"
                .to_owned()
        };
        let (when, of) = text.split_once(',').unwrap_or((text, "fail=1"));
        let ends_running = match when {
            "never" if !text.contains(',') => return Ok(Halt::NEVER),
            "soon" => false,
            "now" => true,
            _ => return Err(known()),
        };
        let (what, count) = of.split_once('=').ok_or_else(known)?;
        let is_of_success = match what {
            "fail" => false,
            "success" => true,
            _ => return Err(known()),
        };
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(known)?;
        Ok(Halt { ends: Some(count), is_of_success, ends_running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_are_not_known_are_refused() {
        for text in
            ["", "1", "never,fail=1", "later", "now,", "now,fail", "now,fail=0", "soon,fail=10%", "now,done=1", "NOW"]
        {
            assert!(Halt::parse(text).is_err_and(|why| why.contains("now,success=N")), "{text}");
        }
    }
}
