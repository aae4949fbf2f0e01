//! What runs: the words of the command line, with the values of a combination of parameters.

use std::ffi::OsString;
use std::io;

use super::command::What;
use super::own::Own;
use super::vary::Combination;
use super::words::{PLACE, places};

/// What the command line says of the program.
pub struct Described<'s> {
    pub program: &'s [OsString],
    pub prepare: Option<&'s OsString>,
    pub is_weak: bool,
}

impl Described<'_> {
    /// Returns the program with this combination of the parameters.
    ///
    /// # Errors
    /// It cannot be run with several numbers of workers or values.
    pub fn with(&self, values: &Combination) -> io::Result<Result<What, String>> {
        let Some(first) = self.program.first() else {
            return Ok(Err("name an application, or a command behind --, or times with --from".to_owned()));
        };
        let prepare = self.prepare.map(|prepare| values.fill(prepare));
        if !is_behind_dashes(self.program, std::env::args_os()) {
            let words = [std::slice::from_ref(first), &values.options(), &self.program[1..]].concat();
            let what = Own::command(&words)?.map(|(words, own)| {
                let repeated = if self.is_weak { own.reads.named.clone() } else { Vec::new() };
                What { words, repeated, prepare, own: Some(own) }
            });
            let name = first.to_string_lossy();
            return Ok(match what {
                Ok(what) if self.is_weak && what.repeated.is_empty() => {
                    Err(format!("--weak repeats the input, and {name} is given no file as an argument"))
                }
                what => what,
            });
        }
        let words: Vec<OsString> = self.program.iter().map(|word| values.fill(word)).collect();
        let in_words: usize = words.iter().map(|word| places(word)).sum();
        let in_all = in_words + prepare.as_ref().map_or(0, |prepare| places(prepare));
        if in_words == 0 {
            return Ok(Err(format!(
                "nothing in the command says how many workers it shall use: write {PLACE} in its place, as in make -j{PLACE}, or \
                 env OMP_NUM_THREADS={PLACE} ./program"
            )));
        }
        if self.is_weak && in_all < 2 {
            return Ok(Err(format!(
                "nothing in the command makes its work grow with the workers, as --weak says: write {PLACE} or {{workers*N}} in the \
                 place of its size, too"
            )));
        }
        let all: Vec<OsString> = self.program.iter().chain(self.prepare).cloned().collect();
        if let Some(name) = values.without_place(&all) {
            return Ok(Err(format!("nothing in the command uses {name} of --vary: write {{{name}}} in its place")));
        }
        Ok(Ok(What { words, repeated: Vec::new(), prepare, own: None }))
    }
}

/// Returns true if `--` precedes the words on the command line `all`, which they end. The parser drops it.
fn is_behind_dashes(words: &[OsString], all: impl Iterator<Item = OsString>) -> bool {
    let all: Vec<OsString> = all.collect();
    let before = all.len().checked_sub(words.len() + 1);
    before.is_some_and(|before| all[before] == "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sort` is one of our applications, and a command of every system.
    #[test]
    fn two_dashes_tell_any_command_from_our_applications() {
        let of = |words: usize, all: &str| {
            let all: Vec<OsString> = all.split(' ').map(OsString::from).collect();
            is_behind_dashes(&all[all.len() - words..], all.iter().cloned())
        };
        assert!(of(2, "gristmill scale -- sort --parallel={workers}"));
        assert!(of(2, "gristmill scale --workers 1,2 -- sort --parallel={workers}"));
        assert!(!of(2, "gristmill scale sort file"));
        assert!(!of(3, "gristmill scale sort -- -file"));
        assert!(!of(3, "gristmill scale sort --"));
    }
}
