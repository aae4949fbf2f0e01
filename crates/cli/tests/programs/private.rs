//! Files and folders that only their owner may read. The commands run without a umask, so that modes are those they
//! asked for.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::queue::feed;

/// Returns `gristmill` without a umask, with its temporary files and its history in this folder.
fn without_umask<S: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
    fs::create_dir(folder.join("tmp")).expect("made");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_gristmill")]).args(arguments);
    command.env("TMPDIR", folder.join("tmp")).env("XDG_DATA_HOME", folder.join("data"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Returns the permissions of a file, in octal digits.
fn mode(path: &Path) -> String {
    format!("{:o}", fs::metadata(path).expect("it is there").permissions().mode() & 0o7777)
}

/// `scale` copied private files to /dev/shm, into folders that all users could read.
#[test]
fn copies_of_the_input_lie_in_folders_of_their_owner() {
    let dir = tempfile::tempdir().expect("a directory");
    let letter = format!("letter-{}", std::process::id());
    fs::write(dir.path().join(&letter), "anna and otto saw a level\n".repeat(20_000)).expect("written");
    // Before each run: the temporary folder, and the one in memory that has the letter.
    let look = format!(
        "stat -c '%a %n' tmp/.tmp* >>seen; find /dev/shm -name {letter} 2>/dev/null | cut -d/ -f1-4 | xargs -r stat -c '%a %n' >>seen"
    );
    let options = ["--workers", "1,2", "--repeats", "1", "--experiments", "always", "--despite-load", "--no-history"];
    let mut scale = without_umask(dir.path(), ["scale", "--prepare", &look]);
    let output = scale.args(options).args(["word-count", "--top", "3", &letter]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = fs::read_to_string(dir.path().join("seen")).expect("lines");
    assert!(seen.lines().all(|line| line.starts_with("700 ")) && seen.contains(" tmp/.tmp"), "{seen}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(report.contains("The input in memory"), seen.contains("/dev/shm/"), "{seen}{report}");
    assert!(thread::available_parallelism().expect("a number").get() < 2 || seen.contains("/dev/shm/"), "{seen}");
}

/// Commands with their arguments stood in a journal and a history that all users could read.
#[test]
fn the_history_and_journals_are_for_their_owner() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut batch = without_umask(dir.path(), ["batch", "-j", "1", "--journal", "journal"]);
    let mut child = batch.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    // The second one sees what the queue has open.
    let jobs = "true\nls data/gristmill >seen; stat -c %a journal data/gristmill/* >modes\n";
    feed(&mut child, jobs);
    assert!(child.wait().expect("it ends").success());
    let [seen, modes] = ["seen", "modes"].map(|name| fs::read_to_string(dir.path().join(name)).expect("lines"));
    assert!(seen.contains("history.sqlite-wal") && modes.lines().all(|mode| mode == "600"), "{seen}{modes}");
    let at = |name: &str| mode(&dir.path().join(name));
    assert_eq!([at("journal"), at("data/gristmill/history.sqlite"), at("data/gristmill")], ["600", "600", "700"]);
}
