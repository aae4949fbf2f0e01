//! Folders into which others may write, and files that others have put there: the command neither overwrites their
//! files nor gives them the user's.
//!
//! Acting as another user takes root. The other tests run for every user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::command::{answer, complaint, copy_of_program, gristmill, names, word_count};
use crate::make_fifo;

const OTHER: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

/// Returns owner and mode.
fn facts(path: &Path) -> (u32, u32) {
    let facts = fs::metadata(path).expect("there");
    (facts.uid(), facts.mode() & 0o7777)
}

/// Returns `word-count` of two words, one of them bad, with options that name its outputs.
fn outputs(dir: &Path, names: [&Path; 3]) -> Command {
    let text = dir.join("text");
    fs::write(&text, "apple,1\npear,x\n").expect("written");
    let mut command =
        gristmill(["group-by", "--by", "1", "--sum", "2", "--skip-bad-records", "1", "--quiet", "--header", "no"]);
    let [output, stats, bad] = names;
    command.arg("-o").arg(output).arg("--stats").arg(stats).arg("--bad-records").arg(bad).arg(&text);
    command
}

/// Root once wrote a result to a user's file of mode 6777, so that the user had a root-owned setuid program of chosen
/// bytes.
#[test]
fn a_replaced_file_never_runs_as_its_owner() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = ["out.csv", "stats.json", "bad.jsonl"].map(|name| dir.path().join(name));
    for mode in [0o6777, 0o2755, 0o1640, 0o600] {
        for file in &files {
            fs::write(file, "old").expect("written");
            set_mode(file, mode);
        }
        answer(&mut outputs(dir.path(), files.each_ref().map(|file| file.as_path())));
        for file in &files {
            assert_eq!(facts(file).1, mode & 0o777, "{}", file.display());
            assert_ne!(fs::read(file).expect("there"), b"old");
        }
    }
}

/// Suppose that an owner has shared a file with one user by an access control list. Its replacement would be closed to
/// that user, or open to the whole group: the group bits of such a file's mode show the mask of the list.
#[test]
fn a_replaced_file_keeps_its_access_control_list() {
    const LIST: &str = "system.posix_acl_access";
    const NOBODY: u32 = u32::MAX;
    let dir = tempfile::tempdir().expect("a directory");
    let [file, text] = ["out.csv", "text"].map(|name| dir.path().join(name));
    fs::write(&file, "old").and_then(|()| fs::write(&text, "a b a")).expect("written");
    // Version 2; entries of tag, permissions, user: owner rw, user 1234 r, group none, mask r, others none.
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, allowed, user) in [(1u16, 6u16, NOBODY), (2, 4, 1234), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY)] {
        list.extend([&tag.to_le_bytes()[..], &allowed.to_le_bytes(), &user.to_le_bytes()].concat());
    }
    let has_lists = setxattr(&file, LIST, &list, XattrFlags::empty()).is_ok();
    if !has_lists {
        // This file system has no lists, so there is only the mode to keep.
        set_mode(&file, 0o640);
    }
    answer(word_count(["-o"]).args([&file, &text]));
    assert_eq!((fs::read(&file).expect("there"), facts(&file).1), (b"word,count\na,2\nb,1\n".to_vec(), 0o640));
    let mut found = vec![0; 1024];
    let kept = getxattr(&file, LIST, &mut found[..]).ok().map(|bytes| found[..bytes].to_vec());
    assert_eq!(kept, has_lists.then_some(list));
}

/// Another user's file of mode 0600 once became the caller's, and neither the caller nor its owner could read it any
/// more.
#[test]
fn a_file_of_another_user_keeps_its_owner_or_the_job_does_not_begin() {
    if !is_root() {
        // The part that does not need root: a result does not replace another user's file.
        let why = complaint(&mut word_count(["-o", "/etc/passwd", "/dev/null"]), 1);
        return assert!(why.contains("cannot write /etc/passwd: "), "{why}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let files = ["out.csv", "stats.json", "bad.jsonl"].map(|name| dir.path().join(name));
    for file in &files {
        fs::write(file, "old").expect("written");
        set_mode(file, 0o4600);
        chown(file, Some(OTHER), Some(OTHER)).expect("given away");
    }
    answer(&mut outputs(dir.path(), files.each_ref().map(|file| file.as_path())));
    for file in &files {
        assert_eq!(facts(file), (OTHER, 0o600), "{}", file.display());
        assert_ne!(fs::read(file).expect("there"), b"old");
    }
    // Only root can give a file away.
    let program = dir.path().join("gristmill");
    copy_of_program(&program);
    let out = &files[0];
    fs::write(out, "old").and_then(|()| chown(out, Some(0), Some(0))).expect("taken back");
    chown(dir.path(), Some(OTHER), Some(OTHER)).expect("given away");
    let mut command = Command::new(&program);
    let why = complaint(command.args(["word-count", "/dev/null", "-o"]).arg(out).uid(OTHER).gid(OTHER), 1);
    assert!(why.contains("it belongs to user 0, and what replaces it would not"), "{why}");
    assert_eq!((fs::read(out).expect("there"), facts(out).0), (b"old".to_vec(), 0));
}

/// A link that another user had put into /tmp once redirected a result to a file of the caller's, which was
/// overwritten.
#[test]
fn links_of_others_in_a_shared_folder_are_refused_and_own_links_are_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    set_mode(dir.path(), 0o755);
    let (shared, victims) = (dir.path().join("shared"), dir.path().join("victims"));
    fs::create_dir(&shared).and_then(|()| fs::create_dir(&victims)).expect("made");
    set_mode(&shared, 0o1777);
    let victim = victims.join("victim.csv");
    let (link, fifo) = (shared.join("link.csv"), shared.join("fifo"));
    let (around, theirs) = (shared.join("around"), shared.join("theirs.json"));
    symlink(&victim, &link).and_then(|()| symlink(&victims, &around)).expect("linked");
    make_fifo(&fifo);
    let count = |output: &Path| {
        let mut command = word_count(["--workers", "1", "--format", "csv", "/dev/null", "-o"]);
        command.arg(output);
        command
    };
    // A link of ours is followed, as in a shell.
    fs::write(&victim, "old").expect("written");
    answer(&mut count(&link));
    assert!(link.is_symlink() && fs::read(&victim).expect("there") == b"word,count\n");
    answer(&mut count(&around.join("new.csv")));
    assert_eq!(names(&victims), ["new.csv", "victim.csv"]);
    // Restores the files. Links, FIFO and file are then given to another user.
    fs::remove_file(victims.join("new.csv")).and_then(|()| fs::write(&victim, "old")).expect("as before");
    if !is_root() {
        return;
    }
    fs::write(&theirs, "old").expect("written");
    for path in [&link, &fifo, &around, &theirs] {
        lchown(path, Some(OTHER), Some(OTHER)).expect("given away");
    }
    let free = dir.path().join("free.json");
    let refused = |why: String, what: &str| {
        assert!(why.contains(what) && why.contains("of user 65534 in a folder that others may write to"), "{why}");
    };
    refused(complaint(&mut count(&link), 1), "link.csv is a symbolic link");
    refused(complaint(&mut count(&fifo), 1), "fifo is a FIFO");
    refused(complaint(&mut count(&theirs), 1), "theirs.json is a file");
    refused(complaint(&mut count(&around.join("new.csv")), 1), "around is a symbolic link");
    refused(complaint(&mut outputs(dir.path(), [&free, &theirs, &victim]), 1), "theirs.json is a file");
    refused(
        complaint(&mut outputs(dir.path(), [&free, &dir.path().join("s.json"), &link]), 1),
        "link.csv is a symbolic link",
    );
    refused(
        complaint(gristmill(["sort", "/dev/null", "--parts"]).arg(around.join("parts")), 1),
        "around is a symbolic link",
    );
    refused(
        complaint(word_count(["--checkpoint"]).arg(around.join("checkpoint")).arg(dir.path().join("text")), 1),
        "around is a symbolic link",
    );
    assert_eq!((names(&victims), fs::read(&victim).expect("there")), (vec!["victim.csv".to_owned()], b"old".to_vec()));
}

/// A folder that only a group could enter was once replaced by one open to all; a link failed only after hours of
/// work.
#[test]
fn a_folder_of_parts_keeps_its_mode_and_owner_and_a_link_is_refused_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let (text, parts, link) = (dir.path().join("text"), dir.path().join("parts"), dir.path().join("link"));
    fs::write(&text, "b\na\n")
        .and_then(|()| fs::create_dir(&parts))
        .and_then(|()| symlink("parts", &link))
        .expect("made");
    set_mode(&parts, 0o2710);
    if is_root() {
        chown(&parts, Some(OTHER), Some(OTHER)).expect("given away");
        set_mode(&parts, 0o2710);
    }
    let before = (facts(&parts), fs::metadata(&parts).expect("there").gid());
    let why = complaint(gristmill(["sort", "/no/such/input", "--parts"]).arg(&link), 2);
    assert!(why.contains("link is a symbolic link, and --parts replaces"), "{why}");
    answer(gristmill(["sort", "--parts"]).args([&parts, &text]));
    assert_eq!((facts(&parts), fs::metadata(&parts).expect("there").gid()), before);
    assert!(names(&parts).contains(&"manifest.json".to_owned()));
    assert_eq!(names(dir.path()), ["link", "parts", "text"]);
}

/// The temporary name of the result was once derived from the process, so others could take it before.
#[test]
fn temporary_names_taken_by_others_do_not_matter() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = dir.path().join("x".repeat(255));
    for _ in 0..2 {
        answer(word_count(["--workers", "1", "/dev/null", "-o"]).arg(&long));
    }
    assert_eq!(names(dir.path()).len(), 1);
    let why = complaint(word_count(["/dev/null", "-o"]).arg(dir.path().join("new/")), 1);
    assert!(why.contains("Is a directory"), "{why}");
}

/// "Operation not permitted (os error 1)", and "No such file or directory" of no file.
#[test]
fn a_working_folder_that_was_deleted_is_named_as_the_cause() {
    let dir = tempfile::tempdir().expect("a directory");
    let input = dir.path().join("input");
    fs::write(&input, "a b a").expect("written");
    for (words, cause) in [
        ("word-count --output out.tsv \"$2\"", "cannot write out.tsv: its folder was deleted: cd to one that is there"),
        ("batch -- true", "asking for the current folder: it was deleted: cd to one that is there"),
    ] {
        let gone = tempfile::tempdir().expect("a directory");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("rmdir \"$1\" && exec \"$0\" {words}"), env!("CARGO_BIN_EXE_gristmill")]);
        shell.arg(gone.path()).arg(&input).current_dir(gone.path());
        assert_eq!(complaint(&mut shell, 1), format!("gristmill: {cause}\n"));
    }
}
