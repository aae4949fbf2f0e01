//! Small files that need much memory.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::command::{answer, complaint, gristmill, word_count};

const MEMORY: &str = "64MiB";
/// One and a half times the memory.
const LIMIT_BYTES: u64 = 96 << 20;

/// A memory cgroup of either version, if one can be made.
struct Group(Option<PathBuf>);

impl Group {
    fn new(test: &str) -> Group {
        let name = format!("gristmill-bombs-{}-{test}", std::process::id());
        let found = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        let made = found.into_iter().find_map(|(parent, limit)| {
            let group = Path::new(parent).join(&name);
            fs::create_dir(&group).ok()?;
            if fs::write(group.join(limit), LIMIT_BYTES.to_string()).is_ok() {
                return Some(group);
            }
            let _ = fs::remove_dir(&group);
            None
        });
        Group(made)
    }

    /// Runs a command in the group. Without a group, it limits the address space of each process, which also counts
    /// memory that is never touched.
    fn run(&self, arguments: &[&str], dir: &Path) -> Output {
        let command = gristmill(arguments);
        let begin = match &self.0 {
            Some(group) => format!("echo $$ >'{}/cgroup.procs' && exec \"$@\"", group.display()),
            None => "ulimit -v 2097152 && exec \"$@\"".to_owned(),
        };
        let mut shell = Command::new("sh");
        shell.args(["-c", &begin, "sh"]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(dir).stdin(std::process::Stdio::null()).output().expect("the shell starts")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = &self.0 {
            let _ = fs::remove_dir(group);
        }
    }
}

/// Makes a file of these pieces with their repetitions: each is one member, so it is compressed once.
fn gzip(pieces: &[(&[u8], usize)]) -> Vec<u8> {
    let member = |piece: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(piece).expect("in memory");
        packed.finish().expect("in memory")
    };
    pieces.iter().flat_map(|(piece, times)| member(piece).repeat(*times)).collect()
}

const MIB: usize = 1 << 20;

/// Makes a black picture of 24 bits per pixel.
fn png(width: u32, height: u32) -> Vec<u8> {
    let chunk = |name: &[u8; 4], data: &[u8]| {
        let checksum = crc32fast::hash(&[name, data].concat());
        [&(data.len() as u32).to_be_bytes(), &name[..], data, &checksum.to_be_bytes()].concat()
    };
    let mut rows = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let row = vec![0; 1 + 3 * width as usize];
    (0..height).for_each(|_| rows.write_all(&row).expect("in memory"));
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let data = rows.finish().expect("in memory");
    [b"\x89PNG\r\n\x1a\n", &chunk(b"IHDR", &header)[..], &chunk(b"IDAT", &data), &chunk(b"IEND", b"")].concat()
}

/// Makes a grey picture with one-bit codes: all of its blocks equal the first.
fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let segment =
        |marker: u8, data: &[u8]| [&[0xff, marker][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat();
    let frame = [&[8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[1, 1, 0x11, 0]].concat();
    // The only code of each table, a zero, means that nothing more follows.
    let table = |kind: u8| [&[kind, 1][..], &[0; 15], &[0]].concat();
    let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
    [
        vec![0xff, 0xd8],
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(0xc0, &frame),
        segment(0xc4, &table(0)),
        segment(0xc4, &table(0x10)),
        segment(0xda, &[1, 1, 0, 0, 63, 0]),
        vec![0; (2 * blocks).div_ceil(8)],
        vec![0xff, 0xd9],
    ]
    .concat()
}

fn npy(shape: &str) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes()].concat()
}

/// Makes an xz block whose header asks for a window of 64 MiB.
fn xz() -> Vec<u8> {
    let mut file = crate::pack::Packing::Xz.pack(b"some words", 30_000);
    let header = 12..12 + (usize::from(file[12]) + 1) * 4;
    let filter = header.start + file[header.clone()].windows(2).position(|two| two == [0x21, 1]).expect("LZMA2");
    file[filter + 2] = 28;
    let checksum = crc32fast::hash(&file[header.start..header.end - 4]);
    file[header.end - 4..header.end].copy_from_slice(&checksum.to_le_bytes());
    file
}

/// A file of 19 MB once took 2.5 GB, and one of 470 KB 1.85 GB in each worker, regardless of --memory.
#[test]
fn small_files_stay_within_the_memory_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, content: Vec<u8>| fs::write(dir.path().join(name), content).expect("written");
    write("large.png", png(9000, 9000));
    write("behind.png.gz", gzip(&[(&png(10, 10), 1), (&[0; MIB], 200)]));
    write("behind.jpg.gz", gzip(&[(&jpeg(10, 10), 1), (&[0; MIB], 200)]));
    write("wide.png", png(20_000_000, 1));
    write("large.jpg", jpeg(8000, 8000));
    let mut liar = jpeg(64, 64);
    // Height and width.
    liar[76..80].fill(0xff);
    write("liar.jpg", liar);
    write("zeros.bmp.gz", gzip(&[(&[0; MIB], 200)]));
    // A frame with a window of 64 MiB and one raw block of five bytes.
    write("a.zst", [&b"\x28\xb5\x2f\xfd\x00\x80\x29\x00\x00"[..], b"hello"].concat());
    write("a.xz", xz());
    write("large.npy.gz", gzip(&[(&npy("(5000000, 10)"), 1), (&[0; MIB], 1)]));
    write("absurd.npy", npy("(4611686018427387904, 2)"));
    write("ones.csv.gz", gzip(&[(&b"1\n".repeat(MIB / 2), 20)]));
    write("down.csv", b"1\n".repeat(12_000));
    write("across.csv", [b"1,".repeat(11_999), b"1\n".to_vec()].concat());
    write("wide.csv", [b"1,".repeat(5_999), b"1\n".to_vec()].concat().repeat(2));
    // Endless lines, fields and rows.
    let long = |begin: &str, again: &str, end: &str| {
        gzip(&[(begin.as_bytes(), 1), (again.repeat(MIB / again.len()).as_bytes(), 100), (end.as_bytes(), 1)])
    };
    write("lines.gz", gzip(&[(&format!("{:1023}\n", "a").repeat(1024).into_bytes(), 20)]));
    write("line.gz", long("", "a", "\n"));
    write("field.csv.gz", long("k,v\n1,2\n3,", "1", "\n"));
    write("quoted.csv.gz", long("k,v\n1,2\n\"", "a,\"\"\n", "\",2\n"));
    write("row.csv.gz", long("k,v\n1,2\n", "3,", "\n"));
    write("header.csv.gz", long("", "k", ",v\n1,2\n"));
    write("line.jsonl.gz", long("{\"k\":1,\"v\":2}\n{\"k\":\"", "a", "\",\"v\":1}\n"));
    write("deep.jsonl.gz", long("{\"k\":1,\"v\":2}\n{\"x\":", "[", "\n"));
    write("fields.jsonl.gz", long("{\"k\":1,\"v\":2}\n{", "\"k\":1,", "\"v\":2}\n"));
    let row = "x".repeat(1_900_000) + ",no\n";
    write("rows.csv.gz", gzip(&[(b"k,v\na,1\n", 1), (row.as_bytes(), 80)]));
    write("words.csv.gz", gzip(&[(b"k,v\na,1\n", 1), (&b"a,no\n".repeat(50_000), 1)]));
    let names: Vec<_> = (0..400_000).map(|name| format!("c{name}")).collect();
    write("names.csv", [names.join(",").as_bytes(), b"\n", &b"1,".repeat(399_999), b"1\n"].concat());
    write("short", b"abc\0d".to_vec());
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 40
    };
    let keys = (0..400_000).map(|_| format!("{}\n", random())).collect::<String>();
    write("keys.gz", gzip(&[(keys.as_bytes(), 1)]));
    write("letters", (0..2 * MIB).map(|_| b'a' + random() as u8 % 2).collect());
    let too_long = "is longer than 2097152 bytes. Raise the limit with --record-bytes-max";
    let by = ["group-by", "--by", "k"];
    let sums = ["group-by", "--by", "k", "--sum", "v"];
    let line = ["linear-regression", "--x", "k", "--y", "v"];
    let group = Group::new("small");
    // The expected complaint; it is empty for commands that succeed.
    let cases: [(&[&str], &str); 66] = [
        (&["histogram", "large.png"], ""),
        (&["histogram", "behind.png.gz"], ""),
        (&["histogram", "behind.jpg.gz"], "behind.jpg.gz: cannot be decoded: it is read into memory whole"),
        (&["histogram", "wide.png"], "to decode its 20000000 x 1 pixels row by row takes"),
        (&["histogram", "large.jpg"], "to decode its 8000 x 8000 pixels takes"),
        (
            &["histogram", "liar.jpg"],
            "the file is truncated: its 65535 x 65535 pixels take at least 16777216 bytes, and 16 of",
        ),
        (&["histogram", "zeros.bmp.gz"], "is no BMP, PNG or JPEG image"),
        (&["histogram", "--skip-bad-files", "all", "liar.jpg", "behind.png.gz"], ""),
        // A lack of memory is not a fault of a file or a record, so neither is set aside for it.
        (
            &["histogram", "--skip-bad-files", "all", "large.jpg", "behind.png.gz"],
            "large.jpg: cannot be decoded: to decode",
        ),
        (
            &["histogram", "--skip-bad-records", "9", "large.jpg", "behind.png.gz"],
            "to decode its 8000 x 8000 pixels takes",
        ),
        (
            &["histogram", "--skip-bad-files", "all", "behind.jpg.gz"],
            "behind.jpg.gz: cannot be decoded: it is read into",
        ),
        (
            &["word-count", "--skip-bad-files", "all", "a.xz", "down.csv"],
            "cannot read a.xz: to decode its xz data takes",
        ),
        (&["word-count", "--skip-bad-files", "all", "a.zst", "down.csv"], "to decode its zstd data takes 64.0 MiB"),
        (
            &["kmeans", "-k", "2", "--skip-bad-files", "all", "large.npy.gz", "down.csv"],
            "to keep its 5000000 x 10 numbers",
        ),
        (&["pca", "--skip-bad-files", "all", "ones.csv.gz"], "ones.csv.gz: to keep its numbers up to line"),
        (&["word-count", "a.zst"], "to decode its zstd data takes 64.0 MiB of memory, and a worker may take"),
        (&["word-count", "a.xz"], "to decode its xz data takes more than"),
        (&["kmeans", "-k", "2", "large.npy.gz"], "to keep its 5000000 x 10 numbers takes 381.5 MiB of memory"),
        (&["pca", "large.npy.gz"], "to keep its 5000000 x 10 numbers takes 381.5 MiB of memory"),
        (&["matrix-multiply", "--left", "large.npy.gz", "down.csv"], "to keep its 5000000 x 10 numbers takes"),
        (&["matrix-multiply", "--left", "across.csv", "large.npy.gz"], "to keep its 5000000 x 10 numbers takes"),
        (&["pca", "absurd.npy"], "no file has 4611686018427387904 x 2 numbers"),
        (&["kmeans", "-k", "2", "ones.csv.gz"], "to keep its numbers up to line"),
        (&["pca", "ones.csv.gz"], "to keep its numbers up to line"),
        (
            &["matrix-multiply", "--left", "down.csv", "across.csv"],
            "what the program holds, its result included, takes 2.1 GiB",
        ),
        (&["matrix-multiply", "--left", "down.csv", "--way", "pairs", "across.csv"], "takes 2.1 GiB"),
        (&["pca", "wide.csv"], "what the program holds, its result included, takes 1.3 GiB"),
        (&["string-match", "--keys", "ones.csv.gz", "down.csv"], "it is read into memory whole, and has more than"),
        (&["string-match", "--keys", "across.csv", "ones.csv.gz"], ""),
        (&["word-count", "--files-from", "/dev/zero"], "cannot read /dev/zero: it is read into memory whole"),
        (&["word-count", "ones.csv.gz", "behind.png.gz"], ""),
        (&["word-count", "line.gz"], too_long),
        (&["sort", "line.gz"], too_long),
        (&["sort", "lines.gz"], ""),
        (&["sort", "keys.gz"], ""),
        (&["sort", "--records", "terasort", "line.gz"], "ends within the record that starts at byte 104857600"),
        (&["palindromes", "line.gz"], too_long),
        // A tree of these two million letters takes 64 MiB, and more while it grows.
        (&["palindromes", "letters"], ""),
        (&["palindromes", "--record-bytes-max", "8MiB", "lines.gz", "letters"], ""),
        (&[&by[..], &["field.csv.gz"]].concat(), too_long),
        (
            &[&by[..], &["quoted.csv.gz"]].concat(),
            "is not closed within 2097152 bytes, the limit on a row. Close it, or raise --record-bytes-max",
        ),
        (&[&by[..], &["row.csv.gz"]].concat(), too_long),
        (&[&by[..], &["header.csv.gz"]].concat(), "header.csv.gz: its first line is longer than 4 MiB"),
        (&[&by[..], &["line.jsonl.gz"]].concat(), too_long),
        (&[&by[..], &["deep.jsonl.gz"]].concat(), too_long),
        (&[&by[..], &["fields.jsonl.gz"]].concat(), too_long),
        (&[&sums[..], &["field.csv.gz"]].concat(), too_long),
        (&[&sums[..], &["keys.gz"]].concat(), "there is no column \"k\""),
        (&["group-by", "--by", "1", "keys.gz"], ""),
        (&["group-by", "--by", "999999999", "keys.gz"], "there is no column 999999999"),
        (&["group-by", "--input-format", "pairs", "short"], "has 5 bytes"),
        (&[&line[..], &["field.csv.gz"]].concat(), too_long),
        (&[&line[..], &["row.csv.gz"]].concat(), too_long),
        (&["linear-regression", "--input-format", "pairs", "short"], "has 5 bytes"),
        (&["kmeans", "-k", "2", "field.csv.gz"], "line 3, column 2: a field of 8192 bytes or more is not a number"),
        (&["pca", "quoted.csv.gz"], "line 3, column 1: a field of 8192 bytes or more is not a number"),
        (&["pca", "header.csv.gz"], "its first line is longer than 4 MiB"),
        (
            &["matrix-multiply", "--left", "down.csv", "row.csv.gz"],
            "line 3: this row has 52428801 fields, and the first line has 2",
        ),
        (&["kmeans", "-k", "1000000000000", "down.csv"], "12000 points can have 1 to 12000"),
        (&["string-match", "--keys", "line.gz", "down.csv"], "it is read into memory whole, and has more than the 8.0"),
        (&["string-match", "--keys", "/dev/zero", "down.csv"], "cannot read the keys: it is a device"),
        (&["string-match", "--keys", "letters", "line.gz"], too_long),
        (&["word-count", "--files-from", "letters"], "File name too long"),
        // The list of bad records once held all of them in full, twice.
        (&[&sums[..], &["--skip-bad-records", "99", "--bad-records", "aside", "rows.csv.gz"]].concat(), ""),
        (
            &[&sums[..], &["--skip-bad-records", "999999", "rows.csv.gz", "words.csv.gz"]].concat(),
            "records that were set aside takes",
        ),
        (&["kmeans", "-k", "1", "names.csv"], "to keep the 400000 fields of its first line takes"),
    ];
    for (arguments, expected) in cases {
        let arguments = [arguments, &["--memory", MEMORY, "--workers", "2", "--quiet"]].concat();
        let Output { status, stdout, stderr } = group.run(&arguments, dir.path());
        let complaint = String::from_utf8_lossy(&stderr);
        assert_eq!(status.signal(), None, "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{arguments:?}: {status}: {complaint}");
        let is_refused = expected.contains("takes") || expected.contains("memory");
        assert!(!is_refused || complaint.contains("aise --memory"), "{arguments:?}: {complaint}");
        assert_eq!(status.success(), !stdout.is_empty(), "{arguments:?}: {status}: {complaint}");
        assert!(!complaint.contains("panicked") && !complaint.contains("SIGKILL"), "{arguments:?}: {complaint}");
    }
}

/// A valid file that took more memory to decode than a worker had was once set aside as damaged, so its words were
/// missing from the answer. The memory for a file does not depend on whether bad files are set aside.
#[test]
fn a_file_that_needs_more_memory_is_not_a_bad_file() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.txt"), "one\n").expect("written");
    fs::write(dir.path().join("b.xz"), xz()).expect("written");
    let count = |options: [&str; 4]| {
        let mut command = word_count(["--quiet", "--skip-bad-files", "all", "a.txt", "b.xz"]);
        command.args(options).current_dir(dir.path());
        command
    };
    for workers in ["1", "2"] {
        let refused = complaint(&mut count(["--workers", workers, "--memory", "100MiB"]), 1);
        assert!(refused.contains("cannot read b.xz: to decode its xz data takes more than"), "{refused}");
        assert!(refused.contains("Raise --memory"), "{refused}");
    }
    // There is enough for one worker, but not for two.
    let enough = ["--workers", "1", "--memory", "200MiB"];
    assert_eq!(answer(&mut count(enough)), b"one\t1\nsome\t1\nwords\t1\n");
}

/// A field of 100 MB once took five times as much in one process. With several such fields or workers, jobs were
/// killed for lack of memory: each worker could hold copies of its longest record and of each run that it merged,
/// beyond its share.
#[test]
fn long_records_stay_within_the_memory_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    // Only four copies of a record were once counted, but there may be six: sorting records of 15 MiB took 111 MiB.
    let lengths = [10 * MIB, 9 * MIB, 8 * MIB, 7 * MIB];
    let fields = lengths.map(|length| "k".repeat(length));
    fs::write(dir.path().join("lines"), gzip(&[(fields.map(|field| field + "\n").concat().as_bytes(), 1)]))
        .expect("written");
    let group = Group::new("long");
    let run = |arguments: &[&str], more: &[&str]| {
        let limits = ["--memory", MEMORY, "--record-bytes-max", "10.6MiB", "--quiet"];
        let Output { status, stdout, stderr } = group.run(&[arguments, &limits, more].concat(), dir.path());
        (status, stdout.len(), String::from_utf8_lossy(&stderr).into_owned())
    };
    let bytes = lengths.iter().sum::<usize>() + 4;
    for (subcommand, expected) in [("sort", bytes), ("word-count", bytes + 8)] {
        let (status, found, complaint) = run(&[subcommand, "lines"], &[]);
        assert_eq!((found, &complaint[..]), (expected, ""), "{subcommand}: {status}");
    }
    // Each of two workers would need as much.
    let (status, _, complaint) = run(&["sort", "lines"], &["--workers", "2"]);
    assert!(complaint.contains("need six times as much memory in each worker"), "{status}: {complaint}");
}
