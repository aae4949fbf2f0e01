//! Matrices of float64 in numpy's format, version 1, row by row.

use std::fs::File;
use std::io::Read;

use crate::{arguments, fail};

/// A row-major matrix.
pub struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    pub fn read(path: &str) -> Self {
        Self::parse(path).unwrap_or_else(|what| fail(format!("{path}: {what}")))
    }

    fn parse(path: &str) -> Result<Self, String> {
        let mut file = File::open(path).map_err(|error| error.to_string())?;
        let mut start = [0; 10];
        file.read_exact(&mut start).map_err(|error| error.to_string())?;
        if &start[..8] != b"\x93NUMPY\x01\x00" {
            return Err("not a .npy file of version 1".into());
        }
        let mut header = vec![0; usize::from(u16::from_le_bytes([start[8], start[9]]))];
        file.read_exact(&mut header).map_err(|error| error.to_string())?;
        let header = String::from_utf8_lossy(&header);
        if !header.contains("'<f8'") || !header.contains("'fortran_order': False") {
            return Err(format!("needs little-endian float64 in C order, and is {header}"));
        }
        let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')')).ok_or("no shape")?.0;
        let sides: Vec<usize> = shape.split(',').filter_map(|side| side.trim().parse().ok()).collect();
        let &[rows, columns] = &sides[..] else {
            return Err(format!("needs two dimensions, and has shape ({shape})"));
        };
        let mut values = vec![0.0f64; rows * columns];
        // SAFETY: floats may be written as bytes, and any bytes are valid floats.
        let bytes = unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), 8 * values.len()) };
        file.read_exact(bytes).map_err(|error| error.to_string())?;
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|value| *value = f64::from_bits(value.to_bits().swap_bytes()));
        }
        Ok(Self { rows, columns, values })
    }
}

/// Reads the two factors that the command line names, checks that they conform, and parses the number after `option`.
pub fn factors(usage: &str, option: &str) -> (Matrix, Matrix, usize) {
    let ([a, b], [number]) = arguments(usage, [(option, "2")]);
    let number = number.parse().unwrap_or_else(|_| fail(format!("{option} needs a number")));
    let (a, b) = (Matrix::read(&a), Matrix::read(&b));
    if a.columns != b.rows {
        fail(format!("{} x {} times {} x {} is no product", a.rows, a.columns, b.rows, b.columns));
    }
    (a, b, number)
}

/// Prints the trace, the sum and the last number of a product with this many columns.
pub fn print_product(product: &[f64], columns: usize) {
    let trace: f64 = product.iter().step_by(columns + 1).sum();
    println!("trace\t{trace:.3}");
    println!("sum\t{:.3}", product.iter().sum::<f64>());
    println!("corner\t{:.3}", product.last().copied().unwrap_or(0.0));
}
