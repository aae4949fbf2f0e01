//! A request: the options that a command line sets for the jobs of a subcommand.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use gristmill::options::Trial;
use gristmill::{Input, Job, MapReduce};

use crate::options::inputs::Inputs;
use crate::options::job_options::JobOptions;
use crate::options::streams::check_once;
use crate::output::outputs::Outputs;
use crate::run::learned::{self, in_home};
use crate::terminal::failure::Failure;
use crate::terminal::messages::{line, printable};

/// The options of a run, checked before its first job.
pub struct Request<'o> {
    /// From here on, the deadline counts.
    began: Instant,
    pub options: &'o JobOptions,
    /// The input options, if the subcommand reads files.
    inputs: Option<&'o Inputs>,
    record_bytes_max: usize,
    /// The number of workers for which there is memory, given the longest record.
    workers_max: Option<usize>,
    outputs: Outputs,
}

/// The files of the input, and earlier runs over them.
#[derive(Default)]
pub struct Found {
    /// The number of files of the input.
    pub files: u64,
    /// Earlier runs over a similar input.
    pub trials: Vec<Trial>,
}

impl<'o> Request<'o> {
    /// Refuses outputs that are inputs or each other, and streams that are named twice.
    pub fn new(
        options: &'o JobOptions,
        mut outputs: Outputs,
        inputs: Option<&'o Inputs>,
    ) -> Result<Request<'o>, Failure> {
        if let Some(path) = &options.stats {
            outputs.file("--stats", path);
        }
        if let Some(path) = &options.timeline {
            outputs.file("--timeline", path);
        }
        if let Some(path) = &options.checkpoint {
            outputs.folder("--checkpoint", path);
        }
        outputs.check()?;
        outputs.check_named(inputs.into_iter().flat_map(Inputs::named))?;
        check_once(inputs.into_iter().flat_map(Inputs::with_options))?;
        let engine = options.engine();
        let (record_bytes_max, workers) = match inputs {
            Some(inputs) => inputs.record_bytes_max(engine.memory(), engine.workers())?,
            None => (usize::MAX, None),
        };
        let workers_max = workers.filter(|_| engine.workers().is_none());
        Ok(Request { began: Instant::now(), options, inputs, record_bytes_max, workers_max, outputs })
    }

    /// Returns the input of a subcommand that reads files.
    pub fn input(&self, read_as: impl FnOnce(Input) -> Input) -> Result<Input, Failure> {
        let inputs = self.inputs.expect("a subcommand that reads files");
        let engine = self.options.engine();
        let input = read_as(inputs.input(engine.memory())?);
        let input = engine.spill_dirs().next().into_iter().fold(input, Input::spool_dir);
        Ok(self.in_time(engine.keep_free().into_iter().fold(input, Input::keep_free)))
    }

    /// Looks at the input, and checks that no output is part of it.
    pub fn find(&self, input: &mut Input) -> Result<Found, Failure> {
        let sources = input.look()?;
        self.outputs.check_sources(sources)?;
        let files = sources.len() as u64;
        Ok(Found { files, trials: self.trials(files, sources.iter().map(|source| source.bytes).sum()) })
    }

    /// Looks up what is known of this command with an input of this size.
    fn trials(&self, files: u64, input_bytes: u64) -> Vec<Trial> {
        let Some(path) = in_home().filter(|_| !self.options.no_history) else { return Vec::new() };
        let words: Vec<OsString> = std::env::args_os().skip(1).collect();
        learned::trials(&path, &words, files, input_bytes).unwrap_or_else(|problem| {
            if !self.options.quiet {
                line(format_args!("the history {} is not used: {problem}", printable(&path.display().to_string())));
            }
            Vec::new()
        })
    }

    /// Opens a file that the subcommand reads in addition to its input, within the memory of the job; `option` names
    /// it.
    pub fn reads(&self, option: &'static str, path: &Path) -> Result<Input, Failure> {
        self.outputs.check_named([path].into_iter())?;
        check_once([(option, path)].into_iter().chain(self.inputs.into_iter().flat_map(Inputs::with_options)))?;
        Ok(self.in_time(self.options.engine().memory().into_iter().fold(Input::paths([path]), Input::memory)))
    }

    /// Lets the deadline, if there is one, also end the search for an input.
    fn in_time(&self, input: Input) -> Input {
        self.options.engine().deadline().into_iter().fold(input, |input, limit| input.deadline(limit, self.began))
    }

    /// Sets the options of a job.
    pub fn apply<'j, J: MapReduce>(&self, job: Job<'j, J>) -> Job<'j, J> {
        let job = job.options(self.options.engine());
        if self.inputs.is_none() {
            return job;
        }
        self.workers_max.into_iter().fold(job.record_bytes_max(self.record_bytes_max), Job::workers)
    }
}
