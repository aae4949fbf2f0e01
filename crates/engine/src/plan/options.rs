//! The table of a job's named options. From a row the command line makes an option such as `--split-bytes 1MiB`, with
//! its help, completions and manual page; a keyword argument, or a key in a file, would be `split_bytes`.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::plan::settings::{BAD_RECORDS_MAX, Buffer, Combining, Exchange, Isolation, PagePolicy, Placement, Settings};
use crate::units;

/// An option of a job.
#[derive(Debug)]
pub struct JobOption {
    /// Lowercase words joined by hyphens.
    pub name: &'static str,
    /// The equivalent method of [`Job`](crate::Job).
    pub method: &'static str,
    /// The heading under which the option is listed.
    pub group: &'static str,
    /// One sentence without a full stop, for a list of options.
    pub help: &'static str,
    /// The value without the option; empty if the help says it.
    pub default: &'static str,
    /// The option that excludes this one.
    pub excluded_by: Option<&'static str>,
    set: Set,
}

/// The kind of values that an option takes.
// Exhaustive: each front end has its own form for each kind, and a guess at the form of a new one could be wrong.
#[derive(Clone, Debug)]
pub enum Takes {
    /// True or false.
    Switch {
        /// The value without the option.
        default: bool,
    },
    /// A whole number within these bounds.
    Count(RangeInclusive<u64>),
    /// A whole number up to this one, which is also called `all`.
    CountOrAll(u64),
    /// A size such as `64KiB`, see [`units::bytes`].
    Bytes,
    /// A time such as `30s`, see [`units::duration`].
    Duration,
    /// A folder. The option may be given several times to name several folders.
    Folders,
    /// One of these names.
    OneOf(&'static [Alternative]),
}

/// A named value of an option.
///
/// ```
/// use gristmill::options::{OPTIONS, Takes};
///
/// let option = OPTIONS.iter().find(|option| option.name == "isolation").expect("jobs have this option");
/// let Takes::OneOf(alternatives) = option.takes() else { panic!("it takes a name") };
/// let names: Vec<_> = alternatives.iter().map(|alternative| alternative.name).collect();
/// assert_eq!(names, ["process", "thread"]);
/// ```
#[derive(Debug)]
pub struct Alternative {
    /// One word in lowercase.
    pub name: &'static str,
    /// Its meaning in a few words.
    pub help: &'static str,
    set: fn(&mut Settings),
}

/// The way a value becomes a setting.
#[derive(Debug)]
enum Set {
    Switch(bool, fn(&mut Settings, bool)),
    Count(RangeInclusive<u64>, fn(&mut Settings, u64)),
    CountOrAll(u64, fn(&mut Settings, u64)),
    Bytes(fn(&mut Settings, usize)),
    Duration(fn(&mut Settings, Duration)),
    Folders(fn(&mut Settings, PathBuf)),
    OneOf(&'static [Alternative]),
}

impl JobOption {
    /// Returns the kind of values that the option takes.
    pub fn takes(&self) -> Takes {
        match &self.set {
            Set::Switch(default, _) => Takes::Switch { default: *default },
            Set::Count(bounds, _) => Takes::Count(bounds.clone()),
            Set::CountOrAll(all, _) => Takes::CountOrAll(*all),
            Set::Bytes(_) => Takes::Bytes,
            Set::Duration(_) => Takes::Duration,
            Set::Folders(_) => Takes::Folders,
            Set::OneOf(alternatives) => Takes::OneOf(alternatives),
        }
    }

    /// Returns true for a choice that otherwise the plan makes: a short list of options leaves it out.
    pub fn is_strategy(&self) -> bool {
        self.group == STRATEGIES
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Says why the option does not take this value, without the option's name.
    pub fn check(&self, value: impl AsRef<OsStr>) -> std::result::Result<(), String> {
        self.apply(value.as_ref(), &mut Settings::default())
    }

    fn apply(&self, value: &OsStr, settings: &mut Settings) -> std::result::Result<(), String> {
        let text = || value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        match &self.set {
            Set::Switch(_, set) => set(settings, text()?.parse().map_err(|_| "it is either true or false")?),
            Set::Count(bounds, set) => {
                let count = text()?.parse().map_err(|_| "it is not a whole number")?;
                if !bounds.contains(&count) {
                    return Err(format!("it is not from {} to {}", bounds.start(), bounds.end()));
                }
                set(settings, count);
            }
            Set::CountOrAll(all, set) => {
                let count = if text()? == "all" { Some(*all) } else { text()?.parse().ok() };
                let refused = || format!("it is neither a whole number from 0 to {all} nor the word all");
                set(settings, count.filter(|count| count <= all).ok_or_else(refused)?);
            }
            Set::Bytes(set) => set(settings, units::bytes(text()?)?),
            Set::Duration(set) => set(settings, units::duration(text()?)?),
            Set::Folders(set) => set(settings, PathBuf::from(value)),
            Set::OneOf(alternatives) => {
                let name = text()?;
                let found = alternatives.iter().find(|alternative| alternative.name == name);
                let names = || alternatives.iter().map(|alternative| alternative.name).collect::<Vec<_>>().join(", ");
                (found.ok_or_else(|| format!("it is not one of {}", names()))?.set)(settings);
            }
        }
        Ok(())
    }
}

/// Options of a job as text, for programs that read them from their own command line or configuration.
///
/// ```
/// # use gristmill::{Bytes, Emit, Input, Isolation, Job, MapReduce, ProgramError, Chunk};
/// # struct Words;
/// # impl MapReduce for Words {
/// #     type Key = Bytes;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().split(u8::is_ascii_whitespace).for_each(|word| out.emit(word, 1));
/// #         Ok(())
/// #     }
/// # }
/// let mut options = gristmill::options::Options::default();
/// for line in ["memory = 64MiB", "workers = 2", "isolation = thread"] {
///     let (name, value) = line.split_once(" = ").expect("a name and a value");
///     options.set(name, value)?;
/// }
/// let (counts, _) = Job::new(&Words, Input::bytes("text", b"a rose is a rose")?).options(&options).run()?;
/// assert_eq!(counts.get(b"rose"), Some(2));
///
/// let error = options.set("retries", "often").unwrap_err();
/// assert_eq!(error.to_string(), "the option retries cannot be \"often\": it is not a whole number");
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    given: Vec<(&'static JobOption, OsString)>,
    /// The settings that the options make.
    settings: Settings,
}

impl Options {
    /// Sets the option called `name` in [`OPTIONS`]. A new value replaces the old one; a folder is added to the folders
    /// already set.
    ///
    /// # Errors
    /// There is no such option, it does not take this value, or it conflicts with an option that is already set.
    pub fn set(&mut self, name: &str, value: impl AsRef<OsStr>) -> Result<()> {
        let value = value.as_ref();
        let option = OPTIONS.iter().find(|option| option.name == name);
        let option = option.ok_or_else(|| Error::Setting(format!("a job has no option {name:?}")))?;
        let is_excluded = |by: &JobOption, what: &JobOption| what.excluded_by == Some(by.name);
        let other = self.given.iter().find(|(other, _)| is_excluded(other, option) || is_excluded(option, other));
        if let Some((other, _)) = other {
            return Err(Error::Setting(format!("the options {} and {name} exclude each other", other.name)));
        }
        let applied = option.apply(value, &mut self.settings);
        applied.map_err(|why| Error::Setting(format!("the option {name} cannot be {value:?}: {why}")))?;
        self.given.push((option, value.to_owned()));
        Ok(())
    }

    /// Returns the names of the options that are set, in the order in which they were.
    ///
    /// ```
    /// let mut options = gristmill::options::Options::default();
    /// options.set("workers", "2")?;
    /// assert_eq!(options.names().collect::<Vec<_>>(), ["workers"]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.given.iter().map(|(option, _)| option.name)
    }

    /// Returns the number of workers of all kinds, if an option sets it.
    pub fn workers(&self) -> Option<usize> {
        let Settings { workers, map_workers, reduce_workers, .. } = &self.settings;
        let apart = [map_workers, reduce_workers].into_iter().flatten().copied().reduce(|map, reduce| map + reduce);
        workers.or(apart)
    }

    /// Returns the bytes of memory, if an option sets them.
    pub fn memory(&self) -> Option<usize> {
        self.settings.memory_bytes
    }

    /// Returns the time after which the job ends, if an option sets it.
    pub fn deadline(&self) -> Option<Duration> {
        self.settings.deadline
    }

    /// Returns the folders to spill to that options name.
    pub fn spill_dirs(&self) -> impl Iterator<Item = &Path> {
        self.settings.spill_dirs.iter().map(PathBuf::as_path)
    }

    /// Returns how many bytes stay free on the file systems of these folders, if an option sets it.
    pub fn keep_free(&self) -> Option<u64> {
        self.settings.keep_free_bytes
    }

    /// Returns whether the result must be the same on every run.
    pub fn is_deterministic(&self) -> bool {
        self.settings.deterministic
    }

    /// Returns the number of records that may be set aside.
    pub fn skip_bad_records(&self) -> u32 {
        self.settings.skip_bad_records
    }

    pub(crate) fn apply(&self, settings: &mut Settings) {
        for (option, value) in &self.given {
            option.apply(value, settings).expect("it was taken before");
        }
    }
}

/// The values of an option that sets `$field`: each name with its value and its meaning.
macro_rules! one_of {
    ($field:ident: $($name:literal => $value:path, $help:literal;)*) => {
        Set::OneOf(&[$(Alternative { name: $name, help: $help, set: |settings| settings.$field = $value }),*])
    };
}

/// Makes rows of the table below: an option's name and its method of `Job`, its help, its default, and its setting.
macro_rules! options {
    ($(#[$about:meta])* $all:ident: $($group:ident { $(
        $name:literal = $method:ident:
            $help:literal, $(excluded by $other:literal,)? default $default:literal, $set:expr;
    )* })*) => {
        $(#[$about])*
        pub static $all: [JobOption; [$($($name),*),*].len()] = [$($(JobOption {
            name: $name,
            method: stringify!($method),
            group: $group,
            help: $help,
            default: $default,
            excluded_by: match [$($other)?].as_slice() {
                [other] => Some(*other),
                _ => None,
            },
            set: $set,
        }),*),*];
    };
}

options! {
    /// All options, in the order in which they are listed.
    OPTIONS:
    WORKERS {
        "workers" = workers:
            "Workers that both map and reduce",
            default "one per processor this process may use",
            Set::Count(PLACES, |settings, workers| settings.workers = Some(workers as usize));
    }
    FAILURES {
        "retries" = retries:
            "How often to retry a task whose worker died before the job fails",
            default "2",
            Set::Count(ANY, |settings, retries| settings.retries = Some(retries as u32));
        "task-timeout" = task_timeout:
            "Kill a worker whose task takes longer than this, e.g. 30s, or that is stopped for as long",
            default "no limit",
            Set::Duration(|settings, timeout| settings.task_timeout = Some(timeout));
        "deadline" = deadline:
            "End the job with an error if it takes longer than this in all, e.g. 10m; waiting for pipes and copying \
             them count, too",
            default "no limit",
            Set::Duration(|settings, limit| settings.deadline = Some(limit));
        "max-failures" = max_failures:
            "How many workers may die before the job fails",
            default "32, or the number of workers if that is more",
            Set::Count(ANY, |settings, failures| settings.max_failures = Some(failures as u32));
        "skip-bad-records" = skip_bad_records:
            "Set aside up to N records (or all, at most 1000000) that the map function rejects, crashes on or (with a \
             task timeout) never returns from, and give the result of the others. A record that needs more memory, \
             or is longer, than this run allows ends the job, and so does a quote in CSV that is not closed before \
             the end of its file",
            default "0",
            Set::CountOrAll(BAD_RECORDS_MAX as u64, |settings, records| settings.skip_bad_records = records as u32);
    }
    MEMORY {
        "memory" = memory:
            "Memory for all processes of the job together, e.g. 2GiB; data that does not fit is spilled to disk, and \
             what cannot be spilled (a decoded picture, a matrix, the window of a compressed file) is refused",
            default "half of what is available",
            Set::Bytes(|settings, bytes| settings.memory_bytes = Some(bytes));
        "spill-dir" = spill_dirs:
            "A folder to spill to. If several are given, best on different disks, they are used in turn, and one \
             without room is passed over. The first also takes copies of pipes, in full",
            default "the folder for temporary files",
            Set::Folders(|settings, folder| settings.spill_dirs.push(folder));
        "keep-free" = keep_free:
            "How much of the disk stays free in each folder to spill to, for others: a job whose copies of pipes and \
             spilled pairs would take more ends with an error; 0 is no limit",
            default "a tenth of what is free when the job begins",
            Set::Bytes(|settings, bytes| settings.keep_free_bytes = Some(bytes as u64));
    }
    RESULT {
        "deterministic" = deterministic:
            "Make sums of fractions the same to the last digit on every run, and cut the input into the same tasks \
             for any number of workers. Sums of numbers without a point are exact even without this option. Sums \
             by key take up to a fifth more time",
            default "",
            Set::Switch(false, |settings, deterministic| settings.deterministic = deterministic);
    }
    STRATEGIES {
        "map-workers" = map_workers:
            "Workers that only map, in a job where others only reduce",
            excluded by "workers",
            default "half the processors",
            Set::Count(PLACES, |settings, workers| settings.map_workers = Some(workers as usize));
        "reduce-workers" = reduce_workers:
            "Workers that only reduce, in a job where others only map",
            excluded by "workers",
            default "half the processors",
            Set::Count(PLACES, |settings, workers| settings.reduce_workers = Some(workers as usize));
        "map-at-once" = map_at_once:
            "Workers that map at the same time; the others reduce, and replace those that die",
            default "the number of processors",
            Set::Count(PLACES, |settings, workers| settings.map_at_once = Some(workers as usize));
        "isolation" = isolation:
            "What a worker is",
            default "process",
            one_of! { isolation:
                "process" => Isolation::Process, "A process of its own: the job survives its crash";
                "thread" => Isolation::Thread, "A thread of this process";
            };
        "placement" = placement:
            "Where workers run on a machine with several NUMA nodes",
            default "auto",
            one_of! { placement:
                "auto" => Placement::Auto, "As pinned, or as by-node if keys repeat";
                "pinned" => Placement::Pinned, "Each stays on one node, where its memory is";
                "by-node" => Placement::ByNode,
                    "Pinned, and each node reduces the pairs of its own workers, if their results can be joined";
                "off" => Placement::Off, "Wherever the kernel puts them";
            };
        "exchange" = exchange:
            "When reducers begin",
            default "pipelined",
            one_of! { exchange:
                "pipelined" => Exchange::Pipelined, "With the first page that arrives";
                "barrier" => Exchange::Barrier, "When everything is mapped";
            };
        "buffer" = buffer:
            "How the map function's pairs are gathered before they go to pages",
            default "auto",
            one_of! { buffer:
                "auto" => Buffer::Auto, "Dense or hash if values are combined in map, otherwise array";
                "array" => Buffer::Array, "Append only";
                "hash" => Buffer::Hash, "A combining table";
                "dense" => Buffer::Dense, "A plain array, for programs whose keys are small numbers";
            };
        "combine" = combine:
            "Where the values of one key are combined",
            default "both",
            one_of! { combine:
                "both" => Combining::Both, "In map and as pages arrive";
                "map" => Combining::Map, "Before values are sent, and once at the end";
                "reduce" => Combining::Reduce, "As pages arrive";
                "off" => Combining::Off, "Once at the end";
            };
        "combine-after" = combine_after:
            "If values are combined in map only, or once at the end: still combine in reduce once a key has more \
             values than this",
            default "",
            Set::Count(ANY, |settings, values| settings.combine_after = Some(values as u32));
        "pages" = pages:
            "Where the memory of pages comes from",
            default "reuse",
            one_of! { pages:
                "fresh" => PagePolicy::Fresh, "Returned to the kernel after each use";
                "reuse" => PagePolicy::Reuse, "Reused";
                "prealloc" => PagePolicy::Prealloc, "Faulted in before the first task, then reused";
            };
        "page-bytes" = page_bytes:
            "Size of a page, a multiple of 4KiB up to 64MiB",
            default "by the number of workers",
            Set::Bytes(|settings, bytes| settings.page_bytes = Some(bytes));
        "partitions" = partitions:
            "Partitions of the keys, rounded up to a power of two",
            default "64, or 2 for each reducer if that is more; 8 if map does not combine",
            Set::Count(1..=4096, |settings, partitions| settings.partitions = Some(partitions as usize));
        "split-bytes" = split_bytes:
            "Approximate input bytes of a map task",
            default "by the size of the input and the time that a byte takes",
            Set::Bytes(|settings, bytes| settings.split_bytes = Some(bytes as u64));
        "chunk-bytes" = chunk_bytes:
            "Approximate input bytes of one call of the map function",
            default "256KiB",
            Set::Bytes(|settings, bytes| settings.chunk_bytes = Some(bytes));
        "sample" = sample:
            "Plan without a sample: no part of the input is mapped before the job begins",
            default "",
            Set::Switch(true, |settings, sample| settings.sample = Some(sample));
    }
}

const WORKERS: &str = "Workers";
const FAILURES: &str = "Failures";
const MEMORY: &str = "Memory";
const RESULT: &str = "Result";
const STRATEGIES: &str = "Strategies (the plan chooses; each can be set on its own)";

/// The numbers of workers that a job has slots for.
const PLACES: RangeInclusive<u64> = 1..=1024;
const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_has_the_effect_of_its_method() {
        let builder = include_str!("../job/settings.rs");
        for option in &OPTIONS {
            assert!(builder.contains(&format!("pub fn {}", option.method)), "Job has no method {}", option.method);
            let values = match option.takes() {
                Takes::Switch { default } => vec![(!default).to_string()],
                Takes::Count(bounds) => vec![bounds.start().to_string(), bounds.end().to_string()],
                Takes::CountOrAll(all) => vec![all.to_string(), "all".to_owned()],
                Takes::Bytes => vec!["64KiB".to_owned()],
                Takes::Duration => vec!["30s".to_owned()],
                Takes::Folders => vec!["/tmp".to_owned()],
                Takes::OneOf(alternatives) => alternatives.iter().map(|it| it.name.to_owned()).collect(),
            };
            let unset = format!("{:?}", Settings::default());
            let is_changed = |value: &String| {
                let mut settings = Settings::default();
                option.apply(OsStr::new(value), &mut settings).expect("a value that it takes");
                format!("{settings:?}") != unset
            };
            assert!(values.iter().any(is_changed), "{} changes nothing", option.name);
            // The alternative that is the default changes nothing.
            if let Takes::OneOf(_) = option.takes() {
                assert!(!is_changed(&option.default.to_owned()), "{} is not the default", option.default);
            }
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        let mut options = Options::default();
        for (name, value, expected) in [
            ("workers", "0", "the option workers cannot be \"0\": it is not from 1 to 1024"),
            (
                "skip-bad-records",
                "1000001",
                "the option skip-bad-records cannot be \"1000001\": it is neither a whole number from 0 to 1000000 nor the word all",
            ),
            ("isolation", "fibre", "the option isolation cannot be \"fibre\": it is not one of process, thread"),
            ("deterministic", "yes", "the option deterministic cannot be \"yes\": it is either true or false"),
            ("task-timeout", "30", "the option task-timeout cannot be \"30\": time unit needed"),
            ("colour", "red", "a job has no option \"colour\""),
        ] {
            let error = options.set(name, value).expect_err("refused").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        options.set("map-workers", "2").expect("taken");
        options.set("reduce-workers", "3").expect("taken");
        assert_eq!(options.workers(), Some(5));
        let error = options.set("workers", "2").expect_err("refused").to_string();
        assert_eq!(error, "the options map-workers and workers exclude each other");
    }
}
