//! The job options, which every subcommand has.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use gristmill::options::{JobOption, OPTIONS, Options, Takes};
use gristmill::units;

use crate::terminal::settings::long_name;

/// How the job runs, and what is told about it.
#[derive(Args)]
pub struct JobOptions {
    #[command(flatten)]
    engine: Engine,

    /// Where to list records and files that were set aside, with place and cause, as JSON lines [default: the name of
    /// --output followed by .bad.jsonl; without --output bad-records.jsonl or, if there is such a file,
    /// bad-records.2.jsonl and so on]
    #[arg(long, value_name = "FILE", help_heading = FAILURES)]
    pub bad_records: Option<PathBuf>,

    /// Keep finished work in this folder: the same command, run again, continues where this one stopped. The folder is
    /// made for this user alone, and removed when the result is complete; one that was there before stays, without
    /// these files
    #[arg(long, value_name = "DIR", help_heading = FAILURES)]
    pub checkpoint: Option<PathBuf>,

    /// About how much work a crash may cost
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "10s", requires = "checkpoint",
        help_heading = FAILURES)]
    pub checkpoint_every: Duration,

    /// Do not let the plan follow what gristmill scale has measured
    #[arg(long, help_heading = WORKERS)]
    pub no_history: bool,

    /// Print to standard error how the job is planned, and why; then run it
    #[arg(long, help_heading = REPORTS)]
    pub explain: bool,

    /// Write times, calls and counts of every worker and phase to a .csv or .json file
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub stats: Option<PathBuf>,

    /// Draw which phase each worker was in over time, with deaths and steps, as one .html file
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub timeline: Option<PathBuf>,

    /// Print errors only: no progress bar, no summary, no notes
    #[arg(long, short, help_heading = REPORTS)]
    pub quiet: bool,
}

const WORKERS: &str = "Workers";
const FAILURES: &str = "Failures";
const REPORTS: &str = "Reports";

impl JobOptions {
    /// Returns the options of the library's table.
    pub fn engine(&self) -> &Options {
        &self.engine.0
    }
}

/// The options of the library's table, as clap arguments.
struct Engine(Options);

fn argument(option: &'static JobOption) -> Arg {
    let help = match option.takes() {
        Takes::OneOf(_) => option.help.to_owned(),
        _ if option.default.is_empty() => option.help.to_owned(),
        _ => format!("{} [default: {}]", option.help, option.default),
    };
    let argument = Arg::new(option.name).long(long_name(option)).help(help).help_heading(option.group);
    let argument = argument.hide_short_help(option.is_strategy());
    let argument = match option.name {
        "workers" => argument.short('j'),
        _ => argument,
    };
    let argument = option.excluded_by.into_iter().fold(argument, |argument, other| argument.conflicts_with(other));
    let checked = ValueParser::new(|text: &str| option.check(text).map(|()| text.to_owned()));
    match option.takes() {
        Takes::Switch { .. } => argument.action(ArgAction::SetTrue),
        Takes::Count(_) => argument.value_name("N").value_parser(checked),
        Takes::CountOrAll(_) => argument.value_name("N|all").value_parser(checked),
        Takes::Bytes => argument.value_name("SIZE").value_parser(checked),
        Takes::Duration => argument.value_name("TIME").value_parser(checked),
        Takes::Folders => argument.value_name("DIR").value_parser(ValueParser::path_buf()).action(ArgAction::Append),
        Takes::OneOf(alternatives) => {
            let values = alternatives.iter().map(|it| PossibleValue::new(it.name).help(it.help));
            argument
                .value_name(option.name.to_uppercase())
                .value_parser(PossibleValuesParser::new(values))
                .default_value(option.default)
        }
    }
}

impl Args for Engine {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(OPTIONS.iter().map(argument))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Engine::augment_args(command)
    }
}

impl FromArgMatches for Engine {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Engine, clap::Error> {
        let mut options = Engine(Options::default());
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let is_given = |option: &&JobOption| matches.value_source(option.name) == Some(ValueSource::CommandLine);
        for option in OPTIONS.iter().filter(is_given) {
            let mut set = |value: &std::ffi::OsStr| {
                self.0.set(option.name, value).expect("the parser has checked it");
            };
            match option.takes() {
                Takes::Switch { default } => set((!default).to_string().as_ref()),
                _ => matches.get_raw(option.name).into_iter().flatten().for_each(set),
            }
        }
        Ok(())
    }
}
