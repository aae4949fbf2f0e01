//! Access to private parsers for the programs in `fuzz/`. This module exists only in builds with `--cfg fuzzing`. For
//! any input, each parser must end without a panic and within its memory.

use gristmill::Input;
use gristmill::files::Memory;

use crate::file_format::FileFormat;
use crate::heading::{Dialect, Header};
use crate::matrix::Matrix;

/// A PNG or JPEG file, decoded within 8 MiB.
pub fn picture(bytes: &[u8]) {
    let mut pixels = 0;
    drop(crate::pictures::visit(bytes, Memory::of(8 << 20), |piece| {
        assert!(piece.len() % 3 == 0);
        pixels += piece.len() / 3;
        // A few bytes of PNG can decode to many pixels, which take time but no memory.
        assert!(pixels as u64 <= 2048 * 8 * bytes.len() as u64);
    }));
}

/// The header of a BMP file.
pub fn bmp(bytes: &[u8]) {
    crate::histogram::fuzz(bytes);
}

/// A table of numbers: `.npy` or CSV.
pub fn table(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let header = [Header::Yes, Header::No, Header::Auto][usize::from(kind % 3)];
    let delimiter = [None, Some(b';'), Some(b'\t')][usize::from(kind / 3 % 3)];
    let dialect = Dialect { header, delimiter, ..Dialect::default() };
    let mut input = Input::bytes("numbers", bytes).expect("memory").memory(1 << 20);
    if let Ok((matrix, _)) = Matrix::read(&mut input, &dialect) {
        assert_eq!(matrix.values.len(), matrix.rows * matrix.columns);
        assert!(matrix.values.iter().all(|value| value.is_finite()));
        assert!(matrix.values.len() * 8 <= 1 << 19);
    }
    drop(FileFormat::of(&input.sources().expect("in memory")[0]));
}

/// A line of JSON lines.
pub fn json(line: &[u8]) {
    let fields =
        crate::fields::Fields { names: ["k", "v"].map(str::to_owned), nulls: [false, true], numbers: [false, true] };
    let mut rows = 0;
    let found = fields.row(line, &mut |_| {
        rows += 1;
        Ok(())
    });
    assert_eq!(rows, u32::from(found.is_ok()));
}
