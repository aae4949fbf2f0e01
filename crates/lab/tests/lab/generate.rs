//! `gristmill-lab generate`: input that the applications can read, in files that replace nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};

use crate::command::{answer, complaint, gristmill as lab};

#[test]
fn generated_input_can_be_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let generated = |kind: &str| {
        let names = answer(lab(["generate", kind, "--output"]).arg(dir.path()));
        String::from_utf8(names).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let pairs = generated("linear-regression");
    let line =
        String::from_utf8(answer(lab(["application", "linear-regression", "--input-format", "pairs"]).args(&pairs)))
            .expect("text");
    let value = |name: &str| -> f64 {
        let row = line.lines().find_map(|row| row.strip_prefix(name)?.strip_prefix('\t'));
        row.unwrap_or_else(|| panic!("no {name} in {line}")).parse().expect("a number")
    };
    assert_eq!(value("n"), 16e6);
    assert!((value("slope") - 0.5).abs() < 0.01, "{line}");
    let keys_and_words = generated("string-match");
    let matches =
        String::from_utf8(answer(lab(["application", "string-match", "--keys"]).args(&keys_and_words))).expect("text");
    let found: u64 =
        matches.lines().map(|row| row.split('\t').nth(1).expect("a count").parse::<u64>().expect("a number")).sum();
    assert!((20..300).contains(&found), "{matches}");
}

/// `generate` once replaced a user's file that happened to have the name of its output.
#[test]
fn generate_replaces_files_only_with_force() {
    let dir = tempfile::tempdir().expect("a directory");
    let mine = dir.path().join("kmeans-small.csv");
    fs::write(&mine, "mine").expect("written");
    let refused = complaint(lab(["generate", "kmeans", "--output"]).arg(dir.path()), 2);
    assert!(refused.contains("kmeans-small.csv is there already") && refused.contains("--force"), "{refused}");
    assert_eq!(fs::read_to_string(&mine).expect("there"), "mine");
    answer(lab(["generate", "kmeans", "--force", "--output"]).arg(dir.path()));
    assert_eq!(fs::read_to_string(&mine).expect("there").lines().count(), 10_000);
    // The second of two files exists, so the first is not made.
    fs::write(dir.path().join("matrix-multiply-small-right.npy"), "mine").expect("written");
    complaint(lab(["generate", "matrix-multiply", "--output"]).arg(dir.path()), 2);
    assert!(!dir.path().join("matrix-multiply-small-left.npy").exists());
}

/// A link that another user had put into /tmp once redirected a result to a file of the caller's.
#[test]
fn a_link_of_another_user_in_a_shared_folder_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (shared, victims) = (dir.path().join("shared"), dir.path().join("victims"));
    fs::create_dir(&shared).and_then(|()| fs::create_dir(&victims)).expect("made");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("set");
    let around = shared.join("around");
    symlink(&victims, &around).expect("linked");
    // Only root can give a link away.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    lchown(&around, Some(65534), Some(65534)).expect("given away");
    let why = complaint(lab(["generate", "pca", "-o"]).arg(&around), 1);
    assert!(why.contains("around is a symbolic link of user 65534 in a folder that others may write to"), "{why}");
    assert_eq!(fs::read_dir(&victims).expect("a folder").count(), 0);
}

/// A link in a folder of generated texts was once written through.
#[test]
fn generate_replaces_links_and_does_not_follow_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (folder, victim) = (dir.path().join("small-files-small"), dir.path().join("victim"));
    fs::write(&victim, "old").and_then(|()| fs::create_dir(&folder)).expect("made");
    symlink(&victim, folder.join("00007.txt")).expect("linked");
    answer(lab(["generate", "small-files", "--force", "-o"]).arg(dir.path()));
    assert_eq!(fs::read(&victim).expect("there"), b"old");
    assert!(folder.join("00007.txt").symlink_metadata().expect("there").is_file());
}
