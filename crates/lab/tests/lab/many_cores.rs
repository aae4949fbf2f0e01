//! `gristmill-lab many-cores`: the file has every part, measured or named as left out.

use std::fs;

use serde_json::Value;

use crate::command::{Folder, complaint, gristmill as lab, names};
use crate::pages::page;

/// Measures with small input for so long, and returns the file.
fn measured(seconds: u32) -> Value {
    let folder = Folder::new();
    let file = folder.path().join("cores.json");
    let seconds = seconds.to_string();
    let mut command = lab(["many-cores", "--quick", "--rounds", "1", "--seconds", &seconds, "--output"]);
    assert_eq!(page(command.arg(&file).env("TMPDIR", folder.path())), format!("{}\n", file.display()));
    assert_eq!(names(folder.path()), ["cores.json"], "the inputs are removed");
    serde_json::from_slice(&fs::read(file).expect("the file")).expect("an object")
}

#[test]
fn parts_without_time_are_named_and_others_have_times_for_each_number_of_workers() {
    let nothing = measured(0);
    let parts = nothing["left_out"].as_array().expect("names");
    for part in ["workers: sort", "placement: sort", "dmr: figure 11", "mr-search: slide 10", "bottlenecks: table 4"] {
        assert!(parts.contains(&part.into()), "{parts:?}");
    }
    let list = |file: &Value, kind: &str| file[kind].as_array().expect("a list").clone();
    assert!(list(&nothing, "comparisons").is_empty() && list(&nothing, "figures").is_empty());

    let some = measured(1);
    let [left, compared, asked] = ["left_out", "comparisons", "figures"].map(|kind| list(&some, kind));
    assert_eq!(left.len() + compared.len() + asked.len(), parts.len(), "{some}");
    let first = &compared[0];
    assert_eq!((&first["comparison"], &first["application"]), (&"workers".into(), &"word-count".into()));
    for (at, strategy) in first["strategies"].as_array().expect("a list").iter().enumerate() {
        assert_eq!(strategy["strategy"], (1 << at).to_string(), "{strategy}");
        assert!(strategy["wall_ms"]["median"].as_f64() > Some(0.0), "{strategy}");
    }
    assert!(some["machine"]["Processors used"].as_str().is_some_and(|number| number.parse::<u32>().is_ok()), "{some}");
}

#[test]
fn a_file_that_cannot_be_written_ends_it_before_anything_is_measured() {
    let said = complaint(&mut lab(["many-cores", "--output", "/proc/no/cores.json"]), 1);
    assert!(said.contains("/proc/no/cores.json"), "{said}");
    assert!(!said.contains("word-count"), "{said}");
}
