//! Recognising a file by its bytes: its encoding, its compression, and whether all of it is read.

mod command;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use command::{Folder, answer, complaint, gristmill, oracle, word_count};
use pack::Packing;

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn utf_16_without_a_mark_is_refused_in_every_script() {
    // Russian in UTF-16 without a mark was counted as bytes, status 0, because only Latin letters showed the encoding.
    let folder = Folder::new();
    let russian = "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}\n";
    let japanese = "old pond\n\u{53e4}\u{6c60}\u{3084}\u{4e00}\n";
    for (number, text) in [russian, japanese].into_iter().enumerate() {
        let path = folder.file(&format!("{number}.txt"), wide(text));
        let packed = folder.file(&format!("{number}.gz"), Packing::Gzip.pack(&wide(text), 100));
        for path in [&path, &packed] {
            for command in [&["word-count"][..], &["sort"], &["palindromes"], &["group-by", "--by", "1"], &["pca"]] {
                let refused = complaint(gristmill(command).arg(path), 1);
                assert!(refused.contains("set --encoding to utf-16le; if not, to bytes"), "{refused}");
            }
            let refused = complaint(gristmill(["string-match", "--keys"]).args([path, path]), 1);
            assert!(refused.contains("set --encoding to utf-16le"), "{refused}");
            assert!(
                answer(word_count(["--encoding", "utf-16le"]).arg(path)) == oracle(text.as_bytes(), false),
                "{text}"
            );
        }
        let bytes = answer(word_count(["--encoding", "bytes"]).arg(&path));
        assert!(bytes == oracle(&wide(text), false), "{text}");
        let piped = complaint(word_count(["--read-once"]).stdin(fs::File::open(&path).expect("opened")), 1);
        assert!(piped.contains("set --encoding to utf-16le"), "{piped}");
        let wider: Vec<u8> = text.chars().flat_map(|character| u32::from(character).to_le_bytes()).collect();
        let refused = complaint(word_count(["--workers", "2"]).arg(folder.file("wider.txt", wider)), 1);
        assert!(refused.contains("iconv -f UTF-32LE -t UTF-8") && refused.contains("--encoding to bytes"), "{refused}");
    }
    // Strings that end with NUL, as find -print0 writes them, are still read.
    let strings = b"./caf\xc3\xa9 1\0./a b\0./\xe9t\xe9\0";
    assert!(answer(word_count(["--workers", "2"]).arg(folder.file("strings", strings))) == oracle(strings, false));
}

#[test]
fn an_encoding_that_is_named_is_checked_and_bytes_names_none() {
    // `--encoding utf-8` checked nothing, although its help said that bytes that are no text in it are an error.
    let folder = Folder::new();
    let latin = folder.file("latin", b"old\ncaf\xe9\n");
    let refused = complaint(word_count(["--encoding", "utf-8"]).arg(&latin), 1);
    assert!(refused.contains("latin") && refused.contains("not all text in UTF-8: byte 7 of it"), "{refused}");
    let marked = folder.file("marked", b"\xef\xbb\xbfold\ncaf\xe9\n");
    for name in ["utf-8", "latin1"] {
        let refused = complaint(word_count(["--encoding", name]).arg(&marked), 1);
        assert!(refused.contains("not all text in UTF-8: byte 10 of it"), "{refused}");
    }
    let text = folder.file("text", "\u{feff}caf\u{e9} \u{1f438}\n");
    assert!(answer(word_count(["--encoding", "utf-8"]).arg(&text)) == oracle("caf\u{e9} \u{1f438}".as_bytes(), false));
    for (path, content) in [(&latin, "latin"), (&marked, "marked")] {
        let bytes = fs::read(path).expect(content);
        assert!(answer(word_count(["--encoding", "bytes"]).arg(path)) == oracle(&bytes, false), "{content}");
    }
    let keys = folder.file("keys", b"caf\xe9\n");
    let found = answer(gristmill(["string-match", "--encoding", "bytes", "--keys"]).args([&keys, &latin]));
    assert_eq!(found, b"caf\xe9\t1\n");
}

#[test]
fn binary_pairs_are_never_decoded() {
    // `linear-regression --encoding latin1 pairs` decoded pairs of bytes to UTF-8 and fitted a line through that,
    // status 0.
    let folder = Folder::new();
    let bytes = folder.file("bytes", [1, 2, 200, 201, 3, 4, 250, 251].repeat(10));
    let numbers = folder.file("numbers", [1, 0, 0, 0, 200, 0, 0, 0].repeat(10));
    let matrix = folder.file("x.npy", b"\x93NUMPY\x01\0\x02\0{}");
    for (command, path, what, status) in [
        ("linear-regression", &bytes, "if it holds pairs of bytes", 2),
        ("group-by", &numbers, "if it holds pairs of numbers", 2),
        ("pca", &matrix, "leave out --encoding if it is a .npy file", 1),
    ] {
        let refused = complaint(gristmill([command, "--encoding", "latin1"]).arg(path), status);
        assert!(refused.contains("is not text in windows-1252") && refused.contains(what), "{refused}");
    }
    // Pairs may begin with the bytes of a mark, which belong to the first of them.
    let marked: Vec<u8> = [&b"\xef\xbb\xbf\x01"[..], &[7, 0, 9, 2].repeat(10)].concat();
    let wider: Vec<u8> = [&b"\xff\xfe\x01\x02"[..], &[7, 0, 9, 2].repeat(10)].concat();
    for content in [marked, wider] {
        let path = folder.file("marked", &content);
        let line = answer(gristmill(["linear-regression", "--quiet"]).arg(&path));
        assert!(line.starts_with(b"n\t22\n"), "{}", String::from_utf8_lossy(&line));
        let said = answer(gristmill(["linear-regression", "--input-format", "pairs"]).arg(&path));
        assert_eq!(line, said);
    }
    let content = [&b"\xef\xbb\xbf\0\x01\0\0\0"[..], &[1, 0, 0, 0, 2, 0, 0, 0]].concat();
    let path = folder.file("marked", content);
    let sums = answer(gristmill(["group-by", "--quiet"]).arg(&path));
    assert_eq!(String::from_utf8_lossy(&sums), format!("1\t2\n{}\t1\n", 0x00bf_bbef));
}

#[test]
fn the_byte_that_is_no_text_is_named() {
    // A table that ended with Ctrl-Z was only `not text`, and nobody found the byte.
    let folder = Folder::new();
    let table = folder.file("dos.csv", b"k,v\na,1\n\x1a");
    for (command, status) in
        [(&["group-by", "--by", "k"][..], 2), (&["linear-regression", "--x", "k", "--y", "v"], 2), (&["pca"], 1)]
    {
        let refused = complaint(gristmill(command).arg(&table), status);
        assert!(refused.contains("(byte 8 of it is 1a, the Ctrl-Z that ends files of DOS)"), "{refused}");
    }
}

#[test]
fn a_bare_name_that_does_not_exist_is_answered_with_the_nearest_one() {
    // In a folder with logs.txt, `word-count log.txt` suggested nothing, and `word-count ./log.txt` did.
    let folder = Folder::new();
    folder.file("logs.txt", "pond\n");
    fs::create_dir(folder.path().join("data")).expect("made");
    for (arguments, near) in [
        (&["word-count", "log.txt"][..], "logs.txt"),
        (&["word-count", "lgos.txt"], "logs.txt"),
        (&["word-count", "./log.txt"], "./logs.txt"),
        (&["word-count", "dta"], "data"),
        (&["word-count", "dta/a"], "data/a"),
        (&["string-match", "--keys", "log.txt", "logs.txt"], "logs.txt"),
        (&["word-count", "-o", "dta/a.tsv", "logs.txt"], "data/a.tsv"),
    ] {
        let said = complaint(gristmill(arguments).current_dir(folder.path()), 1);
        assert!(said.ends_with(&format!("; did you mean {near}?\n")), "{arguments:?}: {said}");
    }
}

#[test]
fn lists_of_what_was_set_aside_name_the_options_of_the_command() {
    // The list said "Name the encoding that it has with `Input::encoding`", which the command does not have.
    let folder = Folder::new();
    let half = folder.file("half", b"\xff\xfea\0\x3d\xd8");
    let other = folder.file("other", "pond\n");
    let list = folder.path().join("list");
    let run =
        word_count(["--quiet", "--skip-bad-files", "1", "--bad-records"]).arg(&list).args([&half, &other]).output();
    assert_eq!(run.expect("started").stdout, b"pond\t1\n");
    let said = fs::read_to_string(&list).expect("written");
    assert!(said.contains("with --encoding") && !said.contains("::"), "{said}");
}

#[test]
fn a_link_to_nothing_that_a_pattern_matched_can_be_set_aside() {
    // `word-count 'data/*'` ended at a dangling link and advised to name another file, although nobody had named it.
    let folder = Folder::new();
    folder.file("a", "pond\n");
    std::os::unix::fs::symlink("gone", folder.path().join("link")).expect("linked");
    let pattern = folder.path().join("*");
    let refused = complaint(word_count(["--workers", "2"]).arg(&pattern), 1);
    assert!(
        refused.contains("link to gone, which does not exist") && refused.contains("--skip-bad-files"),
        "{refused}"
    );
    let list = folder.path().join(".list");
    let run = word_count(["--quiet", "--skip-bad-files", "1", "--bad-records"]).arg(list).arg(&pattern).output();
    assert_eq!(run.expect("started").stdout, b"pond\t1\n");
}

#[test]
fn zip_archives_of_which_a_part_would_be_read_are_refused() {
    // Only the first of two archives of the same size, one behind the other, was read, status 0.
    let folder = Folder::new();
    let script = "
import zipfile
for name in '12':
    with zipfile.ZipFile(name + '.zip', 'w') as archive:
        archive.writestr(name, name + '\\n')
with zipfile.ZipFile('two.zip', 'w') as archive:
    archive.writestr('1', '1\\n')
    archive.writestr('2', '2\\n')
one, two, both = [open(name + '.zip', 'rb').read() for name in ['1', '2', 'two']]
open('12.zip', 'wb').write(one + two)
end = both.rindex(b'PK\\x05\\x06')
open('fewer.zip', 'wb').write(both[:end + 8] + b'\\1\\0\\1\\0' + both[end + 12:])
with zipfile.ZipFile('wide.zip', 'w') as archive, archive.open('1', 'w', force_zip64=True) as to:
    to.write(b'1\\n')
";
    let made = Command::new("python3").arg("-c").arg(script).current_dir(folder.path()).status();
    assert!(made.expect("python3 starts").success());
    let at = |name: &str| folder.path().join(name);
    for name in ["1.zip", "wide.zip"] {
        assert_eq!(answer(gristmill(["sort"]).arg(at(name))), b"1\n");
    }
    for (name, why) in [
        ("12.zip", "several archives follow each other. Let unzip -p"),
        ("fewer.zip", "it says that it has 1 files, and its directory has more"),
    ] {
        let refused = complaint(gristmill(["sort"]).arg(at(name)), 1);
        assert!(refused.contains(name) && refused.contains(why), "{refused}");
    }
}

/// A frame without content, which both zstd and lz4 have.
const SKIPPED: &[u8] = b"\x50\x2a\x4d\x18\x04\0\0\0abcd";

#[test]
fn frames_without_content_belong_to_lz4_too() {
    // An lz4 file that began with such a frame was "damaged zstd data", and one within a file "no lz4 data".
    let folder = Folder::new();
    for packing in [Packing::Lz4, Packing::Zstd] {
        let [one, two] = ["1\n", "2\n"].map(|text| packing.pack(text.as_bytes(), 10));
        let whole = [SKIPPED, &one, SKIPPED, SKIPPED, &two, SKIPPED].concat();
        let path = folder.file(&format!("a.{}", packing.extension()), &whole);
        assert_eq!(answer(gristmill(["sort"]).arg(&path)), b"1\n2\n");
        let mut piped =
            word_count(["--read-once"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        piped.stdin.take().expect("a pipe").write_all(&whole).expect("written");
        assert_eq!(piped.wait_with_output().expect("ended").stdout, b"1\t1\n2\t1\n");
        for end in [5, 10, whole.len() - 9, whole.len() - 1] {
            let refused = complaint(gristmill(["sort"]).arg(folder.file("cut", &whole[..end])), 1);
            assert!(refused.contains("the file is truncated"), "{refused}");
        }
        let nothing = folder.file(&format!("nothing.{}", packing.extension()), SKIPPED);
        assert_eq!(answer(gristmill(["sort"]).arg(nothing)), b"");
    }
    // What another tool or format wrote is named, whatever the file is called.
    for (name, tool) in [("old.lz4", "lz4 -dc"), ("old.gz", "lz4 -dc")] {
        let refused = complaint(gristmill(["sort"]).arg(folder.file(name, b"\x02\x21\x4c\x18\x05\0\0\0\x40pond")), 1);
        assert!(refused.contains("an lz4 file of the old format") && refused.contains(tool), "{refused}");
    }
}

#[test]
fn what_follows_the_last_frame_is_named_with_its_place() {
    // A gzip file behind a zstd file was "damaged zstd data (Unknown frame descriptor)", and odd padding of xz "lzma
    // data error".
    let folder = Folder::new();
    let gzip = Packing::Gzip.pack(b"2\n", 10);
    for (packing, name) in
        [(Packing::Zstd, "zstd"), (Packing::Xz, "xz"), (Packing::Lz4, "lz4"), (Packing::Bzip2, "bzip2")]
    {
        let one = packing.pack(b"1\n", 10);
        let after = format!("what follows from byte {} of the file on is no {name} data", one.len());
        let path = folder.file(&format!("a.{}", packing.extension()), [&one[..], &gzip].concat());
        let refused = complaint(gristmill(["sort"]).arg(&path), 1);
        assert!(refused.contains(&after), "{refused}");
    }
    let [one, two] = [b"1\n", b"2\n"].map(|text| Packing::Xz.pack(text, 10));
    for zeros in 0..9 {
        for next in [&two[..], b""] {
            let path = folder.file("padded.xz", [&one[..], &vec![0; zeros], next].concat());
            if zeros % 4 == 0 {
                let expected = if next.is_empty() { &b"1\n"[..] } else { b"1\n2\n" };
                assert_eq!(answer(gristmill(["sort"]).arg(&path)), expected);
            } else {
                let refused = complaint(gristmill(["sort"]).arg(&path), 1);
                let after = format!("what follows from byte {} of the file on is no xz data", one.len());
                assert!(refused.contains(&after), "{refused}");
            }
        }
    }
}

#[test]
fn archives_of_cpio_and_ar_are_refused_as_tar_is() {
    // The bytes of these archives were counted as words, status 0.
    let folder = Folder::new();
    let cpio = [&b"070701"[..], &[b'0'; 94], b"06", &[b'0'; 8], b"a.txt\0pond\n"].concat();
    folder.file("a.cpio", cpio);
    folder.file("a.txt", "pond\n");
    let made = Command::new("ar").args(["rc", "a.a", "a.txt"]).current_dir(folder.path()).status();
    let is_there = made.is_ok_and(|status| status.success());
    let v7 = Command::new("tar").args(["--format=v7", "-cf", "a.v7", "a.txt"]).current_dir(folder.path()).status();
    assert!(v7.expect("tar starts").success());
    for (name, what) in [("a.cpio", "a cpio archive"), ("a.v7", "a tar archive"), ("a.a", "an ar archive")] {
        if name != "a.a" || is_there {
            let refused = complaint(word_count(["--workers", "2"]).arg(folder.path().join(name)), 1);
            assert!(refused.contains(&format!("it is {what}, which is not read")), "{refused}");
        }
    }
}
