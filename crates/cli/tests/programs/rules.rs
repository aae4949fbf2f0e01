//! `gristmill batch`: when programs begin, when they are tried again, and when no more begin. The oracle is what the
//! programs write.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::gristmill;
use crate::queue::wait_for;

/// Returns the queue that runs this list, as text or as TOML, in this folder.
fn queue(folder: &Path, options: &str, list: &str) -> Command {
    let name = if list.starts_with("[[job]]") { "jobs.toml" } else { "jobs.txt" };
    fs::write(folder.join(name), list).expect("written");
    let mut command = gristmill(["batch", name, "--no-history"]);
    command.args(options.split_ascii_whitespace()).current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs a list. Returns the exit status, and what was said.
fn run(folder: &Path, options: &str, list: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = queue(folder, options, list).output().expect("it starts");
    (status.code(), String::from_utf8(stderr).expect("text"))
}

/// Returns the words of a file; none if it is not there.
fn words(folder: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// After a failure, programs that ran for hours could not be ended without ending the queue by hand.
#[test]
fn halt_now_ends_what_runs_and_resume_runs_it_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "until test -e polite && test -e deaf; do sleep 0.01; done; exit 3\n\
        echo x >> polite; test -e go && exit; trap 'echo x >> asked; exit 0' TERM; while :; do sleep 0.01; done\n\
        echo x >> deaf; test -e go && exit; trap '' TERM; while :; do sleep 0.01; done\n\
        echo x >> later\n";
    let (status, said) = run(dir.path(), "-j3 --halt now --journal journal", list);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("after a failure, 2 programs that still run are asked to end (--halt now)"), "{said}");
    assert!(said.contains("4 programs: 0 succeeded, 1 failed, 2 were ended, 1 did not run"), "{said}");
    let counts = |names: [&str; 4]| names.map(|name| words(dir.path(), name).len());
    assert_eq!(counts(["polite", "asked", "deaf", "later"]), [1, 1, 1, 0]);
    // Only the failure has an end in the journal.
    fs::write(dir.path().join("go"), "").expect("written");
    let (status, said) = run(dir.path(), "-j3 --halt now --journal journal --resume", list);
    assert_eq!((status, counts(["polite", "asked", "deaf", "later"])), (Some(1), [2, 1, 2, 1]), "{said}");
}

/// GNU parallel's manual: `soon,fail=3` lets running jobs complete when 3 have failed, `now,success=1` ends when one
/// has succeeded.
#[test]
fn a_queue_halts_after_as_many_failures_or_successes_as_were_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let (status, _) = run(dir.path(), "-j1 --halt soon,fail=2", "false\necho a >> seen\nfalse\necho b >> seen");
    assert_eq!((status, words(dir.path(), "seen")), (Some(1), vec!["a".to_owned()]));
    // One that is tried again has not failed yet.
    let list = "[[job]]\ncommand='test -e tried || { touch tried; exit 1; }'\nretries=1\n[[job]]\ncommand='touch c'";
    assert_eq!(run(dir.path(), "-j1 --halt soon,fail=1", list).0, Some(0));
    assert!(dir.path().join("c").exists());
    let list = "exit 1\nsleep 1000\nuntil test -e failed; do sleep 0.01; done\ntouch failed; exit 2\nsleep 1001";
    let (status, said) = run(dir.path(), "-j5 --halt now,success=1", list);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("1 succeeded, 2 failed, 2 were ended;"), "{said}");
    let (status, said) = run(dir.path(), "-j2 --halt never", "false\ntouch d");
    assert_eq!((status, dir.path().join("d").exists()), (Some(1), true), "{said}");
    // None has succeeded.
    assert_eq!(run(dir.path(), "--halt soon,success=1", "false\nfalse").0, Some(1));
}

#[test]
fn rules_that_make_no_sense_are_refused_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    for (options, why) in [
        ("--halt 10%", "the known forms are never, soon, now,"),
        ("--halt now,done=1", "the known forms are never, soon, now,"),
        ("--halt soon,fail=0", "the known forms are never, soon, now,"),
        ("--halt now --keep-going", "cannot be used with"),
        ("--retry-delay 1s", "--retry-delay has nothing to delay: no job is tried again; add --retries N"),
        ("--retries 1 --retry-delay soon", "write 30s"),
        ("--log same --journal same", "--journal and --log are the same file"),
        ("--load 0", "write a number such as 4"),
        ("--free-memory 100000TiB", "so no program would ever begin"),
        ("--free-memory 0", "--free-memory is 0, and as much is always free: leave it out"),
    ] {
        let (status, said) = run(dir.path(), options, "touch ran");
        assert!(status == Some(2) && said.contains(why), "{options}: {said}");
    }
    let (_, said) = run(dir.path(), "", "[[job]]\ncommand='touch ran'\nretry_delay='1s'");
    assert!(said.contains("job 1: retry_delay has nothing to delay"), "{said}");
    assert!(!dir.path().join("ran").exists());
}

/// A server that was down for a second was asked again at once, as often as allowed, and then given up.
#[test]
fn a_job_waits_for_its_next_attempt_without_a_slot() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "echo first >> seen; test -e up\necho second >> seen; touch up\n";
    let (status, said) = run(dir.path(), "-j1 --retries 1 --retry-delay 2s", list);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(words(dir.path(), "seen"), ["first", "second", "first"]);
    // Each job may say something else. At the end nothing else runs, and the queue is not over yet.
    let list = "[[job]]\ncommand='echo x >> alone; test $(cat alone | wc -l) = 3'\nretries=2\nretry_delay='30ms'";
    assert_eq!(run(dir.path(), "--retry-delay 1h", list).0, Some(0));
    assert_eq!(words(dir.path(), "alone").len(), 3);
}

/// "1 program: 0 succeeded, 1 did not run" was said of one that had run and failed with exit 5, and nothing named it.
#[test]
fn a_signal_ends_a_queue_in_which_a_job_waits_to_be_tried_again_and_its_failure_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "echo x >> tried; exit 5";
    let mut child = queue(dir.path(), "--retries 1 --retry-delay 1h --log log.tsv", list);
    let mut child = child.stderr(Stdio::piped()).spawn().expect("it starts");
    // The line is written when the attempt has ended.
    let log = dir.path().join("log.tsv");
    wait_for("an attempt", || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 2));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let mut said = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(!child.wait().expect("it ends").success());
    assert_eq!(words(dir.path(), "tried").len(), 1);
    assert!(said.contains("1 program: 0 succeeded, 1 failed;"), "{said}");
    assert!(said.contains("exit 5: exit 5, and not tried again, because the queue ended"), "{said}");
}

/// Returns what the lines of JSON on standard output say.
fn lines_of_json(stdout: &[u8]) -> Vec<serde_json::Value> {
    let line = |line: &[u8]| serde_json::from_slice(line).expect("JSON");
    stdout.split_inclusive(|byte| *byte == b'\n').map(line).collect()
}

/// Returns what the lines of a log say of number, attempt and status.
fn statuses(log: &Path) -> Vec<String> {
    table(log).iter().skip(1).map(|row| [&row[0], &row[1], &row[5]].map(String::as_str).join(" ")).collect()
}

/// When a queue halted, a job that had failed before and waited for its next attempt "did not run", and the line of
/// JSON said that it was tried again.
#[test]
fn a_failure_whose_next_attempt_never_comes_counts_is_named_and_may_be_resumed() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\nname='r'\ncommand='echo x >> tried; test -e go || exit 7'\nretries=3\nretry_delay='1h'\n\
        [[job]]\nname='f'\ncommand='until grep -q \"exit 7\" log.tsv; do sleep 0.01; done; exit 9'\n\
        [[job]]\nname='n'\ncommand='touch never'\nafter=['r']\n";
    let options = "-j2 --json --log log.tsv --journal journal";
    let Output { status, stdout, stderr } = queue(dir.path(), options, list).output().expect("it starts");
    let said = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("3 programs: 0 succeeded, 2 failed, 1 did not run;"), "{said}");
    assert!(said.contains(": r: exit 7, and not tried again, because the queue ended\n"), "{said}");
    assert!(said.contains(": f: exit 9\n"), "{said}");
    let told = lines_of_json(&stdout);
    assert_eq!((&told[0]["attempts_left"], &told[1]["attempts_left"]), (&3.into(), &0.into()));
    let summary = &told[2]["summary"];
    let counts = ["succeeded", "failed", "not_tried_again", "were_ended", "skipped", "did_not_run"];
    assert_eq!(counts.map(|name| summary[name].as_u64()), [0, 2, 1, 0, 0, 1].map(Some), "{summary}");
    let log = dir.path().join("log.tsv");
    assert_eq!(statuses(&log), ["1 1 exit 7", "2 1 exit 9", "1 0 not tried again", "3 0 did not run"]);
    // It has attempts left, so it has no end in the journal.
    fs::write(dir.path().join("go"), "").expect("written");
    let (status, said) = run(dir.path(), &format!("{options} --resume"), list);
    assert_eq!((status, words(dir.path(), "tried").len()), (Some(1), 2), "{said}");
    assert!(said.contains("2 succeeded, 1 failed (1 had ended before)") && dir.path().join("never").exists(), "{said}");
}

/// A program that ran until Ctrl-C came twice "did not run".
#[test]
fn programs_that_were_ended_are_told_apart_from_those_that_did_not_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = "-j1 --json --log log.tsv";
    let mut child = queue(dir.path(), options, "touch begun; exec sleep 1000\ntouch never\n");
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("begun").exists());
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert!(said.contains("no further program begins"), "{said}");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    stderr.read_to_string(&mut said).expect("text");
    let Output { status, stdout, .. } = child.wait_with_output().expect("it ends");
    assert!(!status.success() && said.contains("2 programs: 0 succeeded, 1 was ended, 1 did not run;"), "{said}");
    let summary = &lines_of_json(&stdout)[1]["summary"];
    assert_eq!(["were_ended", "did_not_run"].map(|name| summary[name].as_u64()), [1, 1].map(Some), "{summary}");
    assert_eq!(statuses(&dir.path().join("log.tsv")), ["1 1 ended on request", "2 0 did not run"]);
}

/// After the first process of a queue was killed, the log said of its programs "ended on request", though nobody had
/// asked.
#[test]
fn programs_that_end_with_their_queue_were_not_ended_on_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut child = queue(dir.path(), "--log log.tsv", "touch begun; exec sleep 1000").spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("begun").exists());
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let log = dir.path().join("log.tsv");
    wait_for("the other process writes", || statuses(&log).len() == 1);
    assert_eq!(statuses(&log), ["1 1 ended with the queue"]);
}

/// `gristmill batch -q | head -1` ended with status 1, and no word about why.
#[test]
fn a_reader_that_closes_the_pipe_ends_the_queue_and_programs_that_did_not_run_for_it_are_told() {
    for (last, expected) in [("touch never\n", Some(1)), ("", Some(0))] {
        let dir = tempfile::tempdir().expect("a directory");
        let list = format!("echo one\ntouch begun; until test -e go; do sleep 0.01; done; echo two\n{last}");
        let mut child = queue(dir.path(), "-q -j1", &list);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("a line");
        wait_for("the second program", || dir.path().join("begun").exists());
        // Its reader has seen enough.
        drop(stdout);
        fs::write(dir.path().join("go"), "").expect("written");
        let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
        let said = String::from_utf8(stderr).expect("text");
        assert_eq!(
            (line.as_str(), status.code(), dir.path().join("never").exists()),
            ("one\n", expected, false),
            "{said}"
        );
        let why = "gristmill: nobody reads standard output any more, so no further program begins\n";
        assert_eq!(said, if last.is_empty() { "" } else { why });
    }
}

#[test]
fn jobs_with_a_higher_priority_begin_first_and_equal_ones_in_the_order_of_the_list() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = |name: &str, fields: &str| format!("[[job]]\nname='{name}'\ncommand='echo {name} >> seen'\n{fields}\n");
    let list = [
        job("late", "priority=-1"),
        job("a", ""),
        job("b", ""),
        job("urgent", "priority=7\nafter=['b']"),
        job("high", "priority=3"),
    ];
    let (status, said) = run(dir.path(), "-j1", &list.concat());
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(words(dir.path(), "seen"), ["high", "a", "b", "urgent", "late"]);
}

/// A job that removes temporary files never ran when it was needed: after a failure.
#[test]
fn a_job_after_any_outcome_runs_although_others_failed_or_did_not_run() {
    let clean = "[[job]]\nname='clean'\ncommand='echo clean >> seen'\nafter_any=['fails','skipped','never']\n\
        [[job]]\ncommand='echo then >> seen'\nafter=['clean']\n\
        [[job]]\nname='fails'\ncommand='echo fails >> seen; exit 1'\n\
        [[job]]\nname='skipped'\ncommand='echo skipped >> seen'\nafter=['fails']\n";
    let never = "[[job]]\nname='never'\ncommand='echo never >> seen'\n";
    let dir = tempfile::tempdir().expect("a directory");
    let dry = queue(dir.path(), "--dry-run", &(clean.to_owned() + never)).output().expect("it starts").stdout;
    let dry = String::from_utf8(dry).expect("text");
    assert!(
        dry.contains("sh -c 'echo clean >> seen' < /dev/null  # after any outcome of fails, skipped, never\n"),
        "{dry}"
    );
    for (options, expected) in [
        // Nothing else begins after the failure.
        ("-j1", ["fails", "clean"].to_vec()),
        ("-j1 --halt now", ["fails", "clean"].to_vec()),
        ("-j1 --keep-going", ["fails", "never", "clean", "then"].to_vec()),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let (status, said) = run(dir.path(), options, &(clean.to_owned() + never));
        assert_eq!(
            (status, words(dir.path(), "seen")),
            (Some(1), expected.iter().map(|word| word.to_string()).collect()),
            "{said}"
        );
    }
}

/// A program that cleans up is not cut off in the middle.
#[test]
fn halt_now_ends_no_job_that_runs_after_any_outcome() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\nname='first'\ncommand='true'\n\
        [[job]]\ncommand='touch begun; until test -e fell; do sleep 0.01; done; touch whole'\nafter_any=['first']\n\
        [[job]]\ncommand='trap \"touch fell; exit\" TERM; while :; do sleep 0.01; done'\n\
        [[job]]\ncommand='until test -e begun; do sleep 0.01; done; exit 1'\n";
    let (status, said) = run(dir.path(), "-j4 --halt now", list);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the program that still runs is asked to end"), "{said}");
    assert!(dir.path().join("whole").exists(), "{said}");
}

#[test]
fn a_job_after_any_outcome_runs_again_with_what_it_waits_for_and_not_after_a_signal() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\nname='clean'\ncommand='echo clean >> seen'\nafter_any=['fails']\n\
        [[job]]\nname='other'\ncommand='echo other >> seen'\nafter_any=['good']\n\
        [[job]]\nname='good'\ncommand='echo good >> seen'\n\
        [[job]]\nname='fails'\ncommand='echo fails >> seen; exit 1'\n";
    let seen = || words(dir.path(), "seen");
    run(dir.path(), "-j1 --journal journal --keep-going", list);
    assert_eq!(seen(), ["good", "other", "fails", "clean"]);
    // Nothing runs that they would wait for.
    run(dir.path(), "-j1 --journal journal --resume", list);
    assert_eq!(seen().len(), 4);
    // What failed runs again, and the job after it.
    run(dir.path(), "-j1 --journal journal --resume-failed", list);
    assert_eq!(seen()[4..], ["fails", "clean"]);
    // The user wants no further program.
    let list = "[[job]]\nname='long'\ncommand='touch begun; until test -e go; do sleep 0.01; done'\n\
        [[job]]\ncommand='touch never'\nafter_any=['long']\n";
    let mut child = queue(dir.path(), "-j1", list).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("begun").exists());
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let mut said = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut said).expect("a line");
    assert!(said.contains("no further program begins"), "{said}");
    fs::write(dir.path().join("go"), "").expect("written");
    assert!(!child.wait().expect("it ends").success());
    assert!(!dir.path().join("never").exists());
}

/// A machine that others keep busy was given as many programs as an idle one.
#[test]
fn programs_that_compute_run_one_by_one_below_a_load_of_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = "mkdir alone || echo x >> beside; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; rmdir alone; echo x >> seen\n";
    let (status, said) = run(dir.path(), "-j4 --load 1", &job.repeat(8));
    assert_eq!(status, Some(0), "{said}");
    assert_eq!([words(dir.path(), "seen").len(), words(dir.path(), "beside").len()], [8, 0], "{said}");
    // With room for all, the limit is no matter.
    let both = "touch a; until test -e b; do sleep 0.01; done\ntouch b; until test -e a; do sleep 0.01; done\n";
    assert_eq!(run(dir.path(), "-j2 --load 100000", both).0, Some(0));
    assert_eq!(run(dir.path(), "-j2 --free-memory 1KiB", both).0, Some(0));
}

/// GNU parallel waits for free memory in silence, for ever if the machine does not have as much.
#[test]
fn a_queue_that_waits_for_free_memory_says_so_and_ends_by_a_signal() {
    let dir = tempfile::tempdir().expect("a directory");
    // All of the machine's memory is never free.
    let kernel = fs::read_to_string("/proc/meminfo").expect("memory");
    let total = kernel.split_ascii_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") * 1024;
    let limit = gristmill_os::machine::memory_limit_bytes().map_or(total, |limit| limit.min(total));
    let options = format!("--quiet --free-memory {limit}");
    let mut child = queue(dir.path(), &options, "touch ran").stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    stderr.read_line(&mut said).expect("a line");
    assert!(said.contains("of memory are free, so no further program begins until there are"), "{said}");
    assert!(said.contains("none runs now, and Ctrl-C ends the queue"), "{said}");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    stderr.read_to_string(&mut said).expect("text");
    assert!(!child.wait().expect("it ends").success());
    assert!(!dir.path().join("ran").exists());
    assert_eq!(said.matches("--free-memory").count(), 1, "{said}");
}

/// Returns the fields of each line of a log. Its escapes are those of a text in JSON.
fn table(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).expect("a log");
    let field = |field: &str| serde_json::from_str(&format!("\"{field}\"")).expect("a text of JSON");
    text.lines().map(|line| line.split('\t').map(field).collect()).collect()
}

/// Only lines of JSON, which no spreadsheet reads, told which jobs had run, when, and for how long.
#[test]
fn a_log_has_a_line_for_each_attempt_and_goes_on_in_a_second_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\nname=\"a\\t\\\"b\\\"\\n\\\\c\"\ncommand=['sh','-c','test -e tried || { touch tried; exit 4; }',\"it's\\n\"]\nretries=1\n\
        [[job]]\nname='killed'\ncommand='kill -9 $$'\n[[job]]\ncommand='touch never'\nafter=['killed']\n\
        [[job]]\nname='slow'\ncommand='sleep 1000'\ntimeout='20ms'\n[[job]]\nname='absent'\ncommand=['/no/such/program']\n";
    let (status, said) = run(dir.path(), "-j1 --keep-going --log log.tsv", list);
    assert_eq!(status, Some(1), "{said}");
    let log = dir.path().join("log.tsv");
    assert_eq!(fs::metadata(&log).expect("a file").permissions().mode() & 0o777, 0o600);
    let mut rows = table(&log);
    let header = "job attempt name start_utc seconds status memory_bytes user_seconds system_seconds command";
    assert_eq!(rows.remove(0).join(" "), header);
    assert!(rows.iter().all(|row| row.len() == 10), "{rows:?}");
    let told: Vec<String> =
        rows.iter().map(|row| [&row[0], &row[1], &row[2], &row[5]].map(String::as_str).join(" ")).collect();
    let odd = "a\t\"b\"\n\\c";
    let refused = &told[4];
    assert!(refused.starts_with("5 1 absent refused: ") && refused.contains("No such file"), "{refused}");
    assert_eq!(
        [&told[..4], &told[5..]].concat(),
        [
            &format!("1 1 {odd} exit 4"),
            &format!("1 2 {odd} exit 0"),
            "2 1 killed signal 9",
            "4 1 slow timed out",
            "3 0 touch never skipped"
        ]
    );
    assert_eq!((rows[2][9].as_str(), rows[5][3].as_str()), ("kill -9 $$", ""));
    // What a shell reads is what was run.
    let echoed = Command::new("sh").args(["-c", &format!("printf '%s|' {}", rows[0][9])]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&echoed.stdout), "sh|-c|test -e tried || { touch tried; exit 4; }|it's\n|");
    assert!(rows[..4].iter().all(|row| row[4].parse::<f64>().is_ok() && row[6].parse::<u64>().is_ok()), "{rows:?}");
    // Names of fields are not repeated.
    assert_eq!(run(dir.path(), "--log log.tsv", "echo more\n").0, Some(0));
    let rows = table(&log);
    assert_eq!((rows.len(), rows[7][5].as_str(), rows[7][9].as_str()), (8, "exit 0", "echo more"));
    // The number of a slot is known when a job begins.
    let words = ["batch", "-j1", "--no-history", "--log", "log.tsv", "--", "echo", "{%}-{}", ":::", "a"];
    assert!(gristmill(words).current_dir(dir.path()).output().expect("it starts").status.success());
    assert_eq!(table(&log)[8][9], "echo 1-a");
}

#[test]
fn a_log_replaces_no_other_file_and_follows_no_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let mine = dir.path().join("mine");
    fs::write(&mine, "job\tattempt\nmine\n").expect("written");
    symlink(&mine, dir.path().join("link")).expect("made");
    assert!(Command::new("mkfifo").arg(dir.path().join("fifo")).status().expect("it starts").success());
    for name in ["mine", "link", "fifo", "/dev/null", "."] {
        let (status, said) = run(dir.path(), &format!("--log {name}"), "touch ran");
        assert!(status.is_some_and(|status| status != 0) && said.contains(name), "{name}: {said}");
    }
    assert_eq!(fs::read_to_string(&mine).expect("there"), "job\tattempt\nmine\n");
    assert!(!dir.path().join("ran").exists());
    // A disk that is full is said, and the programs run.
    let (status, said) = full(dir.path());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("log.tsv cannot be written") && dir.path().join("b").exists(), "{said}");
}

/// Runs programs with a log that becomes too large.
fn full(folder: &Path) -> (Option<i32>, String) {
    // Files of the queue may have 512 bytes; the name of this job has more.
    fs::write(folder.join("jobs"), format!("touch a; : {}\ntouch b\n", "x".repeat(600))).expect("written");
    let line =
        format!("ulimit -f 1; exec {} batch -j1 --no-history --log log.tsv jobs", env!("CARGO_BIN_EXE_gristmill"));
    let output =
        Command::new("sh").args(["-c", &line]).current_dir(folder).stdin(Stdio::null()).output().expect("a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
