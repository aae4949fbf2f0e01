//! `gristmill run`, which becomes an interpreter of Python.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::command::{answer, complaint, gristmill};

#[test]
fn run_hands_all_arguments_to_the_interpreter() {
    let dir = tempfile::tempdir().expect("a directory");
    let python = dir.path().join("python3");
    fs::write(&python, "#!/bin/sh\nshift 2\nprintf '%s|' \"$@\"\n").expect("written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("made executable");
    let mut command = gristmill(["run", "--workers", "2", "job.py", "--help", "a b"]);
    assert_eq!(answer(command.env("PATH", dir.path())), b"--workers|2|job.py|--help|a b|");
}

#[test]
fn without_an_interpreter_or_a_program_run_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let said = complaint(gristmill(["run", "job.py"]).env("PATH", dir.path()), 2);
    assert!(said.contains("there is no python3; install Python 3.10 or later"), "{said}");
    let said = complaint(&mut gristmill(["run"]), 2);
    assert!(said.contains("<JOB.py>"), "{said}");
}
