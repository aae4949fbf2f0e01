//! A command with placeholders, and the jobs that values make of it.

use std::ffi::OsString;
use std::mem::take;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::queue::job::{BatchJob, with_slot};
use crate::queue::placeholder::{Placeholder, TemplatePiece, ValuePart, pieces};
use crate::queue::shell::{Shell, in_line};

/// A command with placeholders for values, named as in GNU parallel.
///
/// | placeholder | becomes |
/// |---|---|
/// | `{}` | the value |
/// | `{.}` `{/}` `{//}` `{/.}` | it without its extension, its name, its folder, its name without extension |
/// | `{2}` `{2.}` `{-1/}` | the second or the last value, or a part of it |
/// | `{#}` `{%}` | the number of the job, and of the slot in which it runs |
///
/// A command without a placeholder gets `{}` at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The words, or one line for the shell.
    words: Vec<Vec<TemplatePiece>>,
    shell: Option<Shell>,
    per_job: usize,
    /// The command has a placeholder of its own.
    has_placeholder: bool,
}

impl Template {
    /// Makes a template of a program and its arguments, or with a shell of a line. A job takes `per_job` values of
    /// each list; with 0 it takes one, and inserts none.
    ///
    /// # Errors
    ///
    /// A sentence, when something looks like a placeholder but is none, or a value cannot be quoted where its
    /// placeholder stands.
    ///
    /// ```
    /// use gristmill_batch::queue::Template;
    ///
    /// let template = Template::parse(&["cp", "{}", "{.}.bak"].map(Into::into), None, 1)?;
    /// assert_eq!(template.job(&["a b.txt".into()], 1)?.words, ["cp", "a b.txt", "a b.bak"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(words: &[OsString], shell: Option<Shell>, per_job: usize) -> Result<Template, String> {
        let mut words = words.iter().map(|word| pieces(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let has_placeholder = words.iter().flatten().any(|piece| matches!(piece, TemplatePiece::Placeholder(_)));
        if !has_placeholder && per_job > 0 {
            words.push(vec![TemplatePiece::Placeholder(Placeholder::Values(ValuePart::Whole))]);
        }
        if let Some(shell) = &shell {
            let line = words.join(&TemplatePiece::Text(b" ".to_vec()));
            shell.check(&line)?;
            words = vec![line];
        } else {
            Shell::check_words(&words)?;
        }
        Ok(Template { words, shell, per_job, has_placeholder })
    }

    /// The values that a job takes of each list, at least 1.
    pub fn per_job(&self) -> usize {
        self.per_job.max(1)
    }

    /// True if the command names where values go.
    pub fn has_placeholder(&self) -> bool {
        self.has_placeholder
    }

    /// Returns true if the command itself says that it takes values.
    pub fn takes_values(&self) -> bool {
        self.has_placeholder
            && self.placeholders().any(|found| !matches!(found, Placeholder::Number | Placeholder::Slot))
    }

    fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.words.iter().flatten().filter_map(|piece| match piece {
            TemplatePiece::Placeholder(found) => Some(*found),
            TemplatePiece::Text(_) => None,
        })
    }

    /// Checks the placeholders against the number of lists.
    ///
    /// # Errors
    ///
    /// A sentence, when a placeholder has no value, or a value no placeholder although others have one.
    pub fn check(&self, lists: usize) -> Result<(), String> {
        if self.per_job == 0 {
            return match self.takes_values() {
                true => Err("-n 0 inserts no value, but the command has a placeholder for one: leave out one of them"
                    .to_owned()),
                false => Ok(()),
            };
        }
        let values = lists * self.per_job;
        let there_are = match self.per_job {
            1 => format!("their number is {lists}"),
            count => format!("a job has {values} values, {count} of each list"),
        };
        let mut taken = Vec::new();
        for found in self.placeholders() {
            match found {
                Placeholder::Value(at, _) if at < values => taken.push(at),
                Placeholder::FromEnd(at, _) if at < values => taken.push(values - 1 - at),
                Placeholder::Value(at, _) => return Err(format!("{{{}}} has no list of values: {there_are}", at + 1)),
                Placeholder::FromEnd(at, _) => {
                    return Err(format!("{{-{}}} has no list of values: {there_are}", at + 1));
                }
                Placeholder::Values(_) => return Ok(()),
                Placeholder::Number | Placeholder::Slot => {}
            }
        }
        taken.sort_unstable();
        taken.dedup();
        match (0..values).find(|at| !taken.contains(at)) {
            Some(at) if !taken.is_empty() => Err(format!(
                "the command takes {} of {values} values of a job: write {{{}}} or {{}} too, or leave out what no placeholder takes",
                taken.len(),
                at + 1
            )),
            _ => Ok(()),
        }
    }

    /// Makes the job with this number, counted from 1, of its values.
    ///
    /// # Errors
    ///
    /// A sentence, when the values are too few for the placeholders.
    pub fn job(&self, values: &[OsString], number: usize) -> Result<BatchJob, String> {
        let wanted = |found| match found {
            Placeholder::Value(at, _) | Placeholder::FromEnd(at, _) => at + 1,
            _ => 0,
        };
        if let Some(wanted) = self.placeholders().map(wanted).max().filter(|wanted| *wanted > values.len()) {
            let count = values.len();
            return Err(format!(
                "the values end within job {number}: it has {count}, and {{{wanted}}} is left without one"
            ));
        }
        Ok(self.filled(if self.per_job == 0 { &[] } else { values }, number))
    }

    /// Makes a job without a value.
    pub fn without_values(&self) -> BatchJob {
        self.filled(&[], 1)
    }

    fn filled(&self, values: &[OsString], number: usize) -> BatchJob {
        let mut filling = Filling { is_line: self.shell.is_some(), ..Filling::default() };
        for word in &self.words {
            word.iter().for_each(|piece| filling.take(piece, values, number));
            filling.end_word();
        }
        let Filling { mut words, slots, .. } = filling;
        if words.is_empty() {
            words.push(OsString::new());
        }
        let make = |words: Vec<OsString>| match &self.shell {
            Some(shell) => shell.job(words.into_iter().next().unwrap_or_default()),
            None => BatchJob::words(words),
        };
        let name = make(with_slot(&words, &slots, "{%}")).name;
        let before = self.shell.as_ref().map_or(0, Shell::words_before);
        let slots = slots.into_iter().map(|(word, at)| (word + before, at)).collect();
        BatchJob { name, slots, ..make(words) }
    }
}

/// Words that are being filled.
#[derive(Default)]
struct Filling {
    /// All is one line for the shell, whose values are quoted.
    is_line: bool,
    words: Vec<OsString>,
    word: Vec<u8>,
    /// The word is there, even if it is empty.
    is_word: bool,
    /// Where the slot's number goes: a word, and a byte in it.
    slots: Vec<(usize, usize)>,
}

impl Filling {
    fn take(&mut self, piece: &TemplatePiece, values: &[OsString], number: usize) {
        match *piece {
            TemplatePiece::Text(ref text) => self.text(text),
            TemplatePiece::Placeholder(Placeholder::Number) => self.text(number.to_string().as_bytes()),
            TemplatePiece::Placeholder(Placeholder::Slot) => {
                self.slots.push((self.words.len(), self.word.len()));
                self.text(b"");
            }
            TemplatePiece::Placeholder(Placeholder::Values(part)) => {
                for (at, value) in values.iter().enumerate() {
                    match at {
                        0 => {}
                        _ if self.is_line => self.text(b" "),
                        _ => self.end_word(),
                    }
                    self.value(value, part);
                }
            }
            TemplatePiece::Placeholder(Placeholder::Value(at, part)) => self.value(&values[at], part),
            TemplatePiece::Placeholder(Placeholder::FromEnd(at, part)) => {
                self.value(&values[values.len() - 1 - at], part)
            }
        }
    }

    fn value(&mut self, value: &OsString, part: ValuePart) {
        let value = part.of(value.as_bytes());
        if self.is_line { self.text(&in_line(value)) } else { self.text(value) }
    }

    fn text(&mut self, text: &[u8]) {
        self.word.extend_from_slice(text);
        self.is_word = true;
    }

    fn end_word(&mut self) {
        if take(&mut self.is_word) {
            self.words.push(OsString::from_vec(take(&mut self.word)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn job(command: &[&str], per_job: usize, values: &[&str]) -> Vec<String> {
        let template = Template::parse(&command.iter().map(OsString::from).collect::<Vec<_>>(), None, per_job)
            .expect("placeholders");
        let values: Vec<OsString> = values.iter().map(OsString::from).collect();
        let words = template.job(&values, 7).expect("values").words;
        words.into_iter().map(|word| word.into_string().expect("text")).collect()
    }

    #[test]
    fn each_value_of_a_placeholder_is_a_word() {
        // What GNU parallel prints for printf '[%s]'.
        assert_eq!(job(&["f", "{}"], 2, &["a b", "c"]), ["f", "a b", "c"]);
        assert_eq!(job(&["f", "x{}y"], 2, &["a", "b"]), ["f", "xa", "by"]);
        assert_eq!(job(&["f", "x{}y{/}"], 2, &["a", "b/c"]), ["f", "xa", "b/cya", "c"]);
        assert_eq!(job(&["f", "{}"], 1, &[""]), ["f", ""]);
        assert_eq!(job(&["f", ""], 1, &["a"]), ["f", "", "a"]);
        assert_eq!(job(&["f", "{#}", "{-1.}"], 2, &["a", "b.c"]), ["f", "7", "b"]);
        assert_eq!(job(&["f"], 0, &["a"]), ["f"]);
        assert_eq!(job(&["f", "{#}"], 1, &["a"]), ["f", "7"]);
        // A value is never looked at again.
        assert_eq!(job(&["f", "{1}", "{2}"], 1, &["{2}", "{..}"]), ["f", "{2}", "{..}"]);
    }

    #[test]
    fn values_in_a_line_are_quoted() {
        let template = |line: &str| Template::parse(&[line.into()], Some(Shell::default()), 2).expect("placeholders");
        let line = |values: &[&str]| {
            let values: Vec<OsString> = values.iter().map(OsString::from).collect();
            template("cat {} | wc > {1.}.txt").job(&values, 1).expect("values").words[2].clone()
        };
        assert_eq!(line(&["a.b", "c d"]), "cat 'a.b' 'c d' | wc > 'a'.txt");
        assert_eq!(line(&["$(x).y", "it's"]), r"cat '$(x).y' 'it'\''s' | wc > '$(x)'.txt");
        assert_eq!(template("make").job(&["a".into()], 1).expect("values").words[2], "make 'a'");
    }

    #[test]
    fn the_slot_is_known_when_the_job_begins_and_is_not_part_of_its_key() {
        let template = Template::parse(&["f{%}-{}-{%}", "x"].map(OsString::from), None, 1).expect("placeholders");
        let job = template.job(&["a".into()], 1).expect("a value");
        assert_eq!(job.in_slot(3).words, ["f3-a-3", "x"]);
        assert_eq!((job.name.as_str(), &job.in_slot(12).words[0]), ("f{%}-a-{%} x", &"f12-a-12".into()));
        let line = Template::parse(&["a {%} {}".into()], Some(Shell::parse("bash -e").expect("a shell")), 1)
            .expect("placeholders");
        assert_eq!(line.job(&["b c".into()], 1).expect("a value").in_slot(2).words, ["bash", "-e", "-c", "a 2 'b c'"]);
        let plain = BatchJob::words(vec!["f".into()]);
        assert_eq!(plain.in_slot(1).words, [OsStr::new("f")]);
    }

    #[test]
    fn placeholders_and_lists_must_agree() {
        let check = |command: &str, per_job, lists| {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            Template::parse(&words, None, per_job).and_then(|template| template.check(lists))
        };
        for (command, per_job, lists) in [
            ("f", 1, 3),
            ("f {}", 2, 2),
            ("f {2} {1}", 1, 2),
            ("f {-1} {1}", 2, 1),
            ("f {#}", 1, 2),
            ("f {%}", 0, 1),
            ("f", 0, 1),
        ] {
            assert_eq!(check(command, per_job, lists), Ok(()), "{command}");
        }
        for (command, per_job, lists, wrong) in [
            ("f {3}", 1, 2, "{3} has no list"),
            ("f {-3}", 1, 2, "{-3} has no list"),
            ("f {1}", 1, 2, "write {2}"),
            ("f {2/}", 1, 2, "write {1}"),
            ("f {1}", 2, 1, "takes 1 of 2 values"),
            // It said "2 of 2 values": mentions were counted.
            ("f {2} {2}", 1, 2, "takes 1 of 2 values"),
            ("f {2} {-1.}", 1, 2, "takes 1 of 2 values"),
            ("f {}", 0, 1, "-n 0"),
        ] {
            assert!(check(command, per_job, lists).is_err_and(|error| error.contains(wrong)), "{command}");
        }
    }
}
