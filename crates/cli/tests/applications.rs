//! The applications from the command line: their rows, and one clear error for each bad input. Whether the answers are
//! right is tested where the applications are.

mod command;

use std::fs;
use std::path::{Path, PathBuf};

use command::{answer, complaint, gristmill};

/// A directory with these files in it.
fn files(contents: &[(&str, &[u8])]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, content) in contents {
        fs::write(dir.path().join(name), content).expect("written");
    }
    dir
}

fn bmp(pixels: &[[u8; 3]; 4]) -> Vec<u8> {
    let mut file = vec![0; 54];
    file[..2].copy_from_slice(b"BM");
    for (at, word) in [(10, 54u32), (14, 40), (18, 4), (22, 1), (26, 1), (28, 24)] {
        file[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(pixels.as_flattened());
    file
}

fn rows(arguments: &[&str], paths: &[&Path]) -> Vec<String> {
    let stdout = answer(gristmill(arguments).args(paths).args(["--workers", "2"]));
    String::from_utf8(stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn a_histogram_has_a_row_for_each_value_of_each_channel() {
    let dir = files(&[("a.bmp", &bmp(&[[1, 2, 3], [1, 2, 4], [1, 5, 6], [0, 0, 0]]))]);
    let rows = rows(&["histogram"], &[&dir.path().join("a.bmp")]);
    assert_eq!(rows.len(), 768);
    assert_eq!((&rows[1][..], &rows[256 + 2][..], &rows[512 + 255][..]), ("blue\t1\t3", "green\t2\t2", "red\t255\t0"));
}

#[test]
fn a_line_is_four_rows() {
    let dir = files(&[("pairs", &[0, 1, 1, 3, 2, 5]), ("rows.csv", b"t,h\n0,1\n1,3\n2,5\n")]);
    let expected = ["n\t3", "slope\t2", "intercept\t1", "r\t1"];
    assert_eq!(rows(&["linear-regression"], &[&dir.path().join("pairs")]), expected);
    assert_eq!(rows(&["linear-regression", "--x", "t", "--y", "2"], &[&dir.path().join("rows.csv")]), expected);
}

#[test]
fn groups_have_their_sum_or_their_count() {
    let numbers: Vec<u8> = [7u32, 1, 5, 2, 7, u32::MAX].into_iter().flat_map(u32::to_le_bytes).collect();
    let table = b"day,fruit,kg\nmon,\"pear, green\",1.5\ntue,fig,2\nwed,fig,0.25\n";
    let dir = files(&[("pairs", &numbers), ("fruit.csv", table)]);
    let table = dir.path().join("fruit.csv");
    assert_eq!(rows(&["group-by"], &[&dir.path().join("pairs")]), ["5\t2", "7\t4294967296"]);
    assert_eq!(rows(&["group-by", "--by", "fruit", "--sum", "3"], &[&table]), ["fig\t2.25", "pear, green\t1.5"]);
    assert_eq!(rows(&["group-by", "--by", "2", "--top", "1"], &[&table]), ["fig\t2"]);
}

#[test]
fn json_lines_are_known_by_their_name_or_by_an_option() {
    let lines = br#"{"day":"mon","fruit":"pear, \u0067reen","kg":1.5}
{"fruit":"fig","kg":2,"day":"tue"}

{"fruit":"fig","kg":"0.25"}
"#;
    let dir = files(&[("fruit.jsonl", lines), ("fruit", lines), ("fruit.csv", b"fruit,kg\n")]);
    let [known, unknown, csv] = ["fruit.jsonl", "fruit", "fruit.csv"].map(|name| dir.path().join(name));
    let sums = ["fig\t2.25", "pear, green\t1.5"];
    assert_eq!(rows(&["group-by", "--by", "fruit", "--sum", "kg"], &[&known]), sums);
    assert_eq!(rows(&["group-by", "--by", "fruit", "--sum", "kg", "--input-format", "jsonl"], &[&unknown]), sums);
    assert_eq!(rows(&["group-by", "--by", "fruit", "--top", "1"], &[&known]), ["fig\t2"]);
    let mixed = complaint(gristmill(["group-by", "--by", "fruit"]).args([&known, &csv]), 2);
    assert!(mixed.contains("say with --input-format"), "{mixed}");
}

#[test]
fn matches_come_in_the_order_of_the_keys() {
    let dir = files(&[("keys", b"pear\nfig\n"), ("words", b"fig\npears\nfig\n")]);
    let (keys, words) = (dir.path().join("keys"), dir.path().join("words"));
    assert_eq!(rows(&["string-match", "--keys"], &[&keys, &words]), ["pear\t0", "fig\t2"]);
}

#[test]
fn centres_have_their_size_and_their_place() {
    let dir = files(&[("points.csv", b"0,0\n10,10\n0,1\n10,11\n")]);
    let points = dir.path().join("points.csv");
    assert_eq!(rows(&["kmeans", "-k", "2", "--start", "first"], &[&points]), ["1\t2\t0\t0.5", "2\t2\t10\t10.5"]);
    let csv = rows(&["kmeans", "-k", "1", "--format", "csv"], &[&points]);
    assert_eq!(csv, ["centre,points,x1,x2", "1,4,5,5.5"]);
}

#[test]
fn components_covariances_and_means_are_printed() {
    let dir = files(&[("data.csv", b"a,b\n0,0\n2,0\n4,0\n")]);
    let data = dir.path().join("data.csv");
    assert_eq!(rows(&["pca", "-c", "1"], &[&data]), ["1\t4\t1\t1\t0"]);
    assert_eq!(rows(&["pca", "--print", "covariances"], &[&data]), ["4\t0", "0\t0"]);
    assert_eq!(rows(&["pca", "--print", "means"], &[&data]), ["1\t2", "2\t0"]);
}

#[test]
fn depths_have_their_states() {
    let expected = ["0\t1", "1\t2", "2\t4", "3\t10", "4\t24"];
    assert_eq!(rows(&["tile-search", "--rows", "4", "--columns", "4", "--depth", "4"], &[]), expected);
    let goal = ["tile-search", "--start", "1,2,3,4,5,6,0,7,8", "--goal", "1,2,3,4,5,6,7,8,0", "--format", "csv"];
    assert_eq!(rows(&goal, &[]), ["depth,states", "0,1", "1,2", "2,4"].map(str::to_owned)[..]);
    let far = gristmill(["tile-search", "--goal", "8,6,7,2,5,4,3,0,1", "--depth", "3"]).output().expect("it starts");
    let complaint = String::from_utf8_lossy(&far.stderr).into_owned();
    assert!(far.status.success() && complaint.contains("the goal is more than 3 moves away"), "{complaint}");
}

#[test]
fn puzzles_that_make_no_sense_are_one_error() {
    let cases: [(&[&str], &str); 4] = [
        (&["--goal", "2,1,3,4,5,6,7,8,0"], "half of all others are out of reach"),
        (&["--start", "1,2,3"], "the start is 1,2,3; it needs each of the numbers 0 to 8 once"),
        (&["--rows", "5", "--columns", "4"], "a board of 5 x 4 squares was asked for"),
        (&["--rows", "4", "--columns", "4", "--keep-bytes", "2MiB"], "did not fit"),
    ];
    for (arguments, expected) in cases {
        let mut command = gristmill(["tile-search"]);
        let complaint = complaint(command.args(arguments).args(["-o", "/dev/null"]), 1);
        assert!(complaint.starts_with("gristmill: ") && complaint.contains(expected), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
fn a_product_is_printed_summed_up_or_written_for_numpy() {
    let dir = files(&[("a.csv", b"1,2\n3,4\n5,6\n"), ("b.csv", b"x,y\n1,0.5\n-1,2\n")]);
    let [a, b, product] = ["a.csv", "b.csv", "product.npy"].map(|name| dir.path().join(name));
    let left = |more: &[&'static str]| {
        let a = a.to_str().expect("text");
        rows(&[&["matrix-multiply", "--left", a], more].concat(), &[&b])
    };
    let expected = ["-1\t4.5", "-1\t9.5", "-1\t14.5"];
    assert_eq!(left(&[]), expected);
    assert_eq!(left(&["--way", "pairs"]), expected);
    assert_eq!(left(&["--print", "summary"]), ["trace\t8.5", "sum\t25.5", "corner\t14.5"]);
    assert_eq!(left(&["--power", "3"]), ["-14\t14.25", "-29\t31.75", "-44\t49.25"]);
    // What is written for numpy can be read again; times the identity it is itself.
    fs::write(dir.path().join("one.csv"), "1,0\n0,1\n").expect("written");
    let mut write = gristmill(["matrix-multiply", "--left"]);
    assert!(answer(write.args([&a, &b]).arg("--output").arg(&product)).is_empty());
    let mut again = gristmill(["matrix-multiply", "--left"]);
    let again = answer(again.args([&product, &dir.path().join("one.csv")]));
    assert_eq!(String::from_utf8(again).expect("text"), expected.join("\n") + "\n");
    let complaint = complaint(gristmill(["matrix-multiply", "--left"]).args([&b, &a]), 1);
    assert!(complaint.starts_with("gristmill: 2 x 2 times 3 x 2 is no product"), "{complaint}");
}

/// The trace of a 5 x 2 product whose diagonal is 1 and 5 was printed as 30: the walk along it went on below the square.
#[test]
fn the_trace_of_a_product_ends_with_its_last_row_or_column() {
    let dir = files(&[("tall", b"1\n2\n3\n4\n5\n"), ("wide", b"1,2.5\n"), ("one", b"1\n"), ("flat", b"1,2,3,4,5\n")]);
    let trace = |left: &str, right: &str, way: &str| {
        let mut command = gristmill(["matrix-multiply", "--print", "summary", "--way", way, "--left"]);
        let text = answer(command.arg(dir.path().join(left)).arg(dir.path().join(right)));
        String::from_utf8(text).expect("text").lines().next().expect("three rows").to_owned()
    };
    for way in ["shared-output", "pairs"] {
        assert_eq!(trace("tall", "wide", way), "trace\t6");
        assert_eq!(trace("one", "flat", way), "trace\t1");
        assert_eq!(trace("tall", "flat", way), "trace\t55");
    }
}

/// A line that ended with two carriage returns lost both, so a palindrome of `\r` was not counted.
#[test]
fn one_carriage_return_ends_a_line_and_others_are_part_of_it() {
    let dir = files(&[("text", b"ab\r\r\nab\r\n"), ("keys", b"ab\r\r\nab\r\n")]);
    let (text, keys) = (dir.path().join("text"), dir.path().join("keys"));
    assert_eq!(rows(&["palindromes", "--print", "total"], &[&text]), ["total\t5"]);
    assert_eq!(rows(&["string-match", "--keys"], &[&keys, &text]), ["ab\\r\t1", "ab\t1"]);
}

#[test]
fn palindromes_are_counted_by_file() {
    let dir = files(&[("a", b"abba\r\naaa"), ("b", b"abc\n\nx\n"), ("empty", b"")]);
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name).to_str().expect("text").to_owned());
    for algorithm in ["tree", "brute"] {
        let options = ["palindromes", "--chunk-bytes", "3", "--split-bytes", "3", "--algorithm", algorithm];
        assert_eq!(rows(&options, &[dir.path()]), [format!("{a}\t12"), format!("{b}\t4")]);
        assert_eq!(rows(&[&options[..], &["--print", "total"]].concat(), &[dir.path()]), ["total\t16"]);
        assert_eq!(rows(&[&options[..], &["--top", "1"]].concat(), &[dir.path()]), [format!("{a}\t12")]);
    }
}

#[test]
fn bad_input_is_one_error_that_names_it() {
    let dir = files(&[
        ("gif", b"GIF89a"),
        ("short.bmp", &bmp(&[[0; 3]; 4])[..60]),
        ("odd", b"123"),
        ("ragged.csv", b"1,2\n3\n"),
        ("words.csv", b"1,2\n3,four\n"),
        ("cut.jsonl", b"{\"k\":\"a\",\"v\":1}\n{\"k\":\"a\""),
        ("one.csv", b"1,2\n"),
        ("empty", b""),
    ]);
    let cases: [(&[&str], &str, &str); 16] = [
        (&["histogram"], "gif", "no BMP, PNG or JPEG image: it begins with the bytes 47 49 46 38"),
        (&["histogram"], "short.bmp", "is truncated: 4 x 1 pixels end at byte 66, and the file at byte 60"),
        (&["linear-regression"], "odd", "has 3 bytes; byte pairs need an even number"),
        (
            &["linear-regression", "--x", "1", "--y", "2"],
            "words.csv",
            "line 2: column 2: \"four\" is not a finite number",
        ),
        (&["group-by"], "odd", "has 3 bytes; pairs of two 32-bit numbers need a multiple of 8"),
        (&["group-by", "--by", "1", "--sum", "2"], "words.csv", "line 2: column 2: \"four\" is not a finite number"),
        (&["group-by", "--by", "k", "--sum", "v"], "cut.jsonl", "line 2: this is no JSON object: EOF while parsing"),
        (&["group-by", "--by", "k", "--sum", "w"], "cut.jsonl", "line 1: there is no field \"w\""),
        (&["group-by", "--by", "v", "--sum", "k"], "cut.jsonl", "line 1: field \"k\": \"a\" is not a finite number"),
        (&["group-by", "--by", "1"], "empty", "the columns of an empty input are not known"),
        (&["linear-regression"], "empty", "a line needs two pairs or more, and there are 0"),
        (&["kmeans", "-k", "1"], "ragged.csv", "line 2: 1 columns, where line 1 has 2"),
        (&["kmeans", "-k", "2"], "one.csv", "2 centres were asked for; 1 points can have 1 to 1"),
        (&["kmeans", "-k", "1"], "empty", "there are no points"),
        (&["pca"], "one.csv", "covariances need two rows or more, and there are 1"),
        (&["string-match", "--keys", "/no/such/keys"], "odd", "/no/such/keys: cannot read the keys: No such file"),
    ];
    for (arguments, file, expected) in cases {
        let path: PathBuf = dir.path().join(file);
        let complaint = complaint(gristmill(arguments).arg(&path), 1);
        assert!(complaint.starts_with("gristmill: ") && complaint.contains(expected), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
fn a_command_that_makes_no_sense_is_refused() {
    let dir = files(&[("words", b"a b c")]);
    let refused = complaint(gristmill(["word-count", "--buffer", "dense"]).arg(dir.path().join("words")), 2);
    assert!(refused.contains("declares no domain of keys"), "{refused}");
    assert!(complaint(&mut gristmill(["kmeans", "-k", "0", "x"]), 2).contains("'0'"));
    assert!(complaint(&mut gristmill(["linear-regression", "--x", "1", "x"]), 2).contains("--y"));
}
