//! Outputs that cannot be written, and too little memory, end a command in order.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{PROGRAM, answer, gristmill};

/// Checks that each subcommand that the help lists is among `commands`, but for these others.
pub fn all_are_tried(commands: &[Vec<&str>], others: &[&str]) {
    let help = String::from_utf8(answer(&mut gristmill(["--help"]))).expect("text");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = listed.map(|line| line.split_whitespace().next().expect("a name"));
    for name in names.filter(|name| !others.contains(name)) {
        assert!(commands.iter().any(|arguments| arguments[0] == name), "{name} is not tried");
    }
}

/// Returns the program in a shell, with something before and behind its arguments.
pub fn run(folder: &Path, before: &str, arguments: &[&str], behind: &str) -> Command {
    let mut command = Command::new("timeout");
    let script = format!("{before} exec \"$0\" \"$@\" {behind}");
    command.args(["60", "bash", "-c", &script, PROGRAM]).args(arguments);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Checks what a command does with outputs that cannot be written and with too little memory. A slow one is tried less
/// often.
pub fn survives(folder: &Path, arguments: &[&str], is_slow: bool) {
    // The redirection in the shell, the expected status, and the expected complaint.
    let cases: [(&str, i32, &str); 5] = [
        ("> /dev/full", 1, "No space left on device"),
        (">&-", 1, "Bad file descriptor"),
        ("2> /dev/full", 0, ""),
        ("2>&-", 0, ""),
        ("< /dev/null", 0, ""),
    ];
    let run = |before: &str, arguments: &[&str], behind: &str| run(folder, before, arguments, behind);
    for (redirection, status, expected) in cases.into_iter().take(if is_slow { 2 } else { cases.len() }) {
        let told = run("", arguments, redirection).output().expect("it starts");
        let complaint = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(status), "{arguments:?} {redirection}: {complaint}");
        assert!(
            complaint.contains(expected) && !complaint.contains("panicked"),
            "{arguments:?} {redirection}: {complaint}"
        );
    }
    // A reader that is gone before the first line is not a failure.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let told = run("", arguments, "").stdout(writer).output().expect("it starts");
    let complaint = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success() && !complaint.contains("panicked"), "{arguments:?} into a closed pipe: {complaint}");
    // With the lowest limits the kernel cannot start it: the need depends on the features that are built in.
    let starts = |limit: &str| run(limit, &["--version"], "").output().expect("sh starts").status.success();
    let limits = [16, 24, 40, 64, 100, 400].map(|mebibytes| (mebibytes, format!("ulimit -v {};", mebibytes << 10)));
    let limits = limits.into_iter().filter(|(_, limit)| starts(limit));
    for (mebibytes, limit) in limits.take(if is_slow { 2 } else { 6 }) {
        let told = run(&limit, arguments, "").output().expect("it starts");
        let complaint = String::from_utf8_lossy(&told.stderr);
        let is_told = complaint.lines().any(|line| line.starts_with("gristmill: "));
        let fits = told.status.success() || told.status.code() == Some(1) && is_told;
        assert!(
            fits && !complaint.contains("panicked"),
            "{arguments:?} in {mebibytes} MiB: {} {complaint}",
            told.status
        );
    }
}
