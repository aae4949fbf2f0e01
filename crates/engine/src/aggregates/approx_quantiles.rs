//! Estimates quantiles of numbers.

use std::cmp::Ordering;

use datasketches::tdigest::{TDigest, TDigestMut};

use crate::data::datum::{Bytes, Datum};
use crate::program::aggregate::Aggregate;

/// The parameter k: a digest has about 2 k centroids at most.
const COMPRESSION: u16 = 200;

/// An estimate of the median of numbers and of their other quantiles (t-digest: Dunning and Ertl, arXiv:1902.04023).
///
/// It is written in at most 7 KB; while numbers are added, it takes up to 33 KB of memory.
///
/// The number that is returned for a quantile has a rank that is off by about 1 % of the count at most, and by less the
/// closer it is to the least or the greatest. There is no guarantee for that: it is so for the distributions that the
/// tests have, and inputs can be made on purpose for which it is not. The order in which numbers are added and merged
/// changes the result within that error.
///
/// A number that is infinite or not a number (NaN) is an error of its record.
///
/// ```
/// use gristmill::Aggregate;
/// use gristmill::aggregates::{ApproxQuantiles, Quantiles};
///
/// let mut depths = Quantiles::default();
/// (0..=1000).for_each(|depth| ApproxQuantiles::add(&mut depths, f64::from(depth)));
/// assert!((depths.quantile(0.5).expect("there are numbers") - 500.0).abs() < 10.0);
/// assert_eq!((depths.quantile(0.0), depths.quantile(1.0)), (Some(0.0), Some(1000.0)));
/// ```
#[derive(Debug)]
pub enum ApproxQuantiles {}

/// The owned form of [`ApproxQuantiles`].
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    digest: Option<Box<TDigestMut>>,
}

/// The borrowed form of [`ApproxQuantiles`].
#[derive(Clone, Copy, Debug)]
pub struct QuantilesRef<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Live(&'a TDigestMut),
    /// Without bytes, no number was added.
    Written(&'a [u8]),
}

impl Quantiles {
    /// Returns the number below which this share of the numbers lies, if there are any: `quantile(0.5)` is the median.
    ///
    /// # Panics
    ///
    /// If the share is not between 0 and 1.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        ApproxQuantiles::lend(self).quantile(share)
    }

    /// Returns the quantiles of several shares in one pass, if there are numbers.
    ///
    /// # Panics
    ///
    /// If a share is not between 0 and 1.
    pub fn quantiles(&self, shares: &[f64]) -> Option<Vec<f64>> {
        ApproxQuantiles::lend(self).quantiles(shares)
    }

    /// Returns how many numbers there were.
    pub fn count(&self) -> u64 {
        ApproxQuantiles::lend(self).count()
    }
}

impl QuantilesRef<'_> {
    /// Returns the number below which this share of the numbers lies, if there are any: `quantile(0.5)` is the median.
    ///
    /// # Panics
    ///
    /// If the share is not between 0 and 1.
    pub fn quantile(self, share: f64) -> Option<f64> {
        self.quantiles(&[share]).map(|found| found[0])
    }

    /// Returns the quantiles of several shares in one pass, if there are numbers.
    ///
    /// # Panics
    ///
    /// If a share is not between 0 and 1.
    pub fn quantiles(self, shares: &[f64]) -> Option<Vec<f64>> {
        assert!(
            shares.iter().all(|share| (0.0..=1.0).contains(share)),
            "a share is 0 to 1, and not all of {shares:?} are"
        );
        let digest: TDigest = ApproxQuantiles::own(self).digest?.freeze();
        digest.quantiles(shares).expect("they are shares")
    }

    /// Returns how many numbers there were.
    pub fn count(self) -> u64 {
        match self.0 {
            Form::Live(digest) => digest.total_weight(),
            Form::Written(_) => ApproxQuantiles::own(self).digest.map_or(0, |digest| digest.total_weight()),
        }
    }

    fn with_bytes<R>(self, look: impl FnOnce(&[u8]) -> R) -> R {
        match self.0 {
            Form::Live(digest) => look(&digest.clone().serialize()),
            Form::Written(bytes) => look(bytes),
        }
    }
}

impl Datum for ApproxQuantiles {
    type Ref<'a> = QuantilesRef<'a>;
    type Owned = Quantiles;
    const WIDTH: Option<usize> = None;

    fn width(value: QuantilesRef<'_>) -> usize {
        value.with_bytes(<[u8]>::len)
    }

    fn write(value: QuantilesRef<'_>, to: &mut [u8]) {
        value.with_bytes(|bytes| to.copy_from_slice(bytes));
    }

    fn read(from: &[u8]) -> QuantilesRef<'_> {
        QuantilesRef(Form::Written(from))
    }

    fn own(value: QuantilesRef<'_>) -> Quantiles {
        let digest = match value.0 {
            Form::Live(digest) => Some(digest.clone()),
            Form::Written([]) => None,
            Form::Written(bytes) => Some(TDigestMut::deserialize(bytes).expect("a digest was written")),
        };
        Quantiles { digest: digest.map(Box::new) }
    }

    fn lend(value: &Quantiles) -> QuantilesRef<'_> {
        QuantilesRef(value.digest.as_ref().map_or(Form::Written(&[]), |digest| Form::Live(digest)))
    }

    fn compare(a: QuantilesRef<'_>, b: QuantilesRef<'_>) -> Ordering {
        a.with_bytes(|a| b.with_bytes(|b| a.cmp(b)))
    }

    fn prefix(value: QuantilesRef<'_>) -> u64 {
        value.with_bytes(Bytes::prefix)
    }

    fn to_text(value: QuantilesRef<'_>, to: &mut Vec<u8>) {
        value.with_bytes(|bytes| to.extend_from_slice(bytes));
    }
}

impl Aggregate for ApproxQuantiles {
    type Item = f64;

    fn add(digest: &mut Quantiles, number: f64) {
        assert!(number.is_finite(), "only finite numbers can be added to quantiles, and this is {number}");
        let empty = || Box::new(TDigestMut::new(COMPRESSION).expect("a compression of at least 10"));
        digest.digest.get_or_insert_with(empty).update(number);
    }

    fn merge(digest: &mut Quantiles, other: Quantiles) {
        match (&mut digest.digest, other.digest) {
            (Some(digest), Some(other)) => digest.merge(&other),
            (none, other) => *none = none.take().or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::contract::check_datum;

    fn digest(numbers: &[f64]) -> Quantiles {
        numbers.iter().fold(Quantiles::default(), |mut digest, number| {
            ApproxQuantiles::add(&mut digest, *number);
            digest
        })
    }

    /// Distributions of a hundred thousand numbers, from the same pseudo-random ones.
    fn distributions() -> Vec<(&'static str, Vec<f64>)> {
        let mut random = fastrand::Rng::with_seed(7);
        let uniform: Vec<f64> = (0..100_000).map(|_| random.f64()).collect();
        let with = |change: fn(f64) -> f64| uniform.iter().map(|number| change(*number)).collect::<Vec<f64>>();
        let mut sorted = uniform.clone();
        sorted.sort_by(f64::total_cmp);
        vec![
            ("exponential", with(|number| -(1.0 - number).ln())),
            ("long tail", with(|number| (1.0 - number).powf(-1.5))),
            ("few values", with(|number| (number * 10.0).floor())),
            ("two heaps", with(|number| if number < 0.3 { number } else { 1e9 + number })),
            ("descending", sorted.iter().rev().copied().collect()),
            ("ascending", sorted),
            ("uniform", uniform),
        ]
    }

    #[test]
    fn ranks_are_off_by_about_one_percent_at_most_however_the_parts_are_merged() {
        for (name, numbers) in distributions() {
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            for parts in [1, 7, 300] {
                let parts = numbers.chunks(numbers.len() / parts).map(digest);
                let found = parts.reduce(ApproxQuantiles::merged).expect("a part");
                assert!(ApproxQuantiles::width(ApproxQuantiles::lend(&found)) < 7_000, "{name}");
                for share in [0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0] {
                    let number = found.quantile(share).expect("numbers");
                    let all = sorted.len() as f64;
                    let below = sorted.partition_point(|other| *other < number) as f64 / all;
                    let not_above = sorted.partition_point(|other| *other <= number) as f64 / all;
                    let tail = share.min(1.0 - share);
                    let allowed = 0.0005 + 0.01 * (4.0 * tail * (1.0 - tail)).sqrt();
                    // Between two heaps, any number in the gap has the same rank.
                    assert!(
                        share >= below - allowed && share <= not_above + allowed,
                        "{name}: {number} for {share}, and its rank is {below} to {not_above}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_digest_keeps_the_contract_of_a_datum() {
        let digests = [
            digest(&[]),
            digest(&[1.0]),
            digest(&[2.0; 5_000]),
            digest(&(0..9_000).map(f64::from).collect::<Vec<_>>()),
        ];
        check_datum::<ApproxQuantiles>(digests.iter().map(ApproxQuantiles::lend));
        let largest = digests.iter().map(|digest| ApproxQuantiles::width(ApproxQuantiles::lend(digest))).max();
        assert!(largest < Some(7_000), "{largest:?} bytes");
    }

    #[test]
    #[should_panic(expected = "finite")]
    fn a_number_that_is_not_finite_is_refused() {
        digest(&[1.0, f64::NAN]);
    }
}
