//! The history of `gristmill batch`: what is kept, for how long, and where it may only be read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::command::gristmill;
use crate::queue::feed;

/// Returns the words of a command with its history in `h`.
fn words(arguments: &str) -> Vec<&str> {
    let mut words: Vec<&str> = arguments.split_ascii_whitespace().collect();
    words.splice(1..1, ["--history", "h"]);
    words
}

/// Runs a command in `folder`, where its history is `h`. Returns its status, and what it printed and told.
fn run(folder: &Path, arguments: &str, input: &str) -> (bool, String, String) {
    let mut command = gristmill(words(arguments));
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A command that has nothing to read may be over.
    feed(&mut child, input);
    said(&child.wait_with_output().expect("it ends"))
}

fn said(output: &Output) -> (bool, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// `gristmill history sleep --forget` beside a batch was undone when the batch ended.
#[test]
fn what_is_forgotten_while_a_batch_runs_stays_forgotten() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(run(dir.path(), "batch", "true forget-me\nfalse\n").1.is_empty());
    let mut batch = gristmill(["batch", "-j1", "-q", "--history", "h"]);
    let mut batch = batch.current_dir(dir.path()).stdin(Stdio::piped()).spawn().expect("it starts");
    let jobs = "true forget-me\necho done >began; until test -e go; do sleep 0.01; done\ntrue\n";
    feed(&mut batch, jobs);
    let begun = Instant::now();
    while !dir.path().join("began").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the second program begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (_, _, told) = run(dir.path(), "history true --forget", "");
    assert!(told.contains("forgot 1 program"), "{told}");
    fs::write(dir.path().join("go"), "").expect("written");
    assert!(batch.wait().expect("it ends").success());
    let (_, listed, _) = run(dir.path(), "history", "");
    assert!(!listed.contains("true-") && listed.contains("echo+") && listed.contains("false-"), "{listed}");
    // From then on, it is known as a new one is.
    run(dir.path(), "batch", "true\n");
    assert!(run(dir.path(), "history true", "").1.contains(": 1 run, 1 succeeded"));
}

/// A history that belongs to another user, or lies on a disk that may only be read, could not even be listed.
#[test]
fn a_history_that_may_only_be_read_is_listed_and_nothing_else() {
    // The superuser may write anywhere, so another user looks.
    let nobody = rustix::process::geteuid().is_root().then_some(65534);
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("a folder?");
    fs::create_dir(&folder).expect("made");
    assert!(run(&folder, "batch", "true\nfalse\n").2.contains("1 failed"));
    let look = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.args(words(arguments)).current_dir(&folder);
        command.stdin(Stdio::null());
        nobody.iter().for_each(|user| {
            command.uid(*user).gid(*user);
        });
        said(&command.output().expect("it starts"))
    };
    let allow = |mode: u32, of_file: u32| {
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("set");
        if let Some(user) = nobody {
            chown(&folder, Some(user), Some(user)).expect("ours");
            for entry in fs::read_dir(&folder).expect("a folder").flatten() {
                chown(entry.path(), Some(user), Some(user)).expect("ours");
            }
        }
        fs::set_permissions(folder.join("h"), Permissions::from_mode(of_file)).expect("set");
        fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("set");
    };
    for (mode, of_file) in [(0o500, 0o400), (0o500, 0o600), (0o700, 0o400)] {
        allow(mode, of_file);
        let case = format!("folder {mode:o}, file {of_file:o}");
        let (is_good, listed, told) = look("history");
        assert!(is_good && listed.contains("true-") && listed.contains("false-"), "{case}: {told}");
        assert_eq!(look("history --export").1.lines().count(), 2, "{case}");
        if of_file == 0o400 {
            for writing in ["history true --forget", "history --keep-days 3"] {
                let (is_good, _, told) = look(writing);
                assert!(!is_good && told.contains("it, or its folder, may only be read"), "{case} {writing}: {told}");
            }
            let (_, _, told) = look("batch -- true");
            assert!(told.contains("the history h is not used: it, or its folder, may only be read"), "{case}: {told}");
            assert!(told.contains("1 program: 1 succeeded"), "{case}: {told}");
        }
    }
    // What was written last lies beside it, and SQLite cannot read that here.
    allow(0o700, 0o600);
    // The reader before has left an empty log, and its index.
    let _ = fs::remove_file(folder.join("h-shm"));
    run(dir.path(), "batch", "cp h copy; cp h-wal copy-wal\n");
    for end in ["", "-wal"] {
        fs::rename(dir.path().join(format!("copy{end}")), folder.join(format!("h{end}"))).expect("there");
    }
    allow(0o500, 0o400);
    let (is_good, _, told) = look("history");
    assert!(!is_good && told.contains("its last runs are in h-wal beside it"), "{told}");
    allow(0o700, 0o600);
}

/// The history grew with each run, for ever.
#[test]
fn limits_are_set_once_and_hold_for_later_batches() {
    let dir = tempfile::tempdir().expect("a directory");
    let (is_good, _, told) = run(dir.path(), "batch", &"true\n".repeat(5));
    assert!(is_good, "{told}");
    let (is_good, _, told) = run(dir.path(), "history --keep-runs 2 --keep-days 30 --keep-size 2MiB", "");
    let expected =
        "of each program and input, the last 2 runs of 30 days are kept, and 2.1 MB in all; 3 runs were removed";
    assert!(is_good && told.contains(expected), "{told}");
    run(dir.path(), "batch", "true\ntrue\ntrue\ntrue other\n");
    assert!(run(dir.path(), "history true", "").1.contains(": 3 runs, 3 succeeded, 2 inputs"));
    for wrong in ["history --keep-runs 0", "history --keep-size 1kB", "history true --keep-days 3"] {
        assert!(!run(dir.path(), wrong, "").0, "{wrong}");
    }
}

/// `-j 1 --by-bandwidth` was told that "-j takes more", and a short list with `-j 100`, too.
#[test]
fn what_to_do_about_nothing_to_choose_is_said_where_it_helps() {
    let dir = tempfile::tempdir().expect("a directory");
    let processors = std::thread::available_parallelism().expect("known").get();
    let jobs = "true\n".repeat(processors + 1);
    let warnings = |options: &str, jobs: &str| run(dir.path(), &format!("batch --by-bandwidth {options}"), jobs).2;
    let (given, default, short) = (warnings("-j 1", &jobs), warnings("", &jobs), warnings("-j 100 -- true ::: a", ""));
    for told in [&given, &default, &short] {
        assert!(told.contains("--by-bandwidth has nothing to choose"), "{told}");
    }
    assert!(!given.contains("-j takes more") && default.contains("-j takes more"), "{given}{default}");
    assert!(short.contains("the list has 1 program") && !short.contains("-j takes more"), "{short}");
}

/// `--by-bandwidth` chose on a machine where nothing had shown that this gains time, and cost 1 %.
#[test]
fn programs_are_observed_unless_the_user_wants_them_chosen() {
    let dir = tempfile::tempdir().expect("a directory");
    let processors = std::thread::available_parallelism().expect("known").get();
    // A list whose time is known is left to the system, because it is short. So each is another one.
    let warnings = |options: &str| {
        let jobs = format!("sleep 0.01 # {options}\n").repeat(processors + 2);
        run(dir.path(), &format!("batch -j {} {options}", processors + 2), &jobs).2
    };
    let (default, observe, choose) =
        (warnings("--by-bandwidth"), warnings("--by-bandwidth=observe"), warnings("--by-bandwidth=choose"));
    // A machine of one processor, or without clocks, has nothing to observe with.
    let has_means = !default.contains("tier C");
    for told in [&default, &observe] {
        assert_eq!(told.contains("programs are observed, and chosen by"), has_means, "{told}");
    }
    assert_eq!(choose.contains("programs are chosen by"), has_means, "{choose}");
    assert!(
        run(dir.path(), "batch --by-bandwidth=often -j 9", "true\n").2.contains("[possible values: observe, choose]")
    );
    let (is_good, _, told) = run(dir.path(), "history --gain page.html", "");
    assert!(is_good && told.contains("no gain to draw") && !dir.path().join("page.html").exists(), "{told}");
}

/// A table of the history was damaged, and each job of a batch complained, or none.
#[test]
fn a_history_that_is_damaged_in_its_middle_is_told_once() {
    let dir = tempfile::tempdir().expect("a directory");
    run(dir.path(), "batch", &(0..2000).map(|job| format!("true {job}\n")).collect::<String>());
    let mut bytes = fs::read(dir.path().join("h")).expect("there");
    let pages = bytes.len() / 4096;
    assert!(pages > 20, "{pages}");
    // The first pages have the schema, so that it opens.
    bytes[12 * 4096..].fill(0xaa);
    fs::write(dir.path().join("h"), &bytes).expect("written");
    let (is_good, _, told) = run(dir.path(), "batch", "true\ntrue 7\n");
    assert!(is_good && told.contains("2 programs: 2 succeeded"), "{told}");
    assert_eq!(told.matches("the history h is not used: it is damaged").count(), 1, "{told}");
    let (is_good, _, told) = run(dir.path(), "history", "");
    assert!(!is_good && told.contains("it is damaged, or no history"), "{told}");
}
