//! `gristmill batch`: programs that run once, whole, and whatever happens to the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gristmill_batch::queue::{Keys, Outcome, Past, Shell};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::command::{complaint, gristmill};

/// Runs the lines of `jobs` in `folder`.
pub fn batch(folder: &Path, options: &str, jobs: &str) -> Output {
    let mut command = gristmill(["batch"]);
    command.args(options.split_ascii_whitespace()).current_dir(folder).env("XDG_DATA_HOME", folder);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    feed(&mut child, jobs);
    child.wait_with_output().expect("it ends")
}

/// Writes the list of jobs to a queue, which may refuse its options and end before it reads.
pub fn feed(queue: &mut Child, jobs: &str) {
    let written = queue.stdin.take().expect("a pipe").write_all(jobs.as_bytes());
    assert!(written.is_ok() || written.as_ref().is_err_and(|e| e.kind() == ErrorKind::BrokenPipe), "{written:?}");
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// Returns the processes whose command line names this folder.
pub fn processes_of(folder: &Path) -> Vec<i32> {
    let folder = folder.to_str().expect("text");
    let numbers = fs::read_dir("/proc").expect("a folder").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let names = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    numbers.filter(|pid| String::from_utf8_lossy(&names(pid)).contains(folder)).collect()
}

pub fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_output_of_each_program_stays_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let job = |letter: char| format!("for i in 1 2 3 4 5; do echo {letter}$i; echo {letter} >&2; sleep 0.002; done\n");
    let jobs: String = "abcd".chars().map(job).collect();
    let Output { status, stdout, stderr } = batch(dir.path(), "-j 4", &jobs);
    assert!(status.success(), "{}", text(&stderr));
    let mut blocks: Vec<Vec<&str>> = text(&stdout).lines().collect::<Vec<_>>().chunks(5).map(<[_]>::to_vec).collect();
    blocks.sort();
    let block = |letter: char| (1..=5).map(|number| format!("{letter}{number}")).collect::<Vec<_>>();
    assert_eq!(blocks, "abcd".chars().map(block).collect::<Vec<_>>());
    assert!(text(&stderr).contains("4 programs: 4 succeeded"), "{}", text(&stderr));
    // In folders, nothing is printed.
    let Output { stdout, .. } = batch(dir.path(), "--output out --quiet", &jobs);
    assert_eq!(text(&stdout), "");
    let first = fs::read_dir(dir.path().join("out")).expect("a folder").flatten().map(|entry| entry.path()).min();
    let first = fs::read_to_string(first.expect("four").join("stdout")).expect("a file");
    assert_eq!(first, "a1\na2\na3\na4\na5\n");
}

#[test]
fn a_table_of_jobs_has_dependencies_retries_and_time_outs() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\nname='last'\ncommand='cat made'\nafter=['first']\n\
                [[job]]\nname='first'\ncommand='test -e tried && echo $WHAT > made; touch tried; test -e made'\n\
                retries=1\nenvironment={WHAT='it works'}\n\
                [[job]]\nname='endless'\ncommand=['sh','-c','trap \"\" TERM; while :; do sleep 0.1; done']\ntimeout='50ms'\n\
                [[job]]\nname='skipped'\ncommand='touch never'\nafter=['endless']";
    fs::write(dir.path().join("jobs.toml"), list).expect("written");
    let Output { status, stdout, stderr } = batch(dir.path(), "--json --keep-going -j 2 jobs.toml", "");
    assert_eq!(status.code(), Some(1), "{}", text(&stderr));
    let lines: Vec<serde_json::Value> =
        text(&stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: BTreeSet<(String, u64, String)> = lines
        .iter()
        .filter_map(|line| {
            let [name, outcome] = ["name", "outcome"].map(|field| line[field].as_str().map(str::to_owned));
            Some((name?, line["attempt"].as_u64()?, outcome?))
        })
        .collect();
    let expected = [("first", 1, "exit 1"), ("first", 2, "exit 0"), ("last", 1, "exit 0"), ("endless", 1, "timed out")];
    assert_eq!(told, expected.map(|(name, attempt, outcome)| (name.into(), attempt, outcome.into())).into());
    assert_eq!(lines.last().expect("a line")["summary"]["skipped"], 1);
    assert!(text(&stderr).starts_with("it works\n"), "{}", text(&stderr));
    assert!(!dir.path().join("never").exists());
}

/// A command that left a process in another session made `gristmill scale` wait for two seconds: it was killed a
/// thousand times, but not reaped.
#[test]
fn programs_that_fork_daemonise_or_ignore_signals_do_not_hang_the_queue() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().display();
    let jobs = format!(
        "setsid sh -c 'sleep 1000; : {path}' & echo daemon\n(sh -c 'sleep 1000; : {path}' &)\nnohup sh -c 'sleep 1000; : {path}' &\n"
    );
    let Output { status, stderr, .. } = batch(dir.path(), "", &jobs);
    assert!(status.success(), "{}", text(&stderr));
    assert_eq!(processes_of(dir.path()), [0; 0]);
}

#[test]
fn programs_that_fail_or_cannot_start_end_the_queue_with_status_1() {
    let dir = tempfile::tempdir().expect("a directory");
    let Output { status, stderr, .. } = batch(dir.path(), "-j 1", "exit 7\ntouch never\n");
    assert_eq!(status.code(), Some(1));
    let said = text(&stderr);
    assert!(said.contains("1 failed, 1 did not run") && said.contains("exit 7: exit 7"), "{said}");
    assert!(!dir.path().join("never").exists());
    let mut command = gristmill(["batch", "--no-history", "--", "/no/such/program"]);
    assert!(complaint(&mut command, 1).contains("/no/such/program: refused: No such file"));
    let hundred = "false\n".repeat(100);
    let Output { stderr, .. } = batch(dir.path(), "--keep-going", &hundred);
    assert!(text(&stderr).contains("100 failed") && text(&stderr).contains("and 95 more"), "{}", text(&stderr));
}

/// `tail -f list | gristmill batch` read the list to its end before the first job began, so that none ever began.
#[test]
fn jobs_begin_while_their_list_arrives() {
    let dir = tempfile::tempdir().expect("a directory");
    let begin = |options: &str| {
        let mut command = gristmill(["batch", "--no-history"]);
        command.args(options.split_ascii_whitespace()).current_dir(dir.path()).stdin(Stdio::piped());
        let mut queue = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let list = queue.stdin.take().expect("a pipe");
        (queue, list)
    };
    let (queue, mut list) = begin("--journal j");
    for number in 1..=3 {
        // The beginning of the next line arrives as well.
        write!(list, "touch {number}\n: half of ").expect("it reads");
        wait_for("a job began", || dir.path().join(number.to_string()).exists());
        writeln!(list, "line {number}").expect("it reads");
    }
    drop(list);
    let Output { status, stderr, .. } = queue.wait_with_output().expect("it ends");
    assert!(status.success() && text(&stderr).contains("6 programs: 6 succeeded"), "{}", text(&stderr));
    // What has ended does not run again, and what arrives later runs.
    let (queue, mut list) = begin("--journal j --resume");
    write!(list, "touch 1\ntouch 4").expect("it reads");
    fs::remove_file(dir.path().join("1")).expect("it was made");
    drop(list);
    assert!(queue.wait_with_output().expect("it ends").status.success());
    assert!(dir.path().join("4").exists() && !dir.path().join("1").exists());
    // A failure, or Ctrl-C, ends the queue although the list goes on.
    let (queue, mut list) = begin("");
    writeln!(list, "exit 3").expect("it reads");
    let Output { status, stderr, .. } = queue.wait_with_output().expect("it ends");
    assert!(status.code() == Some(1) && text(&stderr).contains("1 failed"), "{}", text(&stderr));
    let (queue, mut list) = begin("");
    writeln!(list, "touch 5").expect("it reads");
    wait_for("a job began", || dir.path().join("5").exists());
    kill_process(Pid::from_raw(queue.id() as i32).expect("a number"), Signal::INT).expect("it runs");
    assert!(!queue.wait_with_output().expect("it ends").status.success());
}

#[test]
fn a_list_that_makes_no_sense_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.toml"), "[[job]]\ncommand='touch ran'\n[[job]]\nafter=['x']").expect("written");
    let Output { status, stderr, .. } = batch(dir.path(), "a.toml", "");
    assert!(!status.success() && text(&stderr).contains("job 2: there is no command"), "{}", text(&stderr));
    fs::write(dir.path().join("j"), "dear diary\n").expect("written");
    let Output { stderr, .. } = batch(dir.path(), "--journal j --resume", "touch ran");
    assert!(text(&stderr).contains("it is not a journal"), "{}", text(&stderr));
    let Output { status, stderr, .. } = batch(dir.path(), "--journal j", "touch ran");
    assert!(status.code() == Some(2) && text(&stderr).contains("--resume"), "{}", text(&stderr));
    assert_eq!(fs::read_to_string(dir.path().join("j")).expect("there"), "dear diary\n");
    // Reading a device never ended.
    let Output { status, stderr, .. } = batch(dir.path(), "--journal /dev/zero --resume", "touch ran");
    assert!(!status.success() && text(&stderr).contains("it is no regular file"), "{}", text(&stderr));
    assert!(!dir.path().join("ran").exists());
}

#[test]
fn a_job_that_the_kernel_refuses_fails_and_the_others_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = format!("echo one\necho {}\necho one\n", "x".repeat(300_000));
    let Output { status, stdout, stderr } = batch(dir.path(), "--keep-going", &jobs);
    assert_eq!((status.code(), text(&stdout)), (Some(1), "one\none\n"));
    assert!(text(&stderr).contains("3 programs: 2 succeeded, 1 failed"), "{}", text(&stderr));
    assert!(text(&stderr).len() < 2000, "{} bytes", stderr.len());
}

/// Starts the queue, and waits until its programs have written this many lines to `begun`.
fn begun(folder: &Path, options: &[&str], jobs: &str, lines: usize) -> Child {
    fs::write(folder.join("jobs.txt"), jobs).expect("written");
    let mut command = gristmill(["batch", "jobs.txt", "--no-history"]);
    command.args(options).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("it starts");
    let count = || fs::read_to_string(folder.join("begun")).map_or(0, |text| text.lines().count());
    wait_for("programs begin", || count() >= lines);
    child
}

#[test]
fn one_signal_begins_no_further_program_and_two_end_all() {
    let dir = tempfile::tempdir().expect("a directory");
    // 1. The running program ends by itself.
    let jobs = "echo 1 >> begun; until test -e go; do sleep 0.01; done; touch whole\ntouch never\n";
    let mut queue = begun(dir.path(), &["-j1"], jobs, 1);
    let pid = Pid::from_child(&queue);
    kill_process(pid, Signal::INT).expect("it runs");
    std::thread::sleep(Duration::from_millis(50));
    fs::write(dir.path().join("go"), "").expect("written");
    assert!(!queue.wait().expect("it ends").success());
    assert!(dir.path().join("whole").exists() && !dir.path().join("never").exists());
    // 2. It is ended.
    let jobs = format!("echo 2 >> begun; exec sh -c 'sleep 1000; : {}'\n", dir.path().display());
    let mut queue = begun(dir.path(), &["-j1"], &jobs, 2);
    let pid = Pid::from_child(&queue);
    kill_process(pid, Signal::INT).expect("it runs");
    // Two that wait would be one.
    std::thread::sleep(Duration::from_millis(50));
    kill_process(pid, Signal::INT).expect("it runs");
    assert!(!queue.wait().expect("it ends").success());
    assert_eq!(processes_of(dir.path()), [0; 0]);
}

/// The scheduler gets the signal of a terminal too, and was ended by it after all its work.
#[test]
fn a_signal_to_the_whole_group_counts_once() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("jobs"), "echo 1 >> begun; until test -e go; do sleep 0.01; done\n").expect("written");
    let mut command = gristmill(["batch", "--no-history", "jobs"]);
    command.current_dir(dir.path()).process_group(0).stderr(Stdio::piped());
    let mut queue = command.spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("begun").exists());
    kill_process_group(Pid::from_child(&queue), Signal::INT).expect("it runs");
    std::thread::sleep(Duration::from_millis(50));
    fs::write(dir.path().join("go"), "").expect("written");
    assert!(queue.wait().expect("it ends").success());
    let Output { stderr, .. } = queue.wait_with_output().expect("it has ended");
    assert!(text(&stderr).contains("1 program: 1 succeeded"), "{}", text(&stderr));
    // Ctrl-\ ends all at once.
    fs::write(dir.path().join("jobs"), format!("echo 2 > two; exec sh -c 'sleep 1000; : {}'", dir.path().display()))
        .expect("written");
    let mut command = gristmill(["batch", "--no-history", "--quiet", "jobs"]);
    let mut queue = command.current_dir(dir.path()).process_group(0).spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("two").exists());
    kill_process_group(Pid::from_child(&queue), Signal::QUIT).expect("it runs");
    assert!(!queue.wait().expect("it ends").success());
    assert_eq!(processes_of(dir.path()), [0; 0]);
}

/// Programs ran on after `systemctl stop` or `timeout`, until SIGKILL ended the queue as well.
#[test]
fn sigterm_ends_the_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = format!("echo 1 >> begun; exec sh -c 'sleep 1000; : {}'\ntouch never\n", dir.path().display());
    let mut queue = begun(dir.path(), &["-j1"], &jobs, 1);
    kill_process(Pid::from_child(&queue), Signal::TERM).expect("it runs");
    assert!(!queue.wait().expect("it ends").success());
    assert!(!dir.path().join("never").exists());
    assert_eq!(processes_of(dir.path()), [0; 0]);
}

/// Under `make test &` and `nohup`, the tests of signals waited for ever.
#[test]
fn tests_of_signals_pass_where_those_are_ignored() {
    let script = "trap '' INT QUIT HUP PIPE; exec \"$@\"";
    for name in ["one_signal_begins_no_further_program_and_two_end_all", "a_signal_to_the_whole_group_counts_once"] {
        let mut again = Command::new("timeout");
        again.args(["100", "sh", "-c", script, "sh"]).arg(std::env::current_exe().expect("this program"));
        let Output { status, stdout, .. } =
            again.args(["--exact", &format!("queue::{name}")]).output().expect("it starts");
        assert!(status.success() && text(&stdout).contains("1 passed"), "{status}: {}", text(&stdout));
    }
}

/// Many programs exit with 0 after SIGTERM, whether their work is done or not.
#[test]
fn a_program_that_took_too_long_has_failed_whatever_it_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = "[[job]]\ncommand='trap \"exit 0\" TERM; sleep 5 & wait'\ntimeout='50ms'\nretries=0\n\
                [[job]]\ncommand='echo 1 >> tries; false'\nretries=0\n\
                [[job]]\ncommand='sleep 0.2'\ntimeout='0s'\n\
                [[job]]\ncommand='true'\ntimeout='18446744073709551615s'";
    fs::write(dir.path().join("jobs.toml"), list).expect("written");
    let options = "--keep-going -j 1 --retries 2 --timeout 100ms --no-history jobs.toml";
    let Output { status, stderr, .. } = batch(dir.path(), options, "");
    let said = text(&stderr);
    assert!(status.code() == Some(1) && said.contains("2 succeeded, 2 failed") && said.contains("timed out"), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("tries")).expect("there"), "1\n");
}

/// Time-outs and Ctrl-C waited for the reader.
#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = format!("head -c 300000 /dev/zero\nexec sh -c 'sleep 1000; : {}'\n", dir.path().display());
    let mut command = gristmill(["batch", "--no-history", "-k", "-j2", "--timeout", "300ms", "-"]);
    command.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut queue = command.spawn().expect("it starts");
    feed(&mut queue, &jobs);
    wait_for("it begins", || !processes_of(dir.path()).is_empty());
    wait_for("it took too long, so it is ended", || processes_of(dir.path()).is_empty());
    let Output { status, stdout, .. } = queue.wait_with_output().expect("it ends");
    assert_eq!((status.code(), stdout.len()), (Some(1), 300_000));
}

/// Each program takes five files, and more than there may be were begun.
#[test]
fn no_more_programs_run_than_there_may_be_open_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 97; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_gristmill"),
        "batch",
        "--no-history",
        "-j",
        "40",
    ]);
    let mut queue =
        command.current_dir(dir.path()).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
    let jobs = "sleep 0.05\n".repeat(40);
    feed(&mut queue, &jobs);
    let Output { status, stderr, .. } = queue.wait_with_output().expect("it ends");
    let said = text(&stderr);
    assert!(status.success() && said.contains("at most 3 at the same time, not 40"), "{said}");
}

/// Kills the process that the user started (the guard), or its copy (the scheduler), with SIGKILL.
pub fn kill(queue: &Child, scheduler: bool) {
    let guard = queue.id();
    let children = fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap_or_default();
    let child = children.split_ascii_whitespace().next().and_then(|pid| pid.parse().ok());
    let victim = if scheduler { child.unwrap_or(guard as i32) } else { guard as i32 };
    // It may have ended by itself.
    let _ = kill_process(Pid::from_raw(victim).expect("a number"), Signal::KILL);
}

/// Returns true if no process holds the journal.
pub fn is_free(journal: &Path) -> bool {
    let Ok(file) = fs::File::open(journal) else { return true };
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Kills queues of short and endless programs, one after the other, until all that can end has ended.
#[test]
fn a_queue_killed_at_any_moment_leaves_nothing_stopped_lost_or_run_twice() {
    let seeds = std::env::var("GRISTMILL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(20_u64);
    let processors = std::thread::available_parallelism().expect("known").get();
    for seed in 1..=seeds {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().display();
        let lines: Vec<String> =
            (0..12).map(|job| format!("echo {job} >> {path}/begun; sleep 0.00{}; exit {}", job % 7, job % 3)).collect();
        let here = dir.path().canonicalize().expect("there");
        let (mut keys, shell) = (Keys::default(), Shell::default());
        let keys: Vec<String> = lines.iter().map(|line| keys.of(&shell.job(line.into()).in_folder(&here))).collect();
        fs::write(dir.path().join("jobs.txt"), lines.join("\n")).expect("written");
        let past = || Past::read(&fs::read(dir.path().join("journal")).unwrap_or_default()).expect("a journal");
        let lines_begun = || fs::read_to_string(dir.path().join("begun")).unwrap_or_default();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kills = 0;
        // With this, programs wait a moment before they begin; but the queue's own start takes longer.
        let (option, within_us) = match seed % 4 {
            0 => (Some("--by-bandwidth"), 200_000),
            2 => (Some("--by-bandwidth=choose"), 200_000),
            _ => (None, 40_000),
        };
        // Above the number of processors, so that there is something to choose.
        let jobs = if option.is_some() { processors + 2 } else { 3 };
        loop {
            let mut command =
                gristmill(["batch", "jobs.txt", "--journal", "journal", "--resume", "--keep-going", "--no-history"]);
            command.arg(format!("-j{jobs}"));
            command.args(option).current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
            let (before, begun_before) = (past(), lines_begun());
            let mut queue = command.spawn().expect("it starts");
            if kills < 4 {
                kills += 1;
                std::thread::sleep(Duration::from_micros(random.u64(0..within_us)));
                kill(&queue, random.bool());
            }
            queue.wait().expect("it ends");
            // The other process of the queue, and its programs, end by themselves.
            wait_for("nothing is left running or stopped", || processes_of(dir.path()).is_empty());
            wait_for("the other process has written its last line", || is_free(&dir.path().join("journal")));
            let begun_now = lines_begun();
            for job in begun_now[begun_before.len()..].lines().map(|job| job.parse::<usize>().expect("a number")) {
                assert!(!before.ended.contains_key(&keys[job]), "seed {seed}: job {job} had ended, and ran again");
            }
            if past().ended.len() == keys.len() {
                break;
            }
        }
        let expected = (0..12).map(|job| (keys[job].clone(), Outcome::Exited(job as i32 % 3)));
        assert_eq!(past().ended, expected.collect::<BTreeMap<_, _>>(), "seed {seed}");
    }
}

/// A program that has ended ran again, because the scheduler was killed before it could write that down.
#[test]
fn what_ends_while_the_scheduler_is_dead_is_written_by_the_guard() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = "echo 1 >> begun; until test -e go; do :; done\n";
    let mut queue = begun(dir.path(), &["--journal", "journal"], jobs, 1);
    let guard = queue.id();
    let children = fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).expect("it runs");
    let scheduler = Pid::from_raw(children.trim().parse().expect("one child")).expect("a number");
    // The scheduler stands still while the program ends, and never sees it.
    kill_process(scheduler, Signal::STOP).expect("it runs");
    fs::write(dir.path().join("go"), "").expect("written");
    let program =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", scheduler.as_raw_nonzero())).expect("it runs");
    let stat = format!("/proc/{}/stat", program.trim());
    wait_for("the program ends", || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")));
    kill_process(scheduler, Signal::KILL).expect("it stands still");
    assert!(!queue.wait().expect("it ends").success());
    let past = Past::read(&fs::read(dir.path().join("journal")).expect("a journal")).expect("a journal");
    assert_eq!(past.ended.into_values().collect::<Vec<_>>(), [Outcome::Exited(0)]);
    let again = Command::new(env!("CARGO_BIN_EXE_gristmill"))
        .args(["batch", "jobs.txt", "--journal", "journal", "--resume", "--no-history"])
        .current_dir(dir.path())
        .status();
    assert!(again.expect("it starts").success());
    assert_eq!(fs::read_to_string(dir.path().join("begun")).expect("there"), "1\n");
}

#[test]
fn programs_that_take_no_time_are_not_worth_choosing_once_that_is_known() {
    let dir = tempfile::tempdir().expect("a directory");
    let processors = std::thread::available_parallelism().expect("known").get();
    fs::write(dir.path().join("jobs"), "true\n".repeat(3 * processors)).expect("written");
    for (run, said) in [(1, "tier "), (2, "this list usually takes less than 5 s")] {
        let output = batch(dir.path(), "--by-bandwidth -j 300% jobs", "");
        let told = text(&output.stderr);
        assert!(output.status.success() && told.contains(said), "run {run}: {told}");
    }
}

#[test]
fn the_history_lists_explains_exports_and_forgets_programs() {
    let dir = tempfile::tempdir().expect("a directory");
    for _ in 0..2 {
        assert!(batch(dir.path(), "", "true\ntrue secret-argument\n").status.success());
    }
    batch(dir.path(), "", "false\n");
    let history = |arguments: &[&str]| {
        let mut command = gristmill(["history"]);
        let output = command.args(arguments).env("XDG_DATA_HOME", dir.path()).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let (list, _) = history(&[]);
    assert!(list.lines().count() == 2 && list.starts_with("false-"), "{list}");
    assert!(history(&["true"]).0.contains(": 4 runs, 4 succeeded, 2 inputs; "), "{list}");
    let (rows, _) = history(&["--export"]);
    assert!(rows.lines().count() == 5 && !rows.contains("secret"), "{rows}");
    let page = dir.path().join("gain.html");
    let (_, told) = history(&["true", "--gain", page.to_str().expect("text")]);
    assert!(told.contains("nothing was chosen") && told.contains("no gain to draw") && !page.exists(), "{told}");
    assert!(history(&["true", "--forget"]).1.contains("forgot 1 program"));
    assert_eq!(history(&["--export"]).0.lines().count(), 1);
    assert!(history(&["true"]).1.contains("nothing is known of true"));
    // When all was forgotten, nothing at all was printed.
    assert!(history(&["false", "--forget"]).1.contains("forgot 1 program"));
    for arguments in [&[][..], &["--export"]] {
        let (listed, told) = history(arguments);
        assert!(listed.is_empty() && told.contains("there is nothing in the history yet ("), "{told}");
    }
}

#[test]
fn a_damaged_history_is_told_once_and_the_work_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("h"), "this was a history once, but somebody wrote over it").expect("written");
    let Output { status, stderr, .. } = batch(dir.path(), "--history h", "true\ntrue\n");
    assert!(status.success(), "{}", text(&stderr));
    assert_eq!(text(&stderr).matches("the history h is not used: it is damaged").count(), 1, "{}", text(&stderr));
}

/// A limit on the size of files stands in for a full disk: both refuse to let the journal grow.
#[test]
fn a_journal_on_a_full_disk_stops_the_queue_and_repeats_nothing_that_it_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs: String = (0..12).map(|job| format!("echo {job} >> ran\n")).collect();
    fs::write(dir.path().join("jobs.txt"), jobs).expect("written");
    let queue = |limit: &str, resume: &str| {
        let line = format!("{limit} exec \"$0\" batch jobs.txt -j 1 --journal j {resume} --no-history");
        let mut command = Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_gristmill")]).current_dir(dir.path());
        command.output().expect("it starts")
    };
    let Output { status, stderr, .. } = queue("ulimit -f 1;", "");
    assert_eq!(status.code(), Some(1));
    assert!(text(&stderr).contains("the journal j cannot be written"), "{}", text(&stderr));
    let ran = || -> Vec<usize> {
        let text = fs::read_to_string(dir.path().join("ran")).expect("some ran");
        text.lines().map(|line| line.parse().expect("a number")).collect()
    };
    let past = || Past::read(&fs::read(dir.path().join("j")).expect("there")).expect("whole lines");
    let (kept, first) = (past().ended.len(), ran().len());
    assert!(kept > 0 && kept < 12 && first < 12, "{kept} {first}");
    let Output { status, stderr, .. } = queue("", "--resume");
    assert!(status.success(), "{}", text(&stderr));
    // One at a time, so the journal has the ends of the first ones.
    let mut expected: Vec<usize> = (0..first).collect();
    expected.extend(kept..12);
    assert_eq!((ran(), past().ended.len()), (expected, 12));
}
