//! The words of each run, with the values of a combination of parameters.

use std::ffi::{OsStr, OsString};

use gristmill::Error;

use crate::request::Request;
use crate::run::applications::Applications;
use crate::run::command::What;
use crate::run::own::Own;
use crate::run::parameters::Combination;
use crate::run::words::{PLACE, places};

/// Returns the program of a request with this combination of the parameters.
///
/// # Errors
/// [`Error::Setting`] if it cannot be run with several numbers of workers or values.
pub fn with(request: &Request, values: &Combination, applications: &Applications) -> Result<What, Error> {
    let Some(first) = request.program.first() else {
        return Err(Error::Setting("name an application, or a command behind --, or times with --from".to_owned()));
    };
    let prepare = request.prepare.as_ref().map(|prepare| values.fill(prepare));
    if request.is_application {
        let words = [std::slice::from_ref(first), &values.options(), &request.program[1..]].concat();
        let (words, own) = Own::command(&words, applications)?;
        let repeated = if request.is_weak { own.reads.named.clone() } else { Vec::new() };
        if request.is_weak && repeated.is_empty() {
            let name = first.to_string_lossy();
            return Err(Error::Setting(format!(
                "--weak repeats the input, and {name} is given no file as an argument"
            )));
        }
        return Ok(What { words, repeated, prepare, own: Some(own) });
    }
    let words: Vec<OsString> = request.program.iter().map(|word| values.fill(word)).collect();
    match why_not(request, values, &words, prepare.as_deref()) {
        Some(why) => Err(Error::Setting(why)),
        None => Ok(What { words, repeated: Vec::new(), prepare, own: None }),
    }
}

/// Returns why a command cannot be run with several numbers of workers or values, if it cannot.
fn why_not(request: &Request, values: &Combination, words: &[OsString], prepare: Option<&OsStr>) -> Option<String> {
    let in_words: usize = words.iter().map(|word| places(word)).sum();
    if in_words == 0 {
        return Some(format!(
            "nothing in the command says how many workers it shall use: write {PLACE} in its place, as in make -j{PLACE}, or \
             env OMP_NUM_THREADS={PLACE} ./program"
        ));
    }
    if request.is_weak && in_words + prepare.map_or(0, places) < 2 {
        return Some(format!(
            "nothing in the command makes its work grow with the workers, as --weak says: write {PLACE} or {{workers*N}} in the \
             place of its size, too"
        ));
    }
    let all: Vec<OsString> = request.program.iter().chain(&request.prepare).cloned().collect();
    let name = values.without_place(&all)?;
    Some(format!("nothing in the command uses {name} of --vary: write {{{name}}} in its place"))
}
