//! The answers of the applications by a plain loop over the whole input. It shares nothing with the map functions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::application::{KEYS, ModelApp};

/// Returns all pairs of the answer, in the order of their keys.
pub fn answer(app: ModelApp, input: &[AtomicU64]) -> Vec<(u64, u64)> {
    let words = || input.iter().map(|word| word.load(Ordering::Relaxed));
    let bytes = || words().flat_map(u64::to_le_bytes);
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    match app {
        ModelApp::WordCount => words().for_each(|word| *sums.entry(word).or_default() += 1),
        ModelApp::Histogram => {
            let mut counts = vec![0; 768];
            bytes().enumerate().for_each(|(at, byte)| counts[256 * (at % 3) + byte as usize] += 1);
            sums.extend((0..).zip(counts).filter(|(_, count)| *count > 0));
        }
        ModelApp::LinearRegression => {
            let mut x = 0;
            for (at, byte) in bytes().map(u64::from).enumerate() {
                if at % 2 == 0 {
                    x = byte;
                    continue;
                }
                for (key, term) in [(0, x), (1, byte), (2, x.pow(2)), (3, byte.pow(2)), (4, x * byte)] {
                    *sums.entry(key).or_default() += term;
                }
            }
        }
        ModelApp::StringMatch => {
            for (key, text) in (0..).zip(KEYS) {
                let count = words().filter(|word| word.to_le_bytes() == text).count() as u64;
                sums.extend((count > 0).then_some((key, count)));
            }
        }
        ModelApp::Pca => {
            let matrix: Vec<u64> = words().collect();
            let rows = matrix.len().isqrt();
            for i in 0..rows {
                for j in i..rows {
                    let mut sum = 0;
                    for column in 0..rows {
                        sum += matrix[i * rows + column] * matrix[j * rows + column];
                    }
                    sums.insert((i * rows + j) as u64, sum);
                }
            }
        }
    }
    sums.into_iter().collect()
}
