//! Determines, at each place where a CSV file is cut, whether a quoted field is open.
//!
//! The state at a cut depends on everything before it, but the effect of a piece of the file on *each* state depends on
//! the piece alone. So threads scan all pieces in parallel, and the transitions are chained afterwards.
//!
//! In: the tasks of a job, cut without looking at the bytes. Out: the same tasks, each part with the state before its
//! first byte.

use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::input::quotes::{MARK, State, Syntax};
use crate::input::records::Records;
use crate::input::source::Source;
use crate::input::tasks::Tasks;

/// The number of bytes that a thread reads at a time.
const CHUNK_BYTES: usize = if cfg!(test) { 7 } else { 256 << 10 };

/// Sets the state of each part of a CSV file in `tasks`; at most `threads` parts are read in parallel.
///
/// # Errors
/// A file cannot be read, or is shorter than when it was listed.
pub(crate) fn scan_quotes(tasks: &mut Tasks, threads: usize) -> Result<()> {
    // 1. Find the transition of each part that is followed by another part of its file.
    let mut pieces = Vec::new();
    for (part, two) in tasks.all_parts().windows(2).enumerate() {
        if let Records::Csv(syntax) = tasks.records_of(two[0].source)
            && two[0].source == two[1].source
        {
            pieces.push((part, syntax));
        }
    }
    if pieces.is_empty() {
        return Ok(());
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(vec![None; tasks.all_parts().len()]));
    let scan = || -> Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Some((piece, syntax)) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let part = &tasks.all_parts()[*piece];
            let transition = transition_of(&tasks.sources[part.source], part.range.clone(), *syntax, &mut buffer)?;
            found.lock().expect("no thread panics with it")[*piece] = Some(transition);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, pieces.len())).map(|_| scope.spawn(scan)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a scan does not panic"))
    })?;
    // 2. Chain the transitions, from the beginning of each file.
    let found = found.into_inner().expect("no thread panics with it");
    let mut state = State::default();
    for (part, transition) in tasks.all_parts_mut().iter_mut().zip(found) {
        if part.range.start == 0 {
            state = State::default();
        }
        part.state = state;
        state = transition.map_or(State::default(), |transition| transition.after(state));
    }
    Ok(())
}

fn transition_of(source: &Source, range: Range<u64>, syntax: Syntax, buffer: &mut [u8]) -> Result<Transition> {
    let failed = |offset, source_error| Error::Read { path: source.name.clone(), offset, source: source_error };
    let file = source.open_file().map_err(|error| failed(range.start, error))?;
    let (mut at, mut all) = (range.start, None::<Transition>);
    while at < range.end {
        let wanted = (range.end - at).min(buffer.len() as u64) as usize;
        let read = match file.read_at(&mut buffer[..wanted], at) {
            Ok(0) => {
                return Err(Error::Truncated { path: source.name.clone(), expected: source.bytes, found: at });
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(at, error)),
        };
        let bytes = &buffer[..read];
        let marked = bytes.strip_prefix(MARK).filter(|_| at == 0);
        let mut transition = Transition::of(marked.unwrap_or(bytes), syntax);
        if marked.is_some() {
            // After a byte order mark, the first record has already begun.
            transition.0[State::Record as usize] = transition.after(State::Field);
        }
        all = Some(all.map_or(transition, |all| all.then(transition)));
        at += read as u64;
    }
    Ok(all.expect("a part has a byte"))
}

/// The effect of a piece of a file: the state after it, for each state before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transition([State; STATES.len()]);

const STATES: [State; 5] = [State::Record, State::Field, State::Plain, State::Quoted, State::Quote];

impl Transition {
    fn of(bytes: &[u8], syntax: Syntax) -> Transition {
        let mut states = STATES;
        let differ = |states: &[State; STATES.len()]| {
            (0..states.len()).filter(|at| !states[..*at].contains(&states[*at])).count()
        };
        // 1. A few bytes merge the states into two at most: inside or outside a quoted field.
        let mut bytes = bytes.iter();
        while differ(&states) > 2
            && let Some(byte) = bytes.next()
        {
            states = states.map(|state| state.next(*byte, syntax));
        }
        // 2. Run each remaining state over the rest.
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

    /// Returns the transition of this piece followed by the piece of `next`.
    fn then(self, next: Transition) -> Transition {
        Transition(self.0.map(|state| next.after(state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn transitions_chain(content in prop::collection::vec(prop::sample::select(b"a\",;\n\r".to_vec()), 0..60), cut in 0usize..60) {
            let (first, second) = content.split_at(cut.min(content.len()));
            let [whole, first, second] = [&content, first, second].map(|bytes| Transition::of(bytes, Syntax::default()));
            for state in STATES {
                let by_byte = content.iter().fold(state, |state, byte| state.next(*byte, Syntax::default()));
                prop_assert_eq!(whole.after(state), by_byte);
                prop_assert_eq!(first.then(second).after(state), by_byte);
            }
        }
    }
}
