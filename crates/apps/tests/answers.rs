//! Tests that every application agrees with plain loops, on forked workers and on threads. Workers are forked, so the
//! test process has no other threads and runs the tests one by one.

#[path = "answers/golden.rs"]
mod golden;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gristmill::files::Memory;
use gristmill::{Control, Input, Isolation, Job, MapReduce, Outcome, Summary};
use gristmill_apps::{
    BinnedSum, BytePairs, Column, Columns, CountBy, Counts, Dialect, Error, Found, Histogram, KMeans, Keys, Matrix,
    Number, NumberPairs, Pca, Product, RoundedSum, Start, Sum, SumBy, TileSearch, Way,
};

fn main() {
    let tests: [Test; 26] = [
        ("bmp_colours_are_those_of_a_loop_over_pixels", bmp_colours_are_those_of_a_loop_over_pixels),
        ("png_and_jpeg_count_as_the_pixels_they_decode_to", png_and_jpeg_count_as_the_pixels_they_decode_to),
        ("files_that_are_not_images_are_named", files_that_are_not_images_are_named),
        ("byte_pairs_lie_on_the_line_of_the_textbook", byte_pairs_lie_on_the_line_of_the_textbook),
        ("csv_columns_lie_on_the_line_of_the_textbook", csv_columns_lie_on_the_line_of_the_textbook),
        ("columns_of_any_magnitude_lie_on_their_line", columns_of_any_magnitude_lie_on_their_line),
        ("pairs_without_a_line_are_refused", pairs_without_a_line_are_refused),
        ("groups_are_those_of_a_map", groups_are_those_of_a_map),
        ("matches_are_those_of_a_loop_over_lines", matches_are_those_of_a_loop_over_lines),
        ("keys_files_that_are_missing_or_empty_are_named", keys_files_that_are_missing_or_empty_are_named),
        ("centres_are_those_of_plain_lloyd_steps", centres_are_those_of_plain_lloyd_steps),
        ("k_means_plus_plus_finds_separate_clouds", k_means_plus_plus_finds_separate_clouds),
        (
            "covariances_are_those_of_three_loops_and_components_their_eigenvectors",
            covariances_are_those_of_three_loops_and_components_their_eigenvectors,
        ),
        ("states_at_each_depth_are_the_published_ones", states_at_each_depth_are_the_published_ones),
        ("a_goal_is_found_at_its_distance", a_goal_is_found_at_its_distance),
        ("puzzles_without_an_answer_are_refused", puzzles_without_an_answer_are_refused),
        ("products_are_those_of_three_loops", products_are_those_of_three_loops),
        (
            "products_of_many_factors_equal_repeated_multiplications",
            products_of_many_factors_equal_repeated_multiplications,
        ),
        ("results_beyond_the_largest_float_are_refused", results_beyond_the_largest_float_are_refused),
        ("means_whose_sum_overflows_are_right", means_whose_sum_overflows_are_right),
        ("questions_without_an_answer_are_refused", questions_without_an_answer_are_refused),
        ("a_product_is_that_of_numpy", golden::a_product_is_that_of_numpy),
        ("components_are_those_of_scikit_learn", golden::components_are_those_of_scikit_learn),
        ("centres_are_those_of_scikit_learn", golden::centres_are_those_of_scikit_learn),
        ("a_line_is_that_of_scikit_learn", golden::a_line_is_that_of_scikit_learn),
        ("counts_of_colours_are_those_of_numpy", golden::counts_of_colours_are_those_of_numpy),
    ];
    for isolation in [Isolation::Process, Isolation::Thread] {
        for (name, test) in tests {
            println!("{name} ({isolation:?})");
            test(&Runs { isolation, dir: tempfile::tempdir().expect("a directory") });
        }
    }
    println!("{} claims passed", 2 * tests.len());
}

/// A test: its claim and its function.
type Test = (&'static str, fn(&Runs));

/// The isolation of a test's jobs, and the folder for its files.
struct Runs {
    isolation: Isolation,
    dir: tempfile::TempDir,
}

impl Runs {
    /// Runs a job with small splits, so that it has many tasks.
    fn run<J: MapReduce>(&self, job: Job<'_, J>) -> Result<Outcome<J>, Error> {
        Ok(job.workers(2).isolation(self.isolation).split_bytes(3001).run()?)
    }

    /// Runs a job in steps.
    fn iterate<J: MapReduce>(
        &self,
        job: Job<'_, J>,
        state: &[u8],
        control: &mut Control<'_, J>,
    ) -> Result<Summary, Error> {
        Ok(job.workers(2).isolation(self.isolation).keep_bytes(64 << 20).iterate(state, control)?)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).expect("written");
        path
    }
}

/// Returns bytes without a pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn fails<T>(answer: Result<T, Error>) -> String {
    answer.map(|_| ()).expect_err("an error").to_string()
}

// histogram

/// Makes a 24-bit BMP of `width` x `height` pixels, with `gap` bytes between header and pixels.
fn bmp(width: usize, height: usize, gap: usize, pixels: &[u8]) -> Vec<u8> {
    let stride = (3 * width).next_multiple_of(4);
    let mut file = vec![0; 54 + gap];
    file[..2].copy_from_slice(b"BM");
    for (at, word) in [(10, 54 + gap), (14, 40), (18, width), (22, height), (26, 1), (28, 24)] {
        file[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
    }
    for row in pixels.chunks_exact(3 * width).take(height) {
        file.extend_from_slice(row);
        // Padding that would show if it were counted.
        file.resize(file.len() + stride - 3 * width, 77);
    }
    file
}

fn count_pixels(pixels: &[u8]) -> Counts {
    let mut counts = [[0; 256]; 3];
    for (at, byte) in pixels.iter().enumerate() {
        counts[at % 3][usize::from(*byte)] += 1;
    }
    counts
}

fn count(runs: &Runs, paths: &[&Path]) -> Result<Counts, Error> {
    Ok(Histogram::count(Input::paths(paths), |job| runs.run(job))?.0)
}

fn bmp_colours_are_those_of_a_loop_over_pixels(runs: &Runs) {
    let mut all = Vec::new();
    let mut paths = Vec::new();
    for (width, height, gap) in [(1, 1, 0), (5, 3, 0), (64, 100, 0), (333, 77, 10), (2, 4001, 1), (4000, 4, 2)] {
        let pixels = noise(3 * width * height);
        let path = runs.file(&format!("{width}x{height}.bmp"), &bmp(width, height, gap, &pixels));
        assert_eq!(count(runs, &[&path]).expect("counted"), count_pixels(&pixels), "{width} x {height}, gap {gap}");
        all.extend(pixels);
        paths.push(path);
    }
    // Bytes after the pixels are not counted, and several images are counted together.
    let mut long = bmp(5, 3, 0, &noise(45));
    long.extend([9; 100]);
    paths.push(runs.file("long.bmp", &long));
    all.extend(noise(45));
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    assert_eq!(count(runs, &paths).expect("counted"), count_pixels(&all));
}

#[cfg(feature = "images")]
fn png_and_jpeg_count_as_the_pixels_they_decode_to(runs: &Runs) {
    let rgb = image::RgbImage::from_raw(120, 50, noise(3 * 120 * 50)).expect("as many bytes");
    let (png, jpeg) = (runs.dir.path().join("a.png"), runs.dir.path().join("a.jpg"));
    rgb.save(&png).expect("written");
    rgb.save(&jpeg).expect("written");
    for path in [&png, &jpeg] {
        let decoded = image::open(path).expect("decoded").into_rgb8();
        let reversed: Vec<u8> = decoded.pixels().flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        assert_eq!(count(runs, &[path]).expect("counted"), count_pixels(&reversed), "{}", path.display());
    }
    let half = fs::read(&png).expect("read");
    let error = fails(count(runs, &[&runs.file("half.png", &half[..half.len() / 2])]));
    assert!(error.contains("half.png: cannot be decoded: "), "{error}");
}

#[cfg(not(feature = "images"))]
fn png_and_jpeg_count_as_the_pixels_they_decode_to(runs: &Runs) {
    let error = fails(count(runs, &[&runs.file("a.png", b"\x89PNG\r\n\x1a\n")]));
    assert!(error.contains("without the feature"), "{error}");
}

fn files_that_are_not_images_are_named(runs: &Runs) {
    let good = bmp(5, 3, 0, &noise(45));
    let with = |at: usize, value: u8| {
        let mut bad = good.clone();
        bad[at] = value;
        bad
    };
    let cases: [(&[u8], &str); 7] = [
        (b"GIF89a", "bad.bmp: is no BMP, PNG or JPEG image: it begins with the bytes 47 49 46 38"),
        (b"", "bad.bmp: is empty, and no image"),
        (&good[..30], "bad.bmp: is truncated: it ends after 30 bytes, within the BMP header of 54"),
        (&good[..90], "bad.bmp: is truncated: 5 x 3 pixels end at byte 102, and the file at byte 90"),
        (&with(28, 8), "bad.bmp: is a BMP of 8 bits per pixel; 24 are needed"),
        (&with(30, 1), "bad.bmp: is a compressed BMP (method 1)"),
        (&with(14, 12), "bad.bmp: is a BMP with a header of 12 bytes"),
    ];
    for (content, expected) in cases {
        let error = fails(count(runs, &[&runs.file("bad.bmp", content)]));
        assert!(error.contains(expected), "{error}");
    }
    let error = fails(count(runs, &[Path::new("/no/such.bmp")]));
    assert!(error.starts_with("cannot read /no/such.bmp: "), "{error}");
}

// linear regression

/// Returns slope, intercept and r by the textbook formulas about the means.
fn textbook(pairs: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = pairs.len() as f64;
    let (x, y) = (pairs.iter().map(|pair| pair.0).sum::<f64>() / n, pairs.iter().map(|pair| pair.1).sum::<f64>() / n);
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let (a, b) = (pair.0 - x, pair.1 - y);
        (xx, yy, xy) = (xx + a * a, yy + b * b, xy + a * b);
    }
    (xy / xx, y - xy / xx * x, xy / (xx * yy).sqrt())
}

fn byte_pairs_lie_on_the_line_of_the_textbook(runs: &Runs) {
    for count in [2, 3, 1000, 40_001] {
        let bytes = noise(2 * count);
        let pairs: Vec<_> = bytes.chunks_exact(2).map(|pair| (f64::from(pair[0]), f64::from(pair[1]))).collect();
        let input = Input::bytes("pairs", &bytes).expect("in memory");
        let (line, _) = BytePairs::fit(input, |job| runs.run(job)).expect("a line");
        let (slope, intercept, r) = textbook(&pairs);
        assert_eq!(line.n, count as u64);
        assert!(near(line.slope, slope) && near(line.intercept, intercept), "{line:?}");
        assert!(line.r.is_some_and(|found| near(found, r)), "{line:?}");
    }
}

fn fit(runs: &Runs, text: &str, columns: [Column; 2]) -> Result<gristmill_apps::Line, Error> {
    let path = runs.file("columns.csv", text.as_bytes());
    let (input, dialect) = (|| Input::paths([&path]), Dialect::default());
    let rounded = Columns::<RoundedSum>::fit(input(), &dialect, columns.clone(), false, |job| runs.run(job))?.0.line;
    let binned = Columns::<BinnedSum>::fit(input(), &dialect, columns, false, |job| runs.run(job))?.0.line;
    assert!(near(rounded.slope, binned.slope) && near(rounded.intercept, binned.intercept), "{rounded:?} {binned:?}");
    Ok(rounded)
}

fn numbered(x: usize, y: usize) -> [Column; 2] {
    [Column::Number(x), Column::Number(y)]
}

fn named(x: &str, y: &str) -> [Column; 2] {
    [Column::Name(x.into()), Column::Name(y.into())]
}

fn csv_columns_lie_on_the_line_of_the_textbook(runs: &Runs) {
    // Far from zero, where plain sums of squares would lose the significant digits.
    let pairs: Vec<_> =
        noise(8000).chunks_exact(2).map(|two| (1e9 + f64::from(two[0]), f64::from(two[1]) / 8.0)).collect();
    // A quoted field may hold anything, including line ends.
    let rows: Vec<String> = pairs.iter().map(|(x, y)| format!("\"a,\nb\",{y},{x}\n")).collect();
    let (slope, intercept, r) = textbook(&pairs);
    let text = rows.concat();
    for (text, columns) in
        [(text.clone(), numbered(3, 2)), (format!("\"full\nname\",height,time\n{text}"), named("time", "height"))]
    {
        let line = fit(runs, &text, columns).expect("a line");
        assert_eq!(line.n, 4000);
        // The intercept is 10^9 away from the points.
        assert!((line.slope - slope).abs() < 1e-9 && near(line.intercept, intercept), "{line:?} {slope} {intercept}");
        assert!(line.r.is_some_and(|found| near(found, r)), "{line:?}");
    }
    let flat = fit(runs, "1,5\n2,5\n", numbered(1, 2)).expect("a line");
    assert_eq!((flat.slope, flat.intercept, flat.r), (0.0, 5.0, None));
}

fn columns_of_any_magnitude_lie_on_their_line(runs: &Runs) {
    // For 1e-200 and 2e-200 the error said that x is the same in all pairs, r was NaN for such y, and squares of 1e200
    // were refused. The lines are from Python's fractions.Fraction.
    let least = 5e-324;
    let cases: [(&[[f64; 2]], [f64; 3]); 11] = [
        (&[[1e-200, 1.0], [2e-200, 3.0], [3e-200, 4.0]], [1.5e200, -1.0 / 3.0, 0.9819805060619657]),
        (
            &[[1.0, 1e-200], [3.0, 2e-200], [4.0, 3e-200]],
            [6.428571428571429e-201, 2.857142857142857e-201, 0.9819805060619657],
        ),
        (&[[1e200, 1.0], [2e200, 3.0], [3e200, 4.0]], [1.5e-200, -1.0 / 3.0, 0.9819805060619657]),
        (
            &[[1.0, 1e200], [3.0, 2e200], [4.0, 3e200]],
            [6.428571428571428e199, 2.8571428571428572e199, 0.9819805060619657],
        ),
        (&[[1e200, 1e-200], [2e200, 3e-200], [3e200, 4e-200]], [0.0, -3.3333333333333335e-201, 0.9819805060619657]),
        (&[[1e-200, 1e-200], [2e-200, 3e-200], [3e-200, 4e-200]], [1.5, -3.3333333333333335e-201, 0.9819805060619657]),
        (&[[1.0, -1.7e308], [2.0, 1.7e308], [3.0, 0.0]], [8.5e307, -1.7e308, 0.5]),
        (&[[1.0, least], [2.0, 2.0 * least], [3.0, 4.0 * least]], [2.0 * least, -least, 0.9819805060619657]),
        // Large and small numbers in one column.
        (
            &[[1.0, 1.0], [1e200, 2.0], [3.0, 3.0], [1e-200, 4.0]],
            [-6.666666666666667e-201, 8.0 / 3.0, -0.2581988897471611],
        ),
        (&[[0.0, 2e200], [1.0, 1.0], [2.0, 1e-200], [3.0, -1e200]], [-9e199, 1.6e200, -0.9233805168766387]),
        (&[[1e134, 1.0], [1e135, 2.0], [1e136, 7.0]], [5.855855855855855e-136, 7.0 / 6.0, 0.9972717797147971]),
    ];
    let close = |found: f64, expected: f64| (found - expected).abs() <= expected.abs() * 1e-13;
    for (pairs, [slope, intercept, r]) in cases {
        // The order of the rows decides what the numbers are summed relative to.
        for turn in 0..pairs.len() {
            let turned = pairs[turn..].iter().chain(&pairs[..turn]);
            let text: String = turned.map(|[x, y]| format!("{x:e},{y:e}\n")).collect();
            let line = fit(runs, &text, numbered(1, 2)).expect("a line");
            let is_right = close(line.slope, slope) && close(line.intercept, intercept);
            assert!(is_right && line.r.is_some_and(|found| close(found, r)), "{text}{line:?}");
        }
    }
    // In every pair the same y, whose square overflows or vanishes.
    for y in [1e308, 1e-308] {
        let flat = fit(runs, &format!("1,{y:e}\n2,{y:e}\n3,{y:e}\n"), numbered(1, 2)).expect("a line");
        assert_eq!((flat.slope, flat.intercept, flat.r), (0.0, y, None));
    }
}

fn pairs_without_a_line_are_refused(runs: &Runs) {
    let many = "1,2\n".repeat(2000);
    let cases = [
        (format!("{many}1,x\n{many}"), numbered(1, 2), "columns.csv line 2001: column 2: \"x\" is not a finite number"),
        (format!("{many}1\n"), numbered(1, 2), "columns.csv line 2001: this row has 1 field, and the first line has 2"),
        ("1,2\n".into(), numbered(1, 3), "columns.csv: there is no column 3: the first line has 2"),
        ("a,b\n1,2\n".into(), named("a", "c"), "columns.csv: there is no column \"c\"; the first line says a,b"),
        (many, numbered(1, 2), "x is 1 in all 2000 pairs"),
        ("1,2\n".into(), numbered(1, 2), "two pairs or more, and there are 1"),
        (String::new(), numbered(1, 2), "the input is empty"),
        ("1e-200,1\n1e-200,2\n".into(), numbered(1, 2), "x is 1e-200 in all 2 pairs"),
        ("1e308,1\n1e308,2\n".into(), numbered(1, 2), "x is 1e308 in all 2 pairs"),
        (
            "1e-200,1e200\n3e-200,2e200\n".into(),
            numbered(1, 2),
            "the slope of the line: it, or a number on the way to it, is beyond the largest floating-point number",
        ),
        ("a,b\n".into(), numbered(1, 2), "two pairs or more, and there are 0"),
    ];
    for (text, columns, expected) in cases {
        let error = fails(fit(runs, &text, columns));
        assert!(error.contains(expected), "{error}");
    }
    let odd = Input::paths([runs.file("odd.bin", &[1, 2, 3])]);
    let error = fails(BytePairs::fit(odd, |job| runs.run(job)));
    assert!(error.contains("odd.bin: has 3 bytes; byte pairs need an even number"), "{error}");
}

// group by

fn groups_are_those_of_a_map(runs: &Runs) {
    // Few keys, and enough keys that tables are emptied repeatedly.
    for keys in [7, 1 << 20] {
        let words = noise(8 * 30_000);
        let pairs: Vec<(u32, u32)> = words
            .as_chunks::<4>()
            .0
            .chunks_exact(2)
            .map(|pair| (u32::from_le_bytes(pair[0]) % keys, u32::from_le_bytes(pair[1])))
            .collect();
        let mut expected = BTreeMap::<u32, (u64, u64)>::new();
        for (key, value) in &pairs {
            let (sum, count) = expected.entry(*key).or_default();
            (*sum, *count) = (*sum + u64::from(*value), *count + 1);
        }
        let bytes: Vec<u8> = pairs.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()]).flatten().collect();
        let (sums, _) =
            runs.run(NumberPairs.job(Input::bytes("pairs", &bytes).expect("in memory")).expect("whole")).expect("sums");
        assert!(sums.iter().eq(expected.iter().map(|(key, (sum, _))| (*key, *sum))));

        let rows: String = pairs.iter().map(|(key, value)| format!("{value},\"k\n{key}\"\n")).collect();
        let mut input = Input::paths([runs.file("rows.csv", rows.as_bytes())]);
        let program = CountBy::csv(&mut input, &Dialect::default(), Column::Number(2)).expect("a table");
        let named: BTreeMap<_, _> =
            expected.iter().map(|(key, answer)| (format!("k\n{key}").into_bytes(), *answer)).collect();
        let counts_of = |program: &CountBy, input| {
            let (counts, _) = runs.run(program.job(input)).expect("counts");
            assert!(counts.iter().eq(named.iter().map(|(key, (_, count))| (&key[..], *count))));
        };
        counts_of(&program, input);

        // JSON with a line end in each key, and fields in a different order.
        let lines: String =
            pairs.iter().map(|(key, value)| format!("{{\"v\": {value}, \"k\":\"k\\n{key}\"}}\r\n")).collect();
        let path = runs.file("rows.jsonl", lines.as_bytes());
        counts_of(&CountBy::json_lines("k".into()), Input::paths([&path]));
        let program = SumBy::json_lines("k".into(), "v".into());
        let (sums, _) = runs.run(program.job(Input::paths([&path]))).expect("sums");
        let sums = sums.iter().map(|(key, sum)| (key, sum.value().expect("no overflow")));
        let named = || named.iter().map(|(key, (sum, _))| (&key[..], Some(Number::Whole((*sum).into()))));
        assert!(sums.eq(named()));
        let program = program.reproducible();
        let (sums, _) = runs.run(program.job(Input::paths([&path]))).expect("sums");
        assert!(sums.iter().map(|(key, sum)| (key, sum.value().expect("no overflow"))).eq(named()));
    }
}

// string match

fn matches_are_those_of_a_loop_over_lines(runs: &Runs) {
    let letters = noise(30_000);
    let words: Vec<Vec<u8>> = letters
        .chunks_exact(3)
        .map(|three| {
            vec![b'a' + three[0] % 2; usize::from(three[1] % 12)]
                .into_iter()
                .chain([b'x'][..usize::from(three[2] % 2)].iter().copied())
                .collect()
        })
        .collect();
    for ending in ["\n", "\r\n"] {
        let mut text: Vec<u8> = words.iter().flat_map(|word| [&word[..], ending.as_bytes()].concat()).collect();
        text.extend(b"aaaaaaaaax"); // The last line may lack its end.
        let keys = ["aaaaaaaaax", "b", "never", "aaaaaaaaaaa", "b", "", "ax\r", "aaaaaaaa"];
        let distinct = ["aaaaaaaaax", "b", "never", "aaaaaaaaaaa", "ax", "aaaaaaaa"];
        let mut expected: HashMap<&[u8], u64> = HashMap::new();
        for word in words.iter().map(Vec::as_slice).chain([&b"aaaaaaaaax"[..]]) {
            *expected.entry(word).or_default() += 1;
        }
        let expected: Vec<(&[u8], u64)> = distinct
            .iter()
            .map(|key| key.as_bytes())
            .map(|key| (key, expected.get(key).copied().unwrap_or(0)))
            .collect();
        assert!(expected.iter().filter(|(_, count)| *count > 0).count() >= 4, "keys that occur");
        let keys = Keys::read(&runs.file("keys", keys.join("\n").as_bytes()), Memory::of(1 << 20)).expect("keys");
        let (found, _) = keys.count(Input::paths([runs.file("words", &text)]), |job| runs.run(job)).expect("counted");
        assert_eq!(found, expected);
    }
}

fn keys_files_that_are_missing_or_empty_are_named(runs: &Runs) {
    let missing = fails(Keys::read(&runs.dir.path().join("missing"), Memory::of(1 << 20)));
    assert!(missing.contains("missing: cannot read the keys: No such file"), "{missing}");
    let empty = fails(Keys::read(&runs.file("empty", b"\n\r\n"), Memory::of(1 << 20)));
    assert!(empty.contains("empty: there is no key in it"), "{empty}");
}

// k-means

fn points(count: usize, columns: usize) -> Matrix {
    let values = noise(count * columns).into_iter().map(f64::from).collect();
    Matrix { rows: count, columns, values }
}

/// Performs Lloyd's steps from the first k points until no point changes its centre.
fn lloyd(points: &Matrix, k: usize) -> (Vec<Vec<f64>>, usize) {
    let mut centres: Vec<Vec<f64>> = (0..k).map(|row| points.row(row).to_vec()).collect();
    let mut nearest = vec![usize::MAX; points.rows];
    for step in 1.. {
        let mut changed = false;
        for (row, nearest) in nearest.iter_mut().enumerate() {
            let way =
                |centre: &[f64]| -> f64 { points.row(row).iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum() };
            let best = (0..k).min_by(|a, b| way(&centres[*a]).total_cmp(&way(&centres[*b]))).expect("a centre");
            changed |= std::mem::replace(nearest, best) != best;
        }
        if !changed {
            return (centres, step);
        }
        for (number, centre) in centres.iter_mut().enumerate() {
            let own: Vec<usize> = (0..points.rows).filter(|row| nearest[*row] == number).collect();
            for (dimension, place) in centre.iter_mut().enumerate().filter(|_| !own.is_empty()) {
                *place = own.iter().map(|row| points.row(*row)[dimension]).sum::<f64>() / own.len() as f64;
            }
        }
    }
    unreachable!("the loop has no end")
}

fn centres_are_those_of_plain_lloyd_steps(runs: &Runs) {
    for (count, columns, k) in
        [(2, 1, 1), (300, 1, 5), (331, 2, 4), (500, 3, 7), (200, 4, 3), (160, 7, 5), (9001, 2, 4)]
    {
        let points = points(count, columns);
        let question = KMeans { start: Start::First, ..KMeans::new(k) };
        let (clusters, _) =
            question.find(&points, |job, state, control| runs.iterate(job, state, control)).expect("centres");
        let (expected, steps) = lloyd(&points, k);
        for (row, centre) in expected.iter().enumerate() {
            assert!(
                clusters.centres.row(row).iter().zip(centre).all(|(a, b)| near(*a, *b)),
                "{count} x {columns}, k = {k}"
            );
        }
        assert_eq!((clusters.iterations, clusters.settled), (steps, true), "{count} x {columns}, k = {k}");
        assert_eq!(clusters.sizes.iter().sum::<u64>(), count as u64);
        let mut inertia = 0.0;
        for row in 0..count {
            let way =
                |centre: &Vec<f64>| -> f64 { points.row(row).iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum() };
            inertia += expected.iter().map(way).min_by(f64::total_cmp).expect("a centre");
        }
        assert!(near(clusters.inertia, inertia), "{} {inertia}", clusters.inertia);
    }
}

fn k_means_plus_plus_finds_separate_clouds(runs: &Runs) {
    // Six clouds of side 1, 1000 apart.
    let spread = noise(1200);
    let values = spread.chunks_exact(2).enumerate().flat_map(|(number, two)| {
        let cloud = (number % 6) as f64 * 1000.0;
        [cloud + f64::from(two[0]) / 255.0, f64::from(two[1]) / 255.0]
    });
    let points = Matrix { rows: 600, columns: 2, values: values.collect() };
    for seed in 0..5 {
        let question = KMeans { start: Start::PlusPlus { seed }, ..KMeans::new(6) };
        let (clusters, _) =
            question.find(&points, |job, state, control| runs.iterate(job, state, control)).expect("centres");
        assert_eq!(clusters.sizes, [100; 6], "seed {seed}");
        // The same seed gives the same centres, to the last bit.
        let (again, _) =
            question.find(&points, |job, state, control| runs.iterate(job, state, control)).expect("centres");
        assert_eq!(clusters, again);
    }
    // Fewer distinct points than centres.
    let same = Matrix { rows: 5, columns: 2, values: vec![3.0; 10] };
    let (clusters, _) =
        KMeans::new(3).find(&same, |job, state, control| runs.iterate(job, state, control)).expect("centres");
    assert_eq!(clusters.centres.values, [3.0; 6]);
}

// sliding tiles

/// Returns the number of states at each depth, and the result of the search.
fn search(runs: &Runs, question: &TileSearch) -> Result<(Vec<u64>, Found), Error> {
    let mut counts = Vec::new();
    let run = |job: Job<'_, _>, state: &[u8], control: &mut Control<'_, _>| runs.iterate(job, state, control);
    let (found, _) = question.run(run, |depth, states| {
        assert_eq!(depth as usize, counts.len());
        counts.push(states);
        ControlFlow::Continue(())
    })?;
    Ok((counts, found))
}

fn states_at_each_depth_are_the_published_ones(runs: &Runs) {
    // The 8-puzzle: Reinefeld, 1993. The 15-puzzle: sequence A089484 of the On-Line Encyclopedia of Integer Sequences.
    let eight = [
        1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485, 5638, 9529, 10878, 16993, 17110,
        23952, 20224, 24047, 15578, 14560, 6274, 3910, 760, 221, 2,
    ];
    let fifteen = [1, 2, 4, 10, 24, 54, 107, 212, 446, 946, 1948, 3938, 7808, 15544, 30821, 60842];
    let (counts, found) = search(runs, &TileSearch::new(3, 3)).expect("the 8-puzzle");
    assert_eq!((&counts[..], found.complete), (&eight[..], true));
    assert_eq!(counts.iter().sum::<u64>(), 181_440);
    let question = TileSearch { depth_max: Some(15), ..TileSearch::new(4, 4) };
    let (counts, found) = search(runs, &question).expect("the 15-puzzle");
    assert_eq!((&counts[..], found.complete), (&fifteen[..], false));
    // Half of all arrangements are reached, whatever the shape. On one row only the blank's place changes.
    for (rows, columns, states) in [(2, 2, 12), (2, 3, 360), (3, 2, 360), (2, 4, 20_160), (1, 5, 5), (5, 1, 5)] {
        let (counts, _) = search(runs, &TileSearch::new(rows, columns)).expect("a small puzzle");
        assert_eq!(counts.iter().sum::<u64>(), states, "{rows} x {columns}");
    }
}

fn a_goal_is_found_at_its_distance(runs: &Runs) {
    // One of the two farthest arrangements of the 8-puzzle.
    let far = TileSearch { goal: Some(vec![8, 6, 7, 2, 5, 4, 3, 0, 1]), ..TileSearch::new(3, 3) };
    let (counts, found) = search(runs, &far).expect("the 8-puzzle");
    assert_eq!((counts.len(), found.goal_depth), (32, Some(31)));
    let same = TileSearch { goal: Some(far.start.clone()), ..far.clone() };
    assert_eq!(search(runs, &same).expect("the start").1, Found { goal_depth: Some(0), complete: false });
    let near = TileSearch { depth_max: Some(10), ..far };
    assert_eq!(search(runs, &near).expect("ten steps").1, Found { goal_depth: None, complete: false });
}

fn puzzles_without_an_answer_are_refused(runs: &Runs) {
    let refused = |question: TileSearch| fails(search(runs, &question));
    let eight = TileSearch::new(3, 3);
    let swapped = TileSearch { goal: Some(vec![2, 1, 3, 4, 5, 6, 7, 8, 0]), ..eight.clone() };
    assert!(refused(swapped).contains("half of all others are out of reach"));
    let twice = refused(TileSearch { start: vec![1, 1, 3, 4, 5, 6, 7, 8, 0], ..eight.clone() });
    assert!(twice.contains("the start is 1,1,3,4,5,6,7,8,0; it needs each of the numbers 0 to 8 once"), "{twice}");
    let short = refused(TileSearch { goal: Some(vec![0, 1]), ..eight });
    assert!(short.contains("the goal is 0,1; it needs each of the numbers 0 to 8 once"), "{short}");
    for (rows, columns) in [(1, 1), (0, 3), (3, 6), (usize::MAX, 2)] {
        let text = refused(TileSearch { rows, columns, ..TileSearch::new(3, 3) });
        assert!(text.contains("squares was asked for; there can be 2 to 16"), "{text}");
    }
}

// principal components

fn covariances_are_those_of_three_loops_and_components_their_eigenvectors(runs: &Runs) {
    for (rows, columns) in [(2, 1), (10, 3), (50, 130), (300, 257)] {
        let data = points(rows, columns);
        let (pca, _) = Pca::of(data.clone(), 1 + columns / 2, |job| runs.run(job)).expect("an analysis");
        let mean = |column: usize| (0..rows).map(|row| data.row(row)[column]).sum::<f64>() / rows as f64;
        let means: Vec<f64> = (0..columns).map(mean).collect();
        assert!(pca.means.iter().zip(&means).all(|(a, b)| near(*a, *b)));
        for i in 0..columns {
            for j in 0..columns {
                let products = (0..rows).map(|row| (data.row(row)[i] - means[i]) * (data.row(row)[j] - means[j]));
                let expected = products.sum::<f64>() / (rows - 1) as f64;
                assert!((pca.covariance.row(i)[j] - expected).abs() < 1e-8, "{rows} x {columns}: {i}, {j}");
            }
        }
        let mut before = f64::INFINITY;
        for component in &pca.components {
            assert!(component.variance <= before + 1e-9);
            before = component.variance;
            assert!(near(component.direction.iter().map(|entry| entry * entry).sum::<f64>(), 1.0));
            for i in 0..columns {
                let product: f64 = pca.covariance.row(i).iter().zip(&component.direction).map(|(a, b)| a * b).sum();
                assert!((product - component.variance * component.direction[i]).abs() < 1e-6);
            }
        }
        let (whole, _) = Pca::of(data, columns, |job| runs.run(job)).expect("an analysis");
        assert!(near(whole.components.iter().map(|component| component.share).sum::<f64>(), 1.0));
    }
}

// matrix product

fn products_are_those_of_three_loops(runs: &Runs) {
    for (rows, inner, columns) in [(1, 1, 1), (3, 2, 5), (40, 70, 1), (1, 300, 40), (97, 33, 61), (300, 20, 100)] {
        // Whole numbers, so that the order of the sums does not matter.
        let (a, b) = (points(rows, inner), points(inner, columns));
        let expected: Vec<f64> = (0..rows * columns)
            .map(|at| (0..inner).map(|i| a.row(at / columns)[i] * b.row(i)[at % columns]).sum())
            .collect();
        for way in [Way::SharedOutput, Way::Pairs] {
            let (mut product, _) = Product::of(&a, &b, way, |job| runs.run(job)).expect("a product");
            assert_eq!((product.rows, product.columns), (rows, columns));
            assert_eq!(product.values(), expected, "{rows} x {inner} x {columns}, {way:?}");
        }
    }
}

fn products_of_many_factors_equal_repeated_multiplications(runs: &Runs) {
    for (rows, n, times) in [(1, 1, 1), (2, 3, 5), (130, 70, 4)] {
        // Small whole numbers, so that the order of the sums does not matter.
        let small =
            |matrix: Matrix| Matrix { values: matrix.values.iter().map(|value| value % 3.0).collect(), ..matrix };
        let (a, b) = (small(points(rows, n)), small(points(n, n)));
        let mut expected = a.clone();
        for _ in 0..times {
            let before = expected.clone();
            for (at, value) in expected.values.iter_mut().enumerate() {
                *value = (0..n).map(|i| before.row(at / n)[i] * b.row(i)[at % n]).sum();
            }
        }
        let powers = Product::of_powers(&a, &b, times, |job, state, control| runs.iterate(job, state, control));
        let (mut product, summary) = powers.expect("a product");
        assert_eq!((product.values(), summary.steps), (&expected.values[..], times));
    }
}

fn results_beyond_the_largest_float_are_refused(runs: &Runs) {
    // Products and covariances were printed as inf and NaN, with status 0.
    let matrix = |rows, columns, values: &[f64]| Matrix { rows, columns, values: values.to_vec() };
    let large = matrix(2, 2, &[1.0, 1.0, 1.0, 1e200]);
    for way in [Way::SharedOutput, Way::Pairs] {
        let why = fails(Product::of(&large, &large, way, |job| runs.run(job)));
        assert!(
            why.starts_with("row 2, column 2 of the product: it, or a number on the way to it, is beyond"),
            "{why}"
        );
    }
    // Infinities cancel each other to NaN, which meets zeros in the next step.
    let (a, b) = (matrix(1, 2, &[1e200, 1e200]), matrix(2, 2, &[1e200, 0.0, -1e200, 0.0]));
    for times in [1, 2, 3] {
        let powers = Product::of_powers(&a, &b, times, |job, state, control| runs.iterate(job, state, control));
        let why = fails(powers);
        assert!(why.contains("column 1 of the product: it, or a number on the way"), "{why}");
    }
    let analyse = |data: &[f64], components| fails(Pca::of(matrix(2, 2, data), components, |job| runs.run(job)));
    for components in [0, 1] {
        let why = analyse(&[1.0, 1e200, 2.0, -1e200], components);
        assert!(
            why.starts_with("the covariance of columns 2 and 2: it, or a number on the way to it, is beyond"),
            "{why}"
        );
    }
    // Squares that vanish gave components in any direction, and put all points to the first centre.
    let why = analyse(&[1e-200, 1e-200, 2e-200, -1e-200], 1);
    assert!(why.starts_with("the variances of all columns are below the smallest number"), "{why}");
    let find = |data: &[f64]| {
        let points = matrix(data.len(), 1, data);
        fails(KMeans::new(2).find(&points, |job, state, control| runs.iterate(job, state, control)))
    };
    assert!(find(&[1e-200, 2e-200, 5e-200]).starts_with("the points are so close to zero"));
    assert!(find(&[1e200, 2e200, 5e200]).starts_with("a sum of coordinates or of squared distances: it, or a number"));
}

fn means_whose_sum_overflows_are_right(runs: &Runs) {
    // The mean of 1e308 and 1e308 was inf.
    let data = Matrix { rows: 4, columns: 2, values: vec![1e308, 1.0, 1e308, 2.0, 1e308, 3.0, 1e308, 6.0] };
    let (pca, _) = Pca::of(data, 1, |job| runs.run(job)).expect("an analysis");
    assert_eq!(pca.means, [1e308, 3.0]);
    assert_eq!(pca.covariance.values[..3], [0.0; 3]);
    assert!(near(pca.covariance.values[3], 14.0 / 3.0), "{pca:?}");
}

fn questions_without_an_answer_are_refused(runs: &Runs) {
    let multiply = |a: &Matrix, b: &Matrix| fails(Product::of(a, b, Way::SharedOutput, |job| runs.run(job)));
    assert_eq!(
        multiply(&points(2, 3), &points(4, 5)),
        "2 x 3 times 4 x 5 is no product: the first factor needs as many columns as the second has rows"
    );
    assert_eq!(multiply(&Matrix::default(), &Matrix::default()), "a factor without numbers has no product");
    let (a, b) = (points(2, 3), points(3, 4));
    let powers = Product::of_powers(&a, &b, 2, |job, state, control| runs.iterate(job, state, control));
    assert_eq!(fails(powers), "3 x 4 has no powers: a matrix times itself is square");
    let find = |points: &Matrix, k| {
        fails(KMeans::new(k).find(points, |job, state, control| runs.iterate(job, state, control)))
    };
    assert_eq!(find(&Matrix::default(), 1), "there are no points");
    assert_eq!(find(&points(3, 2), 4), "4 centres were asked for; 3 points can have 1 to 3");
    assert_eq!(find(&points(3, 2), 0), "0 centres were asked for; 3 points can have 1 to 3");
    let analyse = |data, components| fails(Pca::of(data, components, |job| runs.run(job)));
    assert_eq!(analyse(points(1, 3), 0), "covariances need two rows or more, and there are 1");
    assert_eq!(analyse(points(3, 2), 3), "3 components were asked for, and 2 variables have only as many");
}
