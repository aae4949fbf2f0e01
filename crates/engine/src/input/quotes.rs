//! Where the records of a CSV file end: at line ends that no quotes enclose.
//!
//! The automaton is that of the csv crate, which reads the fields later: a quote opens a quoted field only where a
//! field begins, two quotes inside one are one, and what follows the closing quote belongs to the field as it is.
//! From one quote to the next no byte needs to be looked at.
//!
//! A file can be cut anywhere if the state of the automaton is known there. It depends on everything before, but
//! what a piece of the file makes of *each* state ([`Transition`]) can be said of the piece alone, so all pieces are
//! looked at by all workers ([`states`]), and what they say is chained.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::input::paths::Input;
use crate::input::records::{Records, Syntax};
use crate::input::split::Split;
use crate::job::builder::Job;
use crate::plan::settings::Settings;
use crate::program::map_reduce::{Emit, MapReduce};

/// What the bytes so far mean for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// A record begins.
    #[default]
    Record,
    /// A field begins.
    Field,
    /// Inside a field without quotes, or behind a closing quote.
    Plain,
    /// Inside a quoted field.
    Quoted,
    /// Behind a quote in a quoted field: the first of two, or the closing one.
    Quote,
}

impl State {
    /// The state behind one more byte.
    fn next(self, byte: u8, syntax: Syntax) -> State {
        match (self, byte) {
            (State::Quoted, byte) if byte == syntax.quote => State::Quote,
            (State::Quoted, _) => State::Quoted,
            (State::Record | State::Field | State::Quote, byte) if byte == syntax.quote => State::Quoted,
            (_, b'\n') => State::Record,
            (_, b'\r') => State::Field,
            (_, byte) if byte == syntax.delimiter => State::Field,
            _ => State::Plain,
        }
    }

    /// Goes on over `bytes`, and calls `visit` with the place of each stretch without quotes, in which every line end
    /// ends a record, until it breaks.
    fn run(&mut self, bytes: &[u8], syntax: Syntax, mut visit: impl FnMut(usize, &[u8]) -> ControlFlow<()>) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let stretch = &rest[..memchr::memchr(syntax.quote, rest).unwrap_or(rest.len())];
            if *self != State::Quoted
                && let Some(last) = stretch.last()
            {
                // Whatever the state was, only the last byte counts now.
                *self = State::Plain.next(*last, syntax);
                if visit(at, stretch).is_break() {
                    return;
                }
            }
            if stretch.len() < rest.len() {
                *self = self.next(syntax.quote, syntax);
            }
            at += stretch.len() + 1;
        }
    }

    /// Goes on to the end of the record; returns where that is, if it is in `bytes`.
    pub fn first_end(&mut self, bytes: &[u8], syntax: Syntax) -> Option<usize> {
        let mut end = None;
        self.run(bytes, syntax, |at, stretch| {
            end = memchr::memchr(b'\n', stretch).map(|found| at + found + 1);
            if end.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if end.is_some() {
            *self = State::Record;
        }
        end
    }

    /// Goes on to the end of `bytes`; returns where the last record in it ends.
    pub fn last_end(&mut self, bytes: &[u8], syntax: Syntax) -> Option<usize> {
        let mut end = None;
        self.run(bytes, syntax, |at, stretch| {
            end = memchr::memrchr(b'\n', stretch).map(|found| at + found + 1).or(end);
            ControlFlow::Continue(())
        });
        end
    }
}

/// The byte order mark in front of some UTF-8 files, which belongs to no field.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The state that a piece of a file makes of each state before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transition([State; STATES.len()]);

const STATES: [State; 5] = [State::Record, State::Field, State::Plain, State::Quoted, State::Quote];
const STATE_BITS: u32 = 3;

impl Transition {
    fn of(bytes: &[u8], syntax: Syntax) -> Transition {
        let mut states = STATES;
        let differ = |states: &[State; STATES.len()]| {
            (0..states.len()).filter(|at| !states[..*at].contains(&states[*at])).count()
        };
        // 1. A few bytes bring all states together, but for whether a quoted field is open.
        let mut bytes = bytes.iter();
        while differ(&states) > 2
            && let Some(byte) = bytes.next()
        {
            states = states.map(|state| state.next(*byte, syntax));
        }
        // 2. Each that is left goes its own way.
        let before = states;
        for at in 0..states.len() {
            match before[..at].iter().position(|state| *state == before[at]) {
                Some(same) => states[at] = states[same],
                None => states[at].run(bytes.as_slice(), syntax, |_, _| ControlFlow::Continue(())),
            }
        }
        Transition(states)
    }

    fn after(self, state: State) -> State {
        self.0[state as usize]
    }

    fn encode(self) -> u64 {
        self.0.iter().rev().fold(0, |word, state| word << STATE_BITS | *state as u64)
    }

    fn decode(word: u64) -> Transition {
        Transition(std::array::from_fn(|at| STATES[(word >> (at as u32 * STATE_BITS)) as usize % (1 << STATE_BITS)]))
    }
}

/// Says for each piece of each file what it makes of each state.
struct Pieces {
    syntax: Syntax,
}

impl MapReduce for Pieces {
    /// Number of the file, and where in it the piece begins.
    type Key = (u32, u64);
    type Value = u64;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<(u32, u64), u64>) {
        let marked = split.bytes().strip_prefix(MARK).filter(|_| split.offset() == 0);
        let mut transition = Transition::of(marked.unwrap_or(split.bytes()), self.syntax);
        if marked.is_some() {
            // The mark has begun the first record.
            transition.0[State::Record as usize] = transition.after(State::Field);
        }
        out.emit((split.index as u32, split.offset()), transition.encode());
    }
}

/// The state before each piece of the files of `input` (by number and offset), among them all places where a job with
/// these settings and splits of `split_bytes` cuts them. A job of its own finds out, which keeps to the limits of the one that it
/// is for, and tells its news to the same.
pub(crate) fn states(
    input: Input,
    settings: &Settings,
    split_bytes: u64,
    syntax: Syntax,
    on_news: &mut Option<Box<dyn FnMut(&str) + '_>>,
) -> Result<HashMap<(usize, u64), State>> {
    let pieces = Pieces { syntax };
    let mut job = Job::new(&pieces, input).on_news(|news| {
        if let Some(tell) = on_news {
            tell(&format!("looking for quotes: {news}"));
        }
    });
    let ours = Settings::default();
    job.settings = Settings {
        split_bytes: Some(split_bytes),
        chunk_bytes: None,
        records: Records::Fixed(1),
        sample: false,
        // A few numbers for each piece, in order, all of them.
        order: ours.order,
        limit: ours.limit,
        buffer: ours.buffer,
        combine: ours.combine,
        combine_after: None,
        deterministic: false,
        keep_bytes: None,
        // No record of theirs is bad, and what they find out is found out again when the job continues.
        skip_bad_records: 0,
        checkpoint: None,
        fates: Vec::new(),
        ..settings.clone()
    };
    let (transitions, _) = job.run()?;
    let mut states = HashMap::with_capacity(transitions.len());
    let mut state = State::default();
    for ((file, offset), transition) in transitions.iter() {
        if offset == 0 {
            state = State::default();
        }
        states.insert((file as usize, offset), state);
        state = Transition::decode(transition).after(state);
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn csv_like(bytes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(b"a\",;\n\r".to_vec()), bytes)
    }

    proptest! {
        #[test]
        fn records_end_where_those_of_the_csv_crate_end(content in csv_like(0..60), others: bool) {
            // The csv crate also ends a record at a lone carriage return, and says nothing of empty lines.
            let syntax = if others { Syntax { delimiter: b';', quote: b'a' } } else { Syntax::default() };
            let mut reader = csv_core::ReaderBuilder::new();
            reader.delimiter(syntax.delimiter).quote(syntax.quote).terminator(csv_core::Terminator::Any(b'\n'));
            let mut reader = reader.build();
            let content: Vec<u8> = content.into_iter().filter(|byte| *byte != b'\r').collect();
            let (mut theirs, mut at) = (Vec::new(), 0);
            loop {
                let (result, read, ..) = reader.read_record(&content[at..], &mut [0; 100], &mut [0; 100]);
                at += read;
                match result {
                    csv_core::ReadRecordResult::Record => theirs.push(at),
                    csv_core::ReadRecordResult::End => break,
                    _ => {}
                }
            }
            let (mut ours, mut at, mut state) = (Vec::new(), 0, State::default());
            while let Some(end) = state.first_end(&content[at..], syntax) {
                // Empty lines are no records.
                if content[at..at + end] != *b"\n" {
                    ours.push(at + end);
                }
                at += end;
            }
            if content[at..].iter().any(|byte| *byte != b'\n') {
                ours.push(content.len());
            }
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn transitions_chain(content in csv_like(0..60), cut in 0usize..60) {
            let (first, second) = content.split_at(cut.min(content.len()));
            let [whole, first, second] = [&content, first, second].map(|bytes| {
                let transition = Transition::of(bytes, Syntax::default());
                assert_eq!(Transition::decode(transition.encode()), transition);
                transition
            });
            for state in STATES {
                let by_byte = content.iter().fold(state, |state, byte| state.next(*byte, Syntax::default()));
                prop_assert_eq!(whole.after(state), by_byte);
                prop_assert_eq!(second.after(first.after(state)), by_byte);
            }
        }

        #[test]
        fn the_last_end_is_that_of_looking_for_one_after_the_other(content in csv_like(0..60)) {
            let (mut last, mut state) = (None, State::default());
            while let Some(end) = state.first_end(&content[last.unwrap_or(0)..], Syntax::default()) {
                last = Some(last.unwrap_or(0) + end);
            }
            prop_assert_eq!(State::default().last_end(&content, Syntax::default()), last);
        }
    }

    #[test]
    fn the_look_for_quotes_keeps_to_the_limits_of_its_job() {
        // It took memory and a spill folder of its own choice, whatever --memory and --spill-dir said.
        let look = |change: fn(&mut Settings)| {
            let mut settings = Settings { isolation: crate::Isolation::Thread, ..Settings::default() };
            change(&mut settings);
            let input = Input::bytes("table", &b"a,\"b\n\"\n".repeat(100)).expect("memory");
            let states = states(input, &settings, 50, Syntax::default(), &mut None);
            states.map(|states| states.len()).map_err(|why| why.to_string())
        };
        assert_eq!(look(|_| ()), Ok(14));
        let why = look(|settings| settings.memory_bytes = Some(1)).expect_err("one byte");
        assert!(why.contains("too little for this job"), "{why}");
        let why = look(|settings| settings.spill_dirs = vec!["/no/such/folder".into()]).expect_err("no folder");
        assert!(why.contains("the spill folder /no/such/folder"), "{why}");
    }
}
