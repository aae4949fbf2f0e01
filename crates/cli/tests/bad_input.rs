//! Bad input is handled or causes one clear error that names it, and no partial output is left.

#[path = "bad_input/bombs.rs"]
mod bombs;
mod command;
#[path = "bad_input/csv.rs"]
mod csv;
#[path = "bad_input/folders.rs"]
mod folders;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;
#[path = "bad_input/python.rs"]
mod python;
#[path = "command/survival.rs"]
mod survival;
#[path = "bad_input/terminal.rs"]
mod terminal;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{answer, complaint, copy_of_program, gristmill, names, oracle, word_count};
use survival::{all_are_tried, run, survives};

const GIB: u64 = 1 << 30;

#[test]
fn a_missing_file_is_named() {
    let complaint = complaint(&mut word_count(["/no/such/file"]), 1);
    assert_eq!(complaint, "gristmill: cannot read /no/such/file: No such file or directory (os error 2)\n");
}

#[test]
fn a_subcommand_that_gristmill_lab_has_now_is_named() {
    for (arguments, lab) in [
        (&["experiment", "--quick"][..], "experiment"),
        (&["terasort", "validate"], "terasort"),
        (&["batch", "simulate", "--seed", "1"], "bandwidth"),
        (&["palindromes", "--readers=2", "text"], "palindromes"),
    ] {
        let complaint = complaint(&mut gristmill(arguments), 2);
        assert_eq!(complaint, format!("gristmill: this is now a part of gristmill-lab: gristmill-lab {lab}\n"));
    }
}

/// A file name that clears the screen once did so when a message named it.
#[test]
fn control_characters_in_the_name_of_a_file_are_shown_as_escapes() {
    let complaint = complaint(&mut word_count(["/no/such\n\x1bcfile\u{9b}"]), 1);
    let expected = "gristmill: cannot read /no/such\\n\\x1bcfile\\u{9b}: No such file or directory (os error 2)\n";
    assert_eq!(complaint, expected);
}

/// Errors of the command once named methods of the library, and showed the wrong usage.
#[test]
fn errors_name_options_instead_of_methods_and_show_the_usage_of_their_subcommand() {
    let too_little = complaint(&mut word_count(["--memory", "4MiB", "--workers", "2", "Cargo.toml"]), 2);
    assert!(too_little.contains("Raise --memory, or take"), "{too_little}");
    assert!(too_little.contains("\nUsage: gristmill word-count [OPTIONS] [INPUT]...\n"), "{too_little}");
    let dir = tempfile::tempdir().expect("a directory");
    let too_long = complaint(word_count(["--record-bytes-max", "1"]).arg(big_word(dir.path())), 1);
    assert!(too_long.contains("with --record-bytes-max, or check"), "{too_long}");
}

#[test]
fn a_pattern_without_a_match_is_named() {
    let complaint = complaint(&mut word_count(["/no/such/*.txt"]), 1);
    assert_eq!(complaint, "gristmill: no file matches the pattern /no/such/*.txt\n");
}

#[test]
fn a_directory_without_files_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("empty")).expect("made");
    let complaint = complaint(word_count(["--workers", "2"]).arg(dir.path()), 1);
    assert!(complaint.contains("there is no file in the directory"), "{complaint}");
}

#[test]
fn a_file_without_permission_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("set");
    let path = dir.path().join("secret");
    fs::write(&path, "words").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("set");
    // Root may read everything, so root runs a copy of the command as the user `nobody`.
    let program = dir.path().join("gristmill");
    copy_of_program(&program);
    let mut command = Command::new(&program);
    command.args(["word-count", "--workers", "2"]).arg(&path).stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    let complaint = complaint(&mut command, 1);
    assert_eq!(complaint, format!("gristmill: cannot read {}: Permission denied (os error 13)\n", path.display()));
}

#[test]
fn a_file_that_can_be_opened_but_not_read_is_named() {
    // Address 0 is never mapped.
    let complaint = complaint(&mut word_count(["/proc/self/mem"]), 1);
    assert!(complaint.starts_with("gristmill: cannot read /proc/self/mem: "), "{complaint}");
}

#[test]
fn a_file_of_unknown_size_is_read() {
    // Files in /proc report a size of 0.
    let counted = answer(&mut word_count(["/proc/self/status", "--workers", "2"]));
    assert!(counted.windows(5).any(|five| five == b"Name:"), "the file was taken for empty");
}

#[test]
fn an_empty_file_has_no_words() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("empty");
    fs::write(&path, "").expect("written");
    for isolation in ["process", "thread"] {
        assert!(answer(word_count(["--isolation", isolation]).arg(&path)).is_empty());
    }
    assert!(answer(&mut word_count(["/dev/null"])).is_empty());
}

/// A `TMPDIR` that was missing, empty or a file stopped every job, even one that put nothing there, and the message did
/// not name it.
#[test]
fn the_folder_that_tmpdir_names_is_looked_at_when_something_is_put_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let [text, output, missing] = ["text", "output", "missing"].map(|name| dir.path().join(name));
    let lines: Vec<String> = (0..200_000).map(|n| format!("{:08}\n", n * 7919 % 200_000)).collect();
    fs::write(&text, lines.concat()).expect("written");
    let with = |tmpdir: &Path, arguments: &[&str]| {
        let mut command = gristmill(arguments.iter());
        command.env("TMPDIR", tmpdir).current_dir(dir.path());
        command
    };
    let piped = |tmpdir: &Path| {
        let mut command = with(tmpdir, &["word-count", "--quiet"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdin.take().expect("a pipe").write_all(b"b a b\n"));
        child.wait_with_output().expect("it ends")
    };
    for tmpdir in [&missing, &text, Path::new("")] {
        for arguments in [
            &["word-count", "--quiet", "-o", "output", "text"][..],
            &["sort", "--workers", "2", "-o", "output", "text"],
            &["string-match", "--keys", "text", "text", "-o", "output"],
            &["palindromes", "--print", "total", "text"],
        ] {
            answer(&mut with(tmpdir, arguments));
        }
        assert!(fs::metadata(&output).expect("there").len() >= 200_000 * 9);
    }
    fs::write(dir.path().join("list"), "echo 1\n").expect("written");
    let spills = ["sort", "--workers", "2", "--memory", "12MiB", "-o", "output", "text"];
    for (tmpdir, why) in [(&missing, "No such file or directory"), (&text, "Not a directory")] {
        let place = format!("folder {} (TMPDIR): {why} (os error ", tmpdir.display());
        let said = complaint(&mut with(tmpdir, &spills), 1);
        assert!(said.contains(&place) && said.contains("ame another folder with --spill-dir"), "{said}");
        let said = String::from_utf8(piped(tmpdir).stderr).expect("text");
        assert!(said.contains(&place) && said.contains("name another folder with --spill-dir"), "{said}");
        let said = complaint(&mut with(tmpdir, &["batch", "--history", "history", "list"]), 1);
        assert!(said.contains(&format!("kept in {} (TMPDIR): {why}", tmpdir.display())), "{said}");
    }
    // As for the shell and for mktemp, an empty value is none.
    assert_eq!(piped(Path::new("")).stdout, b"a\t1\nb\t2\n");
    answer(&mut with(Path::new(""), &spills));
    let sorted = fs::read(&output).expect("there");
    let mut lines = lines;
    lines.sort();
    assert!(sorted == lines.concat().as_bytes());
}

#[test]
fn a_fifo_is_read_to_its_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("fifo");
    make_fifo(&path);
    let text = b"to be or not to be ".repeat(50_000);
    let child = word_count(["--workers", "2"]).arg(&path).stdout(Stdio::piped()).spawn().expect("started");
    fs::OpenOptions::new().write(true).open(&path).expect("opened").write_all(&text).expect("written");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success());
    assert_eq!(output.stdout, oracle(&text, false));
}

#[test]
fn a_word_of_two_gibibytes_is_an_error_with_its_place_and_the_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("zeros");
    let mut file = File::create(&path).expect("created");
    file.write_all(b"one two ").expect("written");
    file.set_len(2 * GIB).expect("set");
    let began = Instant::now();
    let complaint = complaint(word_count(["--workers", "2"]).arg(&path), 1);
    assert!(complaint.contains("starts at byte 8 is longer than 16777216 bytes"), "{complaint}");
    assert!(complaint.contains("--record-bytes-max"), "{complaint}");
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
}

#[test]
fn the_longest_word_is_exactly_as_long_as_the_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("long");
    for (length, fits) in [(1 << 20, true), ((1 << 20) + 1, false)] {
        let mut text = b"a b ".to_vec();
        text.resize(4 + length, b'x');
        text.extend_from_slice(b" c d");
        fs::write(&path, &text).expect("written");
        let mut command = word_count(["--workers", "2", "--record-bytes-max", "1MiB"]);
        command.arg(&path);
        if fits {
            assert!(answer(&mut command) == oracle(&text, false));
        } else {
            let complaint = complaint(&mut command, 1);
            assert!(complaint.contains("starts at byte 4 is longer than 1048576 bytes"), "{complaint}");
        }
    }
}

/// `--record-bytes-max` was once limited to 16 MiB, regardless of the memory.
#[test]
fn a_record_may_be_as_long_as_memory_allows() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, counts) = (dir.path().join("long"), dir.path().join("counts"));
    let mut text = b"a ".to_vec();
    text.resize(40 << 20, b'x');
    fs::write(&path, &text).expect("written");
    answer(word_count(["--workers", "2", "--record-bytes-max", "1.5GiB", "-o"]).args([&counts, &path]));
    let counted = fs::read(&counts).expect("the result");
    assert!(counted.len() == text.len() + 5 && counted.starts_with(b"a\t1\nxxx") && counted.ends_with(b"x\t1\n"));
}

#[test]
fn a_line_of_two_gibibytes_is_counted_in_little_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("zeros");
    let mut file = File::create(&path).expect("created");
    file.set_len(2 * GIB - 5).expect("set");
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).expect("at the end");
    file.write_all(b"end\nx").expect("written");
    // The address space of each process has room for a quarter of the line, everything else included.
    let script = "ulimit -v 524288; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_gristmill"), "word-count", "--tokens", "alpha", "--workers", "2"]);
    assert_eq!(answer(command.arg(&path).stdin(Stdio::null())), b"END\t1\nX\t1\n");
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let (text, fifo, result) = (dir.path().join("text"), dir.path().join("fifo"), dir.path().join("result"));
    fs::write(&text, "word ".repeat(1 << 20)).expect("written");
    make_fifo(&fifo);
    // The command has asked for the size of `text` by the time it opens the pipe after it, where it waits.
    let child = word_count(["--workers", "2", "--output"])
        .args([&result, &text, &fifo])
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let pipe = fs::OpenOptions::new().write(true).open(&fifo).expect("opened");
    File::options().write(true).open(&text).and_then(|file| file.set_len(1 << 20)).expect("truncated");
    drop(pipe);
    let output = child.wait_with_output().expect("ended");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("ends at byte 1048576, but had 5242880 bytes"), "{complaint}");
    assert_eq!(names(dir.path()), ["fifo", "text"]);
}

#[test]
fn a_full_disk_is_an_error_and_leaves_no_partial_result() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("text");
    fs::write(&text, (0..100_000).map(|n| format!("word{n} ")).collect::<String>()).expect("written");
    let small = dir.path().join("small");
    fs::create_dir(&small).expect("made");
    // A tiny private file system, in a mount namespace that ends with the script.
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" && echo before > \"$1/counts.tsv\" || exit 99
        \"$0\" word-count --workers 2 --output \"$1/counts.tsv\" \"$2\"; echo \"status $?\"; ls -A \"$1\"; cat \"$1/counts.tsv\"";
    let namespace: &[&str] =
        if rustix::process::geteuid().is_root() { &["--mount"] } else { &["--mount", "--map-root-user"] };
    let mounted = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", script, env!("CARGO_BIN_EXE_gristmill")])
        .args([&small, &text])
        .stdin(Stdio::null())
        .output();
    match mounted {
        Ok(output) if output.status.success() => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(complaint.contains("counts.tsv: No space left on device"), "{complaint}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "status 1\ncounts.tsv\nbefore\n");
        }
        _ => {
            // If mounting is not allowed, a limit on file sizes makes the same write fail.
            let counts = small.join("counts.tsv");
            fs::write(&counts, "before\n").expect("written");
            let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" word-count --workers 2 --output \"$1\" \"$2\"";
            let mut limited = Command::new("sh");
            limited.args(["-c", script, env!("CARGO_BIN_EXE_gristmill")]).args([&counts, &text]).stdin(Stdio::null());
            let complaint = complaint(&mut limited, 1);
            assert!(complaint.contains("counts.tsv: File too large"), "{complaint}");
            assert_eq!(names(&small), ["counts.tsv"]);
            assert_eq!(fs::read_to_string(counts).expect("there"), "before\n");
        }
    }
}

/// Under `ulimit -f` the kernel once ended the command silently with SIGXFSZ. Later no job could begin, because the
/// kernel treats shared memory as a file.
#[test]
fn a_limit_on_file_sizes_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = (0..60_000).map(|n| format!("word{n}\n")).collect::<String>();
    let rows = (0..2_000).map(|n| format!("\"a \"\"key\"\"\",bad{n}\n")).collect::<String>();
    fs::write(dir.path().join("text"), &text)
        .and_then(|()| fs::write(dir.path().join("rows.csv"), rows))
        .expect("written");
    let limited = |blocks: u32, arguments: &str| {
        let script = format!("ulimit -f {blocks}; cd \"$1\" && \"$0\" {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_gristmill")]).arg(dir.path()).stdin(Stdio::null());
        command
    };
    make_fifo(&dir.path().join("endless"));
    let mut endless =
        Command::new("sh").args(["-c", "yes > endless"]).current_dir(dir.path()).spawn().expect("started");
    // A small output fits within the limit.
    assert_eq!(answer(&mut limited(1, "word-count --workers 2 --top 1 text")), b"word0\t1\n");
    assert_eq!(answer(&mut limited(1, "group-by --workers 2 --header no --by 1 rows.csv")), b"a \"key\"\t2000\n");
    for (blocks, arguments, what) in [
        (64, "word-count --output counts.tsv text", "cannot write counts.tsv"),
        (64, "word-count text > out", "cannot write standard output"),
        (64, "sort --output sorted text", "cannot write sorted"),
        (4, "sort --parts sorted text", "cannot write sorted"),
        (1, "word-count --top 1 --stats s.json -o /dev/null text", "cannot write s.json"),
        (1, "word-count --top 1 --timeline t.html -o /dev/null text", "cannot write t.html"),
        (
            8,
            "group-by --by 1 --sum 2 --header no --skip-bad-records 5000 --bad-records b.jsonl -o /dev/null rows.csv",
            "cannot write b.jsonl",
        ),
        (64, "word-count --checkpoint c text", "cannot use the checkpoint in c/job-1"),
        (64, "word-count --top 1 - < endless", "cannot copy standard input to the folder "),
    ] {
        let before = names(dir.path());
        let why = complaint(&mut limited(blocks, arguments), 1);
        let parts = [what, "File too large", " bytes (ulimit -f)"];
        assert!(parts.iter().all(|part| why.contains(part)), "{arguments}: {why}");
        assert_eq!(why.lines().count(), 1, "{arguments}: {why}");
        // The shell has made `out`, and a checkpoint stays.
        let new: Vec<_> = names(dir.path()).into_iter().filter(|name| !before.contains(name)).collect();
        assert!(new.iter().all(|name| name == "out" || name == "c"), "{arguments}: {new:?}");
    }
    // It ends because its reader is gone.
    endless.wait().expect("ended");
}

#[test]
fn unwritable_outputs_fail_before_the_job_begins() {
    for arguments in [
        ["--output", "/no/such/directory/counts.tsv"],
        ["--stats", "/no/such/directory/run.json"],
        ["--timeline", "/no/such/directory/run.html"],
    ] {
        // The input never ends.
        let complaint = complaint(word_count(arguments).arg("/dev/zero"), 1);
        assert!(complaint.starts_with("gristmill: cannot write /no/such/directory/"), "{complaint}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let complaint = complaint(word_count(["--format", "tsv", "--output"]).arg(dir.path()).arg("/dev/zero"), 1);
    assert!(complaint.contains("Is a directory"), "{complaint}");
}

#[test]
fn a_full_standard_output_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").expect("opened");
    let complaint = complaint(word_count(["Cargo.toml"]).stdout(full()), 1);
    assert_eq!(complaint, "gristmill: cannot write standard output: No space left on device (os error 28)\n");
    let complaint = command::complaint(&mut word_count(["Cargo.toml", "--output", "/dev/full"]), 1);
    assert_eq!(complaint, "gristmill: cannot write /dev/full: No space left on device (os error 28)\n");
}

/// `word-count f >&-` once printed nothing and exited with status 0, because the runtime had opened /dev/null as
/// standard output. `word-count <&-` read nothing, with the same status.
#[test]
fn a_closed_standard_stream_is_an_error_before_any_work() {
    let closed = |redirection: &str, arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {redirection}"), env!("CARGO_BIN_EXE_gristmill")]);
        command.args(arguments).stdin(Stdio::null());
        command
    };
    // The input never ends.
    for arguments in [&["word-count", "/dev/zero"][..], &["sort", "/dev/zero"], &["word-count", "-o", "-", "/dev/zero"]]
    {
        let complaint = complaint(&mut closed(">&-", arguments), 1);
        assert_eq!(complaint, "gristmill: cannot write standard output: Bad file descriptor (os error 9)\n");
    }
    let refused = complaint(&mut closed("<&-", &["word-count"]), 1);
    assert_eq!(refused, "gristmill: cannot read standard input: Bad file descriptor (os error 9)\n");
    let dir = tempfile::tempdir().expect("a directory");
    let (text, counts) = (dir.path().join("text"), dir.path().join("counts"));
    fs::write(&text, "a b a").expect("written");
    let arguments = ["word-count", "-o", counts.to_str().expect("text"), text.to_str().expect("text")];
    assert!(answer(&mut closed(">&- <&-", &arguments)).is_empty());
    assert_eq!(fs::read_to_string(counts).expect("there"), "a\t2\nb\t1\n");
}

/// A failed job once printed the header of its CSV.
#[test]
fn a_job_that_fails_prints_no_header() {
    complaint(&mut word_count(["--format", "csv", "--workers", "2", "--memory", "4MiB", "Cargo.toml"]), 2);
    complaint(&mut word_count(["--format", "csv", "/no/such/file"]), 1);
    assert_eq!(answer(&mut word_count(["--format", "csv", "/dev/null"])), b"word,count\n");
}

/// `-o r.csv --stats r.csv` once left the statistics and no result, with status 0. Links are seen through.
#[test]
fn two_outputs_are_never_one_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    fs::write(path("text"), "a b a").expect("written");
    fs::create_dir(path("folder")).expect("made");
    fs::create_dir(path("empty")).expect("made");
    for name in ["old.csv", "other.csv"] {
        fs::write(path(name), "before").expect("written");
    }
    std::os::unix::fs::symlink("old.csv", path("link.csv")).expect("linked");
    fs::hard_link(path("other.csv"), path("hard.csv")).expect("linked");
    std::os::unix::fs::symlink("folder", path("way")).expect("linked");
    let refused = |arguments: &[&str]| {
        let before = names(dir.path());
        let refused = complaint(&mut gristmill(arguments), 2);
        assert_eq!(names(dir.path()), before, "{arguments:?}");
        assert_eq!(fs::read_to_string(path("old.csv")).expect("there"), "before");
        refused
    };
    for (output, stats) in [
        ("r.csv", "r.csv"),
        ("r.csv", "./folder/../r.csv"),
        ("old.csv", "link.csv"),
        ("hard.csv", "other.csv"),
        ("folder/r.csv", "way/r.csv"),
    ] {
        let refused = refused(&["word-count", "-o", &path(output), "--stats", &path(stats), "/dev/zero"]);
        assert!(refused.starts_with("error: --output and --stats are the same file, "), "{refused}");
        assert!(refused.contains("Usage: gristmill word-count "), "{refused}");
    }
    let skip = ["--skip-bad-records", "1"];
    for arguments in [
        &["-o", &path("r.csv"), "--bad-records", &path("r.csv")][..],
        &["--stats", &path("r.json"), "--bad-records", &path("r.json")],
        &["-o", &path("r.csv"), "--checkpoint", &path("r.csv")],
    ] {
        let refused = refused(&[&["word-count", "/dev/zero"], &skip[..], arguments].concat());
        assert!(refused.contains(" are the same file, "), "{refused}");
    }
    for arguments in [
        &["sort", "--parts", &path("empty"), "--stats", &path("empty/s.json"), "/dev/zero"][..],
        &["sort", "--parts", &path("empty"), "--spill-dir", &path("empty"), "/dev/zero"],
        &["word-count", "--checkpoint", &path("folder"), "-o", &path("way/r.csv"), "/dev/zero"],
    ] {
        let refused = refused(arguments);
        assert!(refused.contains("nothing else may lie in the folder of --"), "{refused}");
    }
    // A device may be written by several outputs.
    let devices = ["word-count", "-o", "/dev/null", "--bad-records", "/dev/null", &path("text")];
    answer(gristmill(devices).args(skip));
}

/// A result in the input folder was once counted by the next run, and `-o f f` replaced its input.
#[test]
fn an_output_is_never_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    fs::create_dir(path("logs")).expect("made");
    for name in ["logs/text", "keys", "list"] {
        fs::write(path(name), "b\na\n").expect("written");
    }
    fs::hard_link(path("logs/text"), path("hard")).expect("linked");
    let counts = ["word-count", "-o", &path("logs/counts.tsv"), &path("logs")];
    answer(&mut gristmill(counts));
    let again = complaint(&mut gristmill(counts), 2);
    assert!(again.contains("counts.tsv is also an input, "), "{again}");
    assert_eq!(fs::read_to_string(path("logs/counts.tsv")).expect("there"), "a\t1\nb\t1\n");
    for arguments in [
        &["word-count", "-o", &path("hard"), &path("logs/text")][..],
        &[
            "string-match",
            "--keys",
            &path("keys"),
            "--bad-records",
            &path("keys"),
            "--skip-bad-records",
            "1",
            "/dev/zero",
        ],
        &["word-count", "--files-from", &path("list"), "-o", &path("list")],
        &["sort", "--bad-records", &path("logs/text"), "--skip-bad-records", "1", &path("logs/text")],
    ] {
        let refused = complaint(&mut gristmill(arguments), 2);
        assert!(refused.contains(" is also an input, "), "{refused}");
    }
    let refused = complaint(&mut gristmill(["word-count", "--checkpoint", &path("logs/c"), &path("logs")]), 2);
    assert!(refused.contains("begin with a dot"), "{refused}");
    let appended = fs::OpenOptions::new().append(true).open(path("logs/text")).expect("opened");
    let refused = complaint(gristmill(["sort", &path("logs/text")]).stdout(appended), 2);
    assert!(refused.contains("the result standard output is also an input"), "{refused}");
    // Sorted input has been read by the time the result gets its name.
    answer(&mut gristmill(["sort", "-o", &path("logs/text"), &path("logs/text")]));
    assert_eq!(fs::read_to_string(path("logs/text")).expect("there"), "a\nb\n");
}

/// `-o /dev/stdout >> log` once replaced the log, because that name leads to a regular file.
#[test]
fn standard_output_by_another_name_is_not_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let (text, log) = (dir.path().join("text"), dir.path().join("log"));
    fs::write(&text, "a b a").expect("written");
    fs::write(&log, "before\n").expect("written");
    let append = || fs::OpenOptions::new().append(true).open(&log).expect("opened");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        answer(word_count(["-o", name]).arg(&text).stdout(append()));
    }
    assert_eq!(fs::read_to_string(&log).expect("there"), format!("before\n{}", "a\t2\nb\t1\n".repeat(3)));
}

#[test]
fn a_reader_that_closes_early_is_not_a_failure() {
    let dir = tempfile::tempdir().expect("a directory");
    let (text, stats) = (dir.path().join("text"), dir.path().join("stats.csv"));
    fs::write(&text, (0..200_000).map(|n| format!("word{n} ")).collect::<String>()).expect("written");
    for isolation in ["process", "thread"] {
        let mut child = word_count(["--workers", "2", "--isolation", isolation, "--stats"])
            .args([&stats, &text])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut first = [0; 6];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("a row");
        assert_eq!(&first, b"word0\t");
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        assert!(stats.exists());
    }
}

#[test]
fn a_failed_job_leaves_the_previous_result() {
    let dir = tempfile::tempdir().expect("a directory");
    let result = dir.path().join("counts.csv");
    fs::write(&result, "before").expect("written");
    complaint(word_count(["--output"]).arg(&result).arg("/no/such/file"), 1);
    complaint(word_count(["--record-bytes-max", "1", "--output"]).arg(&result).arg(big_word(dir.path())), 1);
    assert_eq!(fs::read_to_string(&result).expect("there"), "before");
    assert_eq!(names(dir.path()), ["counts.csv", "word"]);
    answer(word_count(["--output"]).arg(&result).arg(big_word(dir.path())));
    assert!(fs::read_to_string(&result).expect("there").starts_with("word,count\nxxx"));
}

#[test]
fn a_command_that_makes_no_sense_is_an_error() {
    for arguments in [
        &["--workers", "0"][..],
        &["--workers", "2000"],
        &["--workers", "2", "--map-workers", "1"],
        &["--page-bytes", "1000"],
        &["--page-bytes", "12parsecs"],
        &["--task-timeout", "30"],
        &["--task-timeout", "30s", "--isolation", "thread"],
        &["--record-bytes-max", "4GiB"],
        &["--top", "0"],
        &["--sort", "size"],
        &["--stats", "stats.xml"],
        &["--timeline", "timeline.svg"],
        &["--timeline", "run.html", "--bad-records", "run.html", "--skip-bad-records", "1"],
    ] {
        let complaint = complaint(word_count(arguments).arg("/dev/null"), 2);
        assert!(complaint.starts_with("error: "), "{complaint}");
    }
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo starts");
    assert!(made.success());
}

/// Makes a file of one word that is longer than one read.
fn big_word(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("word");
    fs::write(&path, [b'x'; 1 << 20]).expect("written");
    path
}

#[test]
fn rows_that_cannot_be_read_are_set_aside_and_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("points.csv");
    let mut rows: Vec<u8> = (0..2000).flat_map(|x| format!("{x},{}\n", 3 * x).into_bytes()).collect();
    rows.extend_from_slice(b"2000,six thousand\n\xff,1\n");
    fs::write(&path, &rows).expect("written");
    let fit = |skip: &str| {
        let mut command =
            gristmill(["linear-regression", "--workers", "2", "--header", "no", "--x", "1", "--y", "2", "--output"]);
        command.arg(dir.path().join("line.tsv")).args(["--skip-bad-records", skip]).arg(&path);
        command
    };
    let refused = complaint(&mut fit("1"), 1);
    assert!(
        refused.contains("That is one record more than the 1 that may be set aside (--skip-bad-records): raise"),
        "{refused}"
    );
    assert_eq!(names(dir.path()), ["points.csv"]);

    let told = fit("2").output().expect("it starts");
    let complaint = String::from_utf8(told.stderr).expect("text");
    let list = dir.path().join("line.tsv.bad.jsonl");
    let expected =
        format!("gristmill: 2 records were set aside and not counted; {} says which and why\n", list.display());
    assert!(told.status.success() && complaint == expected, "{complaint}");
    let line = fs::read_to_string(dir.path().join("line.tsv")).expect("the result");
    assert!(line.contains("n\t2000\n") && line.contains("slope\t3\n"), "{line}");
    let listed = fs::read_to_string(list).expect("the list");
    let listed: Vec<serde_json::Value> = listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&listed[0]["line"], &listed[0]["record"]), (&2001.into(), &"2000,six thousand".into()));
    assert_eq!((&listed[1]["line"], &listed[1]["record_hex"]), (&2002.into(), &"ff2c31".into()));
    assert!(
        listed.iter().all(|bad| bad["cause"].as_str().is_some_and(|cause| cause.contains("is not a finite number")))
    );
}

#[test]
fn a_job_that_could_not_write_its_result_continues_and_removes_its_checkpoint() {
    let dir = tempfile::tempdir().expect("a directory");
    let (text, checkpoint) = (dir.path().join("text"), dir.path().join("checkpoint"));
    let words: Vec<u8> = (0..40_000).flat_map(|n| format!("word{} ", n % 997).into_bytes()).collect();
    fs::write(&text, &words).expect("written");
    let command = |tokens: &str| {
        let mut command = word_count(["--workers", "2", "--split-bytes", "20000", "--tokens", tokens, "--checkpoint"]);
        command.arg(&checkpoint).arg(&text);
        command
    };
    let full = File::options().write(true).open("/dev/full").expect("there");
    let failed = command("space").stdout(full).output().expect("it starts");
    assert_eq!(failed.status.code(), Some(1));
    // A different command is not continued.
    let refused = complaint(&mut command("alpha"), 1);
    assert!(
        refused.contains("is not of this job: the program was ") && refused.contains("--tokens space"),
        "{refused}"
    );
    let told = command("space").output().expect("it starts");
    let tasks = words.len().div_ceil(20_000);
    let news = format!("gristmill: continuing: {tasks} of {tasks} tasks were done\n");
    assert_eq!(String::from_utf8_lossy(&told.stderr), news);
    assert!(told.status.success() && told.stdout == oracle(&words, false));
    assert_eq!(names(dir.path()), ["text"]);
    // An empty folder made by the user was once removed with the checkpoint in it.
    fs::create_dir(&checkpoint).expect("made");
    assert!(command("space").stdout(Stdio::null()).status().expect("it starts").success());
    assert_eq!((names(dir.path()), names(&checkpoint)), (vec!["checkpoint".to_owned(), "text".to_owned()], vec![]));
}

/// Returns every subcommand that `gristmill --help` lists, and the hidden one, with arguments for a short run in a
/// folder.
fn subcommands(folder: &Path) -> Vec<Vec<&'static str>> {
    fs::write(folder.join("text"), "to be or not to be\n".repeat(100)).expect("written");
    fs::write(folder.join("keys"), "to be or not to be\n").expect("written");
    fs::write(folder.join("table.csv"), "x,y\n0,1\n1,3\n2,5\n3,7.5\n").expect("written");
    fs::write(folder.join("square.csv"), "1,2\n3,4\n").expect("written");
    let mut bmp = vec![0; 54];
    bmp[..2].copy_from_slice(b"BM");
    for (at, word) in [(10, 54u32), (14, 40), (18, 1), (22, 1), (26, 1), (28, 24)] {
        bmp[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bmp.extend_from_slice(&[1, 2, 3, 0]);
    fs::write(folder.join("picture.bmp"), bmp).expect("written");
    fs::write(folder.join("times.csv"), "1,8\n2,4.2\n4,2.3\n").expect("written");
    let all: [&[&str]; 18] = [
        &["word-count", "text"],
        &["group-by", "--by", "x", "table.csv"],
        &["histogram", "picture.bmp"],
        &["linear-regression", "--x", "x", "--y", "y", "table.csv"],
        &["string-match", "--keys", "keys", "text"],
        &["kmeans", "-k", "1", "table.csv"],
        &["pca", "table.csv"],
        &["tile-search", "--rows", "2", "--columns", "2"],
        &["matrix-multiply", "--left", "square.csv", "square.csv"],
        &["palindromes", "text"],
        &["sort", "text"],
        &["machine", "--no-measure"],
        &["scale", "--workers", "1", "--repeats", "1", "--no-account", "--", "test", "{workers}"],
        &["scale", "--from", "times.csv"],
        &["batch", "--history", "runs.sqlite", "--", "echo", ":::", "a", "b"],
        &["history", "--history", "runs.sqlite"],
        &["history", "--history", "runs.sqlite", "--export"],
        &["completions", "bash"],
    ];
    all.iter().map(|arguments| arguments.to_vec()).collect()
}

/// `generate kmeans | true`, `terasort validate > /dev/full` and others once panicked; with little memory the
/// allocator aborted.
#[test]
fn every_subcommand_survives_unwritable_outputs_and_too_little_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let commands = subcommands(dir.path());
    // `run` becomes Python, and help is tried below.
    all_are_tried(&commands, &["help", "run"]);
    commands.iter().for_each(|arguments| survives(dir.path(), arguments, false));
    for arguments in [&["--help"][..], &["word-count", "--help"], &["--version"]] {
        for redirection in ["> /dev/full", ">&-"] {
            let told = run(dir.path(), "", arguments, redirection).output().expect("it starts");
            assert_eq!(told.status.code(), Some(1), "{arguments:?}: {}", String::from_utf8_lossy(&told.stderr));
        }
    }
}

/// With `--memory 64MiB` a CSV field of 100 MB once took 486 MB, most of it before the job began, because records had
/// a separate limit.
#[test]
fn a_long_record_is_refused_before_it_takes_more_than_the_memory_of_the_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, begin: &[u8], again: &[u8], end: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, [begin, &again.repeat((6 << 20) / again.len()), end].concat()).expect("written");
        path
    };
    let by = ["group-by", "--by", "1", "--header", "no", "--memory", "64MiB", "--workers", "2"];
    let json = ["group-by", "--by", "k", "--memory", "64MiB", "--workers", "2"];
    let lines = ["sort", "--memory", "64MiB", "--workers", "2"];
    let limit = "is longer than 2097152 bytes. Raise the limit with --record-bytes-max";
    for (arguments, path, expected) in [
        (&by[..], file("first.csv", b"", b"x", b"\n"), "its first line is longer than 4 MiB, which is the limit"),
        (&by, file("fields.csv", b"", b",", b"\n"), "its first line has more than 1048576 fields, which is the limit"),
        (&by, file("second.csv", b"a,1\n", b"x", b",1\n"), limit),
        (&by, file("quoted.csv", b"a,1\n\"", b"x\n", b"\",1\n"), "not closed within 2097152 bytes, the limit on a row"),
        (&json, file("deep.jsonl", b"{\"k\":1}\n{\"x\":", b"[", b"\n"), limit),
        (&lines, file("line.txt", b"a\n", b"x", b"\n"), limit),
        (&["word-count", "--memory", "64MiB", "--workers", "2"], dir.path().join("line.txt"), limit),
    ] {
        let refused = complaint(gristmill(arguments).arg(&path), 1);
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        assert!(refused.contains(expected) && refused.contains(&name), "{refused}");
    }
    let deep = dir.path().join("less_deep.jsonl");
    fs::write(&deep, ["{\"k\":1,\"x\":", &"[".repeat(1 << 20), "\n"].concat()).expect("written");
    let refused = complaint(gristmill(json).arg(&deep), 1);
    assert!(refused.contains("line 1: this is no JSON object: EOF while parsing a list"), "{refused}");
    // To allow longer records, the user must allow the memory for them.
    let longer = [&lines[..], &["--record-bytes-max", "17MiB"]].concat();
    let refused = complaint(gristmill(&longer).arg(dir.path().join("line.txt")), 2);
    assert!(
        refused.contains("records of 17825792 bytes (--record-bytes-max) need six times as much memory"),
        "{refused}"
    );
    let longer = ["sort", "--memory", "96MiB", "--workers", "2", "--record-bytes-max", "8MiB"];
    assert_eq!(answer(gristmill(longer).arg(dir.path().join("line.txt"))).len(), (6 << 20) + 3);
}
