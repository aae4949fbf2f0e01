//! `gristmill-lab mr-search`: the page has all slides of the talk, and every memory and every exchange finds the same.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::command::{Folder, answer, complaint, gristmill as lab};
use crate::pages::page;

#[test]
fn all_slides_with_a_picture_or_a_measurement_are_named() {
    let named = complaint(&mut lab(["mr-search", "--slide", "999"]), 2);
    let all = "slide 2, slide 3, slide 4, slide 5, slide 6, slide 7, slide 8, slide 9, slide 10, slide 11";
    assert!(named.contains(&format!("mr-search has no slide 999; it has {all}\n")), "{named}");
}

/// Runs a job, and returns what it prints.
fn job(arguments: &str) -> Value {
    let words = ["mr-search-job"].into_iter().chain(arguments.split(' '));
    serde_json::from_slice(&answer(&mut lab(words))).expect("an object")
}

#[test]
fn every_memory_and_every_exchange_counts_the_states_of_the_puzzle() {
    // The states of the 8-puzzle at the depths 0 to 16, as published.
    let known = [1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485];
    for exchange in ["threads", "pages", "pipe", "socket"] {
        for (memory, workers) in [("malloc", 1), ("reuse", 2), ("pool", 3), ("prealloc", 5)] {
            let told = job(&format!(
                "--exchange {exchange} --memory {memory} --workers {workers} --room 9000,30000,9000 --depth 16"
            ));
            let keys: Vec<u64> = told["keys"].as_array().expect("counts").iter().filter_map(Value::as_u64).collect();
            assert_eq!(keys, known, "{exchange}, {memory}, {workers} workers");
        }
    }
}

#[test]
fn every_exchange_counts_each_word_once() {
    let folder = Folder::new();
    let text = "the frog leaps, the pond rests; the frog rests\n".repeat(5000);
    let mut expected = BTreeMap::<&str, u64>::new();
    text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()).for_each(|word| {
        *expected.entry(word).or_default() += 1;
    });
    let file = folder.file("text", &text);
    for exchange in ["threads", "pages", "pipe", "socket"] {
        for workers in [1, 3] {
            let path = file.display();
            let told = job(&format!("--exchange {exchange} --memory reuse --workers {workers} --words {path}"));
            let found = (told["keys"][1].as_u64(), told["sum"].as_u64());
            assert_eq!(found, (Some(expected.len() as u64), Some(expected.values().sum())), "{exchange}, {workers}");
        }
    }
}

#[test]
fn memory_from_malloc_each_time_faults_more_than_memory_that_is_kept() {
    let faults = |memory: &str| {
        let told =
            job(&format!("--exchange threads --memory {memory} --workers 1 --room 200000,600000,200000 --depth 31"));
        told["faults"].as_u64().expect("a count")
    };
    let [malloc, kept, before] = ["malloc", "reuse", "prealloc"].map(faults);
    assert!(malloc > kept && kept > before, "{malloc}, {kept}, {before}");
}

#[test]
fn the_page_says_what_memory_and_exchanges_cost_and_what_is_not_here() {
    let dir = tempfile::tempdir().expect("a directory");
    let page =
        page(lab(["mr-search", "--quick", "--rounds", "1", "--slide", "8", "--depth", "9", "-o"]).arg(dir.path()));
    assert!(
        page.contains("The 15-puzzle to depth 9; the states at each depth are the known ones in every run."),
        "{page}"
    );
    for memory in ["C library", "reuse", "pool", "prealloc"] {
        assert!(page.lines().any(|line| line.starts_with(&format!("| {memory} | "))), "{memory}: {page}");
    }
    // An allocator has a row, or is said to be missing, with its package.
    for (name, package) in
        [("jemalloc", "libjemalloc2"), ("tbbmalloc", "libtbbmalloc2"), ("mimalloc", "libmimalloc2.0")]
    {
        assert!(
            page.contains(&format!("| {name} | ")) || page.contains(&format!("(apt-get install {package})")),
            "{page}"
        );
    }
    if page.contains(", 1 NUMA node.") {
        assert!(page.contains("**Verdict:** cannot be asked here: there is one NUMA node"), "{page}");
        assert!(page.contains("| 0.0 of "), "{page}");
    }
    assert!(fs::read_to_string(dir.path().join("page.md")).is_ok());
}
