//! Text in every encoding, and what is no text: read as it is meant, or refused in words.

mod command;
#[path = "../../engine/tests/common/pack.rs"]
mod pack;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use command::{Folder, answer, complaint, gristmill, oracle, word_count};
use pack::{COMPRESSED, Packing};

/// Lines with characters of one to four bytes; more than a worker reads at a time.
fn text() -> String {
    let word = |n: u32| {
        ["pond", "caf\u{e9}", "\u{20ac}uro", "\u{1f438}", "frog"][(n.wrapping_mul(2_654_435_761) >> 20) as usize % 5]
    };
    (0..5_000u32).map(|n| format!("{}{} {}\n", word(n), n % 97, word(n / 7))).collect()
}

/// Returns text in UTF-16, little end first, with a mark.
fn wide(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

/// Returns text in UTF-16, big end first, with a mark.
fn wide_big(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect()
}

fn marked(text: &str) -> Vec<u8> {
    format!("\u{feff}{text}").into_bytes()
}

#[test]
fn text_in_utf_16_or_with_a_mark_is_counted_as_the_text_that_it_is() {
    // A user counted the words of a file that Windows had written, and got bytes with NULs between them, status 0.
    let folder = Folder::new();
    let text = text();
    let expected = oracle(text.as_bytes(), false);
    for encoded in [marked(&text), wide(&text), wide_big(&text)] {
        let plain = folder.file("plain", &encoded);
        assert!(answer(word_count(["--workers", "2", "--chunk-bytes", "4KiB"]).arg(&plain)) == expected);
        let mut piped =
            word_count(["--read-once"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        piped.stdin.take().expect("a pipe").write_all(&encoded).expect("written");
        assert!(piped.wait_with_output().expect("ended").stdout == expected);
        for packing in COMPRESSED {
            let packed = folder.file("packed", packing.pack(&encoded, 70_000));
            assert!(answer(word_count(["--workers", "2"]).arg(&packed)) == expected, "{packing:?}");
        }
    }
}

#[test]
fn every_command_on_text_reads_utf_16_and_takes_marks_off_every_file() {
    // string-match took the mark off the keys and not off the data; sort wrote it into the middle of its result;
    // group-by refused UTF-16.
    let folder = Folder::new();
    let lines = "kayak\nanna\nkayak\n";
    let table = "k,v\na,1\nb,2\na,4\n";
    let numbers = "x,y\n1,3\n2,5\n4,9\n";
    let palindromes = |text: &str| -> usize {
        let odd_or_even = |line: &str| {
            let line = line.as_bytes();
            let all = (0..line.len()).flat_map(|from| (from + 1..=line.len()).map(move |to| (from, to)));
            all.filter(|(from, to)| line[*from..*to].iter().eq(line[*from..*to].iter().rev())).count()
        };
        text.lines().map(odd_or_even).sum()
    };
    let keys = folder.file("keys", wide("anna\nkayak\n"));
    for (number, encode) in [marked as fn(&str) -> Vec<u8>, wide, wide_big].into_iter().enumerate() {
        let two =
            |name: &str, text: &str| [1, 2].map(|copy| folder.file(&format!("{number}{copy}{name}"), encode(text)));
        let [one, again] = two("lines", lines);
        assert_eq!(answer(gristmill(["sort"]).args([&one, &again])), b"anna\nanna\nkayak\nkayak\nkayak\nkayak\n");
        assert_eq!(answer(gristmill(["sort", "--key-bytes", "1..2"]).arg(&one)), b"kayak\nkayak\nanna\n");
        let found = answer(gristmill(["string-match", "--keys"]).args([&keys, &one, &again]));
        assert_eq!(found, b"anna\t2\nkayak\t4\n");
        let total = answer(gristmill(["palindromes", "--print", "total"]).args([&one, &again]));
        assert_eq!(String::from_utf8_lossy(&total), format!("total\t{}\n", 2 * palindromes(lines)));
        let constant = answer(gristmill(["palindromes", "--print", "total", "--constant", "3"]).arg(&one));
        assert_eq!(String::from_utf8_lossy(&constant), format!("total\t{}\n", 3 * palindromes(lines)));
        let [one, again] = two("table.csv", table);
        assert_eq!(answer(gristmill(["group-by", "--by", "k", "--sum", "v"]).args([&one, &again])), b"a\t10\nb\t4\n");
        let [one, again] = two("objects.jsonl", "{\"k\":\"a\"}\n{\"k\":\"b\"}\n");
        assert_eq!(answer(gristmill(["group-by", "--by", "k"]).args([&one, &again])), b"a\t2\nb\t2\n");
        let [one, again] = two("numbers.csv", numbers);
        let line = answer(gristmill(["linear-regression", "--x", "x", "--y", "y"]).args([&one, &again]));
        assert_eq!(line, b"n\t6\nslope\t2\nintercept\t1\nr\t1\n");
        let [one, again] = two("bare.csv", "1,3\n3,5\n");
        assert_eq!(
            answer(gristmill(["pca", "--print", "means", "--header", "no"]).args([&one, &again])),
            b"1\t2\n2\t4\n"
        );
        assert_eq!(answer(gristmill(["kmeans", "-k", "1", "--header", "no"]).args([&one, &again])), b"1\t4\t2\t4\n");
        let product = answer(gristmill(["matrix-multiply", "--header", "no", "--left"]).args([&one, &again]));
        assert_eq!(product, b"10\t18\n18\t34\n");
    }
}

#[test]
fn an_encoding_without_a_mark_is_named_and_never_guessed() {
    let folder = Folder::new();
    let latin = folder.file("latin", b"caf\xe9 \x80\n");
    assert_eq!(answer(&mut word_count([&latin])), b"caf\xe9\t1\n\x80\t1\n");
    assert_eq!(answer(word_count(["--encoding", "latin1"]).arg(&latin)), "caf\u{e9}\t1\n\u{20ac}\t1\n".as_bytes());
    // The input is decoded, and the keys are what it is decoded to.
    let keys = folder.file("keys", "caf\u{e9} \u{20ac}\n");
    let found = answer(gristmill(["string-match", "--encoding", "latin1", "--keys"]).args([&keys, &latin]));
    assert_eq!(found, "caf\u{e9} \u{20ac}\t1\n".as_bytes());
    let refused = complaint(gristmill(["string-match", "--encoding", "latin1", "--keys"]).args([&latin, &latin]), 1);
    assert!(refused.contains("the keys are not UTF-8"), "{refused}");
    let bare = folder.file("bare", &wide("old pond\n")[2..]);
    let refused = complaint(word_count(["--workers", "2"]).arg(&bare), 1);
    assert!(refused.contains("set --encoding to utf-16le; if not, to bytes"), "{refused}");
    assert_eq!(answer(word_count(["--encoding", "utf-16le"]).arg(&bare)), b"old\t1\npond\t1\n");
    assert_eq!(answer(word_count(["--encoding", "bytes"]).arg(&bare)).iter().filter(|byte| **byte == 0).count(), 9);
    // Packed, its reader finds out.
    let packed = folder.file("bare.gz", Packing::Gzip.pack(&wide("old pond\n")[2..], 100));
    let refused = complaint(word_count(["--workers", "2"]).arg(&packed), 1);
    assert!(refused.contains("set --encoding to utf-16le"), "{refused}");
    let unknown = complaint(word_count(["--encoding", "klingon"]).arg(&bare), 2);
    assert!(unknown.contains("there is no encoding of this name"), "{unknown}");
    for (command, what) in [
        (&["sort", "--records", "terasort"][..], "TeraSort records are no text"),
        (&["group-by", "--input-format", "pairs"], "pairs of numbers are no text"),
        (&["linear-regression", "--input-format", "pairs"], "pairs of bytes are no text"),
    ] {
        let refused = complaint(gristmill(command).args(["--encoding", "latin1"]).arg(&bare), 2);
        assert!(refused.contains(what), "{refused}");
    }
    // Binary records may begin with the bytes of any mark.
    let records = folder.file("records", [&b"\xef\xbb\xbf\xff\xfe"[..], &[7; 95]].concat());
    assert_eq!(answer(gristmill(["sort", "--records", "terasort"]).arg(&records)), fs::read(&records).expect("there"));
    let pairs = folder.file("pairs", b"\xef\xbb\xbf\0\x01\0\0\0");
    let summed = answer(gristmill(["group-by", "--quiet", "--input-format", "pairs"]).arg(&pairs));
    assert_eq!(summed, format!("{}\t1\n", 0x00bf_bbef).as_bytes());
}

#[test]
fn bytes_that_are_no_text_in_its_encoding_are_an_error_that_names_their_place() {
    let folder = Folder::new();
    let mut half = wide(&"frog\n".repeat(40_000));
    half.extend(0xd83d_u16.to_le_bytes());
    let at = half.len() - 2;
    half.extend(wide("pond\n"));
    for name in ["half", "half.gz"] {
        let content = if name == "half" { half.clone() } else { Packing::Gzip.pack(&half, half.len()) };
        let path = folder.file(name, content);
        let refused = complaint(word_count(["--workers", "2"]).arg(&path), 1);
        assert!(refused.contains(&path.display().to_string()), "{refused}");
        assert!(
            refused.contains(&format!("not all text in UTF-16LE: byte {at} of it begins no whole character")),
            "{refused}"
        );
        let other = folder.file("other", "pond\n");
        let listing = folder.path().join("bad");
        let set_aside = word_count(["--quiet", "--skip-bad-files", "1", "--bad-records"])
            .arg(listing)
            .args([&path, &other])
            .output();
        assert_eq!(set_aside.expect("started").stdout, b"pond\t1\n");
    }
    let wider = folder.file("wider", b"\xff\xfe\0\0a\0\0\0");
    assert!(complaint(word_count(["--workers", "2"]).arg(&wider), 1).contains("iconv -f UTF-32"));
    // Errors in rows name the line.
    let table = folder.file("table.csv", wide("k,v\na,1\nb,x\n"));
    let refused = complaint(gristmill(["group-by", "--by", "k", "--sum", "v"]).arg(&table), 1);
    assert!(refused.contains("table.csv line 3: "), "{refused}");
    let bytes = folder.file("marked.csv", marked("k,v\na,1\nb,x\n"));
    let refused = complaint(gristmill(["group-by", "--by", "k", "--sum", "v"]).arg(&bytes), 1);
    assert!(refused.contains("marked.csv line 3: "), "{refused}");
}

#[test]
fn words_end_where_wc_says() {
    // A vertical tab did not part words.
    let folder = Folder::new();
    let spaced = "a\tb\nc\u{b}d\u{c}e\rf g\u{1c}h\n\u{b}\u{b}i";
    let path = folder.file("spaced", spaced);
    let counts = answer(&mut word_count([&path]));
    assert_eq!(counts, oracle(spaced.as_bytes(), false));
    let wc = Command::new("wc").env("LC_ALL", "C").arg("-w").arg(&path).output().expect("wc starts").stdout;
    let words: usize = String::from_utf8_lossy(&wc).split(' ').find_map(|word| word.parse().ok()).expect("a number");
    assert_eq!(counts.iter().filter(|byte| **byte == b'\n').count(), words);
    // Across the cut between two chunks, too.
    let long = folder.file("long", "frog\u{b}".repeat(100_000));
    assert_eq!(answer(word_count(["--chunk-bytes", "4KiB", "--split-bytes", "10KiB"]).arg(&long)), b"frog\t100000\n");
}

#[test]
fn a_stream_serves_one_purpose() {
    // `printf 'a\na\n' | gristmill string-match --keys -` printed `a 0`: the keys had taken all of standard input.
    let folder = Folder::new();
    let data = folder.file("data", "a\n");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let data = data.to_str().expect("UTF-8");
    let fifo = fifo.to_str().expect("UTF-8");
    for arguments in [
        &["string-match", "--keys", "-"][..],
        &["string-match", "--keys", "-", "/dev/stdin"],
        &["string-match", "--keys", "/dev/stdin", data, "-"],
        &["string-match", "--keys", fifo, data, fifo],
        &["matrix-multiply", "--left", "-"],
        &["matrix-multiply", "--left", fifo, fifo],
        &["word-count", "-", "-"],
        &["sort", "--files-from", "-", "/dev/stdin"],
        &["group-by", "--by", "1", fifo, data, fifo],
        &["kmeans", "-k", "1", "-", "/dev/stdin"],
        &["histogram", "/proc/self/fd/0", "-"],
    ] {
        let mut child = gristmill(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        // It may end before it reads.
        let _ = child.stdin.take().expect("a pipe").write_all(b"a\na\n");
        let ended = child.wait_with_output().expect("ended");
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.stdout.is_empty() && ended.status.code() == Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains("is a stream, whose bytes can be read once"), "{complaint}");
    }
    // A file can be read twice, also as standard input; and /dev/null is always empty.
    let twice =
        answer(gristmill(["string-match", "--keys", data, data, "-"]).stdin(fs::File::open(data).expect("opened")));
    assert_eq!(twice, b"a\t2\n");
    assert_eq!(answer(&mut word_count(["-", "/dev/null"])), b"");
}

#[test]
fn archives_and_unknown_compressions_are_refused_with_the_tool_that_unpacks_them() {
    // Their bytes were counted as words, status 0.
    let folder = Folder::new();
    folder.file("a.txt", "pond\n");
    let at = folder.path();
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program)
            .args(arguments)
            .current_dir(at)
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    assert!(run("tar", &["cf", "a.tar", "a.txt"]) && run("tar", &["czf", "a.tar.gz", "a.txt"]));
    folder.file("a.gz", Packing::Gzip.pack(&Packing::Xz.pack(b"pond\n", 9), 1000));
    folder.file("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04some");
    folder.file("a.Z", b"\x1f\x9d\x90some");
    folder.file("a.lzma", b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xffsome");
    folder.file("a.br", b"\x0b\x02\x80pond\n\x03");
    for (name, tool) in [
        ("a.tar", "tar -xOf"),
        ("a.tar.gz", "tar -xOf"),
        ("a.gz", "gzip -dc and then xz -dc"),
        ("a.7z", "7z x -so"),
        ("a.Z", "gzip -dc"),
        ("a.lzma", "xz --format=lzma -dc"),
        ("a.br", "brotli -dc"),
    ] {
        let path = at.join(name);
        for command in [&["word-count"][..], &["sort"], &["group-by", "--by", "1"], &["palindromes"], &["pca"]] {
            let refused = complaint(gristmill(command).arg(&path), 1);
            assert!(refused.contains(name) && refused.contains(tool), "{refused}");
        }
        let refused = complaint(gristmill(["string-match", "--keys"]).args([&path, &at.join("a.txt")]), 1);
        assert!(refused.contains(name) && refused.contains(tool), "{refused}");
        // Nothing but its name tells brotli.
        if name != "a.br" {
            let piped = complaint(word_count(["--read-once"]).stdin(fs::File::open(&path).expect("opened")), 1);
            assert!(piped.contains(tool), "{piped}");
        }
    }
    // Binary records may begin with any bytes.
    let records = folder.file("records", [&b"7z\xbc\xaf\x27\x1c"[..], &[7; 94]].concat());
    assert_eq!(answer(gristmill(["sort", "--records", "terasort"]).arg(&records)), fs::read(&records).expect("there"));
}

#[test]
fn a_file_of_the_lz4_tool_is_read_and_one_that_is_cut_off_is_an_error() {
    // The library that decodes lz4 takes the end of the file for the end of the data.
    let folder = Folder::new();
    let text = text();
    let path = folder.file("text", &text);
    let packed = folder.path().join("text.lz4");
    let is_there = Command::new("lz4").arg("-q").args([&path, &packed]).status().is_ok_and(|status| status.success());
    if !is_there {
        fs::write(&packed, Packing::Lz4.pack(text.as_bytes(), 100_000)).expect("written");
    }
    assert!(answer(&mut word_count([&packed])) == oracle(text.as_bytes(), false));
    let file = Packing::Lz4.pack(&text.as_bytes()[..1000], 1000);
    for end in (11..file.len()).step_by(41).chain(file.len() - 9..file.len()) {
        let refused = complaint(word_count(["--workers", "2"]).arg(folder.file("cut.lz4", &file[..end])), 1);
        assert!(refused.contains("truncated"), "{end} of {}: {refused}", file.len());
    }
    let result = folder.path().join("counts.tsv.lz4");
    answer(word_count(["--output"]).args([&result, &path]));
    let unpacked: BTreeMap<Vec<u8>, Vec<u8>> = rows(&answer(gristmill(["sort"]).arg(&result)));
    assert_eq!(unpacked, rows(&oracle(text.as_bytes(), false)));
}

#[test]
fn a_zip_archive_of_one_file_is_read_and_any_other_is_refused() {
    // The bytes of an archive were counted as words.
    let folder = Folder::new();
    let at = folder.path();
    let text = text();
    fs::create_dir(at.join("below")).expect("made");
    folder.file("below/a.csv", "k,v\na,1\nb,2\na,4\n");
    folder.file("wide.txt", wide(&text));
    folder.file("text.txt", &text);
    folder.file("none", "");
    // Python's own writer: deflated, stored, behind other bytes, with zip64, a comment, a folder, and what is refused.
    let script = "
import zipfile
def write(name, files, method=zipfile.ZIP_DEFLATED, comment=b'', wide=False):
    with zipfile.ZipFile(name, 'w', method) as archive:
        archive.comment = comment
        for file in files:
            if file.endswith('/'):
                archive.writestr(file, '')
            else:
                with open(file, 'rb') as content, archive.open(file, 'w', force_zip64=wide) as to:
                    to.write(content.read())
write('deflated.zip', ['text.txt'])
write('stored.zip', ['text.txt'], zipfile.ZIP_STORED, b'a comment PK')
write('wide.zip', ['wide.txt'], wide=True)
write('folder.zip', ['below/', 'below/a.csv'])
write('none.zip', [])
write('empty.zip', ['none'])
write('two.zip', ['text.txt', 'wide.txt'])
write('bzip2.zip', ['text.txt'], zipfile.ZIP_BZIP2)
whole = open('deflated.zip', 'rb').read()
open('flipped.zip', 'wb').write(whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:])
open('cut.zip', 'wb').write(whole[:-30])
locked = bytearray(whole)
locked[6] |= 1
locked[whole.rindex(b'PK\x01\x02') + 8] |= 1
open('locked.zip', 'wb').write(locked)
";
    let made = Command::new("python3").arg("-c").arg(script).current_dir(at).status().expect("python3 starts");
    assert!(made.success());
    let expected = oracle(text.as_bytes(), false);
    for name in ["deflated.zip", "stored.zip", "wide.zip"] {
        assert!(answer(word_count(["--workers", "2"]).arg(at.join(name))) == expected, "{name}");
        assert!(
            answer(word_count(["--workers", "2"]).stdin(fs::File::open(at.join(name)).expect("opened"))) == expected,
            "{name}"
        );
    }
    assert_eq!(answer(gristmill(["group-by", "--by", "k", "--sum", "v"]).arg(at.join("folder.zip"))), b"a\t5\nb\t2\n");
    assert_eq!(answer(word_count(["--workers", "2"]).arg(at.join("empty.zip"))), b"");
    for (name, why) in [
        ("none.zip", "a zip archive without a file in it"),
        ("two.zip", "a zip archive of 2 files, and only those of one file are read: let unzip -p"),
        ("bzip2.zip", "packed by method 12"),
        ("flipped.zip", "its zip data is damaged"),
        ("cut.zip", "truncated or damaged"),
        ("locked.zip", "with a password"),
    ] {
        let refused = complaint(word_count(["--workers", "2"]).arg(at.join(name)), 1);
        assert!(refused.contains(name) && refused.contains(why), "{refused}");
    }
    let archive = fs::File::open(at.join("stored.zip")).expect("opened");
    let mut cat = Command::new("cat").stdin(archive).stdout(Stdio::piped()).spawn().expect("cat starts");
    let pipe = cat.stdout.take().expect("a pipe");
    let once = complaint(word_count(["--read-once"]).stdin(pipe), 1);
    assert!(once.contains("it is a zip archive, which is read from its end: leave out --read-once"), "{once}");
    cat.wait().expect("ended");
    let written = complaint(word_count(["--output"]).args([at.join("counts.tsv.zip"), at.join("text.txt")]), 1);
    assert!(written.contains("counts.tsv.zip: zip archives are read and not written"), "{written}");
}

/// Returns rows of TSV as keys with values.
fn rows(text: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let row = |line: &[u8]| line.split(|byte| *byte == b'\t').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let rows = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(row);
    rows.map(|row| (row[0].clone(), row[1].clone())).collect()
}

#[test]
fn paths_that_are_not_read_are_told_and_links_to_nothing_named_as_such() {
    // Hidden names were left out in silence, and `--follow` ended at a dangling link as if a file were missing.
    let folder = Folder::new();
    let below = folder.path().join("below");
    fs::create_dir(&below).expect("made");
    for name in ["a", ".b", ".c"] {
        fs::write(below.join(name), "pond\n").expect("written");
    }
    let told = word_count([&below]).output().expect("started");
    assert_eq!(told.stdout, b"pond\t1\n");
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("2 hidden names were left out, the first of them") && said.lines().count() == 1, "{said}");
    assert!(answer(word_count(["--quiet"]).arg(&below)) == b"pond\t1\n");
    std::os::unix::fs::symlink("gone", below.join("link")).expect("linked");
    let refused = complaint(word_count(["--follow"]).arg(&below), 1);
    assert!(
        refused.contains("link: it is a symbolic link to gone, which does not exist")
            && refused.contains("leave out --follow"),
        "{refused}"
    );
    let refused = complaint(word_count(["--workers", "2"]).arg(below.join("link")), 1);
    assert!(refused.contains("it is a symbolic link to gone"), "{refused}");
}

#[test]
fn files_of_sysfs_are_read_though_they_say_another_size() {
    // They say that they have 4096 bytes, and "were truncated while they were read".
    let path = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
    let Ok(content) = fs::read(path) else { return };
    assert_eq!(answer(&mut word_count([path])), oracle(&content, false));
}

#[test]
fn a_name_that_does_not_exist_is_answered_with_the_nearest_one() {
    // Every door said only "No such file or directory".
    let folder = Folder::new();
    let [words, keys] = ["words.txt", "keys.txt"].map(|name| folder.file(name, "pond\n"));
    let at = |name: &str| folder.path().join(name).into_os_string().into_string().expect("UTF-8");
    fs::create_dir(folder.path().join("results")).expect("made");
    let (words, keys) = (words.to_str().expect("UTF-8"), keys.to_str().expect("UTF-8"));
    for (arguments, near) in [
        (vec!["word-count".to_owned(), at("wrods.txt")], at("words.txt")),
        (vec!["word-count".to_owned(), "--files-from".to_owned(), at("Words.txt")], at("words.txt")),
        (vec!["word-count".to_owned(), at("result/a")], at("results/a")),
        (vec!["word-count".to_owned(), "-o".to_owned(), at("result/a.tsv"), words.to_owned()], at("results/a.tsv")),
        (vec!["string-match".to_owned(), "--keys".to_owned(), at("key.txt"), words.to_owned()], at("keys.txt")),
        (vec!["matrix-multiply".to_owned(), "--left".to_owned(), at("key.txt"), words.to_owned()], at("keys.txt")),
        (vec!["batch".to_owned(), at("keys.tx")], at("keys.txt")),
    ] {
        let said = complaint(&mut gristmill(&arguments), 1);
        assert!(said.ends_with(&format!("; did you mean {near}?\n")), "{arguments:?}: {said}");
    }
    let said = complaint(&mut gristmill(["string-match", "--keys", keys, "/no/such/file"]), 1);
    assert!(!said.contains("did you mean"), "{said}");
}
