//! Jobs from one command and lists of values, as in GNU parallel: `command {} ::: a b ::: c d`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::job::Job;

/// Stands before each list of values.
pub const SEPARATOR: &str = ":::";

/// The most jobs that lists of values may give together.
const JOBS_MAX: usize = 10_000_000;

/// Makes a job for every combination of the values; the last list varies fastest.
///
/// `{}` is replaced by all values of a job, `{1}`, `{2}` and so on by one of them, `{#}` by the job's number. If the command has
/// no place, the values are appended. The program is started without a shell.
///
/// # Errors
///
/// A sentence, when there is no command, a place has no list, or there are more than ten million combinations.
///
/// ```
/// let words = ["cp", "{1}", "{2}.bak", ":::", "a", "b", ":::", "x"].map(Into::into);
/// let names: Vec<String> = gristmill_queue::combined(&words)?.into_iter().map(|job| job.name).collect();
/// assert_eq!(names, ["cp a x.bak", "cp b x.bak"]);
/// # Ok::<(), String>(())
/// ```
pub fn combined(words: &[OsString]) -> Result<Vec<Job>, String> {
    let mut parts = words.split(|word| word == SEPARATOR);
    let command = parts.next().unwrap_or_default();
    if command.is_empty() {
        return Err(format!("there is no command before {SEPARATOR}"));
    }
    let lists: Vec<&[OsString]> = parts.collect();
    if lists.is_empty() {
        return Ok(vec![Job::words(command.to_vec())]);
    }
    let places: Vec<Place> = command.iter().flat_map(|word| places(word)).map(|(_, _, place)| place).collect();
    if let Some(place) = places.iter().find_map(|place| match place {
        Place::Value(at) if *at >= lists.len() => Some(at + 1),
        _ => None,
    }) {
        return Err(format!("{{{place}}} has no list of values: there are {} after {SEPARATOR}", lists.len()));
    }
    let has_values = places.iter().any(|place| *place != Place::Number);
    let count = lists.iter().try_fold(1_usize, |count, list| count.checked_mul(list.len()));
    let count = count.filter(|count| *count <= JOBS_MAX).ok_or_else(|| {
        format!("the lists after {SEPARATOR} have more than {JOBS_MAX} combinations: divide one of them")
    })?;
    let job = |number: usize| {
        let mut rest = number;
        let mut values: Vec<&OsStr> = Vec::new();
        for list in lists.iter().rev() {
            values.insert(0, &list[rest % list.len()]);
            rest /= list.len();
        }
        let mut filled: Vec<OsString> = command.iter().map(|word| fill(word, &values, number + 1)).collect();
        if !has_values {
            filled.extend(values.iter().map(OsString::from));
        }
        Job::words(filled)
    };
    Ok((0..count).map(job).collect())
}

/// What a place in the command stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    All,
    Value(usize),
    Number,
}

/// Returns the places in a word: begin, end, meaning.
fn places(word: &OsStr) -> Vec<(usize, usize, Place)> {
    let bytes = word.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = bytes[at..].iter().position(|byte| *byte == b'}').map(|end| at + end);
        let place = match (bytes[at], end) {
            (b'{', Some(end)) => match &bytes[at + 1..end] {
                b"" => Some(Place::All),
                b"#" => Some(Place::Number),
                digits => {
                    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
                    number.and_then(|number| number.checked_sub(1)).map(Place::Value)
                }
            },
            _ => None,
        };
        match (place, end) {
            (Some(place), Some(end)) => {
                found.push((at, end + 1, place));
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    found
}

fn fill(word: &OsStr, values: &[&OsStr], number: usize) -> OsString {
    let bytes = word.as_bytes();
    let (mut filled, mut at) = (Vec::new(), 0);
    for (begin, end, place) in places(word) {
        filled.extend_from_slice(&bytes[at..begin]);
        match place {
            Place::All => filled.extend_from_slice(&values.join(OsStr::new(" ")).into_vec()),
            Place::Value(at) => filled.extend_from_slice(values[at].as_bytes()),
            Place::Number => filled.extend_from_slice(number.to_string().as_bytes()),
        }
        at = end;
    }
    filled.extend_from_slice(&bytes[at..]);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &str) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        combined(&words).map(|jobs| jobs.into_iter().map(|job| job.name).collect())
    }

    #[test]
    fn values_are_put_in_their_places() {
        for (words, jobs) in [
            ("xz ::: a b", vec!["xz a", "xz b"]),
            ("xz -k {} ::: a", vec!["xz -k a"]),
            ("f {2}-{1} ::: a b ::: 1 2", vec!["f 1-a", "f 2-a", "f 1-b", "f 2-b"]),
            ("f {} ::: a ::: 1", vec!["f a 1"]),
            ("f ::: a ::: 1", vec!["f a 1"]),
            ("f job{#} ::: a b", vec!["f job1 a", "f job2 b"]),
            ("awk {print} {0} {x} ::: a", vec!["awk {print} {0} {x} a"]),
            ("f", vec!["f"]),
        ] {
            assert_eq!(names(words), Ok(jobs.into_iter().map(String::from).collect()), "{words}");
        }
    }

    #[test]
    fn an_empty_list_gives_no_job_and_a_place_without_list_is_an_error() {
        let words = ["f", ":::"].map(OsString::from);
        assert_eq!(combined(&words), Ok(Vec::new()));
        assert!(names("f {2} ::: a").is_err_and(|error| error.contains("{2}")));
        assert!(names("::: a").is_err());
        let many = format!("f{}", " ::: 0 1 2 3 4 5 6 7 8 9".repeat(25));
        assert!(names(&many).is_err_and(|error| error.contains("more than 10000000 combinations")));
    }
}
