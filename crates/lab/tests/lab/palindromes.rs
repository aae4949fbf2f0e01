//! `gristmill-lab palindromes`: readers and workers give the answer of the application.

use std::fs;

use crate::command::{Folder, answer, gristmill as lab};

/// Encodes a text as UTF-16 with a byte-order mark.
fn wide(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn text_in_any_encoding_is_counted_by_readers() {
    let folder = Folder::new();
    for (number, encode) in [(|text| text.as_bytes().to_vec()) as fn(&str) -> Vec<u8>, wide].into_iter().enumerate() {
        let [one, again] = [1, 2].map(|copy| folder.file(&format!("{number}{copy}"), encode("anna\r\nkayak\nxy")));
        for readers in ["1", "2", "3"] {
            let total = answer(lab(["palindromes", "--readers", readers]).args([&one, &again]));
            // Letters, and nn, anna; aya, kayak.
            assert_eq!(String::from_utf8_lossy(&total), format!("total\t{}\n", 2 * (4 + 2 + 5 + 2 + 2)));
        }
    }
}

#[test]
fn the_times_of_all_threads_are_in_the_statistics() {
    let folder = Folder::new();
    let text = folder.file("text", "abba\n");
    let stats = |name: &str| {
        let path = folder.path().join(name);
        answer(lab(["palindromes", "--readers", "2", "--workers", "3", "--stats"]).args([&path, &text]));
        fs::read_to_string(path).expect("written")
    };
    let rows = stats("times.csv");
    assert!(rows.starts_with("worker,role,name,value\njob,,wall_ns,") && rows.contains("\njob,,files,1\n"), "{rows}");
    for row in ["1,reader,input_ns,", "2,reader,idle_ns,", "3,map,map_ns,", "5,map,idle_ns,"] {
        assert!(rows.lines().any(|line| line.starts_with(row)), "{row}: {rows}");
    }
    let json: serde_json::Value = serde_json::from_str(&stats("times.json")).expect("JSON");
    assert_eq!((&json["job"]["files"], json["workers"].as_array().map(Vec::len)), (&1.into(), Some(5)), "{json}");
}

/// The job options did nothing, and nothing said so.
#[test]
fn an_option_for_a_job_is_ignored_with_a_note() {
    let folder = Folder::new();
    let text = folder.file("text", "abba\n");
    let output = lab(["palindromes", "--readers", "1", "--retries", "3"]).arg(&text).output().expect("it starts");
    assert_eq!(output.stdout, b"total\t6\n");
    let note = String::from_utf8_lossy(&output.stderr);
    assert_eq!(note, "gristmill: --retries is ignored: --readers counts with threads, and without a job\n");
}
