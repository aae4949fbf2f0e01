//! `gristmill-lab ops`: the page has all figures of the paper, and says what was recorded.

use std::fs;

use crate::command::{complaint, gristmill as lab};
use crate::pages::page;

#[test]
fn all_figures_of_the_paper_are_named() {
    let named = complaint(&mut lab(["ops", "--figure", "999"]), 2);
    let all = "figure 1, figure 2, figure 3, figure 4, figure 5, figure 6, figure 7, figure 8, figure 9, figure 10, figure 11";
    assert!(named.contains(&format!("ops has no figure 999; it has {all}\n")), "{named}");
}

#[test]
fn the_page_shows_recorded_runs_and_says_how_to_make_them_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = page(lab(["ops", "-o"]).arg(dir.path()));
    assert_eq!(fs::read_to_string(dir.path().join("page.md")).expect("written").trim_end(), page.trim_end());
    // The figures of bench/runs/2026-11-28-spark-headline/README.md.
    assert!(page.contains("| 128 | 71.6 (3) | 44.4 (3) | 17.4 (3) |"), "{page}");
    assert!(page.contains("**Verdict:** does not agree: "), "{page}");
    assert!(page.contains("`bench/spark/headline.sh FOLDER`"), "{page}");
    for (name, start) in [
        ("ops-job-by-maps.csv", "shuffle,maps,runs,seconds\nsort shuffle,32,3,73.51\n"),
        ("ops-job-by-maps.svg", "<svg "),
    ] {
        assert!(fs::read_to_string(dir.path().join(name)).expect("written").starts_with(start), "{name}");
    }
    assert!(page.contains("(ops-shuffle-by-maps.svg)"), "{page}");
}

#[test]
fn another_record_is_judged_in_place_of_ours() {
    let dir = tempfile::tempdir().expect("a directory");
    let record = dir.path().join("runs.jsonl");
    let run = |shuffle: &str, maps: u32, seconds: u32| {
        format!(
            "{{\"cluster\": \"disks\", \"job\": \"sparksort\", \"shuffle\": \"{shuffle}\", \"maps\": \"{maps}\", \"bytes\": \"1000000\", \
             \"seconds\": \"{seconds}\", \"write_s\": {seconds}, \"fetch_wait_s\": 0.0}}\n"
        )
    };
    let round = [run("sort", 32, 10), run("gristmill", 32, 5), run("sort", 128, 29), run("gristmill", 128, 6)].concat();
    fs::write(&record, round.repeat(3)).expect("written");
    let page = page(lab(["ops", "--figure", "10", "--record"]).arg(&record));
    assert!(page.contains("**Verdict:** agrees.") && page.contains("| 128 | 29.0 (3) | - | 6.0 (3) |"), "{page}");
    fs::write(&record, "{}\nno\n").expect("written");
    let wrong = complaint(lab(["ops", "--record"]).arg(&record), 2);
    assert!(wrong.contains("runs.jsonl: line 2: "), "{wrong}");
}
