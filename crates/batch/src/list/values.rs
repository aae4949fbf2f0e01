//! The values of a command: on the command line, in files, or from standard input.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::queue::{BatchJob, Given, GivenList, Lists, Shell, Template, given_lists, no_zero_byte};
use gristmill::Error;
use gristmill_os::wake::poll;
use rustix::fs::FileType;

use gristmill_report::messages::tell;

/// The milliseconds after which it is said that a command waits for values that nothing in it asks for.
const SILENCE_MS: u32 = 1000;

/// How values and lines become jobs.
#[derive(Default)]
pub struct Values {
    /// Files with a value in each line; - is standard input.
    pub files: Vec<OsString>,
    /// Values, and the commands of a list, end with a zero byte instead of a line end.
    pub are_null_ended: bool,
    /// The values of each list for one run; 0 takes one, and inserts none.
    pub per_job: Option<usize>,
    /// The shell for lines. With it, a command is a line, too.
    pub shell: Option<Shell>,
}

/// The jobs of a command, or what makes them of values that arrive.
pub enum CommandJobs {
    Whole(Vec<BatchJob>),
    /// The values of this file, or of standard input, for a command.
    Arriving(Option<PathBuf>, Template),
}

impl Values {
    /// The byte behind each value and each line.
    pub(crate) fn separator(&self) -> u8 {
        if self.are_null_ended { 0 } else { b'\n' }
    }

    /// The shell for the lines of a list.
    pub(crate) fn shell(&self) -> Shell {
        self.shell.clone().unwrap_or_default()
    }

    /// Refuses options that only a command has, where there is none.
    pub(crate) fn check_list(&self) -> Result<(), Error> {
        if self.files.is_empty() && self.per_job.is_none() {
            return Ok(());
        }
        Err(Error::Setting("-a and -n are for the values of a command: write -- COMMAND behind them".to_owned()))
    }

    /// The files that the values of a command come from.
    pub(crate) fn files(&self, words: &[OsString]) -> Vec<PathBuf> {
        let lists = given_lists(words).map(|(_, lists)| lists).unwrap_or_default();
        let reads_input = lists.is_empty() && self.files.is_empty();
        let named = lists.into_iter().filter_map(|list| match list.given {
            Given::File(file) => Some(file),
            Given::Values(_) => None,
        });
        let files = self.files.iter().cloned().chain(named).chain(reads_input.then(|| "-".into()));
        files.map(|file| PathBuf::from(if file == "-" { "/dev/stdin".into() } else { file })).collect()
    }

    /// Makes the jobs of a command and its values.
    pub(crate) fn jobs(&self, words: &[OsString]) -> Result<CommandJobs, Error> {
        let (command, given) = given_lists(words).map_err(Error::Setting)?;
        self.check_program(command)?;
        let per_job = self.per_job.unwrap_or(1);
        let template = Template::parse(command, self.shell.clone(), per_job).map_err(Error::Setting)?;
        let files = self.files.iter().map(|file| GivenList { given: Given::File(file.clone()), is_linked: false });
        let mut lists: Vec<GivenList> = files.chain(given).collect();
        if lists.is_empty() {
            let asks = template.takes_values() || self.per_job.is_some() || self.are_null_ended;
            if !asks && !has_values_on_standard_input() {
                return Ok(CommandJobs::Whole(vec![template.without_values()]));
            }
            if !asks && matches!(poll(&[io::stdin().as_fd()], Some(SILENCE_MS)), Ok(ready) if ready.is_empty()) {
                tell(
                    "waiting for values on standard input; ::: takes them from the command line, and < /dev/null runs the command once",
                );
            }
            lists.push(GivenList { given: Given::File("-".into()), is_linked: false });
        }
        if lists.iter().filter(|list| list.given == Given::File("-".into())).count() > 1 {
            return Err(Error::Setting(
                "standard input can be read once, but - stands for two lists of values".to_owned(),
            ));
        }
        if let [GivenList { given: Given::File(file), .. }] = &lists[..] {
            template.check(1).map_err(Error::Setting)?;
            let path = Some(PathBuf::from(file)).filter(|_| file != "-");
            return Ok(CommandJobs::Arriving(path, template));
        }
        let mut combined = Lists::default();
        for (at, list) in lists.into_iter().enumerate() {
            let values = match list.given {
                Given::Values(values) => {
                    if let [value] = &values[..] {
                        tell_of_pattern(value);
                    }
                    values
                }
                Given::File(file) => self.read(at, &file)?,
            };
            combined.add(values, list.is_linked);
        }
        if let Some(sentence) = combined.left_over() {
            tell(sentence);
        }
        combined.jobs(&template).map(CommandJobs::Whole).map_err(Error::Setting)
    }

    /// Refuses a line for the shell that is given as the name of a program.
    fn check_program(&self, command: &[OsString]) -> Result<(), Error> {
        match command {
            [line] if self.shell.is_none() && line.as_bytes().contains(&b' ') && !Path::new(line).exists() => {
                let line = line.to_string_lossy();
                Err(Error::Setting(format!(
                    "no program has the name '{line}': write --shell sh before -- to run it as a line of the shell, or its words without quotes around all of them"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Reads a list of several.
    fn read(&self, at: usize, file: &OsStr) -> Result<Vec<OsString>, Error> {
        let is_input = file == "-";
        let path = PathBuf::from(if is_input { OsStr::new("standard input") } else { file });
        let failed = |source| Error::Input { path: path.clone(), source };
        let mut bytes = Vec::new();
        if is_input {
            io::stdin().read_to_end(&mut bytes).map_err(failed)?;
        } else {
            bytes = fs::read(file).map_err(failed)?;
        }
        let end = self.separator();
        if bytes.is_empty() {
            return Err(failed(io::Error::other(format!("list {} of values is empty, so nothing would run", at + 1))));
        }
        let whole = bytes.strip_suffix(&[end]).unwrap_or(&bytes);
        let value = |(at, value): (usize, &[u8])| {
            no_zero_byte(value, at + 1).map_err(|why| failed(io::Error::other(why)))?;
            Ok(OsString::from_vec(value.to_vec()))
        };
        whole.split(|byte| *byte == end).enumerate().map(value).collect()
    }
}

/// Says that a value looks like a pattern of file names that matched none: a shell passes such a pattern on as it is.
fn tell_of_pattern(value: &OsStr) {
    if value.as_bytes().iter().any(|byte| b"*?".contains(byte)) && !Path::new(value).exists() {
        tell(format_args!("no file has the name {}: if this is a pattern, it matched none", value.to_string_lossy()));
    }
}

/// Returns true if standard input is a file, a pipe or a socket: not a terminal, not `/dev/null`, and not closed.
fn has_values_on_standard_input() -> bool {
    let kind = rustix::fs::fstat(io::stdin()).map(|about| FileType::from_raw_mode(about.st_mode));
    !gristmill_os::standard::was_closed(0)
        && matches!(kind, Ok(FileType::Fifo | FileType::Socket | FileType::RegularFile))
}
