//! `gristmill-lab bandwidth`: the page of bandwidth-aware scheduling.

use std::fs;
use std::path::Path;

use crate::command::{complaint, gristmill as lab};

/// Asks for one item, with one round and small input. Returns the page.
fn page(item: [&str; 2], directory: &Path) -> String {
    let mut command = lab(["bandwidth", "--quick", "--rounds", "1", item[0], item[1], "--output"]);
    let output = command.arg(directory).output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains(&format!("1 of 1: {} {}", &item[0][2..], item[1])), "{told}");
    let printed = String::from_utf8(output.stdout).expect("text");
    let written = fs::read_to_string(directory.join("page.md")).expect("it was written");
    assert_eq!(printed.trim(), written.trim());
    written
}

#[test]
fn the_page_has_every_figure_and_table_of_the_paper_in_its_order() {
    let refused = complaint(&mut lab(["bandwidth", "--figure", "999"]), 2);
    let items =
        "figure 1, figure 2, figure 3, figure 4, table 1, figure 5, table 2, figure 6, table 3, figure 7, figure 8";
    assert!(refused.contains(&format!("bandwidth has no figure 999; it has {items}")), "{refused}");
}

#[test]
fn a_drawing_and_what_cannot_be_asked_say_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let drawing = page(["--figure", "1"], dir.path());
    assert!(drawing.contains("**Verdict:** not an experiment: `crates/schedule` decides and learns"), "{drawing}");
    let caches = page(["--figure", "4"], dir.path());
    assert!(caches.contains("**Verdict:** cannot be asked here: caches are not simulated"), "{caches}");
    assert!(caches.contains("needs a processor that counts requests to memory for each program"), "{caches}");
}

#[test]
fn the_parameters_are_those_of_the_paper() {
    let dir = tempfile::tempdir().expect("a directory");
    let parameters = page(["--table", "1"], dir.path());
    assert!(parameters.contains("a program is low below 4.0 %, that of all together below 33.4 %"), "{parameters}");
    assert!(parameters.contains("**Verdict:** agrees."), "{parameters}");
}

/// The paper's numbers are written down here once more.
#[test]
fn groups_are_those_of_the_paper_and_made_up_ones_are_marked() {
    let dir = tempfile::tempdir().expect("a directory");
    let groups = page(["--table", "3"], dir.path());
    let paper =
        [(28, 104), (16, 97), (30, 122), (26, 115), (32, 99), (18, 131), (30, 120), (28, 142), (29, 97), (27, 130)];
    for (number, (programs, average)) in (1..).zip(paper) {
        let row = groups.lines().find(|line| line.starts_with(&format!("| WL#{number:02}"))).expect("a row");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!([cells[2], cells[4]], [programs.to_string(), average.to_string()], "{row}");
        assert_eq!(cells[1].ends_with('*'), number > 8, "{row}");
    }
    assert!(groups.contains("most programs are made up, because the row is cut off (WL#09) or missing (WL#10)"));
    assert!(groups.contains("**Verdict:** agrees."), "{groups}");
}

#[test]
fn figure_3_is_drawn_and_has_its_points_as_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let figure = page(["--figure", "3"], dir.path());
    assert!(figure.contains("![three states in which a program keeps its speed](figure-3.svg)"), "{figure}");
    assert!(figure.contains("calibrated to this figure, so it would agree by its making"), "{figure}");
    let rows = fs::read_to_string(dir.path().join("figure-3.csv")).expect("written");
    let drawn = fs::read_to_string(dir.path().join("figure-3.svg")).expect("written");
    let none = rows.lines().filter(|row| row.contains(",none,")).count();
    assert_eq!((rows.lines().count(), drawn.matches(" r='2'").count()), (2001, 2000));
    assert!(figure.contains(&format!("| none of the three | {none} |")), "{figure}");
}
