//! The events that the scheduler waits for, as the numbers of a [`Watch`](gristmill_os::wake::Watch).

/// The streams of a program.
pub const STREAMS: usize = 2;

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A signal has come, or the guard has died.
    Signal,
    /// More of the list has come.
    List,
    /// A program has ended.
    End { job: usize },
    /// A program has written, or has closed its standard output (0) or standard error (1).
    Stream { job: usize, stream: usize },
}

/// The numbers before those of jobs.
const OTHERS: u64 = 2;
/// The numbers of each job: its end, and its streams.
const EACH: u64 = 1 + STREAMS as u64;

impl Ready {
    pub fn number(self) -> u64 {
        match self {
            Ready::Signal => 0,
            Ready::List => 1,
            Ready::End { job } => OTHERS + job as u64 * EACH,
            Ready::Stream { job, stream } => OTHERS + 1 + job as u64 * EACH + stream as u64,
        }
    }

    pub fn of(number: u64) -> Ready {
        let Some(number) = number.checked_sub(OTHERS) else {
            return if number == 0 { Ready::Signal } else { Ready::List };
        };
        let job = (number / EACH) as usize;
        match number % EACH {
            0 => Ready::End { job },
            stream => Ready::Stream { job, stream: stream as usize - 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_stands_for_one_thing() {
        let all: Vec<Ready> = (0..100).map(Ready::of).collect();
        assert!(all.iter().enumerate().all(|(number, ready)| ready.number() == number as u64));
        assert_eq!((all[1], all[4]), (Ready::List, Ready::Stream { job: 0, stream: 1 }));
        assert_eq!((all[0], all[5]), (Ready::Signal, Ready::End { job: 1 }));
    }
}
