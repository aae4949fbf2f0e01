//! Checkpoints that no run has written: whatever the folder contains, the job ends with a clear error, or continues.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use gristmill::Error;
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::{Case, Random, input_of, random_text};
use crate::{Answer, Summary, run_case};

const SPLIT_BYTES: u64 = 6_000;

fn case() -> Case {
    Case { split_bytes: SPLIT_BYTES, ..Case::fused(2) }
}

/// Returns the checkpoint of a finished job, and its input.
fn done() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
    let (dir, input) = input_of(&random_text(&mut Random(4), 30_000, 1 << 30, 20, false));
    let checkpoint = dir.path().join("checkpoint");
    run_case(&case(), &input, &checkpoint, &[]).expect("it runs");
    // The job may have ended before it recorded the last result.
    let mut facts = facts(&checkpoint);
    facts.retain(|fact| !fact.starts_with("result "));
    for reducer in 0..2 {
        let result = fs::metadata(checkpoint.join(format!("{reducer}.result"))).expect("there");
        facts.push(format!("result {reducer} {}", result.len()));
    }
    write(&checkpoint, &facts);
    (dir, input, checkpoint)
}

/// Returns the facts of a log.
fn facts(checkpoint: &Path) -> Vec<String> {
    let log = fs::read_to_string(checkpoint.join("checkpoint.log")).expect("text");
    log.lines().map(|line| line.split_once(' ').expect("a checksum").1.to_owned()).collect()
}

/// Writes a log with correct checksums.
fn write(checkpoint: &Path, facts: &[String]) {
    let line = |fact: &String| format!("{:08x} {fact}\n", crc32fast::hash(fact.as_bytes()));
    fs::write(checkpoint.join("checkpoint.log"), facts.iter().map(line).collect::<String>()).expect("written");
}

/// Returns the error of the job, if any. No worker may have died.
fn judged(what: &str, outcome: gristmill::Result<(Answer, Summary)>) -> Option<String> {
    match outcome {
        Ok((_, summary)) => {
            assert!(summary.deaths.is_empty(), "{what}: {:?}", summary.deaths);
            None
        }
        Err(
            error @ (Error::Checkpoint { .. } | Error::CheckpointDamaged { .. } | Error::CheckpointOfAnother { .. }),
        ) => Some(error.to_string()),
        Err(other) => panic!("{what}: {other}"),
    }
}

pub fn absurd_logs() {
    // A log with correct checksums and absurd numbers once made the coordinator panic, allocate without end, or use the
    // wrong files.
    let (_dir, input, checkpoint) = done();
    let whole = facts(&checkpoint);
    let first = |kind: &str| whole.iter().position(|fact| fact.starts_with(kind)).expect("there is one");
    let (plan, stage, result) = (first("plan "), first("stage "), first("result "));
    assert!(whole[plan].starts_with(&format!("plan 1 2 2 {SPLIT_BYTES} ")), "{}", whole[plan]);
    for (at, fact) in [
        (result, "result 18446744073709551615 5"),
        (result, "result 0 18446744073709551615"),
        (result, "result 2 5"),
        (result, "result -1 5"),
        (result, "result 0"),
        (result, "result 0 5 5"),
        (stage, "stage 1000 0 0"),
        (stage, "stage 18446744073709551615 0 0"),
        (stage, "stage 1 18446744073709551615 1"),
        (stage, "stage 1 9999999 1"),
        (stage, "stage 1 5"),
        (stage, "stage 1 5 5 5"),
        (stage, "stage 0 0 0"),
        (stage, "stage -1 0 0"),
        (stage, "stage 1 1e3 0"),
        (stage, "stage"),
        (stage, "stage "),
        (plan, "plan 1 0 0 6000 7"),
        (plan, "plan 1 18446744073709551615 18446744073709551615 6000 7"),
        (plan, "plan 0 1000000 1000000 6000 7"),
        (plan, "plan 1 2 3 6000 7"),
        (plan, "plan 7 2 2 6000 7"),
        (plan, "plan 1 2 2 0 7"),
        (plan, "plan 1 2 2 1 7"),
        (plan, "plan 1 2 2 18446744073709551615 7"),
        (plan, "plan 1 2 2"),
        (plan, "plan 1 2 2 6000"),
        (plan, "plan 1 2 2 6000 18446744073709551616"),
        (result, "bad 99 0 1 61"),
        (result, "bad 18446744073709551615 0 1 61"),
        (result, "bad 0 18446744073709551615 18446744073709551615 61"),
        (result, "bad 0 0 4000000000 61"),
        (result, "bad 0 5 5 6"),
        (result, "bad 0 5 5 ff"),
        (result, "bad 0 5 5 zz"),
        (result, "bad 0 5 5 \u{e9}\u{e9}"),
        (result, "bad 0 5"),
        (result, "anything 1 2 3"),
        (result, "job the program: another"),
        (result, "plan 1 2 2 6000 7"),
        (result, ""),
    ] {
        let mut facts = whole.clone();
        facts[at] = fact.to_owned();
        write(&checkpoint, &facts);
        let why = judged(fact, run_case(&case(), &input, &checkpoint, &[])).expect(fact);
        assert!(why.starts_with("cannot use the checkpoint in ") || why.contains("is damaged"), "{fact}: {why}");
        assert_eq!(facts.len(), self::facts(&checkpoint).len(), "{fact}: the log stays as it was");
    }
    // Valid facts in impossible places.
    let without_stage = [&whole[..stage], &whole[stage + 1..]].concat();
    let twice = [&whole[..], &whole[result..=result]].concat();
    let removed_before = [&whole[..plan], &["removed now".to_owned()], &whole[plan..]].concat();
    let behind = [&whole[..], &whole[stage..=stage]].concat();
    let overlap =
        [&whole[..result], &["bad 0 5 5 61".to_owned(), "bad 0 7 5 61".to_owned()], &whole[result..]].concat();
    for facts in [without_stage, twice, removed_before, behind, overlap] {
        write(&checkpoint, &facts);
        judged("misplaced", run_case(&case(), &input, &checkpoint, &[])).expect("refused");
    }
    let log = fs::File::options().write(true).open(checkpoint.join("checkpoint.log")).expect("opened");
    write(&checkpoint, &whole);
    log.set_len(1 << 40).expect("a log of a terabyte, of zeros");
    assert_eq!(judged("sparse", run_case(&case(), &input, &checkpoint, &[])), None);
}

pub fn random_logs() {
    // Random numbers in a log may lead to a wrong result, because the folder is trusted, but never to a panic, and
    // never to a dead worker.
    let (_dir, input, checkpoint) = done();
    let whole = facts(&checkpoint);
    let files: Vec<_> = ["0.pairs", "1.pairs", "0.result", "1.result"].map(|name| checkpoint.join(name)).to_vec();
    let contents: Vec<_> = files.iter().map(|file| fs::read(file).expect("read")).collect();
    let begin = whole.iter().position(|fact| fact.starts_with("plan ")).expect("a plan") as u64;
    let mut random = Random(18);
    for turn in 0..60 {
        let mut facts = whole.clone();
        for _ in 0..=random.below(2) {
            let mut any = || (begin + random.below(facts.len() as u64 - begin)) as usize;
            let (one, other) = (any(), any());
            match random.below(6) {
                0 => drop(facts.remove(one)),
                1 => facts.swap(one, other),
                2 => facts.insert(one, facts[other].clone()),
                _ => {
                    let mut words: Vec<String> = facts[one].split(' ').map(str::to_owned).collect();
                    let word = random.below(words.len() as u64) as usize;
                    words[word] = random.pick(&[0, 1, 2, 3, 1 << 20, 1 << 33, u64::MAX >> 1, u64::MAX]).to_string();
                    facts[one] = words.join(" ");
                }
            }
        }
        files.iter().zip(&contents).for_each(|(file, content)| fs::write(file, content).expect("written"));
        write(&checkpoint, &facts);
        judged(&format!("{turn}: {:?}", &facts[begin as usize..]), run_case(&case(), &input, &checkpoint, &[]));
    }
}

pub fn planted_files() {
    // A symbolic link called 0.pairs once made a job overwrite the file that it pointed to; a FIFO made it wait for
    // ever.
    let (dir, input) = input_of(&random_text(&mut Random(4), 30_000, 1 << 30, 20, false));
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let plants: [(&str, &dyn Fn(&Path)); 7] = [
        ("symbolic link", &|at| symlink(&victim, at).expect("linked")),
        ("symbolic link", &|at| symlink("/dev/zero", at).expect("linked")),
        ("symbolic link", &|at| symlink("nowhere", at).expect("linked")),
        ("hard link", &|at| fs::hard_link(&victim, at).expect("linked")),
        ("is no regular file", &|at| mknodat(CWD, at, FileType::Fifo, Mode::RWXU, 0).expect("made")),
        ("is a folder", &|at| fs::create_dir(at).expect("made")),
        ("is no regular file", &|at| drop(UnixListener::bind(at).expect("bound"))),
    ];
    for (number, (what, plant)) in plants.iter().enumerate() {
        for name in ["checkpoint.log", "0.pairs", "1.pairs", "1.result"] {
            // With a checkpoint, and without one.
            for is_done in [true, false] {
                let checkpoint = dir.path().join(format!("{number}-{name}-{is_done}"));
                if is_done {
                    run_case(&case(), &input, &checkpoint, &[]).expect("it runs");
                    fs::remove_file(checkpoint.join(name)).expect("removed");
                } else {
                    fs::create_dir(&checkpoint).expect("made");
                }
                plant(&checkpoint.join(name));
                let why = judged(what, run_case(&case(), &input, &checkpoint, &[])).expect("refused");
                let expected = format!("{name} in it");
                assert!(why.contains(&expected) && (why.contains(what) || !is_done), "{why}");
                assert_eq!(fs::read(&victim).expect("there"), b"precious");
                if name == "checkpoint.log" {
                    gristmill::remove_checkpoint(&checkpoint).expect_err("its log is none");
                }
            }
        }
    }
    let (open, link) = (dir.path().join("open"), dir.path().join("link"));
    run_case(&case(), &input, &open, &[]).expect("it runs");
    for name in ["", "checkpoint.log", "0.pairs", "0.result"] {
        let mode = fs::metadata(open.join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o7777, if name.is_empty() { 0o700 } else { 0o600 }, "{name}");
    }
    symlink(&open, &link).expect("linked");
    let why = judged("a link", run_case(&case(), &input, &link, &[])).expect("refused");
    assert!(why.contains("it is a symbolic link"), "{why}");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o770)).expect("set");
    let why = judged("open", run_case(&case(), &input, &open, &[])).expect("refused");
    assert!(
        why.contains("others may write to it (its mode is 0770): take that right from them with chmod go-w"),
        "{why}"
    );
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).expect("set");
        std::os::unix::fs::chown(&open, Some(65534), None).expect("given away");
        let why = judged("theirs", run_case(&case(), &input, &open, &[])).expect("refused");
        assert!(why.contains("it belongs to user 65534"), "{why}");
        gristmill::remove_checkpoint(&open).expect_err("it is theirs");
    }
}
