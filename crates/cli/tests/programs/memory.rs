//! The memory of the jobs of `gristmill batch`: amounts that there are not, limits, and kills.

use std::fs;
use std::process::Output;

use gristmill_batch::queue::{Outcome, Past};

use crate::queue::{batch, text};

/// A job for 4 TiB ran alone, on any machine.
#[test]
fn memory_that_the_machine_does_not_have_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |options: &str, memory: &str, why: &str| {
        let list = format!("[[job]]\ncommand='touch ran'\n[[job]]\nname='b'\ncommand='touch ran'\n{memory}");
        fs::write(dir.path().join("jobs.toml"), list).expect("written");
        let Output { status, stderr, .. } = batch(dir.path(), &format!("--no-history {options} jobs.toml"), "");
        assert!(status.code() != Some(0) && text(&stderr).contains(why), "{}", text(&stderr));
        assert!(!dir.path().join("ran").exists());
    };
    refused("", "memory='4000TiB'", "the memory of job 2 (b) is 3.9 PiB, and there are only ");
    refused("--dry-run", "memory='4000TiB'", "the memory of job 2 (b) is 3.9 PiB, and there are only ");
    refused("--memory 4000TiB", "", "--memory is 3.9 PiB, and there are only ");
    refused("--memory 0", "", "--memory is 0");
    refused("", "memory='0'", "job 2: memory is 0");
}

/// `memory = "2GiB"` with `--memory 1GiB` was accepted in silence, and the job ran alone.
#[test]
fn a_job_that_asks_for_more_than_the_memory_of_all_is_named_at_the_start() {
    let dir = tempfile::tempdir().expect("a directory");
    let job =
        |name: &str, memory: &str| format!("[[job]]\nname='{name}'\ncommand='echo {name} >> ran'\nmemory='{memory}'\n");
    let warnings = |options: &str, jobs: &[String]| {
        fs::write(dir.path().join("jobs.toml"), jobs.concat()).expect("written");
        let options = format!("--no-history --memory 100MiB {options} jobs.toml");
        let Output { status, stderr, .. } = batch(dir.path(), &options, "");
        assert!(status.success(), "{}", text(&stderr));
        text(&stderr).to_owned()
    };
    let [small, large, larger] = [job("a", "100MiB"), job("b", "200MiB"), job("c", "300MiB")];
    let one = "job 2 (b) asks for 200 MiB, more than --memory 100 MiB, so it runs alone\n";
    let said = warnings("--journal journal", &[small.clone(), large.clone()]);
    assert_eq!(said.matches(one).count(), 1, "{said}");
    let said = warnings("", &[small.clone(), large.clone(), larger]);
    assert!(
        said.contains("job 2 (b) and 1 more ask for more than --memory 100 MiB, so each of them runs alone\n"),
        "{said}"
    );
    // Neither one that does not run any more, nor a quiet queue.
    for options in ["--journal journal --resume", "--quiet"] {
        assert!(!warnings(options, &[small.clone(), large.clone()]).contains("alone"));
    }
}

/// `memory = "50MiB"` was only planned with: a job took what it liked. What was killed for memory was told as signal 9
/// or exit 137.
#[test]
fn a_job_that_takes_more_than_its_memory_is_killed_and_that_is_named_or_nothing_holds_it_and_that_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    // Lines without an end are kept in memory by tail. The shell itself goes on, and exits with 0 or waits.
    let list = "[[job]]\nname='large'\ncommand='head -c 90000000 /dev/zero | tail | wc -c; exit 0'\nmemory='50MiB'\n\
                [[job]]\nname='waits'\ncommand='head -c 90000000 /dev/zero | tail > kept || sleep 1000'\nmemory='50MiB'\n\
                [[job]]\nname='small'\ncommand='head -c 9000000 /dev/zero | tail | wc -c'\nmemory='50MiB'\n\
                [[job]]\nname='free'\ncommand='head -c 90000000 /dev/zero | tail | wc -c'";
    fs::write(dir.path().join("jobs.toml"), list).expect("written");
    let options = "--no-history --json -k -j 1 --journal journal jobs.toml";
    let Output { status, stdout, stderr } = batch(dir.path(), options, "");
    let said = text(&stderr);
    let outcomes: Vec<serde_json::Value> =
        text(&stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let outcome = |at: usize| outcomes[at]["outcome"].as_str().expect("text").to_owned();
    assert_eq!([outcome(2), outcome(3)], ["exit 0", "exit 0"], "{said}");
    if said.contains("no limit holds them to it") {
        assert_eq!(
            ([outcome(0), outcome(1)], status.code()),
            (["exit 0", "exit 0"].map(String::from), Some(0)),
            "{said}"
        );
        return;
    }
    assert_eq!(
        ([outcome(0), outcome(1)], status.code()),
        (["killed for memory"; 2].map(String::from), Some(1)),
        "{said}"
    );
    assert!(said.contains("large: killed for memory"), "{said}");
    let past = Past::read(&fs::read(dir.path().join("journal")).expect("there")).expect("a journal");
    assert_eq!(past.ended.values().filter(|outcome| **outcome == Outcome::OutOfMemory).count(), 2);
    // They have ended for the journal, too.
    let Output { stderr, .. } = batch(dir.path(), &format!("{options} --resume"), "");
    assert!(text(&stderr).contains("2 succeeded, 2 failed (4 had ended before)"), "{}", text(&stderr));
}
