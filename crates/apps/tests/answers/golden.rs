//! The answers of numpy and scikit-learn, recorded by `golden/make.py`.

use std::path::PathBuf;

use gristmill::{Control, Input, Job};
use gristmill_apps::{
    BinnedSum, BytePairs, Column, Columns, Dialect, Histogram, KMeans, Line, Matrix, Pca, Product, RoundedSum, Start,
    Way,
};

use crate::Runs;

fn golden(name: &str) -> Input {
    Input::paths([PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden")).join(name)])
}

fn table(name: &str) -> Matrix {
    Matrix::read(&mut golden(name), &Dialect::default()).unwrap_or_else(|error| panic!("{error}")).0
}

/// Asserts equality to twelve digits of the largest number.
fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-12 * largest, "number {at}: {found}, not {expected}");
    }
}

pub fn a_product_is_that_of_numpy(runs: &Runs) {
    let (a, b, expected) = (table("matrix-a.npy"), table("matrix-b.npy"), table("matrix-product.npy"));
    for way in [Way::SharedOutput, Way::Pairs] {
        let (mut product, _) = Product::of(&a, &b, way, |job| runs.run(job)).expect("a product");
        assert_eq!((product.rows, product.columns), (expected.rows, expected.columns));
        assert_near(product.values(), &expected.values);
    }
}

pub fn components_are_those_of_scikit_learn(runs: &Runs) {
    let (pca, _) = Pca::of(table("pca-data.csv"), 8, |job| runs.run(job)).expect("an analysis");
    assert_near(&pca.means, &table("pca-means.csv").values);
    assert_near(&pca.covariance.values, &table("pca-covariance.csv").values);
    let expected = table("pca-components.csv");
    for (number, component) in pca.components.iter().enumerate() {
        let [variance, share, direction @ ..] = expected.row(number) else { panic!("ten columns") };
        assert_near(&[component.variance, component.share], &[*variance, *share]);
        // The directions of components with similar variances depend on the last digits.
        assert!(component.direction.iter().zip(direction).all(|(a, b)| (a - b).abs() < 1e-9), "component {number}");
    }
}

pub fn centres_are_those_of_scikit_learn(runs: &Runs) {
    let (points, expected) = (table("kmeans-points.csv"), table("kmeans-centres.csv"));
    let question = KMeans { start: Start::First, ..KMeans::new(expected.rows) };
    let run = |job: Job<'_, _>, state: &[u8], control: &mut Control<'_, _>| runs.iterate(job, state, control);
    let (clusters, _) = question.find(&points, run).expect("centres");
    assert!(clusters.settled);
    for number in 0..expected.rows {
        let [size, centre @ ..] = expected.row(number) else { panic!("four columns") };
        assert_eq!(clusters.sizes[number] as f64, *size);
        assert_near(clusters.centres.row(number), centre);
    }
    assert_near(&[clusters.inertia], &table("kmeans-inertia.csv").values);
}

pub fn a_line_is_that_of_scikit_learn(runs: &Runs) {
    let expected = table("regression-line.csv").values;
    let columns = [Column::Number(1), Column::Number(2)];
    let (pairs, dialect) = (|| golden("regression-pairs.csv"), Dialect::default());
    for line in [
        BytePairs::fit(golden("regression.bin"), |job| runs.run(job)).expect("a line").0,
        Columns::<RoundedSum>::fit(pairs(), &dialect, columns.clone(), false, |job| runs.run(job))
            .expect("a line")
            .0
            .line,
        Columns::<BinnedSum>::fit(pairs(), &dialect, columns, false, |job| runs.run(job)).expect("a line").0.line,
    ] {
        let Line { n, slope, intercept, r, .. } = line;
        assert_eq!(n, 500);
        assert_near(&[slope, intercept, r.expect("y varies")], &expected);
    }
}

pub fn counts_of_colours_are_those_of_numpy(runs: &Runs) {
    let expected = table("histogram-counts.csv");
    let (counts, _) = Histogram::count(golden("histogram.bmp"), |job| runs.run(job)).expect("counted");
    for value in 0..256 {
        let found: Vec<f64> = counts.iter().map(|channel| channel[value] as f64).collect();
        assert_eq!(found, expected.row(value), "value {value}");
    }
}
