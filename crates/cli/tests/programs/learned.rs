//! `gristmill scale` keeps its measurements, and the plan of the next run follows it.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::command::{gristmill, oracle};

/// Runs a command whose history is in `folder`; its input `text` lies there.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = gristmill(arguments);
    let output = command.current_dir(folder).env("XDG_DATA_HOME", folder).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the plan of `word-count text`, after a check of its answer.
fn plan(folder: &Path, text: &[u8], options: &[&str]) -> String {
    let output = run(folder, &[&["word-count", "--explain", "text"], options].concat());
    assert_eq!(output.stdout, oracle(text, false), "{options:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn the_plan_follows_what_scale_has_measured_unless_something_else_is_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    let text = b"to be or not to be\n".repeat(1 << 17);
    fs::write(folder.join("text"), &text).expect("written");
    let scale = ["scale", "--workers", "1,2", "--repeats", "1", "--no-account", "--despite-load"];
    let not_kept = run(folder, &[&scale[..], &["--no-history", "word-count", "text"]].concat());
    assert!(!String::from_utf8_lossy(&not_kept.stdout).contains("kept") && !folder.join("gristmill").exists());
    assert!(!plan(folder, &text, &[]).contains("history"), "nothing is known");
    let kept = run(folder, &[&scale[..], &["word-count", "text"]].concat());
    let report = String::from_utf8_lossy(&kept.stdout);
    assert!(report.contains("gristmill/history.sqlite: later runs with a similar input follow them"), "{report}");
    // 1. It is followed by the same question, wherever input and output are named.
    let followed = "(history: the best of 2 times, ";
    fs::copy(folder.join("text"), folder.join("again")).expect("copied");
    assert!(plan(folder, &text, &[]).contains(followed), "{}", plan(folder, &text, &[]));
    let again = run(folder, &["word-count", "--explain", "again", "-o", "counts.tsv"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains(followed));
    // 2. Another question, another size, and what was asked for.
    for options in [&["--workers", "3"][..], &["--deterministic"], &["--no-history"], &["again", "again"]] {
        let output = run(folder, &[&["word-count", "--explain", "text"], options].concat());
        assert!(!String::from_utf8_lossy(&output.stderr).contains(followed), "{options:?}");
    }
    assert!(
        plan(folder, &text, &["--workers", "3"]).contains("plan: workers: 3, each maps and reduces (as asked for)")
    );
    // 3. It can be shown and forgotten.
    let shown = String::from_utf8(run(folder, &["history", "word-count"]).stdout).expect("text");
    assert!(shown.contains("1 worker ") && shown.contains("2 workers "), "{shown}");
    run(folder, &["history", "word-count", "--forget"]);
    assert!(!plan(folder, &text, &[]).contains("history"));
}

/// The work goes on without a history that is damaged, of a later version, or that cannot be read.
#[test]
fn a_history_of_no_use_is_named_and_the_answer_is_right() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path();
    let text = b"to be or not to be\n".repeat(1 << 17);
    fs::write(folder.join("text"), &text).expect("written");
    fs::create_dir(folder.join("gristmill")).expect("made");
    let store = folder.join("gristmill/history.sqlite");
    fs::write(&store, "this is a long text that is no database at all").expect("written");
    let said = plan(folder, &text, &[]);
    assert!(said.contains("history.sqlite is not used: it is damaged"), "{said}");
    assert!(!plan(folder, &text, &["--no-history"]).contains("history"));
    let scale = ["scale", "--workers", "1,2", "--repeats", "1", "--no-account", "--despite-load", "word-count", "text"];
    let report = String::from_utf8(run(folder, &scale).stdout).expect("text");
    assert!(
        report.contains("The times were not kept for later runs: ") && report.contains("it is damaged"),
        "{report}"
    );
    fs::remove_file(&store).expect("removed");
    fs::create_dir(&store).expect("made");
    assert!(plan(folder, &text, &[]).contains("history.sqlite is not used: "));
}
