//! `gristmill-lab terasort`: generates records to sort, and validates sorted ones.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use gristmill::Error;
use gristmill_cli::{Failure, print};
use gristmill_os::standard::standard_output;
use gristmill_os::whole_file::Aside;
use rustix::io::Errno;

use crate::records;

/// Make TeraSort records, and check that they were sorted
#[derive(Args)]
pub struct Terasort {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Make records of 100 bytes, the same for the same seed: ten random printable bytes, the number of the record,
    /// letters, and a line end
    Generate {
        /// The number of records
        records: u64,
        /// Seed of the random numbers
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Write to this file instead of standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Say how many records there are, their checksum, and whether they are in order; exit 1 when they are not
    Validate {
        /// The file [default: standard input]
        file: Option<PathBuf>,
    },
}

impl Terasort {
    pub fn run(&self) -> Result<(), Failure> {
        match &self.what {
            What::Generate { records, seed, output: Some(path) } => {
                let written = || -> io::Result<()> {
                    let aside = Aside::create(path)?;
                    generate(*seed, *records, &aside.file)?;
                    aside.publish()
                };
                written().map_err(|source| Failure::output(path, source))
            }
            What::Generate { records, seed, output: None } => {
                match standard_output().and_then(|to| generate(*seed, *records, to)) {
                    Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                        Err(Failure::output("standard output", source))
                    }
                    _ => Ok(()),
                }
            }
            What::Validate { file } => validate(file.clone()),
        }
    }
}

fn generate(seed: u64, count: u64, to: impl Write) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, to);
    records::generate(seed, 0..count, &mut to)?;
    to.flush()
}

fn validate(file: Option<PathBuf>) -> Result<(), Failure> {
    let name = file.clone().unwrap_or_else(|| PathBuf::from("standard input"));
    let found = match &file {
        Some(path) => File::open(path).and_then(records::validate),
        None if gristmill_os::standard::was_closed(0) => Err(Errno::BADF.into()),
        None => records::validate(io::stdin().lock()),
    };
    let found = found.map_err(|source| Error::Input { path: name.clone(), source })?;
    print(format!("{} records, checksum {:016x}, {} duplicate keys", found.records, found.checksum, found.duplicates))?;
    let wrong = |what: String| Err(Failure::Application(gristmill_apps::Error::File { path: name.clone(), what }));
    match (found.unordered, found.rest_bytes) {
        (Some(record), _) => wrong(format!("record {record} has a smaller key than the one before it")),
        (None, rest @ 1..) => wrong(format!("{rest} bytes follow the last whole record of 100 bytes")),
        (None, 0) => Ok(()),
    }
}
