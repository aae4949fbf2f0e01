//! Messages: one clear line, whatever was typed and whatever cannot be read or written.

use std::fs;
use std::process::{Command, Stdio};

use crate::command::{PROGRAM, complaint, gristmill as lab, names};
use crate::survival::{all_are_tried, survives};

/// A name that clears the screen and reverses text.
const EVIL: &str = "e\x1b[2J\x07\r\u{9b}1m\u{202e}l";

#[test]
fn no_message_contains_characters_that_control_a_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |end: &str| dir.path().join(format!("{EVIL}{end}")).into_os_string().into_string().expect("text");
    let (csv, missing) = (path(".csv"), path("missing"));
    fs::write(&csv, "a,b\n").expect("written");
    let cases: [&[&str]; 9] = [
        &[EVIL],
        &["terasort", "validate", &csv],
        &["terasort", "validate", &missing],
        &["generate", EVIL],
        &["generate", "pca", "-o", &csv],
        &["experiment", "--only", EVIL],
        &["experiment", "-o", &csv],
        &["palindromes", "--readers", "1", &missing],
        &["bandwidth", "--table", "1", "-o", &path("/no/page")],
    ];
    let mut named = 0;
    for arguments in cases {
        let said = String::from_utf8(lab(arguments).output().expect("it starts").stderr).expect("text");
        let is_plain = |character: char| character == '\n' || !(character.is_control() || character == '\u{202e}');
        assert!(said.chars().all(is_plain), "{arguments:?}: {said:?}");
        named += usize::from(said.contains("\\x1b[2J"));
    }
    assert!(named > 4, "only {named} messages spoke of it");
}

#[test]
fn a_limit_on_file_sizes_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    for (arguments, what) in [
        ("generate kmeans", "cannot write ./kmeans-small.csv"),
        ("generate kmeans -o .", "cannot write ./kmeans-small.csv"),
        ("terasort generate 100000 -o tera", "cannot write tera"),
    ] {
        let script = format!("ulimit -f 64; exec \"$0\" {arguments}");
        let mut command = Command::new("sh");
        let why = complaint(command.args(["-c", &script, PROGRAM]).current_dir(dir.path()).stdin(Stdio::null()), 1);
        assert!([what, "File too large", " bytes (ulimit -f)"].iter().all(|part| why.contains(part)), "{why}");
        assert!(why.lines().count() == 1 && names(dir.path()).is_empty(), "{why}");
    }
}

#[test]
fn the_nearest_name_is_suggested_for_a_file_that_is_not_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let keys = dir.path().join("keys.txt");
    fs::write(&keys, "a\n").expect("written");
    let why = complaint(lab(["terasort", "validate"]).arg(dir.path().join("keys.tx")), 1);
    assert!(why.ends_with(&format!("; did you mean {}?\n", keys.display())), "{why}");
}

/// `generate kmeans | true`, `terasort validate > /dev/full` and others once panicked; with little memory the
/// allocator aborted.
#[test]
fn every_subcommand_survives_unwritable_outputs_and_too_little_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).expect("written");
    file("text", "to be or not to be\n".repeat(100).as_bytes());
    file("tera", &[b'a'; 300]);
    let commands: Vec<Vec<&str>> = [
        "terasort generate 1000",
        "terasort validate tera",
        "generate kmeans --force -o made",
        "generate small-files --force -o made",
        "experiment --quick --rounds 1 --only isolation --apps word-count -o made",
        "dmr --figure 2",
        "palindromes --readers 1 text",
        "bandwidth --quick --rounds 1 --table 3",
        "ops",
        "mr-search --quick --rounds 1 --slide 4",
        "many-cores --quick --seconds 0",
        "bottlenecks --quick --rounds 1 --data-mb 1 --figure 2",
    ]
    .map(|line| line.split(' ').collect())
    .into();
    all_are_tried(&commands, &["help"]);
    for arguments in &commands {
        // These take some seconds each, and write everything at the end in one place.
        survives(dir.path(), arguments, arguments[0] == "experiment");
    }
}
