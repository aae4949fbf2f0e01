//! `gristmill-lab simulate`: tables, page and rows agree.

use std::fs;

use crate::command::{complaint, gristmill as lab};

#[test]
fn a_simulation_prints_tables_and_writes_a_page_and_rows_that_agree_with_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (page, rows) = (dir.path().join("page.html"), dir.path().join("rows.csv"));
    let mut command = lab(["simulate", "--quick", "--rounds", "1", "--seed", "3", "--output"]);
    let output = command.arg(&page).arg("--rows").arg(&rows).output().expect("the command starts");
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && progress.contains("gristmill: figures 7 and 8: WL#04"), "{progress}");
    let printed = String::from_utf8(output.stdout).expect("text");
    let [page, rows] = [page, rows].map(|path| fs::read_to_string(path).expect("it was written"));
    // The gain of a group follows from its rows.
    let makespan = |setting: &str| -> f64 {
        let start = format!("figures 7 and 8,WL#04,{setting},0,makespan_s,");
        rows.lines().find_map(|row| row.strip_prefix(&start)).and_then(|value| value.parse().ok()).expect("a row")
    };
    let row = printed.lines().find(|line| line.starts_with("WL#04")).expect("a row of the group");
    for method in ["offline", "across executions", "exact", "with additions"] {
        let gain = format!("{:.1}", (makespan("Linux") / makespan(method) - 1.0) * 100.0);
        assert!(row.contains(&gain) && page.contains(&gain), "{method}: {gain} in {row}");
    }
    assert!(page.contains("gristmill-lab simulate --seed 3 --quick --rounds 1<"), "the page says how it was made");
    // The page is self-contained, and no number is missing.
    assert!(!page.contains("http") && !page.contains("<script"), "it needs something");
    assert!(!page.contains("NaN") && !page.contains("inf"), "a number is none");
    for section in ["contention", "learning", "gains", "executions", "unseen", "oracle", "assumed"] {
        assert!(page.contains(&format!("<section id='{section}'>")), "{section}");
    }
    // Each claim has an answer, whatever the outcome.
    assert_eq!(printed.lines().filter(|line| line.starts_with("yes: ") || line.starts_with("NO: ")).count(), 8);
}

#[test]
fn a_page_and_rows_in_the_same_file_are_an_error_at_once() {
    let mut command = lab(["simulate", "--output", "same", "--rows", "same"]);
    assert!(complaint(&mut command, 2).contains("--output and --rows name the same file"));
}
