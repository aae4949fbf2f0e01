//! Basic-block vectors: the parts of its code that a program executed (the paper's section 3.2).

/// The bytes of code of a bucket, which approximate basic blocks.
const BUCKET_BYTES: u64 = 64;

/// The share of the samples in each bucket. The shares add up to 1 if there was any sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockVector {
    /// The shares, sorted by bucket.
    shares: Vec<(u64, f32)>,
}

/// The maximum number of buckets of a mean vector. Those with the smallest shares are dropped.
const BUCKETS_MAX: usize = 256;

impl BlockVector {
    /// Makes a quantum's vector from its samples.
    pub fn of(addresses: &[u64]) -> BlockVector {
        let mut hit: Vec<u64> = addresses.iter().map(|address| address / BUCKET_BYTES).collect();
        hit.sort_unstable();
        let same = hit.chunk_by(|a, b| a == b);
        BlockVector { shares: same.map(|all| (all[0], all.len() as f32 / addresses.len() as f32)).collect() }
    }

    /// Returns the Manhattan distance: 0 for equal vectors, 2 for vectors without a common bucket.
    pub fn distance(&self, other: &BlockVector) -> f32 {
        both(&self.shares, &other.shares).map(|(_, a, b)| (a - b).abs()).sum()
    }

    /// Updates the mean of `count - 1` vectors with the last of `count` vectors, `next`.
    pub fn take_in(&mut self, next: &BlockVector, count: u64) {
        let weight = 1.0 / count.max(1) as f32;
        self.shares = both(&self.shares, &next.shares)
            .map(|(bucket, mean, new)| (bucket, mean + (new - mean) * weight))
            .collect();
        if self.shares.len() > BUCKETS_MAX {
            self.shares.sort_by(|a, b| b.1.total_cmp(&a.1));
            self.shares.truncate(BUCKETS_MAX);
            let left: f32 = self.shares.iter().map(|(_, share)| share).sum();
            self.shares.iter_mut().for_each(|(_, share)| *share /= left);
            self.shares.sort_by_key(|(bucket, _)| *bucket);
        }
    }

    /// Makes a vector of stored shares.
    pub fn from_shares(mut shares: Vec<(u64, f32)>) -> BlockVector {
        shares.sort_by_key(|(bucket, _)| *bucket);
        shares.dedup_by_key(|(bucket, _)| *bucket);
        BlockVector { shares }
    }

    /// The buckets and their shares, in order.
    pub fn shares(&self) -> &[(u64, f32)] {
        &self.shares
    }
}

/// Returns every bucket of either list, with its share in both.
fn both<'v>(a: &'v [(u64, f32)], b: &'v [(u64, f32)]) -> impl Iterator<Item = (u64, f32, f32)> + 'v {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    std::iter::from_fn(move || {
        let bucket = match (a.peek(), b.peek()) {
            (None, None) => return None,
            (Some((bucket, _)), None) | (None, Some((bucket, _))) => *bucket,
            (Some((left, _)), Some((right, _))) => *left.min(right),
        };
        let share = |one: Option<&(u64, f32)>| one.map_or(0.0, |(_, share)| *share);
        let left = share(a.next_if(|(at, _)| *at == bucket));
        Some((bucket, left, share(b.next_if(|(at, _)| *at == bucket))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(addresses: &[u64]) -> BlockVector {
        BlockVector::of(addresses)
    }

    #[test]
    fn a_basic_block_vector_counts_samples_by_64_bytes_and_is_normalised() {
        assert_eq!(vector(&[0, 63, 64, 200]).shares(), [(0, 0.5), (1, 0.25), (3, 0.25)]);
        assert_eq!(vector(&[]).shares(), []);
    }

    #[test]
    fn manhattan_distance_is_zero_for_the_same_and_two_for_nothing_in_common() {
        let (a, b, c) = (vector(&[0, 64]), vector(&[0, 128]), vector(&[640]));
        assert_eq!((a.distance(&a), a.distance(&b), a.distance(&c)), (0.0, 1.0, 2.0));
        assert_eq!(b.distance(&a), a.distance(&b));
    }

    #[test]
    fn a_centroid_is_the_running_mean_of_its_vectors() {
        let mut mean = vector(&[0]);
        mean.take_in(&vector(&[64]), 2);
        mean.take_in(&vector(&[64]), 3);
        mean.take_in(&vector(&[64]), 4);
        let expected = [(0, 0.25), (1, 0.75)];
        assert!(
            mean.shares().iter().zip(expected).all(|(is, should)| is.0 == should.0 && (is.1 - should.1).abs() < 1e-6)
        );
    }

    #[test]
    fn a_centroid_keeps_a_bounded_number_of_buckets() {
        let mut mean = vector(&[0; 8]);
        for turn in 0..20_u64 {
            let far: Vec<u64> = (0..100).map(|at| (1 + turn * 100 + at) * 64).collect();
            mean.take_in(&vector(&far), turn + 2);
        }
        assert!(mean.shares().len() <= BUCKETS_MAX, "{}", mean.shares().len());
        let sum: f32 = mean.shares().iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
}
