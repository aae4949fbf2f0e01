//! Shell completions and man pages, generated from the definitions of the command line.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::side_files::WholeFile;
use crate::terminal::failure::Failure;
use crate::terminal::standard_output::print_bytes;

/// Print completions for a shell, or write pages for man
///
/// To use them at once: `source <(gristmill completions bash)`.
#[derive(Args)]
pub struct Completions {
    /// The shell
    #[arg(required_unless_present = "man")]
    shell: Option<Shell>,

    /// Write a page for man for each subcommand into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    man: Option<PathBuf>,
}

impl Completions {
    /// Prints or writes the requested files for `command`.
    pub fn run(self, mut command: Command) -> Result<(), Failure> {
        if let Some(shell) = self.shell {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "gristmill", &mut text);
            print_bytes(&text)?;
        }
        if let Some(folder) = self.man {
            std::fs::create_dir_all(&folder).map_err(|error| Failure::output(&folder, error))?;
            command.build();
            write_page(&folder, "gristmill", &command)?;
            for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
                write_page(&folder, &format!("gristmill-{}", subcommand.get_name()), subcommand)?;
            }
        }
        Ok(())
    }
}

fn write_page(folder: &Path, name: &str, command: &Command) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    // Writing to a Vec cannot fail.
    let man = clap_mangen::Man::new(command.clone()).title(name);
    WholeFile::begin(&path)?.write(|to| man.render(to))
}
