//! Names of settings: maps those of the library to options of the command line.

use std::cmp::Reverse;

use gristmill::options::{Alternative, JobOption, Takes};

/// Returns the option for a setting of the table. A switch that is on by default has an option to turn it off.
pub fn long_name(option: &JobOption) -> String {
    match option.takes() {
        Takes::Switch { default: true } => format!("no-{}", option.name),
        _ => option.name.to_owned(),
    }
}

/// Settings of the libraries that are not in the table of options, with their options.
const OTHER_OPTIONS: [(&str, &str); 12] = [
    ("Job::record_bytes_max", "--record-bytes-max"),
    ("Job::keep_bytes", "--keep-bytes"),
    ("Job::checkpoint", "--checkpoint"),
    ("Input::skip_bad_files", "--skip-bad-files"),
    ("Input::spool_dir", "--spill-dir"),
    ("Input::follow", "--follow"),
    ("Input::encoding", "--encoding"),
    ("Input::read_once", "--read-once"),
    ("Dialect::header", "--header"),
    ("Dialect::quote", "--quote"),
    ("Records::Lines", "--quote none"),
    ("Dialect::delimiter", "--delimiter"),
];

/// Returns each setting as the library's errors write it, with its option, longer ones first.
fn settings() -> Vec<(String, String)> {
    let mut settings = OTHER_OPTIONS.map(|(setting, option)| (setting.to_owned(), option.to_owned())).to_vec();
    for option in &gristmill::options::OPTIONS {
        let name = format!("--{}", long_name(option));
        settings.push((format!("Job::{}", option.method), name.clone()));
        if let Takes::OneOf(alternatives) = option.takes() {
            // `Buffer::Hash` is `--buffer hash`.
            let capital = |name: &str| name[..1].to_uppercase() + &name[1..];
            let both = |it: &Alternative| {
                (format!("{}::{}", capital(option.name), capital(it.name)), format!("{name} {}", it.name))
            };
            settings.extend(alternatives.iter().map(both));
        }
    }
    settings.sort_by_key(|(setting, _)| Reverse(setting.len()));
    settings
}

/// Replaces the settings in an error of the library by options of `command`, and drops those that it does not have.
pub fn of_the_command(text: &str, command: &clap::Command) -> String {
    let has = |option: &str| {
        let name = option.trim_start_matches("--").split(' ').next();
        command.get_arguments().any(|argument| argument.get_long() == name)
    };
    let is_missing = |(_, option): &&(String, String)| !has(option);
    let settings = settings();
    let without = |text: String, (setting, _): &(String, String)| text.replace(&format!(" or {setting}"), "");
    as_options(&settings.iter().filter(is_missing).fold(text.to_owned(), without))
}

/// Replaces the settings in a text of a library by options.
pub fn as_options(text: &str) -> String {
    let text = text.replace(" (MapReduce::keys)", "");
    settings().iter().fold(text, |text, (setting, option)| {
        // A method's argument follows the name of the option.
        match text.split_once(&format!("{setting}(")) {
            Some((before, after)) => {
                let (value, after) = after.split_once(')').unwrap_or((after, ""));
                format!("{before}{option} {value}{after}").replace(setting.as_str(), option)
            }
            None => text.replace(setting.as_str(), option),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_options_of_the_command() {
        let command = clap::Command::new("sort").args(["memory", "buffer"].map(|name| clap::Arg::new(name).long(name)));
        for (text, expected) in [
            ("Raise Job::memory, or take fewer", "Raise --memory, or take fewer"),
            ("Rerun with Job::skip_bad_records(1) to set", "Rerun with --skip-bad-records 1 to set"),
            ("Raise Job::memory or Job::keep_bytes, or stop", "Raise --memory, or stop"),
            (
                "declares no domain of keys (MapReduce::keys); use Buffer::Hash",
                "declares no domain of keys; use --buffer hash",
            ),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(of_the_command(text, &command), expected);
        }
    }

    #[test]
    fn every_setting_named_in_a_message_has_an_option() {
        fn sources(folder: &std::path::Path, to: &mut String) {
            for entry in std::fs::read_dir(folder).expect("the library lies beside the command").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    sources(&path, to);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    to.push_str(&std::fs::read_to_string(&path).expect("text"));
                }
            }
        }
        let mut text = String::new();
        for library in ["../engine/src", "../apps/src"] {
            sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(library), &mut text);
        }
        let is_comment = |line: &&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[doc");
        let mut found = 0;
        for line in text.lines().filter(|line| !is_comment(line)) {
            for quoted in line.split('"').skip(1).step_by(2) {
                for name in ["Job::", "Input::", "Dialect::"] {
                    for (at, _) in quoted.match_indices(name) {
                        found += 1;
                        let starts = |setting: &str| quoted[at..].starts_with(setting);
                        // No settings: programs with shared outputs, accumulators or records of their own call these.
                        let is_known = settings().iter().any(|(setting, _)| starts(setting))
                            || ["Job::writes", "Job::accumulates", "Input::from_records"].into_iter().any(starts);
                        assert!(is_known, "{quoted} names a setting that has no option here");
                    }
                }
            }
        }
        assert!(found > 10, "errors name settings");
    }
}
