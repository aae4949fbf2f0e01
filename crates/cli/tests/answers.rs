//! Any plan gives the answer of ten sequential lines.

mod command;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use command::{answer, complaint, gristmill, names, oracle, word_count};

/// Text that is small but has every oddity: words longer than a page, invalid UTF-8, NUL, carriage returns,
/// apostrophes at either end, no line break at the end.
fn odd_text() -> Vec<u8> {
    let mut text = Vec::new();
    for line in 0..400u32 {
        let word = line.wrapping_mul(2_654_435_761) % 97;
        write!(text, "the w{word} don't ''tis rock'n'roll' grün \r\n\t w{}\x0bw\n", line % 7).expect("written");
    }
    text.extend_from_slice(b"\xff\xfe a\0b \xf0\x9f\xa6 ");
    text.extend_from_slice(&[b'x'; 10_000]);
    text.extend_from_slice(b" last");
    text
}

#[test]
fn any_plan_gives_the_answer_of_ten_sequential_lines() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    fs::write(&path, odd_text()).expect("written");
    let expected = [oracle(&odd_text(), false), oracle(&odd_text(), true)];
    let topologies: [&[&str]; 5] = [
        &["--workers", "1"],
        &["--workers", "3"],
        &["--map-workers", "2", "--reduce-workers", "2"],
        &["--map-workers", "1", "--reduce-workers", "3"],
        &["--map-workers", "3", "--reduce-workers", "1"],
    ];
    let mut alpha = false;
    for topology in topologies {
        for isolation in ["process", "thread"] {
            for exchange in ["pipelined", "barrier"] {
                for (buffer, combine) in [
                    ("auto", "both"),
                    ("auto", "map"),
                    ("auto", "reduce"),
                    ("auto", "off"),
                    ("array", "both"),
                    ("array", "reduce"),
                    ("hash", "both"),
                    ("hash", "map"),
                ] {
                    for pages in ["fresh", "reuse", "prealloc"] {
                        alpha = !alpha;
                        let mut command = word_count(topology);
                        command
                            .args(["--isolation", isolation, "--exchange", exchange, "--buffer", buffer])
                            .args(["--combine", combine, "--pages", pages, "--page-bytes", "4KiB"])
                            .args(["--tokens", if alpha { "alpha" } else { "space" }])
                            .arg(&path);
                        let answer = answer(&mut command);
                        assert!(answer == expected[usize::from(alpha)], "{command:?} gave another answer");
                    }
                }
            }
        }
    }
}

#[test]
fn a_combining_buffer_needs_combining_in_map() {
    for combine in ["reduce", "off"] {
        let complaint = complaint(&mut word_count(["--buffer", "hash", "--combine", combine, "/dev/null"]), 2);
        assert!(complaint.contains("--buffer array"), "{complaint}");
    }
}

#[test]
fn files_directories_patterns_and_standard_input_are_the_same_text() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(dir.path().join("logs/old")).expect("made");
    for name in ["logs/a.txt", "logs/old/b.txt", "logs/[c].txt"] {
        fs::write(dir.path().join(name), "one two two\n").expect("written");
    }
    fs::write(dir.path().join("logs/.hidden.txt"), "never").expect("written");
    let (one, all) = (b"one\t1\ntwo\t2\n".to_vec(), b"one\t3\ntwo\t6\n".to_vec());
    let here = |arguments: &[&str]| answer(word_count(arguments).current_dir(dir.path()));
    assert_eq!(here(&["--quiet", "logs"]), all);
    assert_eq!(here(&["logs/a.txt", "logs/old/b.txt", "logs/[c].txt"]), all);
    assert_eq!(here(&["logs/**/*.txt"]), all);
    assert_eq!(here(&["logs/[ab].txt"]), one);
    // A file of exactly this name takes precedence over the pattern, which would match nothing.
    assert_eq!(here(&["logs/[c].txt"]), one);
    // Standard input as a file, named or by default.
    for arguments in [&["-"][..], &[]] {
        let file = fs::File::open(dir.path().join("logs/a.txt")).expect("opened");
        assert_eq!(answer(word_count(arguments).stdin(file)), one);
    }
}

#[test]
fn standard_input_may_be_a_pipe() {
    let text = odd_text().repeat(20);
    let mut child =
        word_count(["--workers", "2"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
    child.stdin.take().expect("a pipe").write_all(&text).expect("written");
    let output = child.wait_with_output().expect("ended");
    assert!(output.status.success());
    assert!(output.stdout == oracle(&text, false));
}

#[test]
fn the_greatest_come_first_by_default() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    fs::write(&path, "b c c a a a d").expect("written");
    let rows = |arguments: &[&str]| String::from_utf8(answer(word_count(arguments).arg(&path))).expect("text");
    assert_eq!(rows(&[]), "a\t3\nb\t1\nc\t2\nd\t1\n");
    assert_eq!(rows(&["--sort", "count"]), "a\t3\nc\t2\nb\t1\nd\t1\n");
    assert_eq!(rows(&["--top", "3"]), "a\t3\nc\t2\nb\t1\n");
    assert_eq!(rows(&["--top", "3", "--sort", "key"]), "a\t3\nb\t1\nc\t2\n");
    let unordered = rows(&["--sort", "none"]);
    let mut lines: Vec<_> = unordered.lines().collect();
    lines.sort();
    assert_eq!(lines, ["a\t3", "b\t1", "c\t2", "d\t1"]);
}

#[test]
fn the_extension_selects_the_format() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = dir.path().join("text");
    fs::write(&text, b"a,b a,b \xff").expect("written");
    for (name, expected) in [
        ("r.tsv", &b"a,b\t2\n\xff\t1\n"[..]),
        ("r.csv", b"word,count\n\"a,b\",2\n\xff,1\n"),
        ("r.jsonl", b"{\"word\":\"a,b\",\"count\":2}\n{\"word_base64\":\"/w==\",\"count\":1}\n"),
    ] {
        let path = dir.path().join(name);
        assert!(answer(word_count(["--output"]).arg(&path).arg(&text)).is_empty());
        assert_eq!(fs::read(&path).expect("there"), expected);
    }
    let complaint = complaint(word_count(["--output"]).arg(dir.path().join("r.xls")).arg(&text), 2);
    assert!(complaint.contains("--format"), "{complaint}");
    assert_eq!(names(dir.path()), ["r.csv", "r.jsonl", "r.tsv", "text"]);
}

#[cfg(not(feature = "columnar"))]
#[test]
fn a_command_without_arrow_and_parquet_says_how_to_build_one() {
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["r.arrow", "r.parquet"] {
        // The input never ends.
        let complaint = complaint(word_count(["--output"]).arg(dir.path().join(name)).arg("/dev/zero"), 1);
        assert!(complaint.contains(name) && complaint.contains("--features columnar"), "{complaint}");
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn statistics_contain_every_number_that_the_guide_explains() {
    let guide = include_str!("../../../docs/statistics.md");
    let dir = tempfile::tempdir().expect("a directory");
    let (csv, json) = (dir.path().join("s.csv"), dir.path().join("s.json"));
    for path in [&csv, &json] {
        answer(word_count(["--map-workers", "1", "--reduce-workers", "1", "Cargo.toml", "--stats"]).arg(path));
    }
    let csv = fs::read_to_string(csv).expect("there");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("worker,role,name,value"));
    for line in lines {
        let [worker, role, name, value] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert!([("job", ""), ("1", "map"), ("2", "reduce")].contains(&(worker, role)), "{line}");
        assert!(value.parse::<u64>().is_ok(), "{line}");
        let explained =
            name.strip_suffix("_calls").or(name.strip_suffix("_ns").filter(|_| worker != "job")).unwrap_or(name);
        assert!(guide.contains(&format!("| `{explained}` |")), "{explained} is not explained");
    }
    let json: serde_json::Value = serde_json::from_slice(&fs::read(json).expect("there")).expect("JSON");
    assert!(json["job"]["wall_ns"].as_u64() > json["job"]["started_ns"].as_u64());
    assert_eq!(json["workers"][0]["counts"]["input_bytes"], json["job"]["input_bytes"]);
    assert!(json["workers"][0]["phases"]["map"]["ns"].as_u64() > Some(0));
    // Every worker allocates something.
    for counts in [&json["job"], &json["workers"][0]["counts"], &json["workers"][1]["counts"]] {
        assert!(counts["allocations"].as_u64() > Some(0) && counts["allocated_bytes"].as_u64() > Some(0), "{counts}");
    }
}

#[test]
fn a_timeline_has_a_lane_for_each_worker_of_each_job() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = dir.path().join("run.html");
    fs::write(&page, "before").expect("written");
    let split = ["--map-workers", "1", "--reduce-workers", "1"];
    let counted = answer(word_count(split).args(["Cargo.toml", "--timeline"]).arg(&page));
    assert_eq!(counted, answer(word_count(split).arg("Cargo.toml")), "it changes no answer");
    let shown = fs::read_to_string(&page).expect("there");
    assert!(shown.starts_with("<!doctype html>") && shown.ends_with("</html>\n"), "{shown}");
    assert_eq!(shown.matches("class='gm-bars'").count(), 2, "{shown}");
    assert!(shown.contains("<path class='gm-map'") && shown.contains("<path class='gm-reduce'"), "{shown}");
    assert!(shown.contains("word-count --map-workers 1") && shown.contains("--timeline"), "{shown}");
    // An application in steps: all but the first one are marked.
    let points = dir.path().join("points.csv");
    fs::write(&points, (0..2000).map(|n| format!("{},{}\n", n % 97, n % 89)).collect::<String>()).expect("written");
    let steps = ["kmeans", "--quiet", "-k", "3", "--iterations", "4", "--workers", "2", "--timeline"];
    answer(gristmill(steps).arg(&page).arg(&points));
    let shown = fs::read_to_string(&page).expect("there");
    assert!(shown.contains("<span>step 1</span>") && shown.contains("What happened"), "{shown}");
}

#[test]
fn the_tables_of_the_guide_are_those_of_the_engine() {
    let guide = include_str!("../../../docs/statistics.md");
    let explained = guide.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(explained, 15 + gristmill::stats::PHASES.len() + gristmill::stats::COUNTS.len());
}
