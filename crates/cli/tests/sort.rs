//! `gristmill sort` agrees with a sequential sort, with memory for the whole input or for a fraction of it.

mod command;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use command::{answer, complaint, gristmill};

/// Returns pseudo-random lines, many of them equal, some of them empty or long.
fn lines(count: u64) -> Vec<Vec<u8>> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state >> 33
    };
    (0..count)
        .map(|_| match next() % 50 {
            0 => Vec::new(),
            1 => vec![b'a' + (next() % 26) as u8; 500 + (next() % 20_000) as usize],
            _ => format!("{:x} {}", next() % 100_000, "filling".repeat((next() % 5) as usize)).into_bytes(),
        })
        .collect()
}

fn file_of(dir: &Path, lines: &[Vec<u8>]) -> PathBuf {
    let path = dir.join("lines");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("made"));
    for line in lines {
        file.write_all(line).and_then(|()| file.write_all(b"\n")).expect("written");
    }
    path
}

/// One run with memory for everything, one with little.
const MEMORIES: [&[&str]; 2] = [&[], &["--memory", "8MiB"]];

#[test]
fn lines_come_out_in_the_order_of_their_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut lines = lines(60_000);
    let path = file_of(dir.path(), &lines);
    lines.sort();
    let mut expected = lines.join(&b"\n"[..]);
    expected.push(b'\n');
    for memory in MEMORIES {
        assert!(answer(gristmill(["sort", "--workers", "2"]).args(memory).arg(&path)) == expected, "{memory:?}");
    }
}

#[test]
fn a_key_is_a_range_of_bytes_and_the_line_decides_where_keys_agree() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut lines = lines(60_000);
    let path = file_of(dir.path(), &lines);
    let key = |line: &[u8]| line[1.min(line.len())..4.min(line.len())].to_vec();
    lines.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.cmp(b)));
    let mut expected = lines.join(&b"\n"[..]);
    expected.push(b'\n');
    for memory in MEMORIES {
        let mut sort = gristmill(["sort", "--workers", "2", "--key-bytes", "1..4"]);
        assert!(answer(sort.args(memory).arg(&path)) == expected, "{memory:?}");
    }
    let complaint = complaint(gristmill(["sort", "--key-bytes", "4..4"]).arg(&path), 2);
    assert!(complaint.contains("no byte lies in 4..4"), "{complaint}");
}

#[test]
fn too_little_memory_and_a_missing_spill_folder_are_errors() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file_of(dir.path(), &lines(60_000));
    let small = complaint(gristmill(["sort", "--workers", "2", "--memory", "1MiB"]).arg(&path), 2);
    assert!(small.contains("a memory of 1 MiB is too little for this job, which needs at least "), "{small}");
    let gone = complaint(gristmill(["sort", "--spill-dir", "/no/such/folder"]).arg(&path), 2);
    assert!(gone.contains("the spill folder /no/such/folder is no directory"), "{gone}");
}

/// Makes a file of lines, and returns them in order.
fn sorted_file(dir: &Path) -> (PathBuf, Vec<u8>) {
    let mut lines = lines(60_000);
    let path = file_of(dir, &lines);
    lines.sort();
    let mut sorted = lines.join(&b"\n"[..]);
    sorted.push(b'\n');
    (path, sorted)
}

#[test]
fn a_file_gets_the_same_bytes_as_a_pipe() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, sorted) = sorted_file(dir.path());
    let out = dir.path().join("out");
    for memory in MEMORIES {
        let sort = || {
            let mut sort = gristmill(["sort", "--workers", "2"]);
            sort.args(memory).arg(&path);
            sort
        };
        assert!(answer(sort().arg("-o").arg(&out)).is_empty());
        assert!(fs::read(&out).expect("read") == sorted, "-o {memory:?}");
        // The result of a job that could be continued is written by one process.
        let checkpoint = dir.path().join("checkpoint");
        assert!(answer(sort().arg("-o").arg(&out).arg("--checkpoint").arg(&checkpoint)).is_empty());
        assert!(fs::read(&out).expect("read") == sorted, "--checkpoint {memory:?}");
        // A file that the shell opens for several commands: each continues where the previous one ended.
        let mut shared = fs::File::create(&out).expect("created");
        shared.write_all(b"before\n").expect("written");
        for _ in 0..2 {
            let status = sort().stdout(shared.try_clone().expect("cloned")).status().expect("it starts");
            assert!(status.success());
        }
        shared.write_all(b"after\n").expect("written");
        assert!(
            fs::read(&out).expect("read") == [b"before\n", &sorted[..], &sorted, b"after\n"].concat(),
            "{memory:?}"
        );
        let appended = fs::File::options().append(true).open(&out).expect("opened");
        shared.set_len(7).expect("cut");
        assert!(sort().stdout(appended).status().expect("it starts").success());
        assert!(fs::read(&out).expect("read") == [b"before\n", &sorted[..]].concat(), ">> {memory:?}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2);
}

#[test]
fn parts_are_consecutive_and_the_manifest_describes_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, sorted) = sorted_file(dir.path());
    let parts = dir.path().join("parts");
    for (number, memory) in MEMORIES.iter().enumerate() {
        // An existing empty folder is filled.
        if number == 1 {
            fs::remove_dir_all(&parts).and_then(|()| fs::create_dir(&parts)).expect("made anew");
        }
        answer(gristmill(["sort", "--workers", "2", "--parts"]).arg(&parts).args(*memory).arg(&path));
        let manifest = fs::read(parts.join("manifest.json")).expect("a manifest");
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
        assert_eq!((&manifest["records"], &manifest["bytes"]), (&60_000.into(), &sorted.len().into()));
        let list = manifest["parts"].as_array().expect("a list");
        let mut found = Vec::new();
        for part in list {
            let bytes = fs::read(parts.join(part["name"].as_str().expect("a name"))).expect("a part");
            assert_eq!(part["bytes"], bytes.len());
            assert_eq!(part["crc32"], format!("{:08x}", crc32fast::hash(&bytes)));
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(part["records"], lines.len());
            if let [first, .., last] = lines[..] {
                let text = |line: &[u8]| String::from_utf8(line[..line.len() - 1].to_vec()).expect("text");
                assert_eq!((&part["first_key"], &part["last_key"]), (&text(first).into(), &text(last).into()));
            }
            found.extend_from_slice(&bytes);
        }
        assert!(found == sorted && list.len() > 10, "{memory:?}");
        assert_eq!(fs::read_dir(&parts).expect("a folder").count(), list.len() + 1);
    }
    let full = complaint(gristmill(["sort", "--parts"]).arg(&parts).arg(&path), 2);
    assert!(full.contains("is not empty: --parts makes a new folder"), "{full}");
    let nowhere = complaint(gristmill(["sort", "--parts", "/no/such/folder"]).arg(&path), 1);
    assert!(nowhere.contains("cannot write /no/such/folder: No such file or directory"), "{nowhere}");
    let failed = complaint(gristmill(["sort", "--parts", "new"]).current_dir(dir.path()).arg("/no/such/file"), 1);
    assert!(failed.contains("/no/such/file"), "{failed}");
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2, "what failed left nothing");
}
