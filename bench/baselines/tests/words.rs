//! Compares the word-count programs with ten sequential lines, on difficult text: runs of apostrophes, NUL bytes,
//! tokens longer than a slot, a block or a chunk, and all lengths around these limits.

use std::collections::BTreeMap;
use std::process::Command;

fn sequential(text: &[u8], alpha: bool) -> BTreeMap<Vec<u8>, u64> {
    let mut counts = BTreeMap::new();
    let separates = |byte: &u8| {
        if alpha { !byte.is_ascii_alphabetic() && *byte != b'\'' } else { byte.is_ascii_whitespace() }
    };
    for run in text.split(separates) {
        let word = if alpha {
            run.iter().skip_while(|byte| **byte == b'\'').map(u8::to_ascii_uppercase).collect()
        } else {
            run.to_vec()
        };
        if !word.is_empty() {
            *counts.entry(word).or_insert(0) += 1;
        }
    }
    counts
}

/// Checks that all programs agree with the ten lines on the `most` most frequent words.
fn agrees(name: &str, text: &[u8]) {
    let path = std::env::temp_dir().join(format!("gristmill-baselines-{}-{name}.txt", std::process::id()));
    std::fs::write(&path, text).unwrap();
    for (rule, alpha) in [("alpha", true), ("space", false)] {
        let counts = sequential(text, alpha);
        let mut order: Vec<_> = counts.iter().collect();
        order.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let expected: Vec<u8> =
            order.iter().take(5000).flat_map(|(word, n)| [&word[..], format!("\t{n}\n").as_bytes()].concat()).collect();
        let summary = format!("distinct {} total {}\n", counts.len(), counts.values().sum::<u64>());
        for program in [env!("CARGO_BIN_EXE_wc_threads"), env!("CARGO_BIN_EXE_wc_rayon")] {
            for threads in ["1", "2", "5"] {
                let run = Command::new(program)
                    .arg(&path)
                    .args(["--tokens", rule, "--threads", threads, "--top", "5000"])
                    .output()
                    .unwrap();
                assert!(run.status.success(), "{program} {rule} {name}: {}", String::from_utf8_lossy(&run.stderr));
                assert_eq!(String::from_utf8_lossy(&run.stderr), summary, "{program} {rule} {threads} threads, {name}");
                assert!(run.stdout == expected, "{program} {rule} {threads} threads, {name}: other words");
            }
        }
    }
    std::fs::remove_file(path).unwrap();
}

/// A small random number generator, so that failures are reproducible.
fn random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 16) as usize
}

#[test]
fn random_bytes_give_the_sequential_answer() {
    let mut seed = 1;
    for (name, alphabet) in
        [("letters", &b"aAbz'' \n"[..]), ("controls", b"a'\0\t\x0b\x0c\r \n\xff\x80"), ("apostrophes", b"'''''a ")]
    {
        for len in [0, 1, 2, 63, 64, 65, 127, 8191, 8192, 8193, 262_143, 262_144, 262_145, 900_001] {
            let text: Vec<u8> = (0..len).map(|_| alphabet[random(&mut seed) % alphabet.len()]).collect();
            agrees(&format!("{name}-{len}"), &text);
        }
    }
}

#[test]
fn many_distinct_keys_give_the_sequential_answer() {
    let mut seed = 2;
    let mut text = Vec::new();
    for _ in 0..300_000 {
        let len = random(&mut seed) % 40;
        text.extend((0..len).map(|_| b'a' + (random(&mut seed) % 26) as u8));
        text.push(b' ');
    }
    agrees("distinct", &text);
}

#[test]
fn tokens_longer_than_chunks_give_the_sequential_answer() {
    let mut text = Vec::new();
    for len in [15, 16, 17, 500, 70_000, 262_144, 1_000_000, 5_000_000, 1] {
        for (letter, end) in [(b'x', b' '), (b'Y', b'\n')] {
            text.extend(std::iter::repeat_n(letter, len));
            text.push(end);
        }
    }
    agrees("long", &text);
    text.pop();
    agrees("long-unfinished", &text);
}
