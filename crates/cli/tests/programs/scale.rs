//! `gristmill scale`: commands that scale, fail, never end, ignore the number of workers, or leave processes behind.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process, test_kill_process};
use rustix::thread::sched_getaffinity;

use crate::command::{answer, complaint, gristmill};

/// Returns the status, the output and the messages.
fn run(arguments: &[&str]) -> (i32, String, String) {
    read(gristmill(["scale", "--no-history"]).args(arguments).output().expect("the command starts"))
}

fn read(output: Output) -> (i32, String, String) {
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (output.status.code().expect("no signal ended it"), printed, said)
}

/// Runs `scale` with a shell script, once per number of workers.
fn script(script: &str, options: &[&str]) -> (i32, String, String) {
    run(&[
        if options.contains(&"--repeats") { &[][..] } else { &["--repeats", "1"] },
        options,
        &["--", "sh", "-c", script],
    ]
    .concat())
}

/// Returns the speed-up in the row of this number of workers.
fn speed_up(report: &str, workers: &str) -> f64 {
    let row = report
        .lines()
        .find(|row| row.split_whitespace().next().is_some_and(|first| first.trim_end_matches('*') == workers));
    let row = row.unwrap_or_else(|| panic!("no row of {workers} in {report}"));
    let before = row.split('%').next().expect("an efficiency");
    before.split_whitespace().rev().nth(1).and_then(|number| number.parse().ok()).expect("a speed-up")
}

/// `scale -o words.txt word-count words.txt` wrote its page over the words, with status 0.
#[test]
fn the_report_replaces_no_input() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("times");
    let times = "1,10\n2,5\n";
    fs::write(&path, times).expect("written");
    std::os::unix::fs::symlink(&path, dir.path().join("link")).expect("a link");
    let quick = ["--workers", "1", "--repeats", "1", "--no-account"];
    for arguments in [
        &["-o", "times", "--from", "times"][..],
        &["-o", "link", "--from", "times"],
        &["-o", "times", "--from", "-"],
        &[&quick[..], &["-o", "link", "word-count", "times"]].concat(),
        &[&quick[..], &["-o", "times", "--", "cat", "./times"]].concat(),
    ] {
        let input = fs::File::open(&path).expect("a file");
        let mut command = gristmill(["scale", "--no-history"]);
        let done = command.args(arguments).current_dir(dir.path()).stdin(input).output().expect("it starts");
        let (status, _, said) = read(done);
        assert!(status == 2 && said.contains("is also an input"), "{arguments:?}: {status}, {said}");
        assert_eq!(fs::read_to_string(&path).expect("text"), times);
    }
}

#[test]
fn the_report_tells_how_far_a_command_scales() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = dir.path().join("report.html");
    let waits = "case {workers} in 1) sleep 0.8;; 2) sleep 0.4;; *) sleep 0.6;; esac";
    let (status, report, said) = script(waits, &["--workers", "1,2,64", "--output", page.to_str().expect("text")]);
    assert_eq!(status, 0, "{said}");
    assert!((1.3..2.2).contains(&speed_up(&report, "2")), "{report}");
    assert!(report.contains("More workers help up to 2") && report.contains("Beyond that the time rises"), "{report}");
    assert!(report.contains("The curve alone cannot tell more: "), "{report}");
    assert!(report.contains(" o measured   . without loss"), "{report}");
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<svg ") && html.contains("More workers help up to 2"), "{html}");
    assert!(!html.contains("http") && !html.contains("src="), "the page refers to something outside");
    assert!(said.contains("the report is in "), "{said}");
}

/// Returns the row of the phases of each number of workers, without that number.
fn phases(report: &str) -> Vec<Vec<f64>> {
    let rows = report.lines().skip_while(|line| !line.contains("reading   mapping")).skip(1);
    let rows = rows.take_while(|row| !row.is_empty());
    rows.map(|row| row.split_whitespace().skip(1).map(|number| number.parse().expect("seconds")).collect()).collect()
}

#[test]
fn the_phases_of_our_own_applications_are_timed_apart() {
    let dir = tempfile::tempdir().expect("a directory");
    let [text, page] = ["text", "report.html"].map(|name| dir.path().join(name).display().to_string());
    fs::write(&text, "anna and otto saw a level\n".repeat(20_000)).expect("written");
    for application in [&["word-count", "--top", "3"][..], &["sort"], &["palindromes"]] {
        let options = ["--workers", "1,2,4", "--repeats", "1", "--output", &page];
        let (status, report, said) = run(&[&options[..], application, &[&text]].concat());
        assert_eq!(status, 0, "{said}");
        let rows = phases(&report);
        assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == 6), "{report}");
        assert!(rows.iter().all(|row| row[1] > 0.0 && row.iter().sum::<f64>() > row[1]), "{report}");
        let html = fs::read_to_string(&page).expect("a page");
        let title = format!("<p class='soft'>{} {text}</p>", application.join(" "));
        assert!(html.contains(&title) && html.contains("<h2>Phases</h2>"), "{html}");
        assert_eq!(html.matches("<th class='number'>reading</th>").count(), 1, "{html}");
    }
    // Behind --, the same name is that of a command.
    let (status, report, said) =
        run(&["--workers", "1", "--repeats", "1", "--", "sort", "--parallel={workers}", &text]);
    assert!(status == 0 && !report.contains("reading"), "{report} {said}");
    for (arguments, why) in [
        (&["make", "-j2"][..], "make is none of Gristmill's applications"),
        (&["word-count", "--workers", "2", "text"], "leave --workers of word-count out"),
        (&["word-count", "--tops", "2", "text"], "word-count: unexpected argument '--tops' found"),
        (&[], "name an application, or a command behind --"),
    ] {
        let (status, report, said) = run(arguments);
        assert!((status, report.as_str()) == (2, "") && said.contains(why), "{arguments:?}: {said}");
    }
    let (status, _, said) = run(&["--workers", "1,2", "word-count", "/nowhere/text"]);
    assert!(
        status == 1 && said.contains("With 1, 2 workers the command failed: ") && said.contains("/nowhere/text"),
        "{said}"
    );
}

#[test]
fn every_combination_of_parameters_has_a_row_and_the_fastest_is_reported() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = dir.path().join("report.html").display().to_string();
    let options = ["--workers", "1,2", "--vary", "size=4,1", "--vary", "unit=1,0", "--output", &page, "--keep-going"];
    let (status, report, said) = script("test {unit} = 1 && : {workers} && sleep 0.{size}", &options);
    assert_eq!(status, 0, "{said}");
    assert!(report.starts_with("With 1, 2 workers and size=4 unit=0 the command failed: "), "{report}");
    let rows = report.lines().skip_while(|line| !line.starts_with("Median time")).skip(1);
    let rows: Vec<Vec<&str>> = rows.take(5).map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["size", "unit", "1", "2", "best"], "{report}");
    assert!(rows[1][..2] == ["4", "1"] && rows[3][..2] == ["1", "1"] && rows[3].len() == 7, "{report}");
    assert_eq!(rows[2], ["4", "0", "failed", "failed", "none"], "{report}");
    assert!(report.contains("size=1 unit=1 has the shortest time; what follows is about it.\n"), "{report}");
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("<h2>Parameters</h2>") && html.contains("<td class='number first'>1</td>"), "{html}");
    // Our own applications take them as options.
    let text = dir.path().join("text").display().to_string();
    fs::write(&text, "a b\n").expect("written");
    let options = ["--workers", "1", "--repeats", "1", "--vary", "chunk-bytes=64KiB,1MiB"];
    let (status, report, said) = run(&[&options[..], &["word-count", &text]].concat());
    assert!(status == 0 && report.contains("     64KiB  ") && report.contains("reading"), "{report} {said}");
    for (arguments, why) in [
        (
            &["--vary", "size=1", "--", "make", "-j{workers}"][..],
            "nothing in the command uses size of --vary: write {size}",
        ),
        (&["--vary", "size=1", "word-count", "text"], "word-count: unexpected argument '--size' found"),
        (&["--vary", "size", "word-count", "text"], "write it as NAME=a,b,c"),
        (&["--vary", "a=1", "--vary", "a=2", "--", "echo", "{a}{workers}"], "--vary names a twice"),
    ] {
        let (status, report, said) = run(arguments);
        assert!((status, report.as_str()) == (2, "") && said.contains(why), "{arguments:?}: {said}");
    }
}

/// Work that grows with the workers was once taken for a loss.
#[test]
fn work_that_grows_with_the_workers_is_divided_by_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let counts = dir.path().join("counts");
    let grows = format!("echo {{workers}} {{workers*100}} >> {}; sleep 0.3", counts.display());
    let (status, report, said) = script(&grows, &["--workers", "1,2", "--weak"]);
    assert_eq!(status, 0, "{said}");
    assert!((1.5..2.5).contains(&speed_up(&report, "2")) && report.contains("time / k"), "{report}");
    assert!(report.contains("The work grew with the workers") && !report.contains("absent"), "{report}");
    assert!(fs::read_to_string(&counts).expect("numbers").contains("2 200\n"));
    // Our own applications read their input as often as there are workers.
    let [text, rows] = ["text", "rows"].map(|name| dir.path().join(name).display().to_string());
    fs::write(&text, "word\n").expect("written");
    let options = ["--weak", "--workers", "3", "--repeats", "1"];
    let (status, _, said) = run(&[&options[..], &["word-count", "-o", &rows, &text]].concat());
    assert_eq!((status, fs::read_to_string(&rows).expect("rows").as_str()), (0, "word\t3\n"), "{said}");
    for (arguments, why) in [
        (&["--weak", "--", "make", "-j{workers}"][..], "nothing in the command makes its work grow"),
        (&["--weak", "tile-search"], "--weak repeats the input, and tile-search is given no file"),
    ] {
        let (status, report, said) = run(arguments);
        assert!((status, report.as_str()) == (2, "") && said.contains(why), "{arguments:?}: {said}");
    }
}

/// Thread bottlenecks (Chen 2020) shows that reading is not the limit by a run without it.
#[test]
fn palindromes_are_compared_with_a_run_that_reads_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let [books, page] = ["books", "report.html"].map(|name| dir.path().join(name));
    fs::create_dir(&books).expect("made");
    for file in 0..8 {
        fs::write(books.join(file.to_string()), "abba\naa\n".repeat(1000)).expect("written");
    }
    let first = books.join("0");
    let [folder, file, html] = [&books, &first, &page].map(|path| path.to_str().expect("text"));
    let options = ["--workers", "1,2", "--repeats", "1", "--output", html];
    let (status, report, said) = run(&[&options[..], &["palindromes", "--algorithm=tree", folder]].concat());
    assert_eq!(status, 0, "{said}");
    let rows = report.lines().skip_while(|line| !line.contains("without reading")).skip(1).take(2);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    // Four times with their units, and five shares with theirs.
    assert!(rows.len() == 2 && rows.iter().all(|row| row.len() == 1 + 2 * (4 + 5)), "{report}");
    assert!(
        report.contains("The efficiency of 2 workers is ") && report.contains("(65 bytes for each byte"),
        "{report}"
    );
    assert!(fs::read_to_string(&page).expect("a page").contains("<h2>Reading and computing</h2>"));
    let (_, report, _) = run(&[&options[..], &["palindromes", file]].concat());
    assert!(!report.contains("without reading"), "one file has no control: {report}");

    let total = |arguments: &[&str]| {
        String::from_utf8(answer(gristmill(["palindromes", "--print", "total"]).args(arguments))).expect("text")
    };
    assert_eq!(total(&["--constant", "8", file]), total(&[folder]));
    let said = complaint(gristmill(["palindromes", "--constant", "8"]).args([file, file]), 2);
    assert!(said.contains("--constant takes one file"), "{said}");
}

/// A command ignored the number, and its times were once taken for those of a program that does not scale.
#[test]
fn a_command_that_ignores_the_number_of_workers_is_reported() {
    let (status, report, _) = script(": {workers}; sleep 0.6", &["--workers", "1,2", "--repeats", "2"]);
    assert_eq!(status, 0);
    assert!(report.contains("The time does not depend on the number of workers: "), "{report}");
    assert!(report.contains("Does the command use the number that stands for {workers}?"), "{report}");
    let (status, printed, said) = run(&["--", "make", "-j4"]);
    assert_eq!((status, printed.as_str()), (2, ""));
    assert!(said.contains("make -j{workers}"), "{said}");
}

/// One of two workers was never started, and the report once did not mention it.
#[test]
fn the_time_of_all_workers_is_accounted_for() {
    let (status, report, said) = script("sleep 0.{workers}", &["--workers", "4,8"]);
    assert_eq!(status, 0, "{said}");
    let rows = report.lines().skip_while(|line| !line.ends_with("blocked    absent")).skip(1).take(2);
    let rows: Vec<Vec<f64>> =
        rows.map(|row| row.split_whitespace().map_while(|number| number.parse().ok()).collect()).collect();
    for row in &rows {
        let [workers, all, user, system, waiting, blocked, absent] = row[..] else { panic!("{row:?}") };
        let parts = user + system + waiting + blocked + absent;
        assert!((parts / all - 1.0).abs() < 0.02 && all >= workers * 0.1 * workers, "{row:?}");
        // One worker sleeps, the others are absent.
        assert!((0.5..=1.0 / 0.8).contains(&(blocked / (all / workers))) && absent > 0.5 * all, "{row:?}");
    }
    assert_eq!(rows.len(), 2, "{report}");
    assert!(report.contains("blocked by the clock (sleep)"), "{report}");
    let (_, report, _) = script("sleep 0.{workers}", &["--workers", "1,2", "--no-account"]);
    assert!(!report.contains("absent"), "{report}");
}

/// The verdict of an account was all there was, even if it left five causes.
#[test]
fn experiments_change_the_circumstances_of_a_command() {
    let dir = tempfile::tempdir().expect("a directory");
    let [file, page] = ["seen", "report.html"].map(|name| dir.path().join(name).display().to_string());
    let script_of = format!("echo {{workers}} $(nproc) $GLIBC_TUNABLES >>{file}; sleep 0.1");
    let options = ["--workers", "1,2", "--experiments", "always", "--despite-load", "--output", &page];
    let (status, report, said) = script(&script_of, &options);
    assert_eq!(status, 0, "{said}");
    let seen = fs::read_to_string(&file).expect("lines");
    let allowed = sched_getaffinity(None).expect("a set").count() as usize;
    let processors = thread::available_parallelism().expect("a number").get();
    // One processor leaves no two workers to compare.
    assert_eq!(report.contains("Experiments on the loss with 2 workers:\n"), processors > 1, "{report}");
    assert_eq!(fs::read_to_string(&page).expect("a page").contains("<h2>Experiments on the loss"), processors > 1);
    let lines = |line: &str| seen.lines().filter(|other| *other == line).count();
    assert!(lines(&format!("2 {allowed}")) >= 2, "{seen}");
    // With a quota, half the processors may be no limit.
    if processors == allowed && allowed > 1 {
        assert_eq!(lines(&format!("2 {}", allowed / 2)), 2, "{seen}");
    }
    let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if huge_pages.contains("[madvise]") && processors > 1 {
        assert_eq!(lines(&format!("2 {allowed} glibc.malloc.hugetlb=1")), 2, "{seen}");
    }
    let (_, report, _) = script("sleep 0.{workers}", &["--workers", "1,2", "--experiments", "never"]);
    assert!(!report.contains("Experiments"), "{report}");
}

/// A verdict about our own applications once rested on the account alone.
#[test]
fn our_own_applications_run_with_other_options_of_the_engine() {
    let dir = tempfile::tempdir().expect("a directory");
    let [text, page] = ["text", "report.html"].map(|name| dir.path().join(name).display().to_string());
    fs::write(&text, "anna and otto saw a level\n".repeat(20_000)).expect("written");
    let options =
        ["--workers", "1,2", "--repeats", "1", "--experiments", "always", "--despite-load", "--output", &page];
    let (status, report, said) = run(&[&options[..], &["word-count", "--top", "3", &text]].concat());
    assert_eq!(status, 0, "{said}");
    let html = fs::read_to_string(&page).expect("a page");
    if thread::available_parallelism().expect("a number").get() > 1 {
        assert!(report.contains("Experiments on the loss with 2 workers:\n"), "{report}");
        for change in ["The input in memory", "Threads instead of processes", "Pages touched beforehand"] {
            assert!(report.contains(change) && html.contains(change), "{change}: {report}");
        }
    }
    assert!(fs::read_dir(&dir).expect("a folder").count() == 2, "copies stay behind");
}

/// A user without rights, whose home is read-only, has no counters and can store nothing.
#[test]
fn a_user_without_rights_gets_a_report() {
    let dir = tempfile::tempdir().expect("a directory");
    let [home, temporary, program] = ["home", "temporary", "gristmill"].map(|name| dir.path().join(name));
    let gristmill = Path::new(env!("CARGO_BIN_EXE_gristmill"));
    fs::hard_link(gristmill, &program).or_else(|_| fs::copy(gristmill, &program).map(drop)).expect("a second name");
    for (folder, mode) in [(&home, 0o555), (&temporary, 0o777)] {
        fs::create_dir(folder).expect("made");
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("set");
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("set");
    let mut command = Command::new(&program);
    command.args(["scale", "--workers", "1,2", "--repeats", "1", "--", "sh", "-c", "sleep 0.{workers}"]);
    command.env("HOME", &home).env("TMPDIR", &temporary).current_dir(&home).stdin(Stdio::null());
    // Nor does the kernel tell in which of its functions a thread sleeps, nor for how long it waited for a processor.
    command.env("GRISTMILL_HIDE", "events,tracing,schedstat,pressure,wchan");
    if getuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let (status, report, said) = read(command.output().expect("it starts"));
    assert!(status == 0 && said.is_empty(), "{said}");
    assert!(report.contains("More workers than 1 make it slower") && report.contains("absent"), "{report}");
    assert!(report.contains("blocked by the clock (sleep)"), "{report}");
    assert_eq!(fs::read_dir(&home).expect("a folder").count(), 0);
}

#[test]
fn a_command_that_does_nothing_is_too_short_to_compare() {
    let (status, report, said) =
        run(&["--workers", "1,2", "--repeats", "1", "--despite-load", "--", "true", "{workers}"]);
    assert_eq!((status, said.as_str()), (0, ""));
    assert!(report.contains("which is mostly the start of a process"), "{report}");
    assert!(!report.contains("More workers"), "{report}");
}

/// A script found with status 0 and a speed-up that its command crashes with 2 workers; the report said so in the
/// middle.
#[test]
fn a_number_of_workers_at_which_the_command_fails_is_the_first_line_and_the_status() {
    let unlucky = "test {workers} != 2 || { echo out of luck >&2; exit 3; }; sleep 0.1";
    let why = "With 2 workers the command failed: it ended with exit status 3: out of luck.\n";
    let (status, report, said) = script(unlucky, &["--workers", "1,2,4"]);
    assert!(status == 1 && report.starts_with(why), "{report}");
    assert!(said.contains("--keep-going") && said.lines().count() == 1, "{said}");
    assert!(speed_up(&report, "1") == 1.0 && speed_up(&report, "4") > 0.0, "{report}");
    let (status, report, said) = script(unlucky, &["--workers", "1,2,4", "--keep-going"]);
    assert!(status == 0 && report.starts_with(why) && said.is_empty(), "{report} {said}");
    let (status, report, _) = script("test {workers} = 1 || kill -SEGV $$", &["--workers", "1,2,4"]);
    assert_eq!(status, 1);
    assert!(report.starts_with("With 2, 4 workers the command failed: it ended with signal 11 (SIGSEGV)."), "{report}");
    // It succeeds at first. A run that other programs disturb is repeated, so its number varies.
    let dir = tempfile::tempdir().expect("a directory");
    let count = dir.path().join("count").display().to_string();
    let later = format!("echo {{workers}} >> {count}; test $(grep -c 2 {count}) -lt 5 -o {{workers}} = 1");
    let (status, report, _) = script(&later, &["--workers", "1,2", "--repeats", "5", "--no-account"]);
    assert_eq!(status, 1, "{report}");
    let first = report.lines().next().expect("a line");
    assert!(
        first.starts_with("With 2 workers, after ") && first.contains(" that succeeded, the command failed: "),
        "{report}"
    );
}

#[test]
fn a_command_that_fails_with_all_numbers_has_no_report() {
    for (command, why) in [
        (&["/nowhere/at/all", "{workers}"][..], "/nowhere/at/all cannot be started: No such file or directory"),
        (&["false", "{workers}"], "it ended with exit status 1"),
    ] {
        let (status, report, said) = run(&[&["--workers", "1,2", "--"], command].concat());
        assert_eq!((status, report.as_str()), (1, ""));
        assert!(
            said.contains("nothing could be measured. With 1, 2 workers the command failed: ") && said.contains(why),
            "{said}"
        );
    }
    // The reason was said to be: For more information, try '--help'.
    let dir = tempfile::tempdir().expect("a directory");
    let table = dir.path().join("table.csv").display().to_string();
    fs::write(&table, "a,b\n1,2\n").expect("written");
    let (status, _, said) = run(&["--workers", "1", "group-by", "--by", "a", "--delimiter", "\"", &table]);
    let why = "it ended with exit status 2: --delimiter and --quote are the same character";
    assert!(status == 1 && said.contains(why), "{said}");
    let (status, _, said) = run(&["--workers", "1", "--prepare", "exit 7", "--", "true", "{workers}"]);
    assert!(status == 1 && said.contains("what prepares it failed: it ended with exit status 7"), "{said}");
}

/// The whole command was once measured before the page turned out to be impossible.
#[test]
fn what_cannot_be_written_is_said_at_once_and_a_home_is_not_needed() {
    let dir = tempfile::tempdir().expect("a directory");
    let ran = dir.path().join("ran").display().to_string();
    let command = ["--workers", "1", "--repeats", "1", "--", "touch", &ran, "{workers}"];
    let (status, _, said) = run(&[&["--output", "/nowhere/report.html"], &command[..]].concat());
    assert!(status == 1 && said.contains("cannot write /nowhere/report.html: "), "{said}");
    let without = |variable, arguments: &[&str]| {
        read(
            gristmill(["scale"])
                .args(arguments)
                .env(variable, "/nowhere")
                .current_dir(&dir)
                .output()
                .expect("it starts"),
        )
    };
    let own = ["--workers", "1", "--repeats", "1", "word-count", "text"];
    for arguments in [&command[..], &own] {
        let (status, report, said) = without("TMPDIR", arguments);
        assert_eq!((status, report.as_str(), said.lines().count()), (1, "", 1), "{said}");
        assert!(said.contains("no temporary file can be made in /nowhere (No such"), "{said}");
    }
    assert!(!Path::new(&ran).exists());
    let command = ["--workers", "1", "--repeats", "1", "--", "sleep", "0.0{workers}5"];
    let (status, report, said) = without("HOME", &command);
    assert!(status == 0 && report.contains("Only one number of workers was measured: 1."), "{report} {said}");
}

/// Returns true while the process whose number is in this file runs.
fn runs(file: &Path) -> bool {
    let number = fs::read_to_string(file).expect("a number").trim().parse().expect("a number");
    test_kill_process(Pid::from_raw(number).expect("above 0")).is_ok()
}

#[test]
fn a_run_that_never_ends_is_killed_with_all_its_processes() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("number");
    let endless = format!("test {{workers}} = 1 || {{ sleep 1000 & echo $! > {}; wait; }}", file.display());
    let (status, report, _) = script(&endless, &["--workers", "1,2", "--timeout", "500ms"]);
    assert_eq!(status, 1);
    let why = "With 2 workers the command failed: it had not ended after 500ms and was ended; --timeout allows more.";
    assert!(report.contains(why), "{report}");
    assert!(!runs(&file), "sleep goes on");
    // A command that ends and leaves a process running.
    let leaves = format!(": {{workers}}; sleep 1000 & echo $! > {}", file.display());
    let (_, report, _) = script(&leaves, &["--workers", "1"]);
    assert!(report.contains("The command left processes running"), "{report}");
    assert!(!runs(&file), "sleep goes on");
}

/// A user who presses Ctrl-C wants the processors back.
#[test]
fn an_interrupted_measurement_ends_all_its_processes() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("number");
    let endless = format!(": {{workers}}; sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
    for signal in [Signal::INT, Signal::TERM] {
        let mut scale = gristmill(["scale", "--", "sh", "-c", &endless])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let began = Instant::now();
        while !file.exists() && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(runs(&file));
        kill_process(Pid::from_child(&scale), signal).expect("it runs");
        assert_eq!(scale.wait().expect("it ends").signal(), Some(signal.as_raw()));
        assert!(!runs(&file), "sleep goes on");
        fs::remove_file(&file).expect("it is there");
    }
}

/// Times of the palindromic tree in thread bottlenecks (Chen 2020).
const TREE: &str = "workers,seconds\n1,40.6\n2,21.2\n4,11.0\n8,6.6\n16,5.2\n32,5.7\n64,6.7\n";

#[test]
fn times_measured_elsewhere_are_analysed() {
    let dir = tempfile::tempdir().expect("a directory");
    let table = dir.path().join("times.csv");
    fs::write(&table, format!("{TREE}3,0\n")).expect("written");
    let (status, report, said) = run(&["--from", table.to_str().expect("text")]);
    assert_eq!((status, said.as_str()), (0, ""));
    assert!(
        report.contains("Of the known laws, the universal scalability law comes nearest: contention 0.044 ("),
        "{report}"
    );
    assert!(report.contains("Times of 0 were left out (line 9)"), "{report}");

    let mut from_input = gristmill(["scale", "--from", "-", "--processors", "8"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    from_input.stdin.take().expect("piped").write_all(TREE.as_bytes()).expect("it reads");
    let (status, report, said) = read(from_input.wait_with_output().expect("it ends"));
    assert_eq!(status, 0, "{said}");
    assert!(
        report.contains("     16*") && report.contains("4 numbers of workers were measured up to the 8 processors"),
        "{report}"
    );

    for (text, why) in [
        ("", "there is no time to analyse"),
        ("1,0\n", "there is no time to analyse"),
        ("1,2\nx,y\n", "line 2: expected a number of workers and its seconds"),
        ("1,-3\n", "line 1: -3 is no time in seconds"),
        ("\u{0}\u{1}\u{2}", "there is no time to analyse"),
        ("\u{0}1\n\u{0}2,3", "line 2: expected"),
    ] {
        fs::write(&table, text).expect("written");
        let (status, report, said) = run(&["--from", table.to_str().expect("text")]);
        assert_eq!((status, report.as_str()), (1, ""), "{text:?}");
        assert!(said.contains("times.csv") && said.contains(why), "{text:?}: {said}");
    }
    let (status, _, said) = run(&["--from", "/nowhere/times.csv"]);
    assert!(status == 1 && said.contains("/nowhere/times.csv"), "{said}");
}

/// Returns a table of three runs with each number of workers, which differ by one percent.
fn table(seconds: impl Fn(f64) -> f64, workers: &[u64]) -> String {
    let row = |workers: &u64| {
        [0.99, 1.0, 1.01].map(|factor| format!("{workers},{}\n", factor * seconds(*workers as f64))).concat()
    };
    workers.iter().map(row).collect()
}

/// Times with a cliff of 20 % at the second NUMA node "followed Amdahl's law"; on second threads of cores a program was
/// "best with 39", though 48 and 64 were measured faster. The page said "unclear" where the terminal said that 2
/// workers help, and no script could read either.
#[test]
fn terminal_page_and_json_say_the_same_and_no_more_than_was_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let [times, page] = ["times.csv", "report.html"].map(|name| dir.path().join(name).display().to_string());
    let all = [1, 2, 4, 8, 16, 24, 32, 48, 64];
    let cases = [
        (table(|k| if k <= 32.0 { 32.0 / k } else { 64.0 / k }, &all), "helps", None),
        (table(|k| 10.0 / (k.min(24.0) + 0.25 * (k - 24.0).max(0.0)), &all), "helps", None),
        (table(|k| 0.5 + 9.5 / k, &all), "helps", Some("Amdahl's law")),
        ("1,1.0\n1,1.3\n2,0.9\n2,1.3\n".to_owned(), "unclear", None),
        (table(|k| 8.0 / k.powf(1.2), &[1, 2, 4]), "helps", None),
    ];
    for (text, verdict, law) in cases {
        fs::write(&times, &text).expect("written");
        let (status, report, said) = run(&["--from", &times, "--output", &page]);
        assert_eq!(status, 0, "{said}");
        let (status, object, _) = run(&["--from", &times, "--json"]);
        assert_eq!(status, 0);
        let object: serde_json::Value = serde_json::from_str(&object).expect("one object");
        assert_eq!(object["verdict"], verdict, "{object}");
        assert_eq!(object["law"]["name"].as_str(), law, "{object}");
        assert_eq!(object["law"]["predicted_workers"], serde_json::Value::Null, "{object}");
        let html = fs::read_to_string(&page).expect("a page").replace("&#39;", "'").replace("&apos;", "'");
        for statement in object["statements"].as_array().expect("statements") {
            let sentence = statement["sentence"].as_str().expect("text");
            assert!(report.contains(sentence) && html.contains(sentence), "{sentence}\n{report}");
        }
        let workers: Vec<u64> = object["points"]
            .as_array()
            .expect("points")
            .iter()
            .map(|point| point["workers"].as_u64().expect("a number"))
            .collect();
        let lines =
            text.lines().map(|line| line.split(',').next().expect("a number").parse::<u64>().expect("a number"));
        let mut expected: Vec<u64> = lines.collect();
        expected.dedup();
        assert_eq!(workers, expected);
    }
}

/// An efficiency of 146 % was printed without a word.
#[test]
fn more_than_the_workers_can_give_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let times = dir.path().join("times.csv").display().to_string();
    fs::write(&times, table(|k| if k == 1.0 { 8.0 } else { 8.0 / k / 1.46 }, &[1, 2, 4])).expect("written");
    let (_, report, _) = run(&["--from", &times]);
    assert!(report.contains("the efficiency is 146 %, more than the workers alone can give"), "{report}");
}
