//! `gristmill experiment`: the report holds every comparison, and says what the rows of the runs say.

mod command;

use std::collections::BTreeMap;
use std::fs;

use command::{answer, complaint, gristmill};

/// The value of an attribute that begins at the end of `before`.
fn attribute<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    text.split(before).skip(1).map(|rest| rest.split('\'').next().expect("quoted")).collect()
}

#[test]
fn the_report_holds_every_comparison_and_its_medians_are_those_of_the_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = dir.path().join("report");
    let experiment = gristmill([
        "experiment",
        "--quick",
        "--rounds",
        "3",
        "--apps",
        "word-count,matrix-multiply,tile-search",
        "--output",
    ])
    .arg(&output)
    .output()
    .expect("the command starts");
    let progress = String::from_utf8_lossy(&experiment.stderr);
    assert!(experiment.status.success(), "{progress}");
    assert!(progress.contains("gristmill: 1 of "), "{progress}");
    let report = fs::read_to_string(output.join("report.html")).expect("a report");
    let csv = fs::read_to_string(output.join("runs.csv")).expect("rows");

    // 1. Every comparison has its section, and nothing failed.
    for name in [
        "workers",
        "start-up",
        "plan",
        "isolation",
        "topology",
        "exchange",
        "buffer",
        "combiner",
        "pages",
        "output",
        "allocator",
        "hand-over",
    ] {
        assert!(report.contains(&format!("<section id='{name}'>")), "{name} is missing");
    }
    assert!(!report.contains("What failed"), "{report}");
    // 2. The page needs nothing from elsewhere.
    assert!(!report.contains("http") && !report.contains("src="), "the report refers to something outside");
    // 3. Medians.
    let mut walls = BTreeMap::<String, Vec<f64>>::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let trial = fields[..3].join("/");
        walls.entry(trial).or_default().push(fields[4].parse().expect("milliseconds"));
    }
    let shown = attribute(&report, "data-trial='");
    let medians = attribute(&report, "data-median='");
    assert_eq!(shown.len(), walls.len());
    for (trial, median) in shown.iter().zip(medians) {
        let walls = walls.get_mut(*trial).unwrap_or_else(|| panic!("no rows of {trial}"));
        walls.sort_by(f64::total_cmp);
        assert_eq!(walls.len(), 3, "{trial}");
        assert_eq!(median, format!("{:.3}", walls[1]), "{trial}");
    }
}

#[test]
fn applications_run_with_processes_and_with_threads() {
    let dir = tempfile::tempdir().expect("a directory");
    let applications = ["sort", "palindromes", "kmeans"];
    let mut experiment = gristmill(["experiment", "--quick", "--rounds", "1", "--only", "isolation", "--apps"]);
    let experiment = experiment.arg(applications.join(",")).arg("--output").arg(dir.path()).output();
    let experiment = experiment.expect("the command starts");
    assert!(experiment.status.success(), "{}", String::from_utf8_lossy(&experiment.stderr));
    let csv = fs::read_to_string(dir.path().join("runs.csv")).expect("rows");
    for application in ["sort", "palindromes", "k-means"] {
        for isolation in ["processes", "threads"] {
            let row = format!("isolation,{application},{isolation},1,");
            assert!(csv.lines().any(|line| line.starts_with(&row)), "{row} is missing in {csv}");
        }
    }
    assert!(!fs::read_to_string(dir.path().join("report.html")).expect("a report").contains("What failed"));
}

#[test]
fn what_was_generated_can_be_counted() {
    let dir = tempfile::tempdir().expect("a directory");
    let made = |kind: &str| {
        let names = answer(gristmill(["generate", kind, "--output"]).arg(dir.path()));
        String::from_utf8(names).expect("text").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let pairs = made("linear-regression");
    let line = String::from_utf8(answer(gristmill(["linear-regression", "--input-format", "pairs"]).args(&pairs)))
        .expect("text");
    let value = |name: &str| -> f64 {
        let row = line.lines().find_map(|row| row.strip_prefix(name)?.strip_prefix('\t'));
        row.unwrap_or_else(|| panic!("no {name} in {line}")).parse().expect("a number")
    };
    assert_eq!(value("n"), 16e6);
    assert!((value("slope") - 0.5).abs() < 0.01, "{line}");
    let keys_and_words = made("string-match");
    let matches = String::from_utf8(answer(gristmill(["string-match", "--keys"]).args(&keys_and_words))).expect("text");
    let found: u64 =
        matches.lines().map(|row| row.split('\t').nth(1).expect("a count").parse::<u64>().expect("a number")).sum();
    assert!((20..300).contains(&found), "{matches}");
}

/// `generate` replaced a file of the user's that had the name which it gives to its own.
#[test]
fn generate_replaces_nothing_unless_it_is_told_to() {
    let dir = tempfile::tempdir().expect("a directory");
    let mine = dir.path().join("kmeans-small.csv");
    fs::write(&mine, "mine").expect("written");
    let refused = complaint(gristmill(["generate", "kmeans", "--output"]).arg(dir.path()), 2);
    assert!(refused.contains("kmeans-small.csv is there already") && refused.contains("--force"), "{refused}");
    assert_eq!(fs::read_to_string(&mine).expect("there"), "mine");
    answer(gristmill(["generate", "kmeans", "--force", "--output"]).arg(dir.path()));
    assert_eq!(fs::read_to_string(&mine).expect("there").lines().count(), 10_000);
    // The second of two files is there: the first is not made.
    fs::write(dir.path().join("matrix-multiply-small-right.npy"), "mine").expect("written");
    complaint(gristmill(["generate", "matrix-multiply", "--output"]).arg(dir.path()), 2);
    assert!(!dir.path().join("matrix-multiply-small-left.npy").exists());
}

#[test]
fn a_comparison_that_there_is_not_is_refused() {
    let refused = complaint(&mut gristmill(["experiment", "--only", "colours"]), 2);
    assert!(refused.contains("colours") && refused.contains("combiner"), "{refused}");
}
