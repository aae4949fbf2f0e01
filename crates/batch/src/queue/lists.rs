//! Lists of values for a command, written as in GNU parallel: `COMMAND ::: a b :::+ c d :::: FILE`.

use std::ffi::OsString;

use crate::queue::job::BatchJob;
use crate::queue::template::Template;

/// The most jobs that lists of values may give together.
const JOBS_MAX: usize = 10_000_000;

/// A list of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Those on the command line.
    Values(Vec<OsString>),
    /// The lines of a file; `-` for standard input.
    File(OsString),
}

/// A list of values, and how it goes with the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenList {
    /// Its values.
    pub given: Given,
    /// Its values go one by one with those of the list before. Otherwise, all combinations are made.
    pub is_linked: bool,
}

/// Takes words apart: the command, and the lists behind `:::`, `:::+`, `::::` and `::::+`.
///
/// # Errors
///
/// A sentence, when there is no command, or nothing behind one of the signs.
///
/// ```
/// let words = ["cp", "{1}", "{2}", ":::", "a", "b", ":::+", "c", "d"].map(Into::into);
/// let (command, lists) = gristmill_batch::queue::given_lists(&words)?;
/// assert_eq!((command, lists[0].is_linked, lists[1].is_linked), (&words[..3], false, true));
/// # Ok::<(), String>(())
/// ```
pub fn given_lists(words: &[OsString]) -> Result<(&[OsString], Vec<GivenList>), String> {
    let is_sign = |word: &OsString| [":::", ":::+", "::::", "::::+"].iter().any(|sign| word == sign);
    let end = words.iter().position(is_sign).unwrap_or(words.len());
    let (command, mut rest) = words.split_at(end);
    if command.is_empty() {
        return Err("there is no command before the values: write -- COMMAND ::: VALUES".to_owned());
    }
    let mut lists = Vec::new();
    while let Some((sign, after)) = rest.split_first() {
        let sign = sign.to_string_lossy();
        let (values, next) = after.split_at(after.iter().position(is_sign).unwrap_or(after.len()));
        rest = next;
        let (kind, is_linked) = sign.strip_suffix('+').map_or((&*sign, false), |kind| (kind, true));
        match (kind, values) {
            (":::", []) => {
                return Err(format!(
                    "list {} of values, behind {sign}, is empty, so nothing would run; did a pattern of file names match none?",
                    lists.len() + 1
                ));
            }
            (_, []) => return Err(format!("write a name of a file behind {sign}, or - for standard input")),
            (":::", values) => lists.push(GivenList { given: Given::Values(values.to_vec()), is_linked }),
            (_, files) => {
                lists.extend(files.iter().map(|file| GivenList { given: Given::File(file.clone()), is_linked }));
            }
        }
    }
    Ok((command, lists))
}

/// Lists of values that go with each other: combined, or one by one where they are linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Lists that are linked with each other.
    groups: Vec<Vec<Vec<OsString>>>,
}

impl Lists {
    /// Adds a list. The first one is linked to none.
    ///
    /// ```
    /// let mut lists = gristmill_batch::queue::Lists::default();
    /// lists.add(vec!["a".into(), "b".into()], false);
    /// lists.add(vec!["1".into(), "2".into()], true);
    /// let template = gristmill_batch::queue::Template::parse(&["f".into()], None, 1)?;
    /// let names: Vec<String> = lists.jobs(&template)?.into_iter().map(|job| job.name).collect();
    /// assert_eq!(names, ["f a 1", "f b 2"]);
    /// # Ok::<(), String>(())
    /// ```
    pub fn add(&mut self, values: Vec<OsString>, is_linked: bool) {
        match self.groups.last_mut().filter(|_| is_linked) {
            Some(group) => group.push(values),
            None => self.groups.push(vec![values]),
        }
    }

    /// Returns the number of combinations.
    fn count(&self) -> Option<usize> {
        self.groups.iter().try_fold(1_usize, |count, group| count.checked_mul(length(group)))
    }

    /// Returns the values of a combination: the last list varies fastest.
    fn values(&self, number: usize) -> Vec<OsString> {
        let (mut rest, mut places) = (number, Vec::new());
        for group in self.groups.iter().rev() {
            places.push(rest % length(group));
            rest /= length(group);
        }
        let groups = self.groups.iter().zip(places.into_iter().rev());
        groups.flat_map(|(group, at)| group.iter().map(move |list| list[at].clone())).collect()
    }

    /// Says which values are left over, because the list that they are linked to is shorter.
    ///
    /// ```
    /// let mut lists = gristmill_batch::queue::Lists::default();
    /// lists.add(vec!["a".into(), "b".into(), "c".into()], false);
    /// lists.add(vec!["1".into(), "2".into()], true);
    /// assert!(lists.left_over().is_some_and(|sentence| sentence.starts_with("list 1 has 3 values")));
    /// ```
    pub fn left_over(&self) -> Option<String> {
        let mut before = 0;
        for group in &self.groups {
            let length = length(group);
            if let Some(at) = group.iter().position(|list| list.len() > length) {
                let (list, count) = (before + at + 1, group[at].len());
                return Some(format!(
                    "list {list} has {count} values, and a list that is linked with it has {length}: the values after the first {length} are not used"
                ));
            }
            before += group.len();
        }
        None
    }

    /// Makes the jobs of all combinations.
    ///
    /// # Errors
    ///
    /// A sentence, when a placeholder has no list, a list no placeholder, or there are more than ten million
    /// combinations.
    pub fn jobs(&self, template: &Template) -> Result<Vec<BatchJob>, String> {
        template.check(self.groups.iter().map(Vec::len).sum())?;
        let count = self.count().filter(|count| *count <= JOBS_MAX);
        let count = count
            .ok_or_else(|| format!("the lists of values have more than {JOBS_MAX} combinations: divide one of them"))?;
        let per_job = template.per_job();
        let job = |number: usize| {
            let from = number * per_job;
            let values: Vec<OsString> = (from..count.min(from + per_job)).flat_map(|at| self.values(at)).collect();
            template.job(&values, number + 1)
        };
        (0..count.div_ceil(per_job)).map(job).collect()
    }
}

/// Returns the length of lists that are linked: that of the shortest.
fn length(group: &[Vec<OsString>]) -> usize {
    group.iter().map(Vec::len).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the jobs of a command whose lists are all on the command line.
    fn names(words: &str, per_job: usize) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let (command, given) = given_lists(&words)?;
        let mut lists = Lists::default();
        for list in given {
            let Given::Values(values) = list.given else { panic!("a file") };
            lists.add(values, list.is_linked);
        }
        let jobs = lists.jobs(&Template::parse(command, None, per_job)?)?;
        Ok(jobs.into_iter().map(|job| job.name).collect())
    }

    #[test]
    fn lists_are_combined_and_linked_as_in_gnu_parallel() {
        for (words, per_job, jobs) in [
            ("xz ::: a b", 1, vec!["xz a", "xz b"]),
            ("xz -k {} ::: a", 1, vec!["xz -k a"]),
            ("f {2}-{1} ::: a b ::: 1 2", 1, vec!["f 1-a", "f 2-a", "f 1-b", "f 2-b"]),
            ("f {} ::: a ::: 1", 1, vec!["f a 1"]),
            ("f job{#} ::: a b", 1, vec!["f job1", "f job2"]),
            ("awk {print} {x} ::: a", 1, vec!["awk {print} {x} a"]),
            ("f ::: a b c :::+ x y", 1, vec!["f a x", "f b y"]),
            ("f ::: 1 2 ::: a b :::+ x y", 1, vec!["f 1 a x", "f 1 b y", "f 2 a x", "f 2 b y"]),
            ("f ::: a b :::+ x y ::: 1 2", 1, vec!["f a x 1", "f a x 2", "f b y 1", "f b y 2"]),
            ("f :::+ a b", 1, vec!["f a", "f b"]),
            ("f ::: a b c", 2, vec!["f a b", "f c"]),
            ("f ::: a b ::: x y", 3, vec!["f a x a y b x", "f b y"]),
            ("f {1} {2} {3} {4} ::: a b ::: x y", 2, vec!["f a x a y", "f b x b y"]),
            ("f ::: a b c", 0, vec!["f", "f", "f"]),
        ] {
            assert_eq!(names(words, per_job), Ok(jobs.into_iter().map(String::from).collect()), "{words}");
        }
    }

    /// `gristmill batch -- xz ::: *.log` with an empty list said "0 programs", and `cp {1} ::: a ::: b` ran with one
    /// of both.
    #[test]
    fn lists_that_make_no_sense_are_refused_by_name() {
        for (words, per_job, wrong) in [
            ("f :::", 1, "list 1 of values, behind :::, is empty"),
            ("f ::: a :::+", 1, "list 2 of values, behind :::+, is empty"),
            ("f ::::", 1, "a name of a file behind ::::"),
            ("::: a", 1, "no command before"),
            ("f {2} ::: a", 1, "{2} has no list"),
            ("f {1} ::: a ::: b", 1, "write {2}"),
            ("f {1} {2} ::: a b c", 2, "within job 2: it has 1, and {2}"),
        ] {
            assert!(names(words, per_job).is_err_and(|error| error.contains(wrong)), "{words}");
        }
        let many = format!("f{}", " ::: 0 1 2 3 4 5 6 7 8 9".repeat(25));
        assert!(names(&many, 1).is_err_and(|error| error.contains("more than 10000000 combinations")));
    }
}
