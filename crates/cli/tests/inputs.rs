//! Every kind of input and output: compressed, listed, and many.

mod command;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command::{answer, complaint, gristmill, names, oracle, word_count};
use gristmill::Input;
use pack::COMPRESSED;

fn text() -> Vec<u8> {
    (0..40_000u32).map(|n| format!("w{} the\r\n", n.wrapping_mul(2_654_435_761) >> 20)).collect::<String>().into_bytes()
}

/// What a file decompresses to.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let mut input = Input::paths([path]);
    let sources = input.sources().expect("there");
    sources[0].open().expect("opened").read_to_end(&mut content).expect("whole");
    content
}

#[test]
fn compressed_input_is_recognised_by_its_bytes_wherever_it_comes_from() {
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
        assert_eq!(rows(&["linear-regression"], &packing.pack(&[0, 1, 1, 3, 2, 5], 5)), line);
        let centres = rows(&["kmeans", "-k", "1"], &packing.pack(table, 5));
        assert_eq!(centres, b"1\t3\t1\t3\n");
        let means = rows(&["pca", "--print", "means"], &packing.pack(table, 5));
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
fn the_name_of_the_result_says_how_it_is_compressed() {
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
    // A second or two on an idle machine; a minute would mean that something is looked at again and again.
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
}
