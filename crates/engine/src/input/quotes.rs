//! The ends of CSV records: line ends outside quotes.
//!
//! The automaton is that of the csv crate, which reads the fields later. A quote opens a quoted field only at the start
//! of a field, two quotes inside a quoted field stand for one, and text after the closing quote belongs to the field as
//! it is. Between two quotes, no byte needs to be examined.
//!
//! A file can be cut anywhere if the state of the automaton is known at the cut. The state depends on everything
//! before, so the file is scanned first ([`quote_scan`](crate::survey::quote_scan)).

use std::ops::ControlFlow;

/// The syntax of CSV: two different bytes that are not line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The byte between two fields.
    pub delimiter: u8,
    /// The byte that encloses a field with delimiters or line ends; doubled inside the field.
    pub quote: u8,
}

impl Default for Syntax {
    /// Commas and double quotes, as in RFC 4180.
    fn default() -> Syntax {
        Syntax { delimiter: b',', quote: b'"' }
    }
}

/// The state of the automaton after the bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// At the start of a record.
    #[default]
    Record,
    /// At the start of a field.
    Field,
    /// Inside an unquoted field, or after a closing quote.
    Plain,
    /// Inside a quoted field.
    Quoted,
    /// After a quote in a quoted field: the first of two, or the closing one.
    Quote,
}

impl State {
    /// Returns the state after one more byte.
    pub fn next(self, byte: u8, syntax: Syntax) -> State {
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

    /// Returns the offset of the quote that opened the field that is still quoted at the end of `bytes`, if one is and
    /// its quote is there. `self` is the state before them.
    pub fn open_quote(self, bytes: &[u8], syntax: Syntax) -> Option<usize> {
        let (opened, state) = self.last_quote(bytes, syntax);
        opened.filter(|_| state == State::Quoted)
    }

    /// Returns the offset of the last quote in `bytes` that opens a field, and the state after them.
    pub fn last_quote(mut self, bytes: &[u8], syntax: Syntax) -> (Option<usize>, State) {
        let mut opened = None;
        for (at, byte) in bytes.iter().enumerate() {
            let next = self.next(*byte, syntax);
            if matches!(self, State::Record | State::Field) && next == State::Quoted {
                opened = Some(at);
            }
            self = next;
        }
        (opened, self)
    }

    /// Advances over `bytes`, and calls `visit` with the offset of each stretch outside quotes, in which every line end
    /// ends a record, until `visit` breaks.
    pub fn run(&mut self, bytes: &[u8], syntax: Syntax, mut visit: impl FnMut(usize, &[u8]) -> ControlFlow<()>) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let stretch = &rest[..memchr::memchr(syntax.quote, rest).unwrap_or(rest.len())];
            if *self != State::Quoted
                && let Some(last) = stretch.last()
            {
                // After a stretch outside quotes the state depends on its last byte alone.
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

    /// Advances to the end of the record; returns its offset, if it is in `bytes`.
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

    /// Advances to the end of `bytes`; returns the offset at which the last record in it ends.
    pub fn last_end(&mut self, bytes: &[u8], syntax: Syntax) -> Option<usize> {
        let mut end = None;
        self.run(bytes, syntax, |at, stretch| {
            end = memchr::memrchr(b'\n', stretch).map(|found| at + found + 1).or(end);
            ControlFlow::Continue(())
        });
        end
    }
}

/// The byte order mark at the start of some UTF-8 files, which belongs to no field.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn csv_like(bytes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(b"a\",;\n\r".to_vec()), bytes)
    }

    proptest! {
        #[test]
        fn records_end_where_the_csv_crate_ends_them(content in csv_like(0..60), others: bool) {
            // The csv crate also ends a record at a lone carriage return, and skips empty lines.
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
                // Empty lines are not records.
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
        fn an_open_quote_holds_the_last_field(content in csv_like(0..60)) {
            let content: Vec<u8> = content.into_iter().filter(|byte| *byte != b'\r').collect();
            let mut state = State::default();
            state.run(&content, Syntax::default(), |_, _| ControlFlow::Continue(()));
            let opened = State::default().open_quote(&content, Syntax::default());
            prop_assert_eq!(opened.is_some(), state == State::Quoted);
            let line = opened.map(|at| 1 + content[..at].iter().filter(|byte| **byte == b'\n').count() as u64);
            let [plain, marked] = [&b""[..], MARK].map(|mark| [mark, &content].concat());
            prop_assert_eq!(Syntax::default().open_quote_line(&plain[..]).expect("in memory"), line);
            prop_assert_eq!(Syntax::default().open_quote_line(&marked[..]).expect("in memory"), line);
            if let Some(at) = opened {
                let rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&content[..]);
                let last = rows.into_byte_records().last().expect("a row").expect("bytes");
                let held = str::from_utf8(&content[at + 1..]).expect("ASCII").replace("\"\"", "\"");
                prop_assert_eq!(last.iter().next_back().expect("a field"), held.as_bytes());
            }
        }

        #[test]
        fn the_last_end_is_the_same_as_by_repeated_search(content in csv_like(0..60)) {
            let (mut last, mut state) = (None, State::default());
            while let Some(end) = state.first_end(&content[last.unwrap_or(0)..], Syntax::default()) {
                last = Some(last.unwrap_or(0) + end);
            }
            prop_assert_eq!(State::default().last_end(&content, Syntax::default()), last);
        }
    }
}
