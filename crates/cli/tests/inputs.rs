//! Input and output of every kind: compressed, listed, and many files.

mod command;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{answer, complaint, copy_of_program, gristmill, names, oracle, word_count};
use gristmill::Input;
use pack::COMPRESSED;

fn text() -> Vec<u8> {
    (0..40_000u32).map(|n| format!("w{} the\r\n", n.wrapping_mul(2_654_435_761) >> 20)).collect::<String>().into_bytes()
}

/// Returns the decompressed content of a file.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let mut input = Input::paths([path]);
    let sources = input.sources().expect("there");
    sources[0].open().expect("opened").read_to_end(&mut content).expect("whole");
    content
}

#[test]
fn compressed_input_is_recognised_by_its_bytes_from_any_source() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = oracle(&text(), false);
    for packing in COMPRESSED {
        let file = packing.pack(&text(), 30_000);
        for name in [format!("text.{}", packing.extension()), "no extension".to_owned(), "text.log".to_owned()] {
            let path = dir.path().join(name);
            fs::write(&path, &file).expect("written");
            assert!(answer(word_count(["--workers", "2"]).arg(&path)) == expected, "{packing:?}");
            let redirected = File::open(&path).expect("opened");
            assert!(answer(word_count(["--workers", "2"]).stdin(redirected)) == expected, "{packing:?}");
            fs::remove_file(&path).expect("removed");
        }
        let mut child =
            word_count(["--workers", "2"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        child.stdin.take().expect("a pipe").write_all(&file).expect("written");
        assert!(child.wait_with_output().expect("ended").stdout == expected, "{packing:?} through a pipe");
    }
}

/// A file compressed with `zstd --long=31` was once called damaged.
#[test]
fn a_file_that_takes_much_memory_to_decode_is_not_called_damaged() {
    let dir = tempfile::tempdir().expect("a directory");
    let refused = |name: &str, file: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, file).expect("written");
        complaint(word_count(["--workers", "2"]).arg(&path), 1)
    };
    // A frame with a window of 2^31 bytes and one raw block of five bytes.
    let frame = [&b"\x28\xb5\x2f\xfd\x00\xa8\x29\x00\x00"[..], b"hello"].concat();
    let refused_zstd = refused("a.zst", &frame);
    assert!(refused_zstd.contains("takes 2.0 GiB of memory, and a worker may take 128.0 MiB for it"), "{refused_zstd}");
    assert!(refused_zstd.contains("Let zstd -dc --long=31 decode it"), "{refused_zstd}");
    // A block whose header asks for a dictionary of 2 GiB, in the byte after the filter's name and the size of its
    // settings.
    let xz = COMPRESSED.into_iter().find(|packing| packing.extension() == "xz").expect("one of them");
    let mut file = xz.pack(b"some words", 30_000);
    let header = 12..12 + (usize::from(file[12]) + 1) * 4;
    let filter = header.start + file[header.clone()].windows(2).position(|two| two == [0x21, 1]).expect("LZMA2");
    file[filter + 2] = 38;
    let checksum = crc32fast::hash(&file[header.start..header.end - 4]);
    file[header.end - 4..header.end].copy_from_slice(&checksum.to_le_bytes());
    let refused_xz = refused("a.xz", &file);
    assert!(refused_xz.contains("more than 256.0 MiB of memory, and a worker may take 256.0 MiB for"), "{refused_xz}");
}

/// The keys of string-match were once read without decompression, and a byte order mark became part of the first.
#[test]
fn keys_may_be_compressed() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("text");
    fs::write(&text, "one\ntwo\none\n").expect("written");
    let keys = b"\xef\xbb\xbfone\r\nthree\r\n";
    let matches = |file: &[u8]| {
        let path = dir.path().join("keys");
        fs::write(&path, file).expect("written");
        answer(gristmill(["string-match", "--keys"]).args([&path, &text]))
    };
    assert_eq!(matches(keys), b"one\t2\nthree\t0\n");
    for packing in COMPRESSED {
        assert_eq!(matches(&packing.pack(keys, 30_000)), b"one\t2\nthree\t0\n", "{packing:?}");
    }
    let refused = complaint(gristmill(["string-match", "--keys"]).args([dir.path(), &text]), 1);
    assert!(refused.contains("cannot read the keys: is a directory"), "{refused}");
}

/// A byte order mark, which some programs put before JSON, was once an error in the first object.
#[test]
fn a_byte_order_mark_before_json_lines_is_skipped() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    for name in ["a.jsonl", "b.jsonl"] {
        fs::write(path(name), "\u{feff}{\"k\":\"x\"}\n{\"k\":\"x\"}\n").expect("written");
    }
    let counts = answer(gristmill(["group-by", "--by", "k"]).args([path("a.jsonl"), path("b.jsonl")]));
    assert_eq!(counts, b"x\t4\n");
    fs::write(path("c.jsonl"), "{\"k\":\"x\"}\n\u{feff}{\"k\":\"x\"}\n").expect("written");
    let refused = complaint(gristmill(["group-by", "--by", "k"]).arg(path("c.jsonl")), 1);
    assert!(refused.contains("c.jsonl line 2: "), "{refused}");
}

#[test]
fn the_applications_read_compressed_input_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let table = b"x,y\n0,1\n1,3\n2,5\n";
    let rows = |arguments: &[&str], file: &[u8]| {
        let path = dir.path().join("file");
        fs::write(&path, file).expect("written");
        answer(gristmill(arguments).arg(&path).args(["--workers", "2"]))
    };
    for packing in COMPRESSED {
        let line = rows(&["linear-regression", "--x", "x", "--y", "y"], &packing.pack(table, 5));
        assert_eq!(line, b"n\t3\nslope\t2\nintercept\t1\nr\t1\n");
        assert_eq!(
            rows(&["linear-regression", "--input-format", "pairs"], &packing.pack(&[0, 1, 1, 3, 2, 5], 5)),
            line
        );
        let centres = rows(&["kmeans", "-k", "1", "--header", "yes"], &packing.pack(table, 5));
        assert_eq!(centres, b"1\t3\t1\t3\n");
        let means = rows(&["pca", "--print", "means", "--header", "yes"], &packing.pack(table, 5));
        assert_eq!(means, b"1\t1\n2\t3\n");
    }
    let mut bmp = vec![0; 54];
    bmp[..2].copy_from_slice(b"BM");
    for (at, word) in [(10, 54u32), (14, 40), (18, 1), (22, 1), (26, 1), (28, 24)] {
        bmp[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bmp.extend_from_slice(&[1, 2, 3, 0]);
    for packing in COMPRESSED {
        assert_eq!(rows(&["histogram"], &packing.pack(&bmp, 20)), rows(&["histogram"], &bmp));
        let path = dir.path().join("file");
        fs::write(&path, packing.pack(&bmp[..56], 20)).expect("written");
        assert!(complaint(gristmill(["histogram"]).arg(&path), 1).contains("the file at byte 56"));
    }
}

#[test]
fn a_truncated_archive_is_one_error_and_leaves_no_result() {
    let dir = tempfile::tempdir().expect("a directory");
    let result = dir.path().join("counts.tsv");
    for packing in COMPRESSED {
        let path = dir.path().join("text").with_extension(packing.extension());
        let file = packing.pack(&text(), 100_000);
        fs::write(&path, &file[..file.len() / 2]).expect("written");
        let complaint = complaint(word_count(["--workers", "2", "--output"]).args([&result, &path]), 1);
        let start = format!("gristmill: cannot read {} after byte ", path.display());
        assert!(complaint.starts_with(&start) && complaint.contains("truncated"), "{complaint}");
        fs::remove_file(&path).expect("removed");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn the_name_of_the_result_selects_its_compression() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    fs::write(&path, text()).expect("written");
    let plain = answer(word_count(["--workers", "2"]).arg(&path));
    for (extension, magic) in
        [("gz", &b"\x1f\x8b"[..]), ("zst", b"\x28\xb5\x2f\xfd"), ("bz2", b"BZh9"), ("xz", b"\xfd7zXZ")]
    {
        let result = dir.path().join(format!("counts.tsv.{extension}"));
        assert!(answer(word_count(["--workers", "2", "--output"]).args([&result, &path])).is_empty());
        assert!(fs::read(&result).expect("there").starts_with(magic));
        assert!(content(&result) == plain, "{extension}");
        let rows = dir.path().join(format!("counts.csv.{extension}"));
        answer(word_count(["--workers", "2", "--output"]).args([&rows, &path]));
        assert!(content(&rows).starts_with(b"word,count\nthe,40000\n"));
        let full = dir.path().join(format!("full.tsv.{extension}"));
        std::os::unix::fs::symlink("/dev/full", &full).expect("linked");
        let full = complaint(word_count(["--output"]).args([&full, &path]), 1);
        assert!(full.contains("No space left on device"), "{full}");
    }
    let unclear = complaint(word_count(["--output"]).arg(dir.path().join("counts.png.gz")).arg(&path), 2);
    assert!(unclear.contains("--format"), "{unclear}");
}

#[test]
fn a_list_names_the_input() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a"), "one two").expect("written");
    fs::write(dir.path().join("b\nc"), "two").expect("written");
    fs::write(dir.path().join("[x]*"), "three").expect("written");
    fs::write(dir.path().join("lines"), "a\n\n[x]*\n").expect("written");
    fs::write(dir.path().join("zeros"), b"a\0b\nc\0").expect("written");
    fs::write(dir.path().join("nothing"), "\n").expect("written");
    fs::write(dir.path().join("wrong"), "a\nmissing\n").expect("written");
    let run = |arguments: &[&str]| {
        let mut command = word_count(arguments);
        command.current_dir(dir.path());
        command
    };
    assert_eq!(answer(&mut run(&["--files-from", "lines"])), b"one\t1\nthree\t1\ntwo\t1\n");
    assert_eq!(answer(&mut run(&["--files-from", "zeros"])), b"one\t1\ntwo\t2\n");
    assert_eq!(answer(&mut run(&["--files-from", "zeros", "a"])), b"one\t2\ntwo\t3\n");
    let list = File::open(dir.path().join("zeros")).expect("opened");
    assert_eq!(answer(run(&["--files-from", "-"]).stdin(list)), b"one\t1\ntwo\t2\n");
    let empty = complaint(&mut run(&["--files-from", "nothing"]), 1);
    assert_eq!(empty, "gristmill: nothing names no file\n");
    let missing = complaint(&mut run(&["--files-from", "wrong"]), 1);
    assert!(missing.starts_with("gristmill: cannot read missing: "), "{missing}");
    let no_list = complaint(&mut run(&["--files-from", "missing"]), 1);
    assert!(no_list.starts_with("gristmill: cannot read missing: "), "{no_list}");
}

#[test]
fn a_hundred_thousand_small_files_are_read_with_few_descriptors() {
    let dir = tempfile::tempdir().expect("a directory");
    for folder in 0..100 {
        let folder = dir.path().join(folder.to_string());
        fs::create_dir(&folder).expect("made");
        for file in 0..1000 {
            fs::write(folder.join(file.to_string()), format!("all f{file} ")).expect("written");
        }
    }
    let mut command = Command::new("sh");
    let script = "ulimit -n 64; exec \"$0\" word-count --workers 2 --top 2 \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_gristmill")]).arg(dir.path()).stdin(Stdio::null());
    let began = Instant::now();
    assert_eq!(answer(&mut command), b"all\t100000\nf0\t100\n");
    // It takes a second or two on an idle machine; a minute would mean repeated work.
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
}

/// Returns the result and the complaints of a run that succeeds.
fn told(command: &mut Command) -> (Vec<u8>, String) {
    let output = command.output().expect("the command starts");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {complaint}");
    (output.stdout, complaint)
}

#[test]
fn links_below_a_directory_are_followed_only_when_asked_and_a_file_is_read_once() {
    // A folder of libraries has each version once, and links to them under other names: every word was once counted
    // twice.
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("lib/5.36.0")).expect("made");
    fs::create_dir(path("elsewhere")).expect("made");
    fs::write(path("lib/5.36.0/a"), "one two").expect("written");
    fs::write(path("elsewhere/b"), "two").expect("written");
    fs::hard_link(path("lib/5.36.0/a"), path("lib/also")).expect("linked");
    for (target, link) in [
        ("5.36.0", "lib/5.36"),
        ("5.36.0/a", "lib/a"),
        ("../elsewhere", "lib/out"),
        ("..", "lib/5.36.0/up"),
        ("lib", "link"),
    ] {
        std::os::unix::fs::symlink(target, path(link)).expect("linked");
    }
    let run = |arguments: &[&str]| told(word_count(["--workers", "2"]).args(arguments).current_dir(dir.path()));
    let once = b"one\t1\ntwo\t1\n".to_vec();
    let again = "gristmill: 1 path was skipped because its file had been found before: lib/also\n";
    let not_followed =
        "gristmill: 4 symbolic links were not followed, the first of them lib/5.36 (--follow follows them)\n";
    let (counted, complaint) = run(&["lib"]);
    assert_eq!(counted, once, "{complaint}");
    assert_eq!(complaint, format!("{not_followed}{again}"));
    // A link that is named is followed.
    assert_eq!(run(&["link"]).0, once);
    // The same file by its name and by its directory, by two patterns, in two directories, and in a list that also
    // has its directory.
    fs::write(path("list"), "lib/5.36.0/a\nlib/5.36.0\n").expect("written");
    for arguments in [
        &["lib/also", "lib"][..],
        &["lib", "lib/also"],
        &["lib/al*", "l*/also"],
        &["lib", "lib"],
        &["--files-from", "list"],
    ] {
        let (counted, complaint) = run(arguments);
        assert_eq!(counted, once, "{arguments:?}: {complaint}");
        assert!(complaint.contains("found before"), "{complaint}");
    }
    // A file that is named twice is read twice, as by `cat`.
    assert_eq!(run(&["elsewhere/b", "elsewhere/b"]), (b"two\t2\n".to_vec(), String::new()));
    // With --follow, files outside count too, nothing counts twice, and the loop is reported once.
    let (counted, complaint) = run(&["--follow", "lib"]);
    assert_eq!(counted, b"one\t1\ntwo\t2\n", "{complaint}");
    let named: Vec<_> = complaint.lines().filter(|line| line.contains("leads back")).collect();
    assert_eq!(named.len(), 1, "{complaint}");
    assert!(named[0].ends_with("/up"), "{complaint}");
    assert!(run(&["--quiet", "lib"]).1.is_empty());
}

#[test]
fn fifos_below_a_directory_are_skipped() {
    // A FIFO in a folder once made the command hang silently.
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("d")).expect("made");
    fs::write(path("d/text"), "one two").expect("written");
    let made = Command::new("mkfifo").arg(path("d/fifo")).status().expect("mkfifo is there");
    assert!(made.success());
    let _socket = std::os::unix::net::UnixListener::bind(path("d/socket")).expect("bound");
    fs::write(path("list"), "d/text\0d/fifo\0").expect("written");
    for arguments in [&["d"][..], &["d/*"], &["--files-from", "list"], &["**/*o*", "d/t*"]] {
        let (counted, complaint) = told(word_count(["--workers", "2"]).args(arguments).current_dir(dir.path()));
        assert_eq!(counted, b"one\t1\ntwo\t1\n", "{complaint}");
        assert!(
            complaint.contains("FIFO") && complaint.contains("left out") && complaint.contains("d/fifo"),
            "{complaint}"
        );
    }
    // A FIFO that is named is read.
    let command = word_count(["d/fifo"]).current_dir(dir.path()).stdout(Stdio::piped()).spawn().expect("started");
    fs::write(path("d/fifo"), "named").expect("written");
    assert_eq!(command.wait_with_output().expect("ended").stdout, b"named\t1\n");
}

#[test]
fn a_device_is_refused_and_an_endless_pipe_leaves_room_on_the_disk() {
    // /dev/zero as a file, and an endless pipe, were once copied until the disk was full.
    let dir = tempfile::tempdir().expect("a directory");
    for refused in [
        complaint(word_count(["--spill-dir"]).args([dir.path(), Path::new("/dev/zero")]), 1),
        complaint(&mut word_count(["--read-once", "/dev/urandom"]), 1),
        complaint(&mut gristmill(["string-match", "--keys", "/dev/zero", "/dev/null"]), 1),
        complaint(word_count(["-"]).stdin(File::open("/dev/zero").expect("there")), 1),
    ] {
        assert!(refused.contains("it is a device, and may never end. Let head or dd"), "{refused}");
    }
    assert!(answer(&mut word_count(["/dev/null"])).is_empty());
    // No disk has that much space, so each job finds less than it must leave free. The default is a tenth of the free
    // space.
    let mut endless = Command::new("yes").stdout(Stdio::piped()).spawn().expect("started");
    let pipe = endless.stdout.take().expect("a pipe");
    let refused = complaint(word_count(["--keep-free", "1000TiB", "--spill-dir"]).arg(dir.path()).stdin(pipe), 1);
    endless.wait().expect("ended");
    let folder = dir.path().display();
    let expected = format!(
        "gristmill: cannot copy standard input to the folder {folder}: less than 1024000.0 GiB is free there, and temporary \
         files leave that much free (--keep-free) (0 bytes were copied). "
    );
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(refused.contains("--spill-dir") && refused.contains("--read-once"), "{refused}");
    // The same applies to spilled pairs and to a checkpoint.
    let words = dir.path().join("words");
    let many: String = (0..600_000u32).map(|n| format!("{:08x} ", n.wrapping_mul(2_654_435_761))).collect();
    fs::write(&words, many).expect("written");
    let run = |free: &'static str| {
        let mut command = word_count(["--workers", "1", "--memory", "13MiB", "--top", "1", "--keep-free", free]);
        command.args([Path::new("--spill-dir"), dir.path(), &words]);
        command
    };
    let refused = complaint(&mut run("1000TiB"), 1);
    assert!(
        refused.starts_with(&format!("gristmill: cannot write in the spill folder {folder}: less than ")),
        "{refused}"
    );
    assert!(refused.contains("(--keep-free)"), "{refused}");
    assert_eq!(answer(&mut run("0")), answer(&mut run("1B")));
    let checkpoint = dir.path().join("checkpoint");
    let refused = complaint(word_count(["--keep-free", "1000TiB", "--checkpoint"]).args([&checkpoint, &words]), 1);
    assert!(refused.contains("cannot use the checkpoint in ") && refused.contains("(--keep-free)"), "{refused}");
}

#[test]
fn names_need_not_be_utf_8() {
    // A name in Latin-1 once made every pattern in its directory panic.
    let dir = tempfile::tempdir().expect("a directory");
    let name = |bytes: &[u8]| dir.path().join(OsStr::from_bytes(bytes));
    fs::create_dir(name(b"d\xe9")).expect("made");
    for file in [&b"caf\xe9.txt"[..], b"plain.txt", b"d\xe9/x\xff.txt", b".hidden.txt"] {
        fs::write(name(file), "word").expect("written");
    }
    fs::write(name(b"list"), b"caf\xe9.txt\0d\xe9/x\xff.txt\0").expect("written");
    for (arguments, files) in [
        (vec![&b"*.txt"[..]], 2),
        (vec![b"**/*.txt"], 3),
        (vec![b"caf?.txt"], 1),
        (vec![b"caf[!e].txt"], 1),
        (vec![b"d\xe9/*"], 1),
        (vec![b"d?/x?.txt"], 1),
        (vec![b"d\xe9"], 1),
        (vec![b"caf\xe9.txt"], 1),
        (vec![b"--files-from", b"list"], 2),
    ] {
        let arguments = arguments.into_iter().map(OsStr::from_bytes);
        let counted = answer(word_count(arguments).current_dir(dir.path()));
        assert_eq!(String::from_utf8_lossy(&counted), format!("word\t{files}\n"));
    }
    let output = name(b"r\xe9sultat.tsv");
    answer(word_count(["-o"]).arg(&output).arg(name(b"caf\xe9.txt")));
    assert_eq!(fs::read(output).expect("there"), b"word\t1\n");
    let missing = complaint(word_count([OsStr::from_bytes(b"miss\xe9")]).current_dir(dir.path()), 1);
    assert!(missing.starts_with("gristmill: cannot read miss"), "{missing}");
}

/// Returns the names and causes in the list of files that were set aside.
fn listed(path: &Path) -> Vec<(String, String)> {
    let list = fs::read_to_string(path).expect("the list");
    let lines = list.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let word = |word: &serde_json::Value| word.as_str().unwrap_or_default().to_owned();
    lines.map(|line| (word(&line["file"]), word(&line["cause"]))).collect()
}

#[test]
fn files_that_cannot_be_read_are_set_aside_whole() {
    // One misnamed archive in a folder once ended everything. A file damaged in its middle must not be counted in
    // part.
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("d")).expect("made");
    fs::write(path("d/good.txt"), "good good").expect("written");
    let random =
        |seed: u32| (0..400_000u32).map(move |n| format!("w{} ", (n ^ seed).wrapping_mul(2_654_435_761) >> 12));
    let text: String = random(7).collect();
    for packing in COMPRESSED {
        let name = format!("d/damaged {packing:?}.{}", packing.extension());
        let mut packed = packing.pack(text.as_bytes(), 40_000);
        let middle = packed.len() * 2 / 3;
        packed[middle..].iter_mut().take(64).for_each(|byte| *byte ^= 0xff);
        fs::write(path(&name), packed).expect("written");
    }
    fs::write(path("d/empty.gz"), "").expect("written");
    fs::write(path("d/misnamed.zst"), "once upon a time").expect("written");
    std::os::unix::fs::symlink("nowhere", path("d/dangling")).expect("linked");
    let bad = COMPRESSED.len() + 2;
    let run = |arguments: &[&str]| {
        let mut command = word_count(["--workers", "2", "--split-bytes", "100000"]);
        command.args(arguments).current_dir(dir.path());
        command
    };
    // 1. Without the option the first of them is an error.
    let first = complaint(&mut run(&["d"]), 1);
    assert!(first.starts_with("gristmill: cannot read d/"), "{first}");
    // 2. With it they are listed, and nothing of them is counted.
    for more in [&["--isolation", "process"][..], &["--isolation", "thread"], &["--deterministic"]] {
        let (counted, complaint) =
            told(run(&["--skip-bad-files", "all", "--bad-records", "list", "d", "--quiet"]).args(more));
        assert_eq!(String::from_utf8_lossy(&counted), "good\t2\n", "{complaint}");
        assert!(complaint.is_empty(), "{complaint}");
        assert_eq!(listed(&path("list")).len(), bad);
    }
    // 3. The links are followed, and one of them leads nowhere; a named file may be missing.
    let number = (bad + 2).to_string();
    let (counted, complaint) = told(&mut run(&["--skip-bad-files", &number, "--follow", "d", "missing"]));
    assert_eq!(counted, b"good\t2\n", "{complaint}");
    let expected =
        format!("gristmill: {number} files were set aside and not counted; bad-records.jsonl says which and why\n");
    assert_eq!(complaint, expected);
    for (file, cause) in listed(&path("bad-records.jsonl")) {
        assert!(cause.starts_with(&format!("cannot read {file}")), "{file}: {cause}");
    }
    // 4. One bad file too many is an error that states the limit.
    let number = (bad - 1).to_string();
    let more = self::complaint(&mut run(&["--skip-bad-files", &number, "d"]), 1);
    assert!(
        more.contains(&format!(
            "That is one file more than the {number} that may be set aside (--skip-bad-files): raise"
        )),
        "{more}"
    );
    // 5. Nothing is left of the input.
    let nothing = self::complaint(&mut run(&["--skip-bad-files", "all", "d/empty.gz", "missing"]), 1);
    assert!(
        nothing.starts_with("gristmill: there is nothing left to read: 2 files were set aside; the first: "),
        "{nothing}"
    );
    let useless = self::complaint(&mut run(&["--bad-records", "list", "d"]), 2);
    assert!(useless.contains("add --skip-bad-records or --skip-bad-files"), "{useless}");
}

/// A file that was not a table once ended kmeans, pca and matrix-multiply although bad files were to be set aside,
/// and statistics did not count it.
#[test]
fn tables_of_numbers_that_cannot_be_read_are_set_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("d")).expect("made");
    let npy = |shape: &str| {
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
        let numbers = [1.0f64, 3.0].map(f64::to_le_bytes);
        [b"\x93NUMPY\x01\0", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers.as_flattened()]
            .concat()
    };
    fs::write(path("d/1.npy"), npy("(1000000, 2)")).expect("written");
    fs::write(path("d/2.csv"), "x,y\n7,8\n9,ten\n").expect("written");
    fs::write(path("d/3.csv"), "a,b\n1,2\n2,5\n").expect("written");
    fs::write(path("d/4.npy"), npy("(1, 2)")).expect("written");
    fs::write(path("d/5.csv"), "a,b,c\n1,2,3\n").expect("written");
    fs::write(path("left.csv"), "a,b,c\n1,2,3\n").expect("written");
    fs::write(path("good.csv"), "a,b\n1,2\n2,5\n1,3\n").expect("written");
    for arguments in [&["kmeans", "-k", "2"][..], &["pca"], &["matrix-multiply", "--left", "left.csv"]] {
        let mut command = gristmill(arguments);
        let first = complaint(command.args(["--header", "yes", "d"]).current_dir(dir.path()), 1);
        assert!(first.contains("d/1.npy: is truncated"), "{first}");
        let run = |more: &[&str]| {
            let mut command = gristmill(arguments);
            told(command.args(["--header", "yes", "--quiet"]).args(more).current_dir(dir.path()))
        };
        let (found, complaint) = run(&["--skip-bad-files", "3", "--bad-records", "list", "--stats", "s.json", "d"]);
        assert_eq!(found, run(&["good.csv"]).0, "{arguments:?}: {complaint}");
        let files: Vec<_> = listed(&path("list")).into_iter().map(|(file, _)| file).collect();
        assert_eq!(files, ["d/1.npy", "d/2.csv", "d/5.csv"]);
        let stats = fs::read_to_string(path("s.json")).expect("written");
        assert!(stats.contains("\"bad_files\": 3"), "{stats}");
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_set_aside() {
    // One folder without permission once ended everything.
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("d/secret")).expect("made");
    fs::write(path("d/text"), "word").expect("written");
    for (name, mode) in [("", 0o777), ("d", 0o755), ("d/secret", 0o000)] {
        fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
    }
    // Root may read everything, so root runs a copy of the command as the user `nobody`.
    copy_of_program(path("gristmill"));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(path("gristmill"));
        command.args(["word-count", "--workers", "2"]).args(arguments).stdin(Stdio::null()).current_dir(dir.path());
        if rustix::process::geteuid().is_root() {
            std::os::unix::process::CommandExt::gid(
                std::os::unix::process::CommandExt::uid(&mut command, 65534),
                65534,
            );
        }
        command
    };
    for input in ["d", "d/**"] {
        let refused = complaint(&mut run(&[input]), 1);
        assert_eq!(refused, "gristmill: cannot read d/secret: Permission denied (os error 13)\n");
        let (counted, _) = told(&mut run(&["--skip-bad-files", "1", input]));
        assert_eq!(counted, b"word\t1\n");
        let cause = "cannot read d/secret: Permission denied (os error 13)";
        assert_eq!(listed(&path("bad-records.jsonl")), [("d/secret".to_owned(), cause.to_owned())]);
    }
    fs::set_permissions(path("d/secret"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
}

#[test]
fn pictures_are_counted_and_other_files_among_them_are_skipped() {
    // A readme among the pictures once ended everything.
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("d")).expect("made");
    let mut bmp = vec![0; 54];
    bmp[..2].copy_from_slice(b"BM");
    for (at, word) in [(10, 54u32), (14, 40), (18, 1), (22, 1), (26, 1), (28, 24)] {
        bmp[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bmp.extend_from_slice(&[1, 2, 3, 0]);
    fs::write(path("d/a.bmp"), &bmp).expect("written");
    fs::write(path("d/readme.txt"), "about these pictures").expect("written");
    let run = |arguments: &[&str]| {
        let mut command = gristmill(["histogram", "--workers", "2"]);
        command.args(arguments).current_dir(dir.path());
        command
    };
    let one = b"blue\t1\t1\ngreen\t2\t1\nred\t3\t1\n";
    let only = |rows: Vec<u8>| {
        let rows = String::from_utf8(rows).expect("text");
        rows.lines()
            .filter(|row| !row.ends_with("\t0"))
            .flat_map(|row| format!("{row}\n").into_bytes())
            .collect::<Vec<u8>>()
    };
    let (rows, complaint) = told(&mut run(&["d"]));
    assert_eq!(only(rows), one);
    assert_eq!(complaint, "gristmill: 1 file of another kind was left out: d/readme.txt\n");
    // A named file that is not a picture is an error.
    let named = self::complaint(&mut run(&["d/readme.txt"]), 1);
    assert!(named.contains("d/readme.txt: is no BMP, PNG or JPEG image"), "{named}");
    // So is a file that is only named as a picture, and a truncated one, unless they are set aside.
    fs::write(path("d/b.jpg"), "<html>404</html>").expect("written");
    fs::write(path("d/c.bmp"), &bmp[..56]).expect("written");
    // Grey, 8 x 8 pixels, cut off after its quantisation table.
    fs::write(path("d/d.jpg"), [&b"\xff\xd8\xff\xdb\0\x43\0"[..], &[1; 64]].concat()).expect("written");
    let refused = self::complaint(&mut run(&["d"]), 1);
    assert!(refused.starts_with("gristmill: d/b.jpg: is no BMP"), "{refused}");
    let (rows, _) = told(&mut run(&["--skip-bad-files", "all", "d"]));
    assert_eq!(only(rows), one);
    let bad: Vec<_> = listed(&path("bad-records.jsonl")).into_iter().map(|(file, _)| file).collect();
    assert_eq!(bad, ["d/b.jpg", "d/c.bmp", "d/d.jpg"]);
}

/// Returns the files that a process has open.
fn open_files(pid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

fn workers_of(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().map(|child| child.parse().expect("a process id")).collect()
}

fn wait_for<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    for _ in 0..2000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come");
}

#[test]
fn a_pipe_is_copied_to_the_spill_folder_or_read_directly() {
    // A pipe of a terabyte once filled the folder for temporary files, whatever --spill-dir said.
    let dir = tempfile::tempdir().expect("a directory");
    let spill = dir.path().join("spill");
    fs::create_dir(&spill).expect("made");
    let expected = oracle(&text(), false);
    let begin = |arguments: &[&str]| {
        let mut command = word_count(["--workers", "2", "--spill-dir"]);
        command.arg(&spill).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&text()[..100_000]).expect("written");
        (child, stdin)
    };
    // 1. It is copied, to that folder.
    let (child, mut stdin) = begin(&[]);
    let name = spill.to_string_lossy().into_owned();
    wait_for("a copy", || open_files(child.id()).iter().any(|file| file.starts_with(&name)).then_some(()));
    stdin.write_all(&text()[100_000..]).expect("written");
    drop(stdin);
    assert!(child.wait_with_output().expect("ended").stdout == expected);
    let child = word_count(["--spill-dir", "/proc"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let told = child.expect("started").wait_with_output().expect("ended");
    let complaint = String::from_utf8_lossy(&told.stderr);
    assert!(complaint.starts_with("gristmill: cannot copy standard input to the folder /proc: "), "{complaint}");
    assert!(complaint.contains("--spill-dir") && complaint.contains("--read-once"), "{complaint}");
    // 2. It is read directly, compressed or not, and no copy is made.
    for isolation in ["process", "thread"] {
        let (child, mut stdin) = begin(&["--read-once", "--isolation", isolation]);
        wait_for("a worker", || (isolation == "thread" || !workers_of(child.id()).is_empty()).then_some(()));
        assert!(!open_files(child.id()).iter().any(|file| file.starts_with(&name)));
        stdin.write_all(&text()[100_000..]).expect("written");
        drop(stdin);
        assert!(child.wait_with_output().expect("ended").stdout == expected, "{isolation}");
    }
    for packing in COMPRESSED {
        let packed = packing.pack(&text(), 30_000);
        for (bytes, status) in [(&packed[..], 0), (&packed[..packed.len() / 2], 1)] {
            let command = &mut word_count(["--read-once", "--workers", "2"]);
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
            // It may have found the end before everything is written.
            let _ = child.stdin.take().expect("a pipe").write_all(bytes);
            let told = child.wait_with_output().expect("ended");
            let complaint = String::from_utf8_lossy(&told.stderr);
            assert_eq!(told.status.code(), Some(status), "{packing:?}: {complaint}");
            assert!(
                status == 1 && complaint.contains("truncated") || told.stdout == expected,
                "{packing:?}: {complaint}"
            );
        }
    }
    // 3. A worker that dies ends the job, because its input is gone.
    let (child, stdin) = begin(&["--read-once"]);
    let worker = wait_for("a worker", || workers_of(child.id()).first().copied());
    let killed = Command::new("kill").args(["-KILL", &worker.to_string()]).status().expect("kill is there");
    assert!(killed.success());
    let told = child.wait_with_output().expect("ended");
    let complaint = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("standard input was read as it came (--read-once), and what"), "{complaint}");
    assert!(told.stdout.is_empty());
    drop(stdin);
    // 4. Input that must be read twice cannot be read directly.
    for arguments in [&["group-by", "--by", "x"][..], &["word-count", "--skip-bad-records", "1"]] {
        let mut child = gristmill(arguments);
        child.arg("--read-once").current_dir(dir.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("started");
        // It may never be read.
        let _ = child.stdin.take().expect("a pipe").write_all(b"x,y\n1,2\n");
        let told = child.wait_with_output().expect("ended");
        let complaint = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains("leave out --read-once"), "{complaint}");
    }
}

/// `(sleep 60; echo x) | gristmill word-count --deadline 2s` took a minute and succeeded, and a FIFO without a writer
/// was waited for without end: the deadline counted from the end of the copy.
#[test]
fn a_deadline_counts_while_a_pipe_is_awaited_or_copied() {
    let dir = tempfile::tempdir().expect("a directory");
    let (fifo, words) = (dir.path().join("fifo"), dir.path().join("words"));
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo is there").success());
    fs::write(&words, "frog\n").expect("written");
    let late = |command: &mut Command| {
        let child = command.args(["--deadline", "200ms"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.stdout(Stdio::null()).spawn().expect("started");
        // It stays open, and says no more than this.
        let mut stdin = child.stdin.take().expect("a pipe");
        let _ = stdin.write_all(b"pond\n");
        let mut told = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().expect("piped"), &mut told).expect("text");
        assert_eq!(child.wait().expect("ended").code(), Some(1), "{told}");
        assert_eq!(told, "gristmill: the job did not end within its deadline of 200ms (--deadline)\n");
        drop(stdin);
    };
    for read_once in [&[][..], &["--read-once"]] {
        late(gristmill(["word-count", "--quiet"]).args(read_once));
        late(gristmill(["word-count", "--quiet"]).args(read_once).arg(&fifo));
        late(gristmill(["string-match", "--quiet", "--keys"]).arg(&fifo).args(read_once).arg(&words));
    }
    late(gristmill(["pca", "--quiet", "--skip-bad-files", "all"]).arg(&fifo));
    late(gristmill(["matrix-multiply", "--quiet", "--left"]).arg(&fifo).arg(&words));
}

/// A pattern with several stars in a folder with links to itself once searched the same folders practically without
/// end, and a missing file was called a pattern.
#[test]
fn a_pattern_ends_despite_loops_of_links() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("a/b")).and_then(|()| fs::write(path("a/b/file.txt"), "word")).expect("written");
    for number in 0..12 {
        std::os::unix::fs::symlink(".", path(&format!("loop{number}"))).expect("linked");
        std::os::unix::fs::symlink("..", path(&format!("a/up{number}"))).expect("linked");
    }
    for pattern in ["*/*/*/*/*/*/*/*/*/*/**/*.txt", "**/**/**/**/**/**/**/**/*.txt", "**/*/**/*/**/*/**/*.txt", "**"] {
        assert_eq!(answer(gristmill(["word-count", "--quiet"]).arg(path(pattern))), b"word\t1\n", "{pattern}");
    }
    let why = complaint(gristmill(["word-count"]).arg(path("file[1].txt")), 1);
    assert!(
        why.contains("there is no file ") && why.contains("file[1].txt, and none that matches it as a pattern"),
        "{why}"
    );
}
