//! Rows of CSV that cannot be what their writer meant: quotes that nothing closes, text behind a closing quote, and
//! rows of another length than the first line. Every subcommand that reads CSV has the same rules.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::command::{answer, complaint, gristmill, names};
use crate::pack::COMPRESSED;

/// Runs a command, and returns its status, its result and its complaint.
fn run(arguments: &[&str], dir: &Path) -> (Option<i32>, String, String) {
    let done = gristmill(arguments).current_dir(dir).output().expect("it starts");
    let [result, complaint] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (done.status.code(), result, complaint)
}

const SUM: [&str; 5] = ["group-by", "--by", "k", "--sum", "v"];
const COUNT: [&str; 3] = ["group-by", "--by", "k"];
const LINE: [&str; 5] = ["linear-regression", "--x", "k", "--y", "v"];
const CENTRES: [&str; 3] = ["kmeans", "-k", "1"];
const MEANS: [&str; 3] = ["pca", "--print", "means"];
const PRODUCT: [&str; 5] = ["matrix-multiply", "--left", "left.csv", "--print", "summary"];
const ALL: [&[&str]; 6] = [&SUM, &COUNT, &LINE, &CENTRES, &MEANS, &PRODUCT];

/// A quote that was not closed took the rest of a file into one field: of 100,000 rows with one stray quote, half were
/// missing from the answer, and nothing was said.
#[test]
fn a_quote_that_is_not_closed_is_an_error_that_names_its_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let row = |number: u32| format!("{},{}\n", number % 7, 2 * (number % 7));
    let rows = |range: std::ops::Range<u32>| range.map(row).collect::<String>();
    let whole = format!("k,v\n{}", rows(0..100_000));
    let stray = format!("k,v\n{}3,\"6\n{}", rows(0..50_000), rows(50_000..100_000));
    let at_end = format!("k,v\n{}3,\"6", rows(0..50_000));
    fs::write(dir.path().join("left.csv"), "1,2\n").expect("written");
    let expected = "a.csv line 50002: a quote opens a field here";
    for (number, arguments) in ALL.iter().enumerate() {
        fs::write(dir.path().join("a.csv"), &whole).expect("written");
        let more: &[&str] = if number < 3 { &["--skip-bad-records", "all", "--split-bytes", "10000"] } else { &[] };
        let arguments = [arguments, &["a.csv", "--quiet"][..]].concat();
        // The product of one row and 100,000 rows of two columns does not exist.
        let status = run(&[&arguments, more].concat(), dir.path()).0;
        assert_eq!(status, Some(i32::from(number == 5)), "{arguments:?}");
        for text in [&stray, &at_end] {
            fs::write(dir.path().join("a.csv"), text).expect("written");
            for more in [&[][..], more] {
                let (status, result, complaint) = run(&[&arguments, more].concat(), dir.path());
                let why = if number < 3 { expected.to_owned() } else { expected.replace("csv line", "csv: line") };
                assert!(complaint.contains(&why), "{arguments:?} {more:?}: {complaint}");
                assert!(complaint.contains("is not closed before the end of the file. Close it; if"), "{complaint}");
                assert!(complaint.contains("--quote") && !complaint.contains("::"), "{complaint}");
                assert_eq!((status, result.as_str(), complaint.lines().count()), (Some(1), "", 1), "{arguments:?}");
            }
        }
    }
    // The same for compressed files and pipes, and whatever the pieces.
    for packing in COMPRESSED {
        fs::write(dir.path().join("a.csv"), packing.pack(stray.as_bytes(), 30_000)).expect("written");
        let (status, _, complaint) = run(&[&SUM[..], &["a.csv"]].concat(), dir.path());
        assert!(status == Some(1) && complaint.contains(expected), "{packing:?}: {complaint}");
    }
    let mut child = gristmill(SUM).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let _ = child.stdin.take().expect("a pipe").write_all(stray.as_bytes());
    let complaint = String::from_utf8(child.wait_with_output().expect("ended").stderr).expect("text");
    assert!(complaint.contains("standard input line 50002: a quote opens a field here"), "{complaint}");
    // Quotes that are text have no such end.
    fs::write(dir.path().join("a.csv"), &stray).expect("written");
    let counted = answer(gristmill([&COUNT[..], &["--quote", "none", "a.csv"]].concat()).current_dir(dir.path()));
    let total: u64 =
        String::from_utf8(counted).expect("text").lines().map(|row| row[2..].parse::<u64>().expect("a count")).sum();
    assert_eq!(total, 100_001);
}

/// The first line of a file that opened a quote was shown as the names of the columns, with all that followed.
#[test]
fn a_quote_that_the_first_line_leaves_open_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("left.csv"), "1,2\n").expect("written");
    fs::write(dir.path().join("a.csv"), "\nk,\"v\n1,2\n").expect("written");
    for arguments in ALL {
        let refused = complaint(gristmill([arguments, &["a.csv"]].concat()).current_dir(dir.path()), 1);
        assert!(refused.contains("a.csv: line 2: a quote opens a field here and is not closed"), "{refused}");
        assert!(refused.contains("set --quote to none"), "{refused}");
    }
}

/// A stray quote in one row and another 30,000 rows later made one field of all between them. The text behind the
/// second one shows that it closes nothing.
#[test]
fn text_behind_a_closing_quote_is_an_error_or_one_row_set_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let rows = |count: usize| "1,2\n".repeat(count);
    let text = format!("k,v\n{}1,\"2\n{}1,2\"2\n{}", rows(10), rows(30_000), rows(20));
    fs::write(dir.path().join("left.csv"), "1,2\n").expect("written");
    fs::write(dir.path().join("a.csv"), &text).expect("written");
    let expected = "line 12: text follows the closing quote of field 2 (byte 120010 of the row, 30001 lines below its start): \
                    a quote inside a quoted field is written twice";
    for arguments in ALL {
        let refused = complaint(gristmill([arguments, &["a.csv", "-q"]].concat()).current_dir(dir.path()), 1);
        assert!(refused.contains(expected), "{refused}");
    }
    for more in [&[][..], &["--split-bytes", "1000", "--chunk-bytes", "100"]] {
        let skip = [&SUM[..], &["--skip-bad-records", "1", "a.csv", "--bad-records", "list"], more].concat();
        let (status, result, said) = run(&skip, dir.path());
        assert_eq!((status, result.as_str()), (Some(0), "1\t60\n"), "{said}");
        assert!(said.contains("1 record was set aside and not counted; list says"), "{said}");
        let listed = fs::read_to_string(dir.path().join("list")).expect("the list");
        assert!(listed.contains("30001 lines below its start") && listed.contains("\"line\":12"), "{listed}");
    }
    // Quotes elsewhere are text, and two in a quoted field are one.
    fs::write(dir.path().join("a.csv"), "k,v\na\"b,1\n\"a\"\"b\",2\n \"a\",4\n5\" pipe,8\n\"\",16\n").expect("written");
    let sums = answer(gristmill([&SUM[..], &["a.csv"]].concat()).current_dir(dir.path()));
    assert_eq!(String::from_utf8(sums).expect("text"), "\t16\n \"a\"\t4\n5\" pipe\t8\na\"b\t3\n");
}

/// A row with a field too many lost it (`a,1,000` counted 1), and one with a field too few was refused only if a column
/// that it lacked was asked for.
#[test]
fn rows_have_as_many_fields_as_the_first_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write("left.csv", "1,2\n");
    for (row, why) in [
        ("1,2,000", "this row has 3 fields, and the first line has 2: a field that holds the delimiter must be quoted"),
        ("1,2,,", "this row has 4 fields, and the first line has 2: a field that holds the delimiter must be quoted"),
        ("1", "this row has 1 field, and the first line has 2"),
        ("1,2,\"0\"", "this row has 3 fields, and the first line has 2"),
    ] {
        write("a.csv", &format!("k,v\n1,2\n\n{row}\n2,4\n"));
        write("long.csv", &format!("k,v\n{}{row}\n2,4\n", "1,2\n".repeat(20_000)));
        for (number, arguments) in ALL.iter().enumerate() {
            for (name, line) in [("a.csv", 4), ("long.csv", 20_002)] {
                let refused = complaint(gristmill([arguments, &[name, "-q"][..]].concat()).current_dir(dir.path()), 1);
                let place = if number < 3 { format!("{name} line {line}: ") } else { format!("{name}: line {line}: ") };
                assert!(refused.contains(&format!("{place}{why}")), "{arguments:?}: {refused}");
            }
        }
        let skip = [&SUM[..], &["--skip-bad-records", "1", "a.csv", "--quiet"]].concat();
        assert_eq!(run(&skip, dir.path()), (Some(0), "1\t2\n2\t4\n".into(), "".into()));
    }
    // Some programs write a delimiter after every field.
    for row in ["3,6,", "3,6,\"\"", "3,\"6\",\r"] {
        write("a.csv", &format!("k,v\n1,2\n{row}\n"));
        let found = ALL.map(|arguments| run(&[arguments, &["a.csv", "-q"]].concat(), dir.path()).1);
        assert_eq!(found[..2], ["1\t2\n3\t6\n", "1\t1\n3\t1\n"]);
        assert_eq!(found[2..4], ["n\t2\nslope\t2\nintercept\t0\nr\t1\n", "1\t2\t2\t4\n"]);
        assert_eq!(found[4..], ["1\t2\n2\t4\n", "trace\t7\nsum\t21\ncorner\t14\n"]);
    }
}

/// A file with semicolons had no column of any name, and nothing said why.
#[test]
fn a_first_line_without_the_delimiter_is_answered_with_a_likely_one() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.csv"), "k;v\n1;2\n").expect("written");
    fs::write(dir.path().join("b.csv"), "k\tv\n1\t2\n").expect("written");
    fs::write(dir.path().join("c.csv"), "k\n1\n").expect("written");
    for (arguments, said) in [
        (
            &["--by", "k", "a.csv"][..],
            "there is no column \"k\"; the first line says k;v. If its fields end at ';', set --delimiter\n",
        ),
        (
            &["--by", "2", "b.csv"],
            "there is no column 2: the first line has 1. If its fields end at tabs, set --delimiter\n",
        ),
        (&["--by", "v", "c.csv"], "there is no column \"v\"; the first line says k\n"),
    ] {
        let told = complaint(gristmill([&["group-by"], arguments].concat()).current_dir(dir.path()), 1);
        assert!(told.contains(said), "{told}");
    }
}

/// A header was shown with commas whatever separated its fields, so it looked as if the delimiter was wrong.
#[test]
fn a_first_line_is_shown_with_its_delimiter() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.csv"), "k;v\n1;2\n").expect("written");
    fs::write(dir.path().join("b.csv"), "k;w\n1;2\n").expect("written");
    let lacks = complaint(gristmill([&SUM[..], &["--delimiter", ";", "b.csv"]].concat()).current_dir(dir.path()), 1);
    assert!(lacks.contains("b.csv: there is no column \"v\"; the first line says k;w\n"), "{lacks}");
    let (_, _, note) = run(&[&MEANS[..], &["--delimiter", ";", "a.csv"]].concat(), dir.path());
    assert!(note.contains("a.csv: the first line (k;v) was read as column names"), "{note}");
    let differ = complaint(
        gristmill([&MEANS[..], &["-q", "--delimiter", ";", "a.csv", "b.csv"]].concat()).current_dir(dir.path()),
        1,
    );
    assert!(differ.contains("its columns are called k;w, and those of the files before k;v"), "{differ}");
}

/// `--skip-bad-records` took no `all` as `--skip-bad-files` does, and its list replaced a file of its default name,
/// such as the list of an earlier run.
#[test]
fn all_bad_records_are_set_aside_in_a_list_of_their_own() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.jsonl"), "{\"k\":\"x\"}\n{\"k\":null}\n{\"k\":[1]}\n{}\nno\n").expect("written");
    fs::write(dir.path().join("bad-records.jsonl"), "mine\n").expect("written");
    let count = ["group-by", "--by", "k", "a.jsonl", "--skip-bad-records"];
    for name in ["bad-records.2.jsonl", "bad-records.3.jsonl"] {
        let (status, result, said) = run(&[&count[..], &["all"]].concat(), dir.path());
        assert_eq!((status, result.as_str()), (Some(0), "x\t1\n"), "{said}");
        assert_eq!(said, format!("gristmill: 4 records were set aside and not counted; {name} says which and why\n"));
    }
    assert_eq!(names(dir.path()), ["a.jsonl", "bad-records.2.jsonl", "bad-records.3.jsonl", "bad-records.jsonl"]);
    let [mine, second] =
        ["bad-records.jsonl", "bad-records.2.jsonl"].map(|name| fs::read_to_string(dir.path().join(name)));
    assert_eq!(mine.expect("mine"), "mine\n");
    let second = second.expect("the list");
    let causes: Vec<String> = { second.lines() }
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["cause"].to_string())
        .collect();
    assert!(causes[0].contains("is null, and should be a text, a number, true or false"), "{causes:?}");
    assert!(causes[1].contains("is an array, and should be"), "{causes:?}");
    let refused = complaint(gristmill([&count[..], &["some"]].concat()).current_dir(dir.path()), 2);
    assert!(refused.contains("neither a whole number from 0 to 1000000 nor the word all"), "{refused}");
}

/// A CSV file with a quote that nothing closes, or with a bad first line, ended group-by and linear-regression although
/// --skip-bad-files was given, which sets it aside in pca.
#[test]
fn tables_with_an_open_quote_or_a_bad_first_line_are_set_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
    write("a.csv", "k,v\n1,2\n3,\"4\n5,6\n");
    write("b.csv", "k,\"v\"x\n1,2\n");
    write("c.csv", "k,w\n1,2\n");
    write("d.json", "[\n{\"k\": 1, \"v\": 2}\n]\n");
    write("ok.csv", "k,v\n1,2\n2,5\n1,4\n");
    let files = ["a.csv", "b.csv", "c.csv", "d.json", "ok.csv"];
    for arguments in [&SUM[..], &LINE] {
        let expected = answer(gristmill([arguments, &["ok.csv", "--quiet"]].concat()).current_dir(dir.path()));
        let skip = ["--quiet", "--skip-bad-files", "all", "--bad-records", "list"];
        let (status, found, complaint) = run(&[arguments, &skip, &files].concat(), dir.path());
        assert_eq!((status, found.as_bytes()), (Some(0), &expected[..]), "{arguments:?}: {complaint}");
        let list = fs::read_to_string(dir.path().join("list")).expect("the list");
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let mut aside: Vec<_> =
            { list.lines() }.map(line).map(|line| ["file", "cause"].map(|what| text(&line[what]))).collect();
        aside.sort();
        let reasons = [
            ("a.csv", "a.csv: line 3: a quote opens a field here and is not closed"),
            ("b.csv", "b.csv: line 1: text follows the closing quote"),
            ("c.csv", "c.csv: there is no column \"v\""),
            ("d.json", "d.json: is one array of JSON"),
        ];
        assert_eq!(aside.len(), reasons.len(), "{list}");
        for ([file, cause], (expected, why)) in aside.iter().zip(reasons) {
            assert!(file == expected && cause.starts_with(why), "{file}: {cause}");
        }
        // With one file fewer, the error says so.
        let fewer = [arguments, &["--skip-bad-files", "3"], &files].concat();
        let (status, _, complaint) = run(&fewer, dir.path());
        assert!(status == Some(1) && complaint.contains("one file more than the 3"), "{complaint}");
    }
}

/// In a file whose lines end with CR alone, every error was in line 1.
#[test]
fn lines_that_end_with_a_return_are_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let faults =
        [("7,\"8\"y", "text follows the closing quote"), ("7,x", "is not a finite number"), ("7,\"8", "a quote opens")];
    for (end, number) in [("\r", 3000), ("\r\n", 30_000), ("\n", 30_000)] {
        let rows = "7,8\n".repeat(number);
        for (bad, why) in faults {
            let text = format!("k,v\n{rows}{bad}\n").replace('\n', end);
            fs::write(dir.path().join("a.csv"), text).expect("written");
            for arguments in [&SUM[..], &LINE, &CENTRES, &MEANS] {
                let (status, _, complaint) = run(&[arguments, &["--quiet", "a.csv"]].concat(), dir.path());
                let line = format!("line {}", number + 2);
                assert!(complaint.contains(why) && complaint.contains(&line), "{end:?} {arguments:?}: {complaint}");
                assert_eq!(status, Some(1));
            }
        }
    }
}

/// A file whose lines end with CR alone was set aside as one record, with all of its good rows, and the status was 0.
#[test]
fn rows_that_end_with_a_return_are_set_aside_one_by_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let bad = ["c", "\"x\ry\",z", "7,8,9"];
    for end in ["\r", "\r\n", "\n"] {
        let mut lines = vec!["k,v".to_owned()];
        for number in 0..9000 {
            if number % 3000 == 1500 {
                lines.push(bad[number / 3000].to_owned());
            }
            lines.push(format!("{},1", number % 2));
        }
        // A row in the middle has another end than the rest.
        let text = lines.join(end).replacen("1,1", "1,1\r", 1).replacen("\r\r", "\r", 1) + end;
        fs::write(dir.path().join("a.csv"), text).expect("written");
        let skip = ["--skip-bad-records", "3", "--bad-records", "list", "--quiet", "a.csv"];
        let (status, result, complaint) = run(&[&SUM[..], &skip].concat(), dir.path());
        assert_eq!((status, &result[..]), (Some(0), "0\t4500\n1\t4500\n"), "{end:?}: {complaint}");
        let list = fs::read_to_string(dir.path().join("list")).expect("the list");
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        let listed: Vec<_> = list.lines().map(line).map(|bad| bad["record"].as_str().map(str::to_owned)).collect();
        assert_eq!(listed, bad.map(|record| Some(record.to_owned())), "{end:?}");
        let (status, _, complaint) = run(&[&SUM[..], &["--skip-bad-records", "2", "a.csv"]].concat(), dir.path());
        assert_eq!(status, Some(1), "{end:?}: {complaint}");
    }
}

/// The character U+FEFF at the start of the first row behind a header was dropped, as if the file began there.
#[test]
fn a_mark_behind_the_header_is_text() {
    let dir = tempfile::tempdir().expect("a directory");
    for mark in ["", "\u{feff}"] {
        fs::write(dir.path().join("a.csv"), format!("{mark}k,v\n\u{feff}a,1\na,2\n")).expect("written");
        let (_, result, complaint) = run(&[&SUM[..], &["a.csv"]].concat(), dir.path());
        assert_eq!(result, "a\t2\n\u{feff}a\t1\n", "{complaint}");
    }
    fs::write(dir.path().join("a.csv"), "\u{feff}a,1\na,2\n").expect("written");
    let (_, result, _) = run(&["group-by", "--by", "1", "--sum", "2", "--quiet", "a.csv"], dir.path());
    assert_eq!(result, "a\t3\n");
}
