//! Columns are read back as they were written, whoever dies.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use gristmill::{Bytes, Chunk, Emit, Input, Isolation, Job, MapReduce, ProgramError};
use gristmill_columnar::{arrow, parquet};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

/// For each word and parity: how often it occurs, its length if it is even, and its bytes.
struct Words;

impl MapReduce for Words {
    type Key = (String, bool);
    type Value = (u64, Option<f64>, Bytes);

    fn combiner(
        &self,
    ) -> Option<impl Fn((u64, Option<f64>, Vec<u8>), (u64, Option<f64>, Vec<u8>)) -> (u64, Option<f64>, Vec<u8>)> {
        Some(|a: (u64, Option<f64>, Vec<u8>), b: (u64, Option<f64>, Vec<u8>)| (a.0 + b.0, a.1, a.2))
    }

    fn map(
        &self,
        chunk: &mut Chunk<'_>,
        out: &mut impl Emit<(String, bool), (u64, Option<f64>, Bytes)>,
    ) -> Result<(), ProgramError> {
        for word in str::from_utf8(chunk.bytes())?.split_whitespace() {
            let is_even = word.len().is_multiple_of(2);
            out.emit((word, is_even), (1, is_even.then_some(word.len() as f64), word.as_bytes()));
        }
        Ok(())
    }
}

const NAMES: [&str; 5] = ["word", "even", "count", "length", "bytes"];

type Rows = BTreeMap<String, (bool, u64, Option<f64>, Vec<u8>)>;

fn take(batch: &RecordBatch, rows: &mut Rows) {
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, NAMES);
    for row in 0..batch.num_rows() {
        let length = batch.column(3).as_primitive::<Float64Type>();
        let fields = (
            batch.column(1).as_boolean().value(row),
            batch.column(2).as_primitive::<UInt64Type>().value(row),
            length.is_valid(row).then(|| length.value(row)),
            batch.column(4).as_binary::<i32>().value(row).to_vec(),
        );
        assert!(rows.insert(batch.column(0).as_string::<i32>().value(row).to_owned(), fields).is_none());
    }
}

/// Reads all files of a folder; returns the rows and the number of files.
fn read(folder: &Path) -> (Rows, usize) {
    let (mut rows, mut files) = (Rows::new(), 0);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let file = File::open(&path).expect("opened");
        files += 1;
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("arrow") => FileReader::try_new(file, None)
                .expect("a file of Arrow")
                .for_each(|batch| take(&batch.expect("a batch"), &mut rows)),
            Some("parquet") => ParquetRecordBatchReader::try_new(file, 1024)
                .expect("a file of Parquet")
                .for_each(|batch| take(&batch.expect("a batch"), &mut rows)),
            other => panic!("{other:?}"),
        }
    }
    (rows, files)
}

#[test]
fn what_is_written_is_read_back() {
    let words: Vec<String> =
        (0..120_000u64).map(|n| "x".repeat(n as usize % 9) + &(n * n % 50_021).to_string()).collect();
    let mut expected = Rows::new();
    for word in &words {
        let is_even = word.len().is_multiple_of(2);
        let row = || (is_even, 0, is_even.then_some(word.len() as f64), word.clone().into_bytes());
        expected.entry(word.clone()).or_insert_with(row).1 += 1;
    }
    assert!(expected.len() > 50_000, "several batches");
    let input = Input::bytes("words", words.join(" ").as_bytes()).expect("memory");
    for workers in [1, 3] {
        let dir = tempfile::tempdir().expect("a folder");
        let [a, p] = ["arrow", "parquet"].map(|name| dir.path().join(name));
        let job = || Job::new(&Words, input.clone()).records(gristmill::Records::Separated(|byte| byte == b' '));
        let job = || job().isolation(Isolation::Thread).workers(workers).split_bytes(50_000);
        job().run_into(&arrow(&a, &NAMES).expect("made")).expect("written");
        job().run_into(&parquet(&p, &NAMES).expect("made")).expect("written");
        for folder in [a, p] {
            let (found, files) = read(&folder);
            assert!(found == expected && files == workers, "{}: {files} files", folder.display());
        }
    }
}

#[test]
fn there_is_one_name_for_each_column() {
    let dir = tempfile::tempdir().expect("a folder");
    let refused = |names: &[&str]| {
        let outcome = parquet::<(String, bool), (u64, Option<f64>, Bytes)>(dir.path().join("x"), names);
        outcome.map(drop).expect_err("refused").to_string()
    };
    assert_eq!(refused(&NAMES[..4]), "4 names were given for 5 columns");
    assert_eq!(refused(&["word"; 6]), "6 names were given for 5 columns");
    assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 0);
}
