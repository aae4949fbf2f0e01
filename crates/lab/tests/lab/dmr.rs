//! `gristmill-lab dmr`: the page of DMR, and the small MapReduce behind it.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::command::{answer, complaint, gristmill as lab};

/// The figures and tables of the paper, in its order, and the section whose claim has no figure.
const ITEMS: &str = "figure 1, figure 2, figure 3, figure 4, figure 5, figure 6, figure 7, figure 8, figure 9, figure 10, figure 11, \
                     figure 12, figure 13, figure 14, figure 15, figure 16, figure 17, figure 18, section 4.2, figure 19, figure 20, \
                     figure 21, table 1, table 2";

#[test]
fn the_page_has_every_figure_and_table_of_the_paper() {
    for (option, what) in [("--figure=999", "figure 999"), ("--table=3", "table 3"), ("--section=4", "section 4")] {
        let why = complaint(&mut lab(["dmr", option]), 2);
        assert!(why.contains(&format!("dmr has no {what}; it has {ITEMS}")), "{why}");
    }
}

/// Returns the page that a command prints. It tells its progress meanwhile.
fn page(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.starts_with("gristmill: 1 of 1: "), "{said}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_drawing_says_what_corresponds_to_it_and_runs_nothing() {
    for figure in ["2", "6", "7", "12"] {
        let page = page(&mut lab(["dmr", "--figure", figure]));
        assert!(page.contains("**Verdict:** not an experiment: ") && !page.contains("It agrees if"), "{page}");
    }
}

#[test]
fn channels_are_compared_for_every_number_of_workers_and_one_round_gives_no_verdict() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = page(lab(["dmr", "--quick", "--rounds", "1", "--figure", "10", "--output"]).arg(dir.path()));
    assert!(page.contains("**Verdict:** undecided: 1 of the 3 rounds that a verdict takes."), "{page}");
    assert!(page.contains("![producers and consumers in MRPhi"), "{page}");
    assert!(page.contains("It agrees if with 32 workers a page costs more"), "{page}");
    for row in ["| µs for a page | 1 | 2 | 4 | 8 | 16 | 32 |", "\n| mailbox | ", "\n| queue | ", "\n| remap | "] {
        assert!(page.contains(row), "{row} is missing: {page}");
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("written");
    let rows = read("figure-10.csv");
    assert_eq!(rows.lines().count(), 1 + 3 * 6, "{rows}");
    assert!(rows.lines().skip(1).all(|row| row.rsplit(',').next().is_some_and(|value| value.parse::<f64>().is_ok())));
    assert!(read("figure-10.svg").starts_with("<svg xmlns=") && read("page.md").trim_end() == page.trim_end());
}

/// Runs strategies of the model on `words` words. Returns the numbers of each, by their names.
fn model(app: &str, words: &str, strategies: &[String]) -> Vec<BTreeMap<String, u64>> {
    let output = answer(lab(["dmr-model", "--app", app, "--words", words]).args(strategies));
    let text = String::from_utf8(output).expect("text");
    let number =
        |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.parse().expect("a number")));
    let lines = text.lines().zip(strategies).map(|(line, strategy)| {
        let (name, numbers) = line.split_once(' ').expect("a strategy and numbers");
        assert_eq!(name, strategy);
        numbers.split(' ').filter_map(number).collect()
    });
    lines.collect()
}

/// The model checks each answer against a plain loop, and fails if one differs.
#[test]
fn every_strategy_gives_the_answer_of_a_sequential_loop() {
    let mut strategies: Vec<String> = ["phoenix,3", "phoenix+map+reduce,2"].map(String::from).into();
    let gatherings = [
        "array",
        "array+reduce",
        "sorted-array+map",
        "sorted-array+map+reduce",
        "hash",
        "hash+reduce",
        "hash+map",
        "hash-in-order",
        "hash-in-order+map+reduce",
    ];
    for (number, gathering) in gatherings.into_iter().enumerate() {
        for (channel, workers) in [("mailbox", 1), ("queue", 2), ("remap", 3)] {
            // Each combination of the other choices comes with each channel.
            let isolation = ["processes", "threads"][(number + workers) % 2];
            let exchange = ["pipeline", "barrier"][(number / 2 + workers) % 2];
            strategies.push(format!("{gathering},{channel},{isolation},{exchange},{workers}"));
        }
    }
    // Each two of 60 rows, 60 x 61 / 2, make a pair; all other numbers of keys follow from the input.
    for (app, words, emitted, keys) in [
        ("pca", "3600", Some(1830), 1830),
        ("linear-regression", "6400", None, 5),
        ("histogram", "9600", None, 768),
        ("string-match", "60000", Some(2), 2),
        ("word-count", "20000", Some(20_000), 8083),
    ] {
        for (strategy, numbers) in strategies.iter().zip(model(app, words, &strategies)) {
            let told = format!("{app} {strategy}: {numbers:?}");
            assert_eq!(numbers["keys"], keys, "{told}");
            assert!(emitted.is_none_or(|emitted| numbers["emitted"] == emitted), "{told}");
            let combines = strategy.contains("+map");
            assert!(
                combines && numbers["sent"] <= numbers["emitted"] || numbers["sent"] == numbers["emitted"],
                "{told}"
            );
            assert_eq!(numbers["pages"] > 0, !strategy.starts_with("phoenix"), "{told}");
        }
    }
}

#[test]
fn a_full_sorted_array_is_combined_and_goes_on_to_fill() {
    let strategies =
        ["array+reduce", "sorted-array+map"].map(|gathering| format!("{gathering},mailbox,threads,pipeline,1"));
    // 768 keys: 2047 pairs are combined to half of that or less.
    let runs = model("histogram", "40000", &strategies);
    let [array, sorted] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((array["sent"], sorted["sent"]), (array["emitted"], 768));
    assert_eq!(sorted["pages"], 1);
    assert!(array["pages"] > 10, "{array:?}");
}

#[test]
fn an_unknown_strategy_is_refused() {
    let why = complaint(&mut lab(["dmr-model", "--app", "pca", "hash,pigeon,threads,barrier,1"]), 2);
    assert!(why.contains("'pigeon' is no choice of a run"), "{why}");
}
