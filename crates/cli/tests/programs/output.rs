//! The output of the programs of `gristmill batch`: every byte arrives, in its order, or the queue says that it does
//! not.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use gristmill_batch::queue::{Keys, Outcome, Past, Shell};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::command::gristmill;
use crate::queue::{batch, is_free, kill, processes_of, text, wait_for};

/// Returns the files of a name in the folders of `--output`, by the number of the job.
fn kept(output: &Path, name: &str) -> BTreeMap<usize, PathBuf> {
    let folders = fs::read_dir(output).into_iter().flatten().flatten();
    let folders = folders.filter_map(|entry| Some((entry.file_name().to_str()?.get(..4)?.parse().ok()?, entry.path())));
    folders.map(|(number, folder): (usize, PathBuf)| (number, folder.join(name))).collect()
}

/// A job that wrote to /dev/stderr or /dev/stdout itself destroyed what was there before, and left NUL bytes.
#[test]
fn a_job_that_opens_its_own_streams_loses_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = "echo one; echo two > /dev/stdout; echo three; echo four >&2; echo five > /dev/stderr; echo six >&2\n";
    let Output { stdout, stderr, .. } = batch(dir.path(), "--quiet", jobs);
    assert_eq!((text(&stdout), text(&stderr)), ("one\ntwo\nthree\n", "four\nfive\nsix\n"));
    batch(dir.path(), "--quiet --output out", jobs);
    let [out, error] = ["stdout", "stderr"].map(|name| fs::read_to_string(&kept(&dir.path().join("out"), name)[&1]));
    assert_eq!(out.expect("there") + &error.expect("there"), "one\ntwo\nthree\nfour\nfive\nsix\n");
}

/// A program printed 2.7 MB while the temporary folder had room for 1 MiB: the queue printed that, and said that the
/// job had succeeded.
#[test]
fn output_that_cannot_be_kept_is_an_error_and_the_job_runs_again() {
    for options in ["", "--output out", "--live"] {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("jobs"), "echo ran >> ran; seq 1 400000\ntouch never\n").expect("written");
        let queue = |limit: &str, more: &str| {
            let line =
                format!("{limit} exec \"$0\" batch jobs -j 1 --journal j --no-history --retries 3 {options} {more}");
            let mut command = Command::new("sh");
            command.args(["-c", &line, env!("CARGO_BIN_EXE_gristmill")]).current_dir(dir.path()).stdin(Stdio::null());
            command.output().expect("it starts")
        };
        // Files of 1 MiB stand in for a full disk.
        let Output { status, stdout, stderr } = queue("ulimit -f 2048;", "");
        let said = text(&stderr);
        assert_eq!(status.code(), Some(1), "{said}");
        let parts = [
            "is incomplete: its output cannot be kept in ",
            "File too large",
            "(ulimit -f)",
            "No further program begins",
        ];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(stdout.len() <= 1 << 20 || options == "--live" && stdout.len() < 8 << 20, "{}", stdout.len());
        let past = Past::read(&fs::read(dir.path().join("j")).expect("there")).expect("a journal");
        assert!(past.ended.is_empty() && !dir.path().join("never").exists(), "{past:?}");
        let Output { status, stdout, stderr } = queue("", "--resume");
        assert!(status.success(), "{}", text(&stderr));
        assert_eq!(fs::read_to_string(dir.path().join("ran")).expect("there"), "ran\nran\n");
        let whole: String = (1..=400_000).map(|number| format!("{number}\n")).collect();
        let found = match options {
            "--output out" => fs::read_to_string(&kept(&dir.path().join("out"), "stdout")[&1]).expect("there"),
            "--live" => {
                text(&stdout).lines().map(|line| line.split('\t').nth(1).expect("a tag").to_owned() + "\n").collect()
            }
            _ => text(&stdout).to_owned(),
        };
        assert!(found == whole, "{options}: {} bytes of {}", found.len(), whole.len());
    }
}

/// Standard output, or standard error, was a file on a full disk: what programs had written was lost, and --resume took
/// them for done.
#[test]
fn programs_whose_output_cannot_be_printed_run_again() {
    for (streams, line) in [(">/dev/full", "seq 3"), ("2>/dev/full", "seq 3 >&2")] {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("jobs"), format!("{line}\n: silent\n")).expect("written");
        let queue = |more: &str| {
            let line = format!("exec \"$0\" batch jobs -j 1 -q --journal j --no-history {more}");
            let mut command = Command::new("sh");
            command.args(["-c", &line, env!("CARGO_BIN_EXE_gristmill")]).current_dir(dir.path());
            command.stdin(Stdio::null()).output().expect("it starts")
        };
        assert_eq!(queue(streams).status.code(), Some(1), "{streams}");
        let Output { status, stdout, stderr } = queue("--resume");
        let printed = format!("{}{}", text(&stdout), text(&stderr));
        assert!(status.success() && printed == "1\n2\n3\n", "{streams}: {printed}");
        let Output { stdout, stderr, .. } = queue("--resume");
        assert!(stdout.is_empty() && stderr.is_empty(), "it ran twice");
    }
}

/// One that ended with its pipe in the hands of a process in another session must not hang the queue, and loses nothing
/// that came before.
#[test]
fn a_process_that_keeps_the_pipe_open_does_not_hang_the_queue() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().display();
    let jobs = format!(
        "echo before; setsid sh -c 'sleep 1000; : {path}' & echo after\nyes | head -c 100000; (sh -c 'while :; do echo {path}; done' &)\n"
    );
    let Output { status, stdout, stderr } = batch(dir.path(), "-j 1 --quiet", &jobs);
    assert!(status.success() && stderr.is_empty(), "{}", text(&stderr));
    assert!(text(&stdout).starts_with(&format!("before\nafter\n{}", "y\n".repeat(50_000))));
    assert_eq!(processes_of(dir.path()), [0; 0]);
}

/// While nobody reads what the queue prints, its programs go on.
#[test]
fn programs_do_not_wait_for_the_reader_of_the_queue() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = "yes | head -c 3000000; touch one\nyes | head -c 3000000; touch two\n";
    for option in [&[][..], &["--live"]] {
        let mut command = gristmill(["batch", "--no-history", "-j2", "jobs"]);
        fs::write(dir.path().join("jobs"), jobs).expect("written");
        let mut queue = command.args(option).current_dir(dir.path()).stdout(Stdio::piped()).spawn().expect("it starts");
        wait_for("both end", || ["one", "two"].iter().all(|name| dir.path().join(name).exists()));
        let mut read = Vec::new();
        queue.stdout.take().expect("a pipe").read_to_end(&mut read).expect("it ends");
        assert!(queue.wait().expect("it ends").success());
        assert_eq!(read.iter().filter(|byte| **byte == b'\n').count(), 3_000_000);
        ["one", "two"].iter().for_each(|name| fs::remove_file(dir.path().join(name)).expect("there"));
    }
}

/// As the manual of GNU parallel says of --keep-order: the output is that of the jobs one after the other, however they
/// end.
#[test]
fn outputs_come_in_the_order_of_the_list() {
    let dir = tempfile::tempdir().expect("a directory");
    // 40 outputs wait for the first one: more than are printed at a time.
    let mut jobs = "sleep 0.5; echo 1\n".to_owned();
    (2..=40).for_each(|number| jobs += &format!("echo {number}\n"));
    for option in ["--order list", "--keep-order"] {
        let Output { status, stdout, .. } = batch(dir.path(), &format!("-j 8 {option}"), &jobs);
        let expected: String = (1..=40).map(|number| format!("{number}\n")).collect();
        assert!(status.success() && text(&stdout) == expected, "{}", text(&stdout));
    }
    // Attempts, skipped jobs, and one that waits for a later one of the list. The first job begins last.
    let list: String = (1..=30).map(|number| format!("[[job]]\nname='{number}'\ncommand='echo {number}'\n")).collect();
    let list = format!(
        "[[job]]\nname='first'\ncommand='echo first'\nafter=['30']\n[[job]]\nname='twice'\nretries=1\n\
         command='echo try; test -e tried || {{ touch tried; exit 1; }}'\n[[job]]\nname='fails'\ncommand='exit 1'\n\
         [[job]]\ncommand='echo never'\nafter=['fails']\n{list}"
    );
    fs::write(dir.path().join("jobs.toml"), list).expect("written");
    let Output { stdout, stderr, .. } = batch(dir.path(), "-j 2 --keep-going --order list jobs.toml", "");
    let expected: String = (1..=30).map(|number| format!("{number}\n")).collect();
    assert_eq!(text(&stdout), format!("first\ntry\ntry\n{expected}"), "{}", text(&stderr));
    // A failure ends the list, and what had ended behind it is printed.
    let Output { stdout, .. } =
        batch(dir.path(), "-j 2 --order list", "sleep 0.3; echo a; exit 1\necho b\ntrue\ntrue\n");
    assert_eq!(text(&stdout), "a\nb\n");
}

/// As GNU parallel's --line-buffer --tag: lines appear as they are written, whole, after the name of their job.
#[test]
fn live_lines_appear_at_once_with_their_tags() {
    let dir = tempfile::tempdir().expect("a directory");
    let jobs = "echo start; until test -e go; do sleep 0.01; done; printf end\nfor i in 1 2 3; do echo $i; done >&2\n";
    fs::write(dir.path().join("jobs"), jobs).expect("written");
    let mut command = gristmill(["batch", "--no-history", "--quiet", "--live", "-j2", "jobs"]);
    command.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut queue = command.spawn().expect("it starts");
    let mut first = vec![0; "1 echo start; until test -\tstart\n".len()];
    queue.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("it comes while the program runs");
    assert_eq!(text(&first), "1 echo start; until test -\tstart\n");
    fs::write(dir.path().join("go"), "").expect("written");
    let Output { status, stdout, stderr } = queue.wait_with_output().expect("it ends");
    assert!(status.success());
    assert_eq!(text(&stdout), "1 echo start; until test -\tend\n");
    let lines: String = (1..=3).map(|number| format!("2 for i in 1 2 3; do echo\t{number}\n")).collect();
    assert_eq!(text(&stderr), lines);
    // Lines of many programs are never mixed, and with --output they are kept as they were written, too.
    let jobs: String = (1..=4).map(|job| format!("seq {job}00001 {job}30000\n")).collect();
    let Output { stdout, .. } = batch(dir.path(), "--quiet --live --output out -j 4", &jobs);
    for job in 1..=4 {
        let numbers: Vec<String> = (1..=30_000).map(|number| format!("{}", job * 100_000 + number)).collect();
        let tag = format!("{job} seq {job}00001 {job}30000\t");
        let printed: Vec<&str> = text(&stdout).lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        assert!(printed == numbers, "job {job}: {} lines", printed.len());
        let file = fs::read_to_string(&kept(&dir.path().join("out"), "stdout")[&job]).expect("there");
        assert!(file.lines().eq(numbers.iter().map(String::as_str)), "job {job}");
    }
    // With --json, standard output has only that.
    let Output { stdout, stderr, .. } = batch(dir.path(), "--live --json", "echo x\n");
    assert!(text(&stderr).starts_with("1 echo x\tx\n"), "{}", text(&stderr));
    assert!(text(&stdout).lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

/// `--output` followed links that somebody had put there, wrote into files with a second name, and waited for ever for
/// the reader of a FIFO.
#[test]
fn what_others_put_into_the_folder_of_outputs_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let name = "out/0001-echo_x";
    for planted in ["stdout", "stderr", ".job", ""] {
        for kind in ["link", "fifo", "hard link"] {
            let _ = fs::remove_dir_all(dir.path().join("out")).or_else(|_| fs::remove_file(dir.path().join("out")));
            fs::create_dir_all(dir.path().join(if planted.is_empty() { "out" } else { name })).expect("made");
            let at = dir.path().join(name).join(planted);
            let at = if planted.is_empty() { dir.path().join(name) } else { at };
            match kind {
                "link" => symlink(&victim, &at).expect("linked"),
                "fifo" => mknodat(CWD, &at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made"),
                _ => fs::hard_link(&victim, &at).expect("linked"),
            }
            let Output { status, stderr, .. } = batch(dir.path(), "--output out", "echo x\n");
            let said = text(&stderr);
            assert_eq!(status.code(), Some(1), "{planted} {kind}: {said}");
            assert!(said.contains("its output cannot be kept in out: "), "{planted} {kind}: {said}");
            assert_eq!(fs::read_to_string(&victim).expect("there"), "precious", "{planted} {kind}");
        }
    }
    // A folder that others may write to.
    let _ = fs::remove_dir_all(dir.path().join("out"));
    fs::create_dir_all(dir.path().join(name)).expect("made");
    fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o777)).expect("set");
    let Output { status, stderr, .. } = batch(dir.path(), "--output out", "echo x\n");
    assert!(!status.success() && text(&stderr).contains("others may write to it"), "{}", text(&stderr));
    // What it makes is its owner's alone; a link of one's own to the whole folder is followed.
    fs::remove_dir_all(dir.path().join("out")).expect("there");
    fs::create_dir(dir.path().join("elsewhere")).expect("made");
    symlink("elsewhere", dir.path().join("out")).expect("linked");
    assert!(batch(dir.path(), "--output out", "echo x\n").status.success());
    let mode = |name: &str| {
        let path = dir.path().join("elsewhere/0001-echo_x").join(name);
        fs::metadata(path).expect("there").permissions().mode() & 0o7777
    };
    assert_eq!([mode(""), mode("stdout"), mode("stderr"), mode(".job")], [0o700, 0o600, 0o600, 0o600]);
}

/// The first number of a program, so that all its numbers have as many digits.
const FIRST: usize = 1_000_000_000;
/// The parts of its output, with a pause behind each.
const PARTS: usize = 10;

/// As `seq` prints the numbers of a program, computed by counting digits up.
fn expected(job: usize, lines: usize) -> Vec<u8> {
    let mut line = format!("{}\n", job * FIRST).into_bytes();
    let mut all = Vec::with_capacity(lines * line.len());
    for _ in 0..lines {
        all.extend_from_slice(&line);
        let nines = line.iter().rev().skip(1).take_while(|digit| **digit == b'9').count();
        let last = line.len() - 2;
        line[last - nines] += 1;
        line[last - nines + 1..=last].fill(b'0');
    }
    all
}

/// Programs that print, of which some are stopped for a moment or killed, in a queue of which one process or the other
/// is killed. `GRISTMILL_OUTPUT` sets the number of programs and the megabytes of each.
#[test]
fn every_byte_is_kept_whatever_is_killed_or_stopped() {
    let set = std::env::var("GRISTMILL_OUTPUT").unwrap_or_default();
    let (programs, megabytes) = set.split_once('x').map_or((12, 2), |(programs, megabytes)| {
        (programs.parse::<usize>().expect("a number"), megabytes.parse::<usize>().expect("a number"))
    });
    let part = megabytes * 1_000_000 / "1000000000\n".len() / PARTS;
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().display();
    let line = |job: usize| {
        let from = job * FIRST;
        format!(
            ": {path}; i=0; while [ $i -lt {PARTS} ]; do seq $(({from} + i * {part})) $(({from} + i * {part} + {part} - 1)) || exit; \
             sleep 0.01; i=$((i + 1)); done\n"
        )
    };
    let lines: String = (1..=programs).map(line).collect();
    fs::write(dir.path().join("jobs"), &lines).expect("written");
    let mut random = fastrand::Rng::with_seed(44);
    let journal = dir.path().join("journal");
    let past = || Past::read(&fs::read(&journal).unwrap_or_default()).expect("a journal");
    let here = dir.path().canonicalize().expect("there");
    let (mut keys, shell) = (Keys::default(), Shell::default());
    let keys: Vec<String> = lines.lines().map(|line| keys.of(&shell.job(line.into()).in_folder(&here))).collect();
    for round in 0.. {
        assert!(round < 200, "it never ends");
        let words = ["batch", "jobs", "--journal", "journal", "--resume-failed", "--keep-going", "-j4", "--no-history"];
        let mut command = gristmill(words);
        command.args(["--quiet", "--output", "out"]).current_dir(dir.path()).stderr(Stdio::null());
        let mut queue = command.spawn().expect("it starts");
        let is_last = round >= 6;
        let kills_queue = !is_last && random.bool();
        for _ in 0..if is_last { 0 } else { 6 } {
            thread::sleep(Duration::from_millis(random.u64(5..60)));
            let Some(pid) = random.choice(processes_of(dir.path())).and_then(Pid::from_raw) else { continue };
            if random.u8(0..3) == 0 {
                let _ = kill_process(pid, Signal::KILL);
            } else {
                let _ = kill_process(pid, Signal::STOP);
                thread::sleep(Duration::from_millis(random.u64(0..20)));
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        if kills_queue {
            kill(&queue, random.bool());
        }
        queue.wait().expect("it ends");
        wait_for("nothing is left running or stopped", || processes_of(dir.path()).is_empty());
        wait_for("the other process has written its last line", || is_free(&journal));
        // What has succeeded by the journal is whole, and nothing has other bytes than its program wrote.
        let past = past();
        let has_succeeded = |job: usize| past.ended.get(&keys[job - 1]) == Some(&Outcome::Exited(0));
        for (job, file) in kept(&dir.path().join("out"), "stdout") {
            // A queue that was killed when it had just made the folder leaves it empty.
            let (read, all) = (fs::read(file).unwrap_or_default(), expected(job, PARTS * part));
            assert!(all.starts_with(&read), "round {round}: job {job} has other bytes among its {}", read.len());
            assert!(!has_succeeded(job) || read.len() == all.len(), "round {round}: job {job} lacks its end");
        }
        if (1..=programs).all(has_succeeded) {
            return;
        }
    }
}

/// The queue died after a program had ended, and before it had read the end of its output.
#[test]
fn what_a_program_left_in_its_pipe_is_kept_by_the_guard() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("jobs"), "echo 1 >> begun; until test -e go; do :; done; seq 1 2000\n").expect("written");
    let mut command = gristmill(["batch", "--no-history", "--journal", "j", "--output", "out", "jobs"]);
    let mut queue = command.current_dir(dir.path()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_for("it begins", || dir.path().join("begun").exists());
    let children = |pid: u32| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it runs");
    let scheduler: u32 = children(queue.id()).trim().parse().expect("one child");
    let stopped = Pid::from_raw(scheduler as i32).expect("a number");
    kill_process(stopped, Signal::STOP).expect("it runs");
    fs::write(dir.path().join("go"), "").expect("written");
    let stat = format!("/proc/{}/stat", children(scheduler).trim());
    wait_for("the program ends", || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")));
    kill_process(stopped, Signal::KILL).expect("it stands still");
    assert!(!queue.wait().expect("it ends").success());
    let past = Past::read(&fs::read(dir.path().join("j")).expect("a journal")).expect("a journal");
    assert_eq!(past.ended.into_values().collect::<Vec<_>>(), [Outcome::Exited(0)]);
    let numbers: String = (1..=2000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(&kept(&dir.path().join("out"), "stdout")[&1]).expect("there"), numbers);
}
