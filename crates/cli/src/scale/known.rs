//! Our own applications, as `gristmill scale` must know them: what they read, and what their options ask.

use std::ffi::{OsStr, OsString};

use clap::{ArgMatches, CommandFactory, Subcommand, ValueEnum};
use gristmill_scale::{Applications as Known, PLACE, Reads};

use crate::commands::Applications;
use crate::commands::palindromes::{Algorithm, CONSTANT_BYTES_MAX};
use crate::run::learned::asked;

/// The answers for this command.
pub const APPLICATIONS: Known = Known {
    reads,
    asked,
    traffic: |words| gristmill_apps::Algorithm::from(algorithm(words)).traffic(),
    constant_bytes_max: CONSTANT_BYTES_MAX,
};

/// The options that are added to those of the application, and why it may not have them already.
const OURS: [(&str, &str); 4] = [
    ("--workers", "it is what varies, so write it before the application"),
    ("--stats", "the report is made of its statistics"),
    ("--quiet", "it is always given"),
    ("--no-history", "it is always given"),
];

/// Returns what an application is given to read.
///
/// # Errors
/// The words name no application, or its arguments are wrong; a sentence.
fn reads(words: &[OsString]) -> Result<Reads, String> {
    let name = words[0].to_string_lossy();
    if !Applications::has_subcommand(&name) {
        return Err(format!(
            "{name} is none of Gristmill's applications; write any other command behind --, with {PLACE} in it"
        ));
    }
    for (option, why) in OURS {
        let is_option = |word: &OsString| word == option || word.to_string_lossy().starts_with(&format!("{option}="));
        if words.iter().any(is_option) {
            return Err(format!("leave {option} of {name} out: {why}"));
        }
    }
    let added = ["--workers", "1", "--quiet", "--no-history", "--stats", "stats.json"].map(OsString::from);
    let command = [&["gristmill".into(), words[0].clone()], &added[..], &words[1..]].concat();
    let mut definition = crate::Command::command();
    definition.build();
    match definition.try_get_matches_from_mut(command) {
        Ok(matches) => {
            let of = definition.find_subcommand(OsStr::new(&*name)).expect("it was found above");
            let matches = matches.subcommand_matches(&name).expect("it was parsed");
            let named = named(of, matches)
                .ok_or_else(|| format!("{name} needs a file: standard input can be read only once"))?;
            let follow = matches!(matches.try_get_one("follow"), Ok(Some(true)));
            Ok(Reads { named, follow })
        }
        Err(error) if !error.use_stderr() => Err(format!("gristmill {name} --help tells the options of {name}")),
        Err(error) => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(format!("{name}: {}", first.strip_prefix("error: ").unwrap_or(first)))
        }
    }
}

/// Returns the values of all positional arguments; `None` if the application would read standard input.
fn named(of: &clap::Command, matches: &ArgMatches) -> Option<Vec<OsString>> {
    let values = |argument: &clap::Arg| matches.get_raw(argument.get_id().as_str());
    let inputs: Vec<OsString> = of.get_positionals().filter_map(values).flatten().map(OsStr::to_owned).collect();
    let takes_files = of.get_positionals().any(|argument| argument.get_id() == "paths");
    let are_listed = of.get_opts().any(|option| option.get_id() == "files_from" && values(option).is_some());
    let is_standard = takes_files && inputs.is_empty() && !are_listed || inputs.iter().any(|input| input == "-");
    (!is_standard).then_some(inputs)
}

/// Returns the algorithm that these words choose.
fn algorithm(words: &[OsString]) -> Algorithm {
    let texts: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let behind = texts.iter().position(|word| *word == "--algorithm").and_then(|at| texts.get(at + 1).copied());
    let named = behind.or_else(|| texts.iter().find_map(|word| word.strip_prefix("--algorithm=")));
    named.and_then(|name| Algorithm::from_str(name, false).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_right_arguments_of_our_applications_are_taken() {
        let check = |words: &[&str]| reads(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let plain = |named: &[&str]| Reads { named: named.iter().map(OsString::from).collect(), follow: false };
        assert_eq!(check(&["word-count", "--top", "3", "file"]), Ok(plain(&["file"])));
        assert_eq!(check(&["sort", "--follow", "file"]), Ok(Reads { follow: true, ..plain(&["file"]) }));
        assert!(check(&["make", "-j2"]).expect_err("unknown").contains("behind --"));
        assert!(check(&["scale"]).is_err());
        assert_eq!(check(&["tile-search"]), Ok(plain(&[])));
        for (words, said) in [
            (&["word-count", "--workers=3", "file"][..], "leave --workers of word-count out: it is what varies"),
            (&["word-count", "--stats", "file", "file"], "leave --stats of word-count out"),
            (&["word-count"], "word-count needs a file"),
            (&["word-count", "file", "-"], "word-count needs a file"),
            (&["word-count", "--help"], "gristmill word-count --help tells"),
            (&["word-count", "--tops", "3"], "word-count: unexpected argument '--tops'"),
        ] {
            let why = check(words).expect_err(said);
            assert!(why.starts_with(said) && why.lines().count() == 1, "{why}");
        }
    }
}
