//! Where paths lead, and what is not used there.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn what_somebody_else_put_into_a_folder_of_all_is_not_used() {
    let (root, me, other) = (0, 1000, 1001);
    for (mode, folder_owner, owner, expected) in [
        (0o1777, root, other, true),
        (0o1777, root, me, false),
        (0o1777, root, root, false),
        (0o0777, root, other, true),
        (0o1775, root, other, true),
        (0o0775, root, other, false),
        (0o0755, other, other, false),
        (0o1777, other, other, false),
    ] {
        assert_eq!(is_planted(mode, folder_owner, owner, me), expected, "{mode:o} {folder_owner} {owner}");
    }
}

#[test]
fn a_path_leads_where_the_kernel_says() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("a/b")).expect("made");
    fs::write(at("a/b/file"), "x").expect("written");
    for (link, to) in
        [("up", "a/b/.."), ("chain", "up/b"), ("last", "chain/file"), ("none", "a/none"), ("loop", "loop")]
    {
        symlink(to, at(link)).expect("linked");
    }
    symlink(at("a"), at("absolute")).expect("linked");
    let paths =
        ["a/b/file", "./a//b/./file", "a/../a/b/file", "up/b/file", "chain/file", "last", "absolute/b/file", "up/up"];
    for path in paths.map(at) {
        let found = Entry::find(&path).expect("found");
        let expected = fs::metadata(&path).ok().map(|facts| (facts.dev(), facts.ino()));
        assert_eq!(found.facts.map(|facts| (facts.st_dev, facts.st_ino)), expected, "{}", path.display());
    }
    let free = Entry::find(&at("none")).expect("a name that is free");
    assert!(
        !free.is_there()
            && free.name == "none"
            && free.folder.has("b", open_folder(CWD, at("a/b").as_os_str()).unwrap()).unwrap()
    );
    assert!(Entry::find_itself(&at("none")).expect("a link").is_link());
    for (path, expected) in [("loop", Errno::LOOP), ("a/b/file/x", Errno::NOTDIR), ("no/such", Errno::NOENT)] {
        assert_eq!(Entry::find(&at(path)).expect_err("an error").raw_os_error(), Some(expected.raw_os_error()));
    }
    assert!(Entry::find(Path::new("/")).expect("the root").is_folder());
    assert!(Entry::find(Path::new("/proc/self/cwd/src/lib.rs")).expect("found by the kernel").is_file());
}

#[test]
fn an_open_file_is_found_by_its_number() {
    let (_from, to) = io::pipe().expect("a pipe");
    let number = |fd: &dyn AsRawFd| PathBuf::from(format!("/dev/fd/{}", fd.as_raw_fd()));
    let pipe = Entry::find(&number(&to)).expect("found");
    assert!(pipe.is_there() && !pipe.is_file() && pipe.open_special().is_ok());
    let dir = tempfile::tempdir().expect("a folder");
    let file = fs::File::create(dir.path().join("file")).expect("made");
    assert_eq!(Entry::find(&number(&file)).expect("found").name, "file");
    fs::remove_file(dir.path().join("file")).expect("removed");
    let gone = Entry::find(&number(&file)).expect_err("it has no name");
    assert_eq!(gone.to_string(), "the open file has no name any more");
}

#[test]
fn a_file_of_ours_is_a_file_and_has_one_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::private(dir.path()).expect("ours");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "x").expect("written");
    fs::hard_link(at("file"), at("twice")).expect("linked");
    symlink("file", at("link")).expect("linked");
    fs::create_dir(at("folder")).expect("made");
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RWXU, 0).expect("made");
    for (name, expected) in [
        ("link", "link in it is a symbolic link"),
        ("folder", "folder in it is a folder"),
        ("fifo", "fifo in it is no regular file"),
        ("twice", "twice in it has another name elsewhere"),
    ] {
        let why = folder.open_file(name, true, false).expect_err("refused").to_string();
        assert!(why.contains(expected), "{why}");
    }
    drop(folder.open_file("new", true, false).expect("made"));
    assert_eq!(fs::metadata(at("new")).expect("there").mode() & 0o7777, 0o600);
}

#[test]
fn a_private_folder_is_ours_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let (inner, link) = (dir.path().join("a/b/inner"), dir.path().join("link"));
    Folder::private(&inner).expect("made");
    assert_eq!(fs::metadata(&inner).expect("there").mode() & 0o7777, 0o700);
    symlink(&inner, &link).expect("linked");
    let refused = |path: &Path| Folder::private(path).expect_err("refused").to_string();
    assert!(refused(&link).contains("it is a symbolic link"), "{}", refused(&link));
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o1777)).expect("set");
    assert!(refused(&inner).contains("(its mode is 1777)"), "{}", refused(&inner));
    if geteuid().is_root() {
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).expect("set");
        std::os::unix::fs::chown(&inner, Some(1000), None).expect("given away");
        assert!(refused(&inner).contains("it belongs to user 1000"), "{}", refused(&inner));
    }
}

#[test]
fn a_hidden_name_fits_and_is_another_each_time() {
    let long = OsString::from("x".repeat(255));
    let names = [0; 2].map(|_| hidden_name(&long).expect("random numbers"));
    assert!(names[0] != names[1] && names[0].len() <= 255);
}
