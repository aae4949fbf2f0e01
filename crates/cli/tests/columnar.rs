//! Arrow and Parquet files hold the answer of ten sequential lines, typed, and are published like every result.

mod command;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use command::{answer, complaint, gristmill, oracle, word_count};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const FORMATS: [&str; 2] = ["arrow", "parquet"];

/// Reads all batches of a file; its name tells the format.
fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).expect("there");
    let batches: Result<_, _> = match path.extension() {
        Some(extension) if extension == "arrow" => FileReader::try_new(file, None).expect("an Arrow file").collect(),
        _ => ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.build())
            .expect("Parquet")
            .collect(),
    };
    batches.expect("readable")
}

/// Returns the columns of a file, with their types.
fn columns(path: &Path) -> Vec<(String, DataType)> {
    let file = File::open(path).expect("there");
    let schema = match path.extension() {
        Some(extension) if extension == "arrow" => FileReader::try_new(file, None).expect("an Arrow file").schema(),
        _ => ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").schema().clone(),
    };
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// Formats a file of words or keys and whole numbers as TSV. Checks that binary keys are in their column and nowhere
/// else.
fn as_tsv(path: &Path) -> Vec<u8> {
    let mut tsv = Vec::new();
    for batch in batches(path) {
        let (texts, others) = (batch.column(0).as_string::<i32>(), batch.column(1).as_binary::<i32>());
        let counts = batch.column(2).as_primitive::<UInt64Type>();
        for ((text, other), count) in texts.iter().zip(others).zip(counts) {
            let key = match (text, other) {
                (Some(text), None) => text.as_bytes(),
                (None, Some(bytes)) if str::from_utf8(bytes).is_err() => bytes,
                both => panic!("{both:?}"),
            };
            tsv.extend_from_slice(key);
            writeln!(tsv, "\t{}", count.expect("a count")).expect("a Vec takes all");
        }
    }
    tsv
}

#[test]
fn files_read_back_give_the_sequential_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    // More words than a batch has rows, some of them not UTF-8, and one longer than a batch.
    let mut text: Vec<u8> = (0..60_000u32).flat_map(|n| format!("w{} the grün\n", n % 40_000).into_bytes()).collect();
    text.extend_from_slice(b"\xff\xfe a\0b \xf0\x9f\xa6 ");
    text.extend_from_slice(&[b'x'; 3 << 20]);
    fs::write(&path, &text).expect("written");
    let expected = oracle(&text, false);
    for format in FORMATS {
        let result = dir.path().join("counts").with_extension(format);
        answer(word_count(["--workers", "2", "--output"]).args([&result, &path]));
        assert!(as_tsv(&result) == expected, "{format}");
        let types = [("word", DataType::Utf8), ("word_bytes", DataType::Binary), ("count", DataType::UInt64)];
        assert_eq!(columns(&result), types.map(|(name, kind)| (name.to_owned(), kind)));
        // The same bytes come through a pipe.
        let piped = answer(word_count(["--workers", "2", "--format", format]).arg(&path));
        assert!(piped == fs::read(&result).expect("there"), "{format}");
    }
}

#[test]
fn numbers_are_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let (table, pairs) = (dir.path().join("points.csv"), dir.path().join("pairs"));
    fs::write(&table, "x,y\n0,1\n1,3\n2,5.5\n").expect("written");
    fs::write(&pairs, [7u32, 1, 5, 2, 7, u32::MAX].map(u32::to_le_bytes).concat()).expect("written");
    for format in FORMATS {
        let result = dir.path().join("result").with_extension(format);
        answer(
            gristmill(["group-by", "--input-format", "pairs", "--workers", "2", "--output"]).args([&result, &pairs]),
        );
        let [batch] = &batches(&result)[..] else { panic!("one batch") };
        assert_eq!(batch.column_by_name("key").expect("there").as_primitive::<UInt64Type>().values(), &[5, 7]);
        assert_eq!(batch.column_by_name("sum").expect("there").as_primitive::<UInt64Type>().values(), &[2, 1 << 32]);

        answer(
            gristmill(["pca", "--header", "yes", "--print", "means", "--workers", "2", "--output"])
                .args([&result, &table]),
        );
        let [batch] = &batches(&result)[..] else { panic!("one batch") };
        assert_eq!(batch.column_by_name("variable").expect("there").as_primitive::<UInt64Type>().values(), &[1, 2]);
        let means = batch.column_by_name("mean").expect("there").as_primitive::<Float64Type>().values();
        assert_eq!(means[..], [1.0, 9.5 / 3.0]);

        // A column that is always text has no second column.
        let line = ["linear-regression", "--x", "x", "--y", "y", "--workers", "2", "--output"];
        answer(gristmill(line).args([&result, &table]));
        let [batch] = &batches(&result)[..] else { panic!("one batch") };
        let rows = batch.column(0).as_string::<i32>().iter().flatten().collect::<Vec<_>>();
        assert_eq!((rows, batch.num_columns()), (vec!["n", "slope", "intercept", "r"], 2));
        assert_eq!(batch.column(1).as_primitive::<Float64Type>().values()[..2], [3.0, 2.25]);
    }
}

/// Sums were once float64, so that 9007199254740993 became ...992, and a key without a number was an error.
#[test]
fn sums_of_whole_numbers_are_exact_decimals_and_nearest_floats() {
    let dir = tempfile::tempdir().expect("a directory");
    let table = dir.path().join("table.csv");
    fs::write(&table, "k,v\na,9007199254740993\nb,0.5\nb,2\nc,\n").expect("written");
    for format in FORMATS {
        let result = dir.path().join("result").with_extension(format);
        answer(gristmill(["group-by", "-q", "--by", "k", "--sum", "v", "--output"]).args([&result, &table]));
        let [batch] = &batches(&result)[..] else { panic!("one batch") };
        let sums = batch.column_by_name("sum").expect("there").as_primitive::<Float64Type>();
        assert_eq!(sums.iter().collect::<Vec<_>>(), [Some(9_007_199_254_740_992.0), Some(2.5), None]);
        let whole = batch.column_by_name("sum_whole").expect("there").as_primitive::<Decimal128Type>();
        assert_eq!(whole.iter().collect::<Vec<_>>(), [Some(9_007_199_254_740_993), None, None]);
        fs::write(&table, "k,v\na,100000000000000000000000000000000000000\n").expect("written");
        let refused =
            complaint(gristmill(["group-by", "--by", "k", "--sum", "v", "--output"]).args([&result, &table]), 1);
        assert!(refused.contains("has more than the 38 digits of a decimal"), "{refused}");
        fs::write(&table, "k,v\na,9007199254740993\nb,0.5\nb,2\nc,\n").expect("written");
    }
}

#[test]
fn figures_that_a_key_does_not_have_are_null() {
    let dir = tempfile::tempdir().expect("a directory");
    let table = dir.path().join("table.csv");
    fs::write(&table, "k,v\na,1\na,3\nb,2\nc,\n").expect("written");
    for format in FORMATS {
        let result = dir.path().join("result").with_extension(format);
        answer(gristmill(["group-by", "-q", "--by", "k", "--describe", "v", "--output"]).args([&result, &table]));
        let [batch] = &batches(&result)[..] else { panic!("one batch") };
        let counts = batch.column_by_name("count").expect("there").as_primitive::<UInt64Type>();
        assert_eq!(counts.values()[..], [2, 1, 0]);
        let figures =
            |name| batch.column_by_name(name).expect("there").as_primitive::<Float64Type>().iter().collect::<Vec<_>>();
        assert_eq!(figures("mean"), [Some(2.0), Some(2.0), None]);
        assert_eq!(figures("std"), [Some(2f64.sqrt()), None, None]);
        assert_eq!([figures("min"), figures("max")], [[Some(1.0), Some(2.0), None], [Some(3.0), Some(2.0), None]]);
    }
}

#[test]
fn a_result_without_rows_has_its_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    for format in FORMATS {
        let result = dir.path().join("counts").with_extension(format);
        answer(word_count(["/dev/null", "--output"]).arg(&result));
        assert_eq!(columns(&result).len(), 3);
        assert_eq!(batches(&result).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}

#[test]
fn a_full_disk_is_one_clear_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("text");
    // The error shows at the end of the file, or at a batch in the middle.
    for words in [3u64, 300_000] {
        let text: String = (0..words).map(|n| format!("{:x} ", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        fs::write(&path, text).expect("written");
        for format in FORMATS {
            let full = complaint(word_count(["--output", "/dev/full", "--format", format]).arg(&path), 1);
            assert_eq!(full, "gristmill: cannot write /dev/full: No space left on device (os error 28)\n");
        }
    }
}

#[test]
fn a_file_of_columns_is_not_compressed_as_a_whole() {
    for name in ["counts.arrow.gz", "counts.parquet.zst"] {
        let complaint = complaint(&mut word_count(["--output", name, "/dev/zero"]), 2);
        assert!(complaint.contains("not compressed as a whole"), "{complaint}");
    }
}
