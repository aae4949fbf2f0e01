//! The files that `gristmill batch` is given: its own ones, each for one purpose, and a journal that belongs to a
//! folder.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::command::gristmill;
use crate::queue::{batch, text, wait_for};

/// A job that had never run in this folder "succeeded", because a journal from another folder had the same line.
#[test]
fn a_journal_knows_in_which_folder_a_job_ran() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    ["a", "b"].iter().for_each(|name| fs::create_dir(at(name)).expect("made"));
    symlink("a", at("link")).expect("linked");
    let run = |folder: &str, options: &str| {
        let output = batch(&at(folder), &format!("--no-history --journal ../journal {options}"), "touch ran\n");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).to_owned()
    };
    assert!(run("a", "").contains("1 program: 1 succeeded;"));
    assert!(run("b", "--resume").contains("1 program: 1 succeeded;"));
    assert!(at("a/ran").exists() && at("b/ran").exists());
    // The real path counts, and the summary says what did not run again.
    fs::remove_file(at("a/ran")).expect("there");
    for folder in ["a", "link"] {
        assert!(run(folder, "--resume").contains("1 program: 1 succeeded (1 had ended before);"), "{folder}");
        assert!(!at("a/ran").exists(), "{folder}");
    }
    // A directory of a job is seen from there, too.
    fs::write(at("jobs.toml"), "[[job]]\nname='touch ran'\ncommand='touch ran'\ndirectory='a'").expect("written");
    let output = batch(dir.path(), "--no-history --json --journal journal --resume jobs.toml", "");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line");
    assert_eq!((&summary["summary"]["ended_before"], &summary["summary"]["succeeded"]), (&1.into(), &1.into()));
}

/// The keys of the first format do not tell folders apart. Everything would have run again, without a word.
#[test]
fn a_journal_of_an_earlier_version_is_refused_and_nothing_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let version = r#"{"journal":1}"#;
    let old = format!("{:08x} {version}\n", crc32(version.as_bytes()));
    fs::write(dir.path().join("journal"), &old).expect("written");
    let Output { status, stderr, .. } = batch(dir.path(), "--no-history --journal journal --resume", "touch ran\n");
    assert!(!status.success() && text(&stderr).contains("an earlier gristmill wrote it (format 1)"), "{stderr:?}");
    assert_eq!(fs::read_to_string(dir.path().join("journal")).expect("there"), old);
    assert!(!dir.path().join("ran").exists());
}

/// CRC-32 as in the standard (IEEE 802.3), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

/// Makes a FIFO, for which a program that opens it to write waits without end.
fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("made");
}

/// A FIFO at the place of a file hung the queue before it listened to signals, and a journal that another user had
/// written was believed.
#[test]
fn what_is_not_a_file_of_this_user_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fifo(&at("fifo"));
    let refused = |options: &str, why: &str| {
        let Output { status, stderr, .. } = batch(dir.path(), options, "touch ran\n");
        assert!(!status.success() && text(&stderr).contains(why), "{options}: {}", text(&stderr));
        assert!(!at("ran").exists(), "{options}");
    };
    for place in ["fifo", "/dev/null", "/dev/zero"] {
        for option in ["--journal", "--resume --journal", "--timeline"] {
            refused(&format!("--no-history {option} {place}"), "it is no regular file");
        }
    }
    assert!(batch(dir.path(), "--no-history --journal journal", "true\n").status.success());
    assert_eq!(fs::metadata(at("journal")).expect("there").mode() & 0o777, 0o600);
    fs::hard_link(at("journal"), at("twice")).expect("linked");
    refused("--no-history --resume --journal journal", "it is a hard link");
    fs::remove_file(at("twice")).expect("there");
    fs::set_permissions(at("journal"), fs::Permissions::from_mode(0o622)).expect("set");
    refused("--no-history --resume --journal journal", "chmod go-w");
    fs::set_permissions(at("journal"), fs::Permissions::from_mode(0o600)).expect("set");
    // A link of this user's is followed, as everywhere.
    symlink("journal", at("link")).expect("linked");
    assert!(batch(dir.path(), "--no-history --resume --journal link", "true\n").status.success());
    if fs::metadata("/proc/self").expect("there").uid() == 0 {
        chown(at("journal"), Some(65534), None).expect("given away");
        for option in ["--journal", "--resume --journal", "--resume --dry-run --journal"] {
            refused(&format!("--no-history {option} journal"), "it belongs to user 65534");
        }
        fs::create_dir(at("shared")).expect("made");
        fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).expect("set");
        symlink(at("victim"), at("shared/link")).expect("linked");
        std::os::unix::fs::lchown(at("shared/link"), Some(65534), None).expect("given away");
        for option in ["--journal", "--timeline"] {
            refused(&format!("--no-history {option} shared/link"), "is a symbolic link of user 65534");
        }
        assert!(!at("victim").exists());
    }
    // The history is a convenience: the work goes on without it.
    let Output { status, stderr, .. } = batch(dir.path(), "--history fifo", "true\n");
    let said = text(&stderr);
    assert!(status.success() && said.contains("the history fifo is not used: it is no regular file"), "{said}");
}

/// `--journal jobs jobs` said that the list may be removed, and `--timeline jobs jobs` would have replaced it.
#[test]
fn the_list_is_no_journal_and_no_file_has_two_purposes() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("jobs"), "touch ran\n").expect("written");
    symlink("jobs", at("link")).expect("linked");
    let refused = |options: &str, why: &str| {
        let Output { status, stderr, .. } = batch(dir.path(), options, "");
        let said = text(&stderr);
        assert!(status.code() == Some(2) && said.contains(why) && !said.contains("remove"), "{options}: {said}");
        assert!(!at("ran").exists(), "{options}");
    };
    for option in ["--journal", "--timeline", "--output", "--history", "--log"] {
        for (file, list) in [("jobs", "jobs"), ("./jobs", "link"), ("link", "jobs")] {
            refused(&format!("{option} {file} {list}"), &format!("{option} {file} is also an input, {list}"));
        }
    }
    refused("--journal new --timeline ./new jobs", "--journal and --timeline are the same file");
    refused("--no-history --output new --journal new jobs", "--journal and --output are the same file");
    for values in ["-a jobs -- echo", "-- echo :::: jobs", "-- echo ::: a :::: link"] {
        refused(&format!("--journal jobs {values}"), "--journal jobs is also an input");
    }
    // The list on standard input is a file, too.
    let mut command = gristmill(["batch", "--no-history", "--journal", "jobs"]);
    command.current_dir(dir.path()).stdin(fs::File::open(at("jobs")).expect("there"));
    let output = command.output().expect("it starts");
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("also an input"), "{output:?}");
    assert_eq!(fs::read_to_string(at("jobs")).expect("there"), "touch ran\n");
}

/// A second queue waited for the journal ten seconds without a word.
#[test]
fn a_queue_says_at_once_which_other_one_it_waits_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("jobs"), "touch begun; until test -e go; do sleep 0.01; done\n").expect("written");
    let queue = || {
        let mut command = gristmill(["batch", "--no-history", "--resume", "--journal", "journal", "jobs"]);
        command.current_dir(dir.path()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let mut first = queue();
    wait_for("it begins", || at("begun").exists());
    let mut second = queue();
    let mut said = BufReader::new(second.stderr.take().expect("a pipe")).lines();
    let line = said.next().expect("a line").expect("text");
    let expected = format!("another gristmill batch (process {}) uses the journal journal; waiting", first.id());
    assert!(line.contains(&expected), "{line}");
    fs::write(at("go"), "").expect("written");
    assert!(first.wait().expect("it ends").success() && second.wait().expect("it ends").success());
    let line = said.next().expect("a line").expect("text");
    assert!(line.contains("1 succeeded (1 had ended before)"), "{line}");
}

/// `--quiet` hid even which job had failed, and why another could not begin.
#[test]
fn a_quiet_queue_still_names_failures() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(
        dir.path().join("jobs.toml"),
        "[[job]]\ncommand='exit 3'\n[[job]]\ncommand=['./none']\n[[job]]\ncommand='true'",
    )
    .expect("written");
    let Output { status, stderr, .. } = batch(dir.path(), "--no-history -q -k jobs.toml", "");
    assert_eq!(status.code(), Some(1));
    let expected = ["gristmill: exit 3: exit 3", "gristmill: ./none: refused: No such file or directory (os error 2)"];
    assert_eq!(text(&stderr).lines().collect::<Vec<_>>(), expected);
    assert_eq!(text(&batch(dir.path(), "--no-history -q", "true\n").stderr), "");
}
