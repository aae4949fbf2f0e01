//! Messages never pass on control characters from outside - from names of files, headers, fields, keys or arguments -
//! so they cannot move the cursor of a terminal, colour it, or reverse text. Results on standard output are
//! unchanged.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;

use crate::command::gristmill;

/// Clears the screen, sets the title, begins a line, sets bold with one byte (C1), turns the direction of text, and
/// hides characters.
const EVIL: &str = "e\x1b[2J\x1b]0;t\x07\r\x08\u{9b}1m\u{85}\u{202e}\u{2066}\u{200b}\u{feff}l";

/// Returns true for characters that a message may contain.
fn is_plain(character: char) -> bool {
    let turns = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}');
    character == '\n' || !(character.is_control() || turns)
}

/// The name of a file, a header or a key could once clear the screen or misrepresent itself.
#[test]
fn no_message_contains_characters_that_control_a_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).into_os_string().into_string().expect("text");
    let evil = |end: &str| path(&format!("{EVIL}{end}"));
    let raw = OsString::from_vec([path("").as_bytes(), b"\xff\x1b[2J\n"].concat());
    let header = EVIL.replace('\r', "");
    fs::write(evil(".csv"), format!("{header},x,{header}\n{header},1,{header}\n{header},y{EVIL},2\n"))
        .expect("written");
    fs::write(evil(".jsonl"), format!("{{\"k\": {}, \"v\": 1}}\n{{\"{header}\"\n", serde_json::json!(EVIL)))
        .expect("written");
    fs::write(evil(".gz"), EVIL).and_then(|()| fs::write(evil(".png"), EVIL)).expect("written");
    let npy = [&b"\x93NUMPY\x01\0v\0"[..], format!("{{'descr': '{EVIL}'}}").as_bytes()].concat();
    fs::write(evil(".npy"), npy).expect("written");
    fs::write(evil("[1].txt"), "word").and_then(|()| fs::write(&raw, EVIL)).expect("written");
    fs::create_dir(path("folder")).and_then(|()| fs::create_dir(evil(".d"))).expect("made");
    fs::write(path("folder/text"), EVIL).expect("written");
    std::os::unix::fs::symlink("text", path(&format!("folder/{EVIL}"))).expect("linked");
    let (csv, jsonl, gz, png, npy) = (evil(".csv"), evil(".jsonl"), evil(".gz"), evil(".png"), evil(".npy"));
    let (missing, pattern, out) = (evil("missing"), evil("*none"), evil("/no/out.csv"));
    let (set, with_link, option) = (evil("[2].txt"), path("folder"), format!("--{EVIL}"));
    let (bad, stats, folder) = (evil(".bad"), evil(".stats.json"), evil(".d"));
    let cases: Vec<Vec<&str>> = vec![
        vec!["word-count", &missing],
        vec!["word-count", &pattern],
        vec!["word-count", &set],
        vec!["word-count", &gz],
        vec!["word-count", "--explain", &csv],
        vec!["word-count", "--record-bytes-max", "1", &csv],
        vec!["word-count", "-o", &out, &csv],
        vec!["word-count", "--stats", &out, &csv],
        vec!["word-count", "--stats", &csv, &csv],
        vec!["word-count", "--format", EVIL, &csv],
        vec!["word-count", EVIL, "--", &missing],
        vec![EVIL],
        vec!["word-count", &option],
        vec!["word-count", "--workers", EVIL],
        vec!["word-count", "--files-from", &csv],
        vec!["word-count", &folder],
        vec!["word-count", &with_link],
        vec!["word-count", "--spill-dir", &missing, &csv],
        vec!["word-count", "--checkpoint", &csv, &csv],
        vec!["word-count", "--skip-bad-files", "1", "--bad-records", &bad, &gz, &csv],
        vec!["word-count", "--skip-bad-files", "1", "--bad-records", &bad, &gz, &missing],
        vec!["group-by", "--by", "1", &csv],
        vec!["group-by", "--by", &header, "--sum", "2", &csv],
        vec!["group-by", "--by", "1", "--sum", "2", "--stats", &stats, &csv],
        vec!["group-by", "--by", "1", "--sum", "2", "--skip-bad-records", "1", "--bad-records", &bad, &csv],
        vec!["group-by", "--by", "none", &csv],
        vec!["group-by", "--by", EVIL, &csv],
        vec!["group-by", "--by", "k", "--sum", "v", &jsonl],
        vec!["group-by", "--by", "k", "--sum", "k", &jsonl],
        vec!["group-by", &png],
        vec!["histogram", &png],
        vec!["histogram", &csv],
        vec!["linear-regression", &csv],
        vec!["linear-regression", "-x", EVIL, &csv],
        vec!["string-match", "--keys", &missing, &csv],
        vec!["string-match", "--keys", &csv, &missing],
        vec!["kmeans", "-k", "2", &csv],
        vec!["pca", &npy],
        vec!["pca", &csv],
        vec!["matrix-multiply", &npy, &csv],
        vec!["tile-search", &csv, &missing],
        vec!["palindromes", &gz],
        vec!["sort", "--parts", &csv, &csv],
        vec!["sort", "--key-bytes", EVIL, &csv],
        vec!["sort", "-o", &out, &csv],
    ];
    let mut said = 0;
    for arguments in cases {
        let output = gristmill(&arguments).stdout(Stdio::null()).output().expect("the command starts");
        let message = String::from_utf8(output.stderr).expect("messages are text");
        assert!(message.chars().all(is_plain), "{arguments:?}: {message:?}");
        said += usize::from(message.contains("\\x1b[2J"));
    }
    assert!(said > 30, "only {said} messages spoke of it");
    let output = gristmill(["word-count".into(), "-o".into(), raw.clone(), raw]).output().expect("the command starts");
    assert!(String::from_utf8(output.stderr).expect("text").chars().all(is_plain));
}

/// The report of `gristmill scale` once had the values of --vary as they were, so one of them cleared the screen.
#[test]
fn values_of_a_parameter_are_escaped_in_the_report() {
    let scale =
        ["scale", "--no-history", "--workers", "1", "--repeats", "1", "--no-account", "--despite-load", "--vary"];
    let run = |values: &str| {
        let mut command = gristmill(scale);
        let output = command.args([values, "--", "true", "{workers}{x}"]).output().expect("the command starts");
        let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        assert!(printed.chars().chain(said.chars()).all(is_plain), "{printed:?} {said:?}");
        (output.status.code(), printed, said)
    };
    let (status, printed, said) = run(&format!("x=a,{EVIL}"));
    assert!(status == Some(0) && printed.contains("e\\x1b[2J"), "{printed}{said}");
    let (status, _, said) = run(&format!("x={EVIL},{EVIL}"));
    assert!(status == Some(2) && said.contains("e\\x1b[2J"), "{said}");
}
