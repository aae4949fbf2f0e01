//! `gristmill-lab terasort`: records to sort, and their check.

use std::fs;

use crate::command::{answer, complaint, gristmill as lab};

#[test]
fn terasort_records_pass_their_validator_when_they_are_sorted_and_not_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let (made, sorted, stats) = (dir.path().join("made"), dir.path().join("sorted"), dir.path().join("stats.json"));
    answer(lab(["terasort", "generate", "200000", "--seed", "3", "-o"]).arg(&made));
    // The findings are printed in any case; the checksum does not depend on the order.
    let before = lab(["terasort", "validate"]).arg(&made).output().expect("the command starts");
    assert_eq!(before.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&before.stderr).contains("has a smaller key than the one before it"));
    let mut sort = lab(["application", "sort", "--records", "terasort", "--workers", "2", "--memory", "12MiB"]);
    answer(sort.arg(&made).arg("-o").arg(&sorted).arg("--stats").arg(&stats));
    assert!(fs::read_to_string(&stats).expect("read").contains("\"spilled_bytes\""));
    let said = answer(lab(["terasort", "validate"]).arg(&sorted));
    assert!(said.starts_with(b"200000 records, checksum ") && said == before.stdout);
    let mut records: Vec<_> = fs::read(&made).expect("read").as_chunks::<100>().0.to_vec();
    records.sort();
    assert!(fs::read(&sorted).expect("read") == records.as_flattened());
    fs::write(&made, vec![b'x'; 150]).expect("written");
    let torn = complaint(lab(["application", "sort", "--records", "terasort", "--workers", "1"]).arg(&made), 1);
    assert!(torn.contains("ends within the record that starts at byte 100"), "{torn}");
}
