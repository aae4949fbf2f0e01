//! A disk that loses a byte: one clear error with the file and the byte, or the right answer; never a hang.
//!
//! `read_errors.c` drops the byte. GRISTMILL_READ_ERRORS sets how many bytes of each file are tried;
//! `ci/read-errors.sh` tries many.

mod command;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use command::{answer, complaint, names, oracle};
use pack::COMPRESSED;

const EIO: &str = "Input/output error (os error 5)\n";

/// Runs commands on a disk that loses bytes.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    fn new() -> Disk {
        let dir = tempfile::tempdir().expect("a directory");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_errors.c");
        let library = dir.path().join("lost.so");
        // A C compiler exists: the libraries for zstd and xz were built with it.
        let built = Command::new("cc").args(["-O1", "-fPIC", "-shared", "-o"]).arg(&library).arg(source).status();
        assert!(built.expect("cc starts").success());
        Disk { dir }
    }

    fn file(&self, name: &str, content: &[u8]) -> std::path::PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }

    /// Returns `gristmill` with two workers and a timeout of a minute, which would be a hang.
    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        let (subcommand, options) = arguments.split_first().expect("a subcommand");
        command.args(["60", env!("CARGO_BIN_EXE_gristmill"), subcommand, "--workers", "2"]).args(options);
        command.stdin(Stdio::null());
        command
    }

    /// Does the same without byte `byte` of files whose path contains `part`.
    fn run_without(&self, byte: u64, part: &Path, arguments: &[&str]) -> Command {
        let mut command = self.run(arguments);
        command.env("LD_PRELOAD", self.dir.path().join("lost.so"));
        command.env("LOST_IN", part).env("LOST_BYTE", byte.to_string());
        command
    }
}

/// Returns some offsets below `end`: the first, the last, one that is read to recognise the file, and pseudo-random
/// ones.
fn places(end: u64, few: usize) -> Vec<u64> {
    let count = std::env::var("GRISTMILL_READ_ERRORS").ok().and_then(|count| count.parse().ok()).unwrap_or(few);
    let mut random = fastrand::Rng::with_seed(end);
    [0, end - 1, 3000.min(end / 2)].into_iter().chain((0..count).map(|_| random.u64(..end))).collect()
}

fn text() -> Vec<u8> {
    (0..40_000u32).map(|n| format!("w{} the\n", n.wrapping_mul(2_654_435_761) >> 16)).collect::<String>().into_bytes()
}

#[test]
fn a_lost_byte_of_a_file_is_named() {
    let disk = Disk::new();
    let path = disk.file("text", &text());
    let result = disk.dir.path().join("counts.tsv");
    for byte in places(text().len() as u64, 8) {
        let arguments = ["word-count", "--split-bytes", "50KiB", "--output"];
        let refused = complaint(disk.run_without(byte, &path, &arguments).args([&result, &path]), 1);
        let place = if byte == 0 { String::new() } else { format!(" at byte {byte}") };
        assert_eq!(refused, format!("gristmill: cannot read {}{place}: {EIO}", path.display()));
        assert_eq!(names(disk.dir.path()), ["lost.so", "text"]);
    }
}

#[test]
fn a_lost_byte_of_a_compressed_file_is_an_error_unless_it_is_not_needed() {
    let disk = Disk::new();
    let expected = oracle(&text(), false);
    for packing in COMPRESSED {
        let packed = packing.pack(&text(), 100_000);
        let path = disk.file("packed", &packed);
        for byte in places(packed.len() as u64, 4) {
            let output =
                disk.run_without(byte, &path, &["word-count"]).arg(&path).output().expect("the command starts");
            let refused = String::from_utf8(output.stderr).expect("messages are text");
            match output.status.code() {
                Some(0) => assert!(output.stdout == expected, "{packing:?} without byte {byte}"),
                Some(1) => {
                    let start = format!("gristmill: cannot read {}", path.display());
                    let is_clear = refused.starts_with(&start) && refused.ends_with(EIO);
                    assert!(is_clear && output.stdout.is_empty(), "{packing:?} without byte {byte}: {refused}");
                }
                other => panic!("{packing:?} without byte {byte}: {other:?} {refused}"),
            }
        }
    }
}

#[test]
fn a_lost_byte_of_a_table_is_named_by_every_reader() {
    let disk = Disk::new();
    let rows: String = (0..20_000).map(|n| format!("\"{}\n\",{n}\n", n % 100)).collect();
    let path = disk.file("rows.csv", rows.as_bytes());
    for byte in places(rows.len() as u64, 6) {
        let arguments = ["group-by", "--by", "1", "--sum", "2", "--split-bytes", "20KiB"];
        let refused = complaint(disk.run_without(byte, &path, &arguments).arg(&path), 1);
        let is_named = refused.contains(&path.display().to_string()) && refused.ends_with(EIO);
        assert!(is_named, "without byte {byte}: {refused}");
    }
}

#[test]
fn a_lost_byte_of_a_spill_file_is_one_clear_error() {
    let disk = Disk::new();
    let words =
        (0..1_200_000u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect::<Vec<_>>();
    let path = disk.file("text", words.join(" ").as_bytes());
    let spill = disk.dir.path().join("spill");
    fs::create_dir(&spill).expect("made");
    let arguments = ["word-count", "--memory", "32MiB", "--top", "3", "--spill-dir"];
    // Each worker spills many times this many bytes.
    for byte in places(1 << 20, 1) {
        let refused = complaint(disk.run_without(byte, &spill, &arguments).args([&spill, &path]), 1);
        let expected = format!("gristmill: cannot read in the spill folder {}: Input/output error", spill.display());
        assert!(refused.starts_with(&expected), "without byte {byte}: {refused}");
        assert!(names(&spill).is_empty());
    }
    // A byte beyond the end of the files is not missed.
    let mut first = words;
    first.sort_unstable();
    let expected: String = first[..3].iter().map(|word| format!("{word}\t1\n")).collect();
    assert_eq!(answer(disk.run_without(1 << 40, &spill, &arguments).args([&spill, &path])), expected.as_bytes());
}

#[test]
fn a_lost_byte_of_a_checkpoint_is_one_clear_error_and_loses_nothing() {
    let disk = Disk::new();
    let path = disk.file("text", &text());
    let expected = oracle(&text(), false);
    let dir = disk.dir.path().join("checkpoint");
    for file in ["0.pairs", "1.result"] {
        let arguments =
            ["word-count", "--quiet", "--split-bytes", "50KiB", "--checkpoint-every", "1ms", "--checkpoint"];
        let refused =
            complaint(disk.run_without(100, &dir.join("job-1").join(file), &arguments).args([&dir, &path]), 1);
        let start = format!("gristmill: cannot use the checkpoint in {}", dir.display());
        assert!(refused.starts_with(&start) && refused.contains("Input/output error"), "{file}: {refused}");
        // The disk is whole again.
        assert!(answer(disk.run(&arguments).args([&dir, &path])) == expected);
        assert!(!dir.exists());
    }
}
