//! Tests the applications from the command line: their rows, and one clear error for each bad input. Tests in
//! gristmill-apps check that the answers are right.

mod command;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use command::{answer, complaint, gristmill};

/// Makes a directory with these files.
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
    assert_eq!(rows(&["linear-regression", "--input-format", "pairs"], &[&dir.path().join("pairs")]), expected);
    assert_eq!(rows(&["linear-regression", "--x", "t", "--y", "2"], &[&dir.path().join("rows.csv")]), expected);
}

#[test]
fn groups_have_their_sum_or_their_count() {
    let numbers: Vec<u8> = [7u32, 1, 5, 2, 7, u32::MAX].into_iter().flat_map(u32::to_le_bytes).collect();
    let table = b"day,fruit,kg\nmon,\"pear, green\",1.5\ntue,fig,2\nwed,fig,0.25\n";
    let dir = files(&[("pairs", &numbers), ("fruit.csv", table)]);
    let table = dir.path().join("fruit.csv");
    assert_eq!(rows(&["group-by", "--input-format", "pairs"], &[&dir.path().join("pairs")]), ["5\t2", "7\t4294967296"]);
    assert_eq!(rows(&["group-by", "--by", "fruit", "--sum", "3"], &[&table]), ["fig\t2.25", "pear, green\t1.5"]);
    assert_eq!(rows(&["group-by", "--header", "yes", "--by", "2", "--top", "1"], &[&table]), ["fig\t2"]);
}

#[test]
fn json_lines_are_recognised_by_name_or_by_an_option() {
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
fn centres_are_printed_with_size_and_coordinates() {
    let dir = files(&[("points.csv", b"0,0\n10,10\n0,1\n10,11\n")]);
    let points = dir.path().join("points.csv");
    assert_eq!(
        rows(&["kmeans", "--header", "no", "-k", "2", "--start", "first"], &[&points]),
        ["1\t2\t0\t0.5", "2\t2\t10\t10.5"]
    );
    let csv = rows(&["kmeans", "--header", "no", "-k", "1", "--format", "csv"], &[&points]);
    assert_eq!(csv, ["centre,points,x1,x2", "1,4,5,5.5"]);
}

#[test]
fn components_covariances_and_means_are_printed() {
    let dir = files(&[("data.csv", b"a,b\n0,0\n2,0\n4,0\n")]);
    let data = dir.path().join("data.csv");
    assert_eq!(rows(&["pca", "--header", "yes", "-c", "1"], &[&data]), ["1\t4\t1\t1\t0"]);
    assert_eq!(rows(&["pca", "--header", "yes", "--print", "covariances"], &[&data]), ["4\t0", "0\t0"]);
    assert_eq!(rows(&["pca", "--header", "yes", "--print", "means"], &[&data]), ["1\t2", "2\t0"]);
}

/// Two rows had a component of negative variance, and tiny numbers covariances of 0 without a word.
#[test]
fn variances_are_not_negative_and_not_lost_without_a_word() {
    let dir = files(&[("two.csv", b"0.1,0.7,1.3\n0.2,0.5,0.6\n"), ("tiny.csv", b"1e-200,2e-200\n3e-200,1e-200\n")]);
    let [two, tiny] = ["two.csv", "tiny.csv"].map(|name| dir.path().join(name));
    let found = rows(&["pca", "--quiet"], &[&two]);
    assert_eq!(found.len(), 3);
    for row in found {
        let variance = row.split('\t').nth(1).expect("a variance");
        assert!(!variance.starts_with('-'), "{row}");
    }
    for print in ["components", "covariances"] {
        let why = complaint(gristmill(["pca", "--quiet", "--print", print]).arg(&tiny), 1);
        assert!(why.contains("the variances of all columns are below the smallest number"), "{why}");
    }
    assert_eq!(rows(&["pca", "--quiet", "--print", "means"], &[&tiny]).len(), 2);
}

/// linear-regression took JSON lines for CSV, and complained of text behind a quote.
#[test]
fn json_lines_are_no_table_for_a_line() {
    let dir = files(&[("points", b"{\"x\": 1, \"y\": 2}\n{\"x\": 2, \"y\": 4}\n")]);
    for columns in [&["--x", "x", "--y", "y"][..], &[]] {
        let why = complaint(gristmill(["linear-regression"]).args(columns).arg(dir.path().join("points")), 2);
        assert!(why.contains("points has JSON lines") && why.contains("@csv"), "{why}");
    }
}

#[test]
fn states_are_counted_at_each_depth() {
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
        // Nothing may go to the disk.
        (&["--rows", "4", "--columns", "4", "--keep-bytes", "2MiB", "--keep-free", "1024TiB"], "did not fit"),
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
        rows(&[&["matrix-multiply", "-q", "--left", a], more].concat(), &[&b])
    };
    let expected = ["-1\t4.5", "-1\t9.5", "-1\t14.5"];
    assert_eq!(left(&[]), expected);
    assert_eq!(left(&["--way", "pairs"]), expected);
    assert_eq!(left(&["--print", "summary"]), ["trace\t8.5", "sum\t25.5", "corner\t14.5"]);
    assert_eq!(left(&["--power", "3"]), ["-14\t14.25", "-29\t31.75", "-44\t49.25"]);
    // The file written for numpy can be read again; times the identity it is unchanged.
    fs::write(dir.path().join("one.csv"), "1,0\n0,1\n").expect("written");
    let mut write = gristmill(["matrix-multiply", "-q", "--left"]);
    assert!(answer(write.args([&a, &b]).arg("--output").arg(&product)).is_empty());
    let mut again = gristmill(["matrix-multiply", "-q", "--left"]);
    let again = answer(again.args([&product, &dir.path().join("one.csv")]));
    assert_eq!(String::from_utf8(again).expect("text"), expected.join("\n") + "\n");
    let complaint = complaint(gristmill(["matrix-multiply", "-q", "--left"]).args([&b, &a]), 1);
    assert!(complaint.starts_with("gristmill: 2 x 2 times 3 x 2 is no product"), "{complaint}");
}

/// The trace of a 5 x 2 product with 1 and 5 on its diagonal was once printed as 30: the walk continued below the
/// square.
#[test]
fn the_trace_of_a_product_ends_with_its_last_row_or_column() {
    let dir = files(&[("tall", b"1\n2\n3\n4\n5\n"), ("wide", b"1,2.5\n"), ("one", b"1\n"), ("flat", b"1,2,3,4,5\n")]);
    let trace = |left: &str, right: &str, way: &str| {
        let mut command = gristmill(["matrix-multiply", "-q", "--print", "summary", "--way", way, "--left"]);
        let text = answer(command.arg(dir.path().join(left)).arg(dir.path().join(right)));
        String::from_utf8(text).expect("text").lines().next().expect("three rows").to_owned()
    };
    for way in ["shared-output", "pairs"] {
        assert_eq!(trace("tall", "wide", way), "trace\t6");
        assert_eq!(trace("one", "flat", way), "trace\t1");
        assert_eq!(trace("tall", "flat", way), "trace\t55");
    }
}

/// A line that ended in two carriage returns once lost both, so a palindrome of `\r` was not counted.
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
    for algorithm in ["auto", "brute", "manacher", "tree"] {
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
        (&["linear-regression", "--input-format", "pairs"], "odd", "has 3 bytes; byte pairs need an even number"),
        (
            &["linear-regression", "--x", "1", "--y", "2"],
            "words.csv",
            "line 2: column 2: \"four\" is not a finite number",
        ),
        (
            &["group-by", "--input-format", "pairs"],
            "odd",
            "has 3 bytes; pairs of two 32-bit numbers need a multiple of 8",
        ),
        (&["group-by", "--by", "1", "--sum", "2"], "words.csv", "line 2: column 2: \"four\" is not a finite number"),
        (&["group-by", "--by", "k", "--sum", "v"], "cut.jsonl", "line 2: this is no JSON object: EOF while parsing"),
        (&["group-by", "--by", "k", "--sum", "w"], "cut.jsonl", "line 1: there is no field \"w\""),
        (&["group-by", "--by", "v", "--sum", "k"], "cut.jsonl", "line 1: field \"k\": \"a\" is not a finite number"),
        (&["group-by", "--by", "1"], "empty", "the columns of an empty input are not known"),
        (&["linear-regression"], "empty", "a line needs two pairs or more, and there are 0"),
        (&["kmeans", "-k", "1"], "ragged.csv", "line 2: this row has 1 field, and the first line has 2"),
        (&["kmeans", "-k", "2"], "one.csv", "2 centres were asked for; 1 points can have 1 to 1"),
        (&["kmeans", "-k", "1"], "empty", "there are no points"),
        (&["pca"], "one.csv", "covariances need two rows or more, and there are 1"),
        (&["string-match", "--keys", "/no/such/keys"], "odd", "/no/such/keys: cannot read the keys: No such file"),
    ];
    for (arguments, file, expected) in cases {
        let path: PathBuf = dir.path().join(file);
        let complaint = complaint(gristmill(arguments).arg("-q").arg(&path), 1);
        assert!(complaint.starts_with("gristmill: ") && complaint.contains(expected), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

#[test]
fn a_command_that_makes_no_sense_is_refused() {
    let dir = files(&[("words", b"a b c")]);
    let refused = complaint(gristmill(["word-count", "--buffer", "dense"]).arg(dir.path().join("words")), 2);
    assert!(refused.contains("declares no domain of keys"), "{refused}");
    let refused =
        complaint(gristmill(["word-count", "--buffer", "array", "--combine", "map"]).arg(dir.path().join("words")), 2);
    assert!(refused.contains("use --buffer hash, or combine them in reduce (--combine)"), "{refused}");
    assert!(complaint(&mut gristmill(["kmeans", "-k", "0", "x"]), 2).contains("'0'"));
    assert!(complaint(&mut gristmill(["linear-regression", "--x", "1", "x"]), 2).contains("--y"));
}

/// Returns standard output and standard error of a run that succeeds.
fn told(arguments: &[&str], paths: &[&Path]) -> (String, String) {
    let output = gristmill(arguments).args(paths).args(["--workers", "2"]).output().expect("it starts");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    (stdout, stderr)
}

/// `printf 'apple,red\npear,green\napple,red\n' | gristmill group-by --by 1` once lost the first row, and
/// `country,2019` was summed.
#[test]
fn no_row_is_lost_to_a_guessed_header_and_every_guess_is_reported() {
    let dir = files(&[
        ("fruit.csv", b"apple,red\npear,green\napple,red\n"),
        ("years.csv", b"country,2019\nfr,5\nde,7\nfr,1\n"),
        ("named.csv", b"country,people\nfr,5\nde,7\n"),
        ("points.csv", b"1,2\n3,4\n"),
    ]);
    let [fruit, years, named, points] =
        ["fruit.csv", "years.csv", "named.csv", "points.csv"].map(|name| dir.path().join(name));
    let (rows, note) = told(&["group-by", "--by", "1"], &[&fruit]);
    assert_eq!(rows, "apple\t2\npear\t1\n");
    assert!(
        note.contains("the first line (apple,red) was read as data; if that is wrong, set --header to yes"),
        "{note}"
    );
    assert_eq!(
        told(&["group-by", "--by", "1", "--header", "yes"], &[&fruit]),
        ("apple\t1\npear\t1\n".into(), "".into())
    );
    let (rows, note) = told(&["group-by", "--by", "1"], &[&named]);
    assert_eq!(rows, "de\t1\nfr\t1\n");
    assert!(note.contains("(country,people) was read as column names; if that is wrong, set --header to no"), "{note}");
    // A header that is a number can be selected.
    let expected = ("de\t7\nfr\t6\n".to_owned(), String::new());
    for (by, sum, header) in [
        ("country", "2019", "auto"),
        ("country", "name:2019", "auto"),
        ("1", "2019", "yes"),
        ("1", "2", "yes"),
        ("1", "2019", "auto"),
    ] {
        assert_eq!(
            told(&["group-by", "--by", by, "--sum", sum, "--header", header], &[&years]),
            expected,
            "{by} {sum}"
        );
    }
    let (_, note) = told(&["kmeans", "-k", "1"], &[&points]);
    assert!(note.contains("(1,2) was read as data"), "{note}");
    assert_eq!(told(&["kmeans", "-k", "1", "--header", "yes"], &[&points]).0, "1\t1\t3\t4\n");
    assert_eq!(
        told(&["pca", "-q", "--print", "means", "--header", "no"], &[&points]),
        ("1\t2\n2\t3\n".into(), "".into())
    );
    let refused = complaint(gristmill(["group-by", "--by", "country", "--header", "no"]).arg(&named), 1);
    assert!(refused.contains("\"country\" is asked for by its name"), "{refused}");
}

/// Files with a different order of columns were once refused or, if columns were given by number, summed by the wrong
/// one.
#[test]
fn a_column_is_found_by_its_name_in_every_file() {
    let long = format!("\u{feff}{},k,v\r\n,b,4\r\n", "x".repeat(300_000));
    let gz = command_line_gzip(b"v,k\n8,a\n");
    let dir = files(&[
        ("a.csv", b"k,v\na,1\nb,2\n"),
        ("b.csv", b"\n\nv,extra,k\n10,,a\n"),
        ("c.csv", long.as_bytes()),
        ("d.csv.gz", &gz),
        ("e.csv", b"k,w\na,1\n"),
        ("f.tsv", b"v\tk\n1\ta,b\n"),
        ("g.csv", b"v;k\n1;'a;b'\n"),
        ("p.csv", b"y,x\n1,2\n"),
        ("q.csv", b"x,y\n4,3\n"),
    ]);
    let path = |name: &str| dir.path().join(name);
    let by_name = ["group-by", "--by", "k", "--sum", "v", "--chunk-bytes", "4KiB"];
    let paths = ["a.csv", "b.csv", "c.csv", "d.csv.gz"].map(path);
    assert_eq!(told(&by_name, &paths.each_ref().map(PathBuf::as_path)), ("a\t19\nb\t6\n".into(), "".into()));
    let lacks = complaint(gristmill(by_name).args([path("a.csv"), path("e.csv")]), 1);
    assert!(lacks.contains("e.csv: there is no column \"v\"; the first line says k,w"), "{lacks}");
    let doubt = complaint(
        gristmill(["group-by", "--by", "1", "--sum", "2", "--header", "yes"]).args([path("a.csv"), path("e.csv")]),
        1,
    );
    assert!(doubt.contains("column 2 is called \"w\" here and \"v\" in"), "{doubt}");
    assert_eq!(told(&by_name, &[&path("f.tsv")]).0, "a,b\t1\n");
    let other = [&by_name[..], &["--delimiter", ";", "--quote", "'"]].concat();
    assert_eq!(told(&other, &[&path("g.csv")]).0, "a;b\t1\n");
    let plain = [&by_name[..], &["--delimiter", ";", "--quote", "none", "--header", "yes"]].concat();
    let unquoted = complaint(gristmill(plain).arg(path("g.csv")), 1);
    assert!(unquoted.contains("g.csv line 2: this row has 3 fields, and the first line has 2"), "{unquoted}");
    // The same for points: the columns are those of the first file.
    let (rows, _) = told(&["pca", "--print", "means"], &[&path("p.csv"), &path("q.csv")]);
    assert_eq!(rows, "1\t2\n2\t3\n");
}

/// Returns `content` as a gzip file of one stored block.
fn command_line_gzip(content: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    let bytes = content.len() as u16;
    file.extend(bytes.to_le_bytes());
    file.extend((!bytes).to_le_bytes());
    file.extend(content);
    file.extend(crc32fast::hash(content).to_le_bytes());
    file.extend(u32::from(bytes).to_le_bytes());
    file
}

/// 9007199254740993 once became ...992, and 1e308 + 1e308 `inf`, or `null` in JSON lines.
#[test]
fn sums_of_whole_numbers_are_exact_and_those_that_overflow_name_their_key() {
    let most = i128::MAX;
    let csv = format!("k,v\na,9007199254740993\nb,{most}\nc,0.1\nc,0.2\nc,3\n");
    let json = "{\"k\":\"a\",\"v\":9007199254740992}\n{\"k\":\"a\",\"v\":\"1\"}\n{\"k\":\"b\",\"v\":-1e-1}\n";
    let dir = files(&[
        ("a.csv", csv.as_bytes()),
        ("a.jsonl", json.as_bytes()),
        ("whole.csv", format!("k,v\nx,1\ny,{most}\ny,1\n").as_bytes()),
        ("large.csv", b"k,v\nx,1\ny,1e308\ny,1e308\n"),
        ("whole_back.csv", format!("k,v\nx,{most}\nx,1\nx,-2\n").as_bytes()),
        ("back.csv", format!("k,v\ny,1e308\ny,1e308\ny,-1e308\nx,{most}\nx,1\nx,-2\n").as_bytes()),
    ]);
    let by = ["group-by", "--by", "k", "--sum", "v"];
    let sums = |more: &[&str], name: &str| told(&[&by[..], more].concat(), &[&dir.path().join(name)]).0;
    assert_eq!(sums(&[], "a.csv"), format!("a\t9007199254740993\nb\t{most}\nc\t3.3\n"));
    assert_eq!(sums(&["--top", "1"], "a.csv"), format!("b\t{most}\n"));
    let lines = "{\"key\":\"a\",\"sum\":9007199254740993}\n{\"key\":\"b\",\"sum\":-0.1}\n";
    assert_eq!(sums(&["--format", "jsonl"], "a.jsonl"), lines);
    assert_eq!(sums(&[], "whole_back.csv"), format!("x\t{}\n", most - 1));
    let back = format!("x\t{}\ny\t1{}\n", most - 1, "0".repeat(308));
    assert_eq!(sums(&["--deterministic"], "back.csv"), back);
    let [whole, large] = ["is beyond 128 bits", "is beyond the largest floating-point number"];
    for (more, name, expected) in [
        (None, "whole.csv", whole),
        (None, "large.csv", large),
        (Some("--deterministic"), "whole.csv", whole),
        (Some("--deterministic"), "large.csv", large),
    ] {
        let output = dir.path().join("r.csv");
        let refused = complaint(gristmill(by).args(more).arg(dir.path().join(name)).arg("-o").arg(&output), 1);
        assert!(refused.starts_with("gristmill: key \"y\": the sum") && refused.contains(expected), "{refused}");
        assert!(!output.exists(), "{name}");
    }
}

/// `group-by x.csv` once silently read pairs of 32-bit numbers from text, and `linear-regression x.csv` pairs of
/// bytes.
#[test]
fn text_is_not_taken_for_pairs_of_numbers_nor_pairs_for_text() {
    let numbers: Vec<u8> = [7u32, 1, 5, 2].into_iter().flat_map(u32::to_le_bytes).collect();
    let dir = files(&[
        ("x.csv", b"k,v\na,1\n"),
        ("lines.log", b"{\"k\":\"a\"}\n"),
        ("text", b"abcdefgh"),
        ("array.json", b"[{\"k\":1}]"),
        ("array", b"\n[\n  {\"k\":1}]"),
        ("brackets", b"[a],1\n[b],2\n"),
        ("pairs.bin", &numbers),
    ]);
    let path = |name: &str| dir.path().join(name);
    let cases: [(&[&str], &str, i32, &str); 9] = [
        (&["group-by"], "x.csv", 2, "x.csv is text: select the key with --by"),
        (&["group-by"], "text", 2, "--input-format pairs"),
        (&["group-by", "--by", "1"], "pairs.bin", 2, ", and --by selects a column"),
        (&["group-by", "--by", "1", "--input-format", "pairs"], "pairs.bin", 2, "leave out --by"),
        (&["group-by", "--by", "k"], "array.json", 1, "array.json: is one array of JSON"),
        // The error was about a quote, as if it were CSV.
        (&["group-by", "--by", "k"], "array", 1, "array: is one array of JSON"),
        (&["linear-regression"], "x.csv", 2, "x.csv is text: select its columns with --x and --y"),
        (&["linear-regression", "--x", "1", "--y", "2"], "pairs.bin", 2, "pairs.bin is not text"),
        (&["kmeans", "-k", "1"], "pairs.bin", 1, "pairs.bin: is neither a .npy file nor text"),
    ];
    for (arguments, name, status, expected) in cases {
        let refused = complaint(gristmill(arguments).arg(path(name)), status);
        assert!(refused.contains(expected), "{arguments:?} {name}: {refused}");
    }
    let (rows, note) = told(&["group-by"], &[&path("pairs.bin")]);
    assert_eq!(rows, "5\t2\n7\t1\n");
    assert!(note.contains("pairs.bin was read as pairs of 32-bit numbers; if it is a table,"), "{note}");
    let (_, note) = told(&["linear-regression"], &[&path("pairs.bin")]);
    assert!(note.contains("was read as pairs of bytes"), "{note}");
    let (rows, _) = told(&["group-by", "--by", "1", "--sum", "2"], &[&path("brackets")]);
    assert_eq!(rows, "[a]\t1\n[b]\t2\n");
    let (rows, note) = told(&["group-by", "--by", "k"], &[&path("lines.log")]);
    assert!(rows == "a\t1\n" && note.contains("was read as JSON lines"), "{rows} {note}");
}

/// One empty field or null once ended the whole sum; SQL leaves it out.
#[test]
fn empty_numbers_are_left_out_of_sums_counted_and_refused_when_strict() {
    let dir = files(&[
        ("a.csv", b"fruit,kg\nfig,1\nfig,\npear,\npear, \nkiwi,2\nfig,3\n"),
        ("a.jsonl", b"{\"fruit\":\"fig\",\"kg\":1}\n{\"fruit\":\"pear\",\"kg\":null}\n"),
        ("xy.csv", b"x,y\n,9\n0,1\n1,3\n7,\n2,5\n"),
    ]);
    let path = |name: &str| dir.path().join(name);
    let by = ["group-by", "--by", "fruit", "--sum", "kg"];
    let note = "gristmill: 3 rows without a number in kg were left out\n";
    for (more, expected) in [
        (&[][..], "fig\t4\nkiwi\t2\npear\t\n"),
        (&["--format", "csv"], "key,sum\nfig,4\nkiwi,2\npear,\n"),
        (
            &["--format", "jsonl", "--sort", "count"],
            "{\"key\":\"fig\",\"sum\":4}\n{\"key\":\"kiwi\",\"sum\":2}\n{\"key\":\"pear\",\"sum\":null}\n",
        ),
        (&["--top", "1"], "fig\t4\n"),
        (&["--top", "2", "--sort", "key"], "fig\t4\nkiwi\t2\n"),
        (&["--top", "9"], "fig\t4\nkiwi\t2\npear\t\n"),
        (&["--combine", "off"], "fig\t4\nkiwi\t2\npear\t\n"),
    ] {
        let found = told(&[&by[..], more].concat(), &[&path("a.csv")]);
        assert_eq!(found, (expected.to_owned(), note.to_owned()), "{more:?}");
    }
    let found = told(&by, &[&path("a.jsonl")]);
    let note = "gristmill: 1 row without a number in kg was left out\n";
    assert_eq!(found, ("fig\t1\npear\t\n".to_owned(), note.to_owned()));
    let (rows, note) = told(&["linear-regression", "--x", "x", "--y", "y"], &[&path("xy.csv")]);
    assert_eq!(rows, "n\t3\nslope\t2\nintercept\t1\nr\t1\n");
    assert!(note.contains("2 rows without a number in x or y were left out"), "{note}");
    let strict = [&by[..], &["--strict"]].concat();
    for (arguments, name, expected) in [
        (&strict[..], "a.csv", "a.csv line 3: column 2: \"\" is not a finite number"),
        (&strict, "a.jsonl", "a.jsonl line 2: field \"kg\" is null, and should be a number"),
        (
            &["linear-regression", "--x", "x", "--y", "y", "--strict"],
            "xy.csv",
            "line 2: column 1: \"\" is not a finite number",
        ),
    ] {
        let refused = complaint(gristmill(arguments).arg(path(name)), 1);
        assert!(refused.contains(expected), "{refused}");
    }
}

/// Sums of fractions once differed in their last digits between runs and numbers of workers, even with
/// --deterministic.
#[test]
fn whole_sums_are_always_the_same_bytes_and_sums_of_fractions_if_deterministic() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let rows: String = (0..30_000)
        .map(|_| {
            let [key, place] = [random() % 3000, random() % 12];
            format!("k{key},{}\n", (random() as f64 - 1e9) / 10f64.powi(place as i32) / 3.0)
        })
        .collect();
    let points: String = (0..9000).map(|_| format!("{},{}\n", random() as f64 / 3.0, random() as f64 / 7.0)).collect();
    let whole: String = (0..5000)
        .map(|_| format!("k{},{}\n", random() % 500, (i128::from(random()) * i128::from(random())) << 60))
        .collect();
    let checkpoint = tempfile::tempdir().expect("a directory");
    let dir =
        files(&[("rows.csv", rows.as_bytes()), ("points.csv", points.as_bytes()), ("whole.csv", whole.as_bytes())]);
    let keep = checkpoint.path().join("kept");
    let ways: [&[&str]; 9] = [
        &["--workers", "1", "--split-bytes", "1GiB"],
        &["--workers", "3", "--split-bytes", "7001"],
        &["--workers", "2", "--split-bytes", "20000", "--buffer", "array"],
        &["--workers", "2", "--split-bytes", "9000", "--combine", "off"],
        &["--workers", "4", "--split-bytes", "3000", "--combine", "reduce", "--exchange", "barrier"],
        &["--map-workers", "2", "--reduce-workers", "1", "--chunk-bytes", "4KiB"],
        &["--workers", "2", "--deterministic", "--split-bytes", "5000"],
        &["--isolation", "thread", "--workers", "3"],
        &["--workers", "2", "--checkpoint", keep.to_str().expect("text"), "--split-bytes", "30000"],
    ];
    let programs: [(&[&str], &str); 5] = [
        (&["group-by", "--header", "no", "--by", "1", "--sum", "2", "--deterministic"], "rows.csv"),
        (&["linear-regression", "--header", "no", "--x", "1", "--y", "2", "--deterministic"], "points.csv"),
        (&["group-by", "--header", "no", "--by", "1", "--sum", "2"], "whole.csv"),
        (&["kmeans", "--header", "no", "-k", "5", "--iterations", "4", "-q"], "points.csv"),
        (&["pca", "--header", "no", "-q"], "points.csv"),
    ];
    for (program, name) in programs {
        let path = dir.path().join(name);
        let mut first = None;
        for way in ways {
            let is_new = |option: &&&str| **option != "--deterministic" || !program.contains(*option);
            let way: Vec<_> = way.iter().filter(is_new).collect();
            // Work that a program does before the job begins has no checkpoint.
            if ["kmeans", "pca"].contains(&program[0]) && way.contains(&&"--checkpoint") {
                continue;
            }
            let found = answer(gristmill(program).args(&way).arg(&path));
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "{program:?} {way:?}");
        }
    }
}

/// A product or covariance that overflowed was printed as `inf` or `NaN`, with status 0.
#[test]
fn results_that_overflow_are_one_error_that_says_which() {
    let dir = files(&[
        ("large.csv", b"1e200,1\n1,1\n"),
        ("spread.csv", b"1e200,2\n1e200,3\n-1e200,9\n"),
        ("sums.csv", b"1e308,1e308\n1e308,1e308\n"),
        ("one.csv", b"1,0\n0,1\n"),
    ]);
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let [large, spread, sums, one] = ["large.csv", "spread.csv", "sums.csv", "one.csv"].map(path);
    let beyond = "is beyond the largest floating-point number, about 1.8e308";
    for (arguments, expected) in [
        (&["matrix-multiply", "--left", &large, &large][..], "row 1, column 1 of the product: it, or a number on"),
        (&["matrix-multiply", "--left", &large, "--way", "pairs", &large], "row 1, column 1 of the product: "),
        (&["matrix-multiply", "--left", &large, "--power", "3", &large], "row 1, column 1 of the product: "),
        (&["matrix-multiply", "--left", &large, "--print", "summary", &large], "row 1, column 1 of the product: "),
        (&["matrix-multiply", "--left", &sums, "--print", "summary", &one], "the trace of the product: "),
        (&["pca", &spread], "the covariance of columns 1 and 1: it, or a number on"),
        (&["pca", "--print", "covariances", &spread], "the covariance of columns 1 and 1: "),
        (&["kmeans", "-k", "2", &spread], "a sum of coordinates or of squared distances: "),
    ] {
        let complaint = complaint(gristmill(arguments).arg("-q"), 1);
        assert!(complaint.starts_with(&format!("gristmill: {expected}")) && complaint.contains(beyond), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

/// For 1e-200 and 2e-200 the error said that x is the same in all pairs; and nothing said why r is NaN if y is.
#[test]
fn a_line_through_tiny_numbers_is_found_and_an_undefined_r_is_explained() {
    let dir = files(&[("tiny.csv", b"x,y\n1e-200,1\n2e-200,3\n"), ("flat.csv", b"x,y\n1,5\n2,5\n")]);
    let [tiny, flat] = ["tiny.csv", "flat.csv"].map(|name| dir.path().join(name));
    let (rows, note) = told(&["linear-regression", "--x", "x", "--y", "y"], &[&tiny]);
    let value = |name: &str| {
        let row = rows.lines().find_map(|row| row.strip_prefix(name)).expect("a row");
        row.trim().parse::<f64>().expect("a number")
    };
    assert_eq!((value("slope"), value("intercept"), value("r"), &note[..]), (2e200, -1.0, 1.0, ""));
    let (rows, note) = told(&["linear-regression", "--x", "x", "--y", "y"], &[&flat]);
    assert!(rows.ends_with("r\tNaN\n") && note == "gristmill: r is not defined: every y is the same\n", "{rows}{note}");
}

/// Figures beside two passes over the numbers of each key; many rows have none, and one key has no number at all.
#[test]
fn figures_of_each_key_are_those_of_two_passes() {
    let number = |row: u64| (row % 3 != 1).then(|| (row * row % 1013) as f64 / 8.0 - 50.0);
    let rows: Vec<(String, Option<f64>)> = (0..20_000).map(|row| (format!("k{}", row % 7), number(row))).collect();
    let rows: Vec<_> = rows.into_iter().chain([("none".to_owned(), None), ("one".to_owned(), Some(2.5))]).collect();
    let text = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    let csv: String = rows.iter().map(|(key, number)| format!("{key},{}\n", text(*number))).collect();
    let json = |number: Option<f64>| number.map_or("null".to_owned(), |number| number.to_string());
    let lines: String =
        rows.iter().map(|(key, number)| format!("{{\"k\":\"{key}\",\"v\":{}}}\n", json(*number))).collect();
    let dir = files(&[("rows.csv", format!("k,v\n{csv}").as_bytes()), ("rows.jsonl", lines.as_bytes())]);
    let left_out = rows.iter().filter(|(_, number)| number.is_none()).count();
    let mut numbers: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    rows.iter().for_each(|(key, number)| numbers.entry(key).or_default().extend(*number));
    for name in ["rows.csv", "rows.jsonl"] {
        let arguments = ["group-by", "--by", "k", "--describe", "v", "--split-bytes", "9KiB"];
        let (found, note) = told(&arguments, &[&dir.path().join(name)]);
        assert_eq!(note, format!("gristmill: {left_out} rows without a number in v were left out\n"));
        assert_eq!(found.lines().count(), numbers.len());
        for (row, (key, all)) in found.lines().zip(&numbers) {
            let fields: Vec<&str> = row.split('\t').collect();
            assert_eq!(fields[..2], [*key, &all.len().to_string()[..]]);
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let squares = all.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
            let figures = [
                (count > 0.0).then_some(mean),
                (count > 1.0).then(|| (squares / (count - 1.0)).sqrt()),
                all.iter().copied().reduce(f64::min),
                all.iter().copied().reduce(f64::max),
            ];
            for (field, figure) in fields[2..].iter().zip(figures) {
                match figure {
                    None => assert_eq!(*field, "", "{row}"),
                    Some(figure) => {
                        assert!((field.parse::<f64>().unwrap() - figure).abs() < 1e-9, "{row}, not {figure}")
                    }
                }
            }
        }
    }
    // The keys with the most numbers; of equal counts, the first.
    let (most, _) = told(&["group-by", "--by", "k", "--describe", "v", "--top", "2"], &[&dir.path().join("rows.csv")]);
    let mut counts: Vec<(usize, &str)> = numbers.iter().map(|(key, all)| (all.len(), *key)).collect();
    counts.sort_by_key(|(count, key)| (std::cmp::Reverse(*count), *key));
    let keys: Vec<&str> = most.lines().map(|row| row.split('\t').next().unwrap()).collect();
    assert_eq!(keys, [counts[0].1, counts[1].1]);
    let strict = complaint(
        gristmill(["group-by", "--by", "k", "--describe", "v", "--strict"]).arg(dir.path().join("rows.csv")),
        1,
    );
    assert!(strict.contains("column 2: \"\" is not a finite number"), "{strict}");
    let ordered = complaint(gristmill(["group-by", "--by", "k", "--describe", "v", "--deterministic"]).arg("x"), 2);
    assert!(ordered.contains("leave it out, or ask for the --sum"), "{ordered}");
}

/// Tiny numbers vanished beside those of a bad first row: "every y is the same", and the intercept was 0.
#[test]
fn a_bad_first_row_takes_no_part_in_a_line() {
    let rows = "1,1e-200\n2,3e-200\n4,7e-200\n";
    let [words, width] = ["x,1", "1,5e9,7"].map(|bad| format!("x,y\n{bad}\n{rows}"));
    let dir = files(&[("words.csv", words.as_bytes()), ("width.csv", width.as_bytes())]);
    for name in ["words.csv", "width.csv"] {
        let list = dir.path().join(format!("{name}.bad"));
        let list = list.to_str().expect("UTF-8");
        let arguments = ["linear-regression", "--x", "x", "--y", "y", "--skip-bad-records", "1", "--bad-records", list];
        let (line, _) = told(&arguments, &[&dir.path().join(name)]);
        let found: Vec<f64> = line.lines().map(|row| row.split('\t').nth(1).unwrap().parse().unwrap()).collect();
        let is_near = |(found, wanted): (&f64, f64)| (found / wanted - 1.0).abs() < 1e-12;
        assert!(found.iter().zip([3.0, 2e-200, -1e-200, 1.0]).all(is_near), "{line}");
    }
}

/// K-means said that centres still moved, but not by how much; and nothing of a centre that no point is near to.
#[test]
fn k_means_says_when_centres_still_move_or_have_no_points() {
    let dir = files(&[("same.csv", b"a\n3\n3\n3\n"), ("far.csv", b"a\n0\n1\n2\n10\n")]);
    let [same, far] = ["same.csv", "far.csv"].map(|name| dir.path().join(name));
    let run = |more: &[&str], path: &Path| {
        told(&[&["kmeans", "--header", "yes", "--start", "first"], more].concat(), &[path])
    };
    let (rows, note) = run(&["-k", "3"], &same);
    assert_eq!(rows, "1\t3\t3\n2\t0\t3\n3\t0\t3\n");
    let expected = "centres 2, 3 have no points and stayed where they were: take fewer centres (-k), or another start (--seed, --start)";
    assert_eq!(note, format!("gristmill: {expected}\n"));
    let (_, note) = run(&["-k", "2"], &same);
    assert!(note.starts_with("gristmill: centre 2 has no points and stayed where it was: "), "{note}");
    // The first step moves the second centre from 1 to 13/3.
    let (rows, note) = run(&["-k", "2", "--iterations", "1"], &far);
    assert!(rows.starts_with("1\t1\t0\n2\t3\t4.33"), "{rows}");
    assert!(note.starts_with("gristmill: the centres still moved in the only step, by up to 3.33"), "{note}");
    assert!(note.ends_with(" along one dimension; more steps may help: --iterations\n"), "{note}");
    let (_, note) = run(&["-k", "2", "--iterations", "2"], &far);
    assert!(note.starts_with("gristmill: the centres still moved in the last of 2 steps, by up to "), "{note}");
    assert_eq!(run(&["-k", "2"], &far).1, "");
    assert_eq!(run(&["-k", "2", "--iterations", "1", "-q"], &far).1, "");
}

/// The rows of a .npy file were counted from 0, where those of a CSV file are from 1.
#[test]
fn the_first_number_of_an_array_is_in_row_1_and_column_1() {
    let array = |numbers: [f64; 4]| {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        gristmill_apps::npy_header(2, 2).into_iter().chain(bytes).collect::<Vec<u8>>()
    };
    let dir = files(&[
        ("first.npy", &array([f64::NAN, 1.0, 2.0, 3.0])),
        ("last.npy", &array([0.0, 1.0, 2.0, f64::INFINITY])),
        ("last.csv", b"0,1\n2,inf\n"),
    ]);
    for (name, expected) in [
        ("first.npy", "row 1, column 1: NaN is not a finite number"),
        ("last.npy", "row 2, column 2: inf is not a finite number"),
        ("last.csv", "line 2, column 2: \"inf\" is not a finite number"),
    ] {
        let complaint = complaint(gristmill(["pca", "-q"]).arg(dir.path().join(name)), 1);
        assert!(complaint.contains(expected), "{complaint}");
    }
}

/// `--combine-after 5`, which changes nothing where values are combined as they arrive, was taken without a word; so
/// was `--placement pinned` where there is one node.
#[test]
fn an_option_that_a_job_cannot_follow_is_named_once() {
    let dir = files(&[("words", b"a b a")]);
    let words = dir.path().join("words");
    let said = |more: &[&str]| told(&[&["word-count"], more].concat(), &[&words]);
    let (rows, note) = said(&["--combine-after", "5"]);
    assert_eq!(rows, "a\t2\nb\t1\n");
    assert_eq!(note, "gristmill: --combine-after is ignored: values are combined in reduce as they arrive\n");
    let (_, note) = said(&["--map-at-once", "9"]);
    assert_eq!(note, "gristmill: --map-at-once is ignored: 2 workers map in all\n");
    assert_eq!(said(&["--map-at-once", "9", "-q"]).1, "");
    let (_, plan) = said(&["--map-at-once", "9", "--explain"]);
    assert!(plan.ends_with("plan: map-at-once: ignored (2 workers map in all)\n"), "{plan}");
    assert_eq!(plan.matches("map-at-once").count(), 1, "{plan}");
    let (_, note) = told(&["sort", "--combine", "map"], &[&words]);
    assert_eq!(note, "gristmill: --combine is ignored: this job combines no values\n");
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    if nodes.filter(|entry| entry.file_name().to_string_lossy().starts_with("node")).count() < 2 {
        assert_eq!(
            said(&["--placement", "pinned"]).1,
            "gristmill: --placement is ignored: this machine has one node\n"
        );
    }
}

/// A job with too little memory said that "at most 256 bytes may be taken", and one under `ulimit -v` only "Cannot
/// allocate memory".
#[test]
fn too_little_memory_is_an_error_that_says_how_much_is_enough() {
    let dir = files(&[("words", b"a b a")]);
    let words = dir.path().join("words");
    for (memory, expected) in [
        ("1KiB", "raise --memory to 6 MiB or more"),
        ("0", "raise --memory to 6 MiB or more"),
        ("3MiB", "needs at least 6 MiB: "),
    ] {
        let refused = complaint(gristmill(["word-count", "--workers", "1", "--memory", memory]).arg(&words), 2);
        assert!(refused.contains(expected), "{refused}");
    }
    let enough =
        gristmill(["word-count", "--workers", "1", "--memory", "6MiB"]).arg(&words).output().expect("it starts");
    assert_eq!(enough.stdout, b"a\t2\nb\t1\n");
    let limited = |limit_kib: usize, memory: &str| {
        let program = env!("CARGO_BIN_EXE_gristmill");
        let line = format!("ulimit -v {limit_kib}; exec {program} word-count --workers 1 {memory} {}", words.display());
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &line]);
        command
    };
    let refused = complaint(&mut limited(500_000, "--memory 1GiB"), 1);
    assert!(refused.starts_with("gristmill: the memory that the workers share takes "), "{refused}");
    let advice = "of addresses, and ulimit -v allows this process 488.3 MiB in all: raise that limit, lower --memory, for \
                  example to 61 MiB, or take fewer workers\n";
    assert!(refused.ends_with(advice), "{refused}");
    // The advice helps, and a job that may choose needs none.
    assert_eq!(answer(&mut limited(500_000, "--no-sample")), b"a\t2\nb\t1\n");
    assert_eq!(answer(&mut limited(500_000, "--memory 61MiB")), b"a\t2\nb\t1\n");
}

/// --header did nothing for .npy files, --chunk-bytes 0 nothing at all, --skip-bad-records did nothing for the rows of
/// a matrix, --seed nothing with --start first, and --delimiter nothing for JSON lines.
#[test]
fn an_option_without_meaning_is_refused_or_named() {
    let dir =
        files(&[("points.csv", b"1,2\n3\n"), ("rows.jsonl", b"{\"k\":1}\n"), ("pairs", &[0; 8]), ("text", b"abba\n")]);
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let [points, rows, pairs, text, npy] = ["points.csv", "rows.jsonl", "pairs", "text", "x.npy"].map(path);
    fs::write(&npy, gristmill_apps::npy_header(0, 2)).expect("written");
    let refused: [(&[&str], &str); 18] = [
        (
            &["kmeans", "-k", "1", "--skip-bad-records", "1", &points],
            "--skip-bad-records has no meaning here: a matrix",
        ),
        (
            &["pca", "--skip-bad-records", "1", &points],
            "--skip-bad-records has no meaning here: a matrix is read as a whole",
        ),
        (
            &["matrix-multiply", "--left", &points, "--record-bytes-max", "1MiB", &points],
            "--record-bytes-max has no meaning",
        ),
        (
            &["tile-search", "--skip-bad-records", "1"],
            "--skip-bad-records has no meaning here: this subcommand reads no",
        ),
        (&["tile-search", "--bad-records", &points], "--bad-records has no meaning here: this subcommand reads no"),
        (&["kmeans", "-k", "1", "--start", "first", "--seed", "2", &points], "--seed has no meaning here"),
        (&["pca", "--print", "means", "-c", "2", &points], "--components has no meaning here"),
        (&["group-by", "--by", "k", "--delimiter", ";", &rows], "--delimiter is for CSV, and the input is JSON lines"),
        (&["group-by", "--quote", "none", &pairs], "--quote is for CSV, and the input is pairs of numbers"),
        (&["linear-regression", "--header", "no", &pairs], "--header is for CSV, and the input is pairs of bytes"),
        (&["palindromes", "--print", "total", "--top", "3", &text], "--top or --sort has no meaning here"),
        (&["pca", "--header", "no", &npy], "--header is for CSV, and the input is .npy files"),
        (&["kmeans", "-k", "1", "--quote", "none", &npy], "--quote is for CSV, and the input is .npy files"),
        (
            &["matrix-multiply", "--left", &npy, "--delimiter", ";", &npy],
            "--delimiter is for CSV, and the input is .npy",
        ),
        (&["pca", "--components", "0", &points], "invalid value '0' for '--components <N>': the least is 1"),
        (
            &["word-count", "--chunk-bytes", "0", &text],
            "chunks of 0 bytes were asked for with --chunk-bytes: the least is 1",
        ),
        (
            &["word-count", "--split-bytes", "0", &text],
            "splits of 0 bytes were asked for with --split-bytes: the least is 1",
        ),
        (&["group-by", "--by", "1", "--quote", "", &points], "it is one ASCII character, tab, or none"),
    ];
    for (arguments, expected) in refused {
        let complaint = complaint(gristmill(arguments).arg("-q"), 2);
        assert!(complaint.contains(expected), "{complaint}");
    }
}

/// `-k x` said "invalid digit found in string", which is what Rust says and not a user.
#[test]
fn what_is_no_number_is_said_in_words() {
    let said = |arguments: &[&str]| complaint(&mut gristmill(arguments), 2);
    assert!(said(&["kmeans", "-k", "x", "file"]).contains("invalid value 'x' for '--k <K>': it is not a whole number"));
    assert!(said(&["kmeans", "-k", "0", "file"]).contains("invalid value '0' for '--k <K>': the least is 1"));
    assert!(said(&["pca", "-c", "99999999999999999999", "file"]).contains("': it is too large"));
    let dir = files(&[("jobs.toml", b"[[job]]\ncommand = \"echo\n"), ("quoted.csv", b"a,\"1\n2\"\nb,3\n")]);
    let refused = complaint(gristmill(["batch", "--no-history"]).arg(dir.path().join("jobs.toml")), 1);
    assert!(
        refused.contains("jobs.toml: line 2, column 16: this is not TOML: ") && !refused.contains("\\n"),
        "{refused}"
    );
    let sums = ["group-by", "--header", "no", "--by", "1", "--sum", "2"];
    let refused = complaint(gristmill(sums).arg(dir.path().join("quoted.csv")), 1);
    let expected = "line 1: column 2: \"1\"... (it has more than one line) is not a finite number\n";
    assert!(refused.ends_with(expected), "{refused}");
}
