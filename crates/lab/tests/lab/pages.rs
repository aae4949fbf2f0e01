//! Pages of papers, as their readers get them.

use std::process::{Command, Stdio};

/// Runs a command that prints a page, and returns the page. Its progress goes to standard error.
pub fn page(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the command starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
