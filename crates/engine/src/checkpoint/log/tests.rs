//! Tests of truncated logs, and of the ownership of folders.

use super::*;

fn job() -> Vec<String> {
    vec!["the program: count".into(), "a.txt: 10 bytes".into()]
}

fn begun(dir: &Path) -> Checkpoint {
    let (mut checkpoint, _) = Checkpoint::open(dir, &job()).expect("begun");
    checkpoint.begin([1, 2, 2, 1000, 7]).expect("written");
    checkpoint
}

#[test]
fn a_truncated_log_has_the_facts_of_its_whole_lines() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut checkpoint = begun(dir.path());
    checkpoint.note_stage(3, &[10, 0]).expect("written");
    let place = Place { source: 0, offset: 7, bytes: 2 };
    checkpoint.note_bad(&[(place, "it panicked:\nso".into())]).expect("written");
    checkpoint.note_stage(4, &[5, 6]).expect("written");
    checkpoint.note_result(1, 99).expect("written");
    drop(checkpoint);
    let whole = fs::read(dir.path().join(LOG)).expect("read");
    let mut tasks = Vec::new();
    for cut in 0..=whole.len() {
        fs::write(dir.path().join(LOG), &whole[..cut]).expect("written");
        let (_, facts) = Checkpoint::open(dir.path(), &job()).expect("opened");
        tasks.push(facts.tasks);
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(facts.tasks, [0, 0, 0, 0, 3, 3, 7, 7][lines], "cut at {cut}");
        assert_eq!(facts.bad.len(), usize::from(lines > 4));
        if lines > 5 {
            assert_eq!(facts.runs(0), (vec![(0, 10), (10, 5)], 15));
            assert_eq!(facts.runs(1), (vec![(0, 6)], 6));
        }
        assert_eq!((facts.result(0), facts.result(1)), (None, (lines > 6).then_some(99)));
    }
    assert!(tasks.is_sorted());
}

#[test]
fn another_job_is_refused_with_the_difference() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(begun(dir.path()));
    let changed = ["the program: count".into(), "a.txt: 11 bytes".into()];
    let why = Checkpoint::open(dir.path(), &changed).err().expect("refused").to_string();
    assert!(why.contains("a.txt was \"10 bytes\", and is \"11 bytes\""), "{why}");
}

#[test]
fn a_foreign_log_is_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join(LOG), "dear diary").expect("written");
    let why = Checkpoint::open(dir.path(), &job()).err().expect("refused").to_string();
    assert!(why.contains("is something else"), "{why}");
    assert_eq!(fs::read(dir.path().join(LOG)).expect("read"), b"dear diary");
}

#[test]
fn a_checkpoint_in_use_is_left_alone_and_a_removed_one_starts_over() {
    let dir = tempfile::tempdir().expect("a folder");
    let used = begun(dir.path());
    remove_checkpoint(dir.path()).expect("left to the run that uses it");
    assert!(dir.path().join(LOG).exists());
    // This run waits for the lock, on the file that is then removed, or before a file exists.
    let second = std::thread::spawn({
        let dir = dir.path().to_owned();
        move || Checkpoint::open(&dir, &job()).map(|(checkpoint, facts)| (checkpoint.log.metadata(), facts))
    });
    std::thread::sleep(Duration::from_millis(50));
    fs::remove_file(dir.path().join(LOG)).expect("removed");
    drop(used);
    let (log, facts) = second.join().expect("no panic").expect("opened");
    assert_eq!(facts, Facts::default());
    let named = fs::metadata(dir.path().join(LOG)).expect("there");
    assert_eq!(log.expect("known").ino(), named.ino());
}

#[test]
fn only_files_of_the_checkpoint_are_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    let inner = dir.path().join("checkpoint");
    remove_checkpoint(&inner).expect("there is none");
    drop(begun(&inner));
    fs::write(inner.join("0.pairs"), "x").expect("written");
    remove_checkpoint(&inner).expect("removed");
    assert!(!inner.exists());
    drop(begun(&inner));
    fs::write(inner.join("notes.txt"), "mine").expect("written");
    remove_checkpoint(&inner).expect("removed");
    assert_eq!(fs::read_dir(&inner).expect("still there").count(), 1);
}

#[test]
fn a_folder_without_a_checkpoint_keeps_its_files() {
    // A folder of numbered data files, named by mistake, once lost all files called <number>.pairs.
    let dir = tempfile::tempdir().expect("a folder");
    let [mine, log] = ["7.pairs", LOG].map(|name| dir.path().join(name));
    fs::write(&mine, "mine").expect("written");
    let why = remove_checkpoint(dir.path()).expect_err("no checkpoint").to_string();
    assert!(why.contains("there is no checkpoint in "), "{why}");
    fs::write(&log, "dear diary").expect("written");
    remove_checkpoint(dir.path()).expect_err("the log is another");
    assert!(log.exists());
    // A checkpoint that would overwrite such a file is refused.
    fs::remove_file(&log).expect("removed");
    let why = Checkpoint::open(dir.path(), &job()).err().expect("refused").to_string();
    assert!(why.contains("the file 7.pairs in it is no checkpoint's"), "{why}");
    assert!(!log.exists());
    // Next to a checkpoint of two reducers the file stays, too.
    fs::remove_file(&mine).expect("removed");
    drop(begun(dir.path()));
    fs::write(&mine, "mine").expect("written");
    fs::write(dir.path().join("1.pairs"), "ours").expect("written");
    remove_checkpoint(dir.path()).expect("removed");
    assert_eq!(fs::read(&mine).expect("there"), b"mine");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
}

#[test]
fn an_interrupted_removal_is_completed_by_the_next_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let interrupted = || {
        let mut checkpoint = begun(dir.path());
        checkpoint.note_stage(3, &[10, 0]).expect("written");
        checkpoint.write(["removed now".to_owned()]).expect("written");
        fs::write(dir.path().join("1.pairs"), "old").expect("written");
    };
    interrupted();
    let (checkpoint, facts) = Checkpoint::open(dir.path(), &job()).expect("begun anew");
    assert_eq!(facts, Facts::default());
    assert!(!dir.path().join("1.pairs").exists());
    drop(checkpoint);
    remove_checkpoint(dir.path()).expect("removed");
    interrupted();
    remove_checkpoint(dir.path()).expect("removed");
    assert!(!dir.path().exists());
}
