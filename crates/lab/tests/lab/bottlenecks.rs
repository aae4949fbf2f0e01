//! `gristmill-lab bottlenecks`: the page has all tables of the paper, and measures what it says.

use std::fs;

use crate::command::{complaint, gristmill as lab};
use crate::pages::page;

#[test]
fn all_tables_and_pictures_of_the_paper_are_named_in_its_order() {
    let named = complaint(&mut lab(["bottlenecks", "--table", "999"]), 2);
    let all = "figure 1, figure 2, table 1, table 2, table 3, figure 3, figure 4, table 4, table 5, table 6, table 7, figure 5, \
               figure 6, figure 7";
    assert!(named.contains(&format!("bottlenecks has no table 999; it has {all}\n")), "{named}");
}

#[test]
fn reading_is_measured_with_the_readers_of_the_paper_beside_its_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut asked = lab(["bottlenecks", "--quick", "--rounds", "1", "--data-mb", "1", "--table", "1", "-o"]);
    let page = page(asked.arg(dir.path()));
    for row in ["| 1 | 3.01 s | 100 % | ", "| 2", " 1.58 s | 95 % | ", " 0.66 s | 45 % | "] {
        assert!(page.contains(row), "{row}: {page}");
    }
    // One round gives no verdict, and 1 MB holds ten files.
    assert!(
        page.contains("**Verdict:** undecided: fewer than three rounds (1).") || page.contains("cannot be asked"),
        "{page}"
    );
    assert!(page.contains("10F100000C in place of 10000F100000C, because of --quick"), "{page}");
    assert!(page.contains("`gristmill scale --from` says of the paper's times: \"More workers help up to "), "{page}");
    let rows = fs::read_to_string(dir.path().join("bottlenecks-table-1.csv")).expect("rows");
    let readers: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').next().expect("a number")).collect();
    assert_eq!(readers, ["1", "2", "4", "8", "10"]);
}

#[test]
fn chunks_are_all_files_a_tenth_and_a_hundredth() {
    let mut asked = lab(["bottlenecks", "--quick", "--rounds", "1", "--data-mb", "20", "--table", "4"]);
    let page = page(&mut asked);
    // 40 files of 500,000 characters.
    assert!(page.contains("40F500000C in place of 50000F500000C") && page.contains("| 1 | 25: 9.4 s | "), "{page}");
    assert!(
        page.contains("The engine has neither readers nor rounds: each worker reads what it maps, 256 KiB at a time"),
        "{page}"
    );
}

#[test]
fn the_tree_is_counted_with_and_without_reading() {
    let mut asked = lab(["bottlenecks", "--quick", "--rounds", "1", "--data-mb", "1", "--figure", "5"]);
    let page = page(&mut asked);
    assert!(page.contains(" with reading, and ") && page.contains("`--constant`"), "{page}");
}
