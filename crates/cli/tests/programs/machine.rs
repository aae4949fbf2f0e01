//! `gristmill machine`: the card and the ceilings, even if nothing can be stored.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::gristmill;

/// Returns the command with a separate state folder and arrays that are measured quickly.
fn machine(state: &Path, arguments: &[&str]) -> Command {
    let mut command = gristmill(["machine"]);
    command.args(arguments).env("XDG_STATE_HOME", state);
    command
}

/// Returns the output and the messages of a run that succeeds.
fn run(command: &mut Command) -> (String, String) {
    let output = command.output().expect("the command starts");
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(output.status.success(), "{said}");
    (printed, said)
}

#[test]
fn a_machine_has_a_card_and_ceilings_for_each_number_of_threads() {
    let state = tempfile::tempdir().expect("a directory");
    let (printed, _) = run(&mut machine(state.path(), &["--array", "1MiB", "--json"]));
    let card: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let threads = card["processors"]["allowed"].as_array().expect("a list").len();
    let rows = card["ceilings"]["rows"].as_array().expect("rows");
    assert_eq!(rows.last().expect("a row")["threads"], threads);
    for row in rows {
        for rate in ["read", "copy", "triad"] {
            assert!(row[format!("{rate}_bytes_per_s")].as_u64().is_some_and(|rate| rate > 0), "{row}");
        }
    }
    assert!(["A", "B", "C"].contains(&card["counters"]["tier"].as_str().expect("a tier")), "{printed}");
    // Ceilings with a custom size are not stored.
    assert!(!state.path().join("gristmill").exists());
    let (text, said) = run(&mut machine(state.path(), &["--no-measure"]));
    assert!(text.contains("Processor ") && text.contains("have not been measured yet"), "{text}");
    assert_eq!(said, "");
}

/// A read-only home, or a file damaged by another program, must not keep the command from describing the machine.
#[test]
fn machine_continues_without_the_file_of_ceilings() {
    let state = tempfile::tempdir().expect("a directory");
    let file = state.path().join("gristmill/ceilings.json");
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    for (text, why) in [("{", "it is damaged"), ("{\"version\": 9}", "a newer version of this program has written it")]
    {
        fs::write(&file, text).expect("written");
        let (card, said) = run(&mut machine(state.path(), &["--no-measure"]));
        assert!(card.contains("Memory "), "{card}");
        assert_eq!(said, format!("gristmill: {} is not used: {why}\n", file.display()));
    }
    let (_, said) = run(machine(state.path(), &["--no-measure"]).env_remove("XDG_STATE_HOME").env_remove("HOME"));
    assert_eq!(said, "");
    let (card, said) = run(&mut machine(state.path(), &["--array", "1MiB", "--dir", "/nowhere"]));
    assert!(card.contains("page cache and disk were not measured: /nowhere: "), "{card}");
    assert!(said.contains("measuring memory"), "{said}");
}
