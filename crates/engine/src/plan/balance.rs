//! Balance: which reducer owns which partition, if a few keys have many of the pairs.
//!
//! Where values combine in map, a partition is as large as its keys are many, and hashing makes partitions alike.
//! Without that, a key with a tenth of the pairs makes its partition as large as a tenth of the job. OPS (section 3.3)
//! predicts the sizes of partitions from the first map outputs, and places the largest first. Pages are sent to owners
//! from the first one on here, so sizes are counted in a sample before the first worker starts.

use crate::plan::job_plan::Plan;
use crate::plan::known::Known;

/// The share of its reducer's fair part that a key must have, in the small sample, before partitions are weighed.
const HEAVY_MIN: f64 = 0.125;
/// Weighing takes at most this part of the time that the maps are expected to take.
const WORTH: f64 = 0.05;
/// The time in which enough pairs can be counted, and the longest wait for them.
const PATIENCE_MIN_MS: f64 = 2.0;
const PATIENCE_MAX_MS: f64 = 100.0;

/// Returns how long a job should wait to have its partitions weighed; `None` if they will be alike, or if their owners
/// must not depend on a sample. `chooses` says whether the program chooses the partitions of its keys.
pub(crate) fn patience_ms(known: &Known<'_>, plan: &Plan, chooses: bool) -> Option<u32> {
    let sample = known.sample.filter(|sample| sample.told_apart > 0)?;
    let fair_bytes = sample.told_bytes as f64 / plan.reduce_workers as f64;
    let is_skewed = chooses || sample.heaviest_bytes as f64 >= HEAVY_MIN * fair_bytes;
    // A job that is continued must find each partition where it was before.
    let is_open = !known.program.iterates && known.settings.checkpoint.is_none();
    if plan.combining.in_map || plan.ranged || plan.reduce_workers == 1 || !is_skewed || !is_open {
        return None;
    }
    let patience_ms = WORTH * known.work_ns() / plan.map_at_once as f64 / 1e6;
    (patience_ms >= PATIENCE_MIN_MS).then_some(patience_ms.min(PATIENCE_MAX_MS) as u32)
}

/// Returns the reducer of each partition: the first partitions go to one reducer each, which is named after it, and the
/// others to whichever reducer has least so far, the largest first (Graham 1969). Partitions of equal weights go round.
///
/// # Panics
/// If there are fewer partitions than reducers.
pub(crate) fn largest_first(weights: &[f64], reducers: usize) -> Vec<usize> {
    let mut owners: Vec<usize> = (0..weights.len()).collect();
    let mut loads = weights[..reducers].to_vec();
    let mut rest: Vec<usize> = (reducers..weights.len()).collect();
    rest.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    for partition in rest {
        let least = (0..reducers).min_by(|a, b| loads[*a].total_cmp(&loads[*b])).expect("there are reducers");
        owners[partition] = least;
        loads[least] += weights[partition];
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the fullest reducer has, in proportion to a fair part.
    fn fullest(weights: &[f64], owners: &[usize], reducers: usize) -> f64 {
        let load = |reducer| (0..weights.len()).filter(|at| owners[*at] == reducer).map(|at| weights[at]).sum::<f64>();
        (0..reducers).map(load).fold(0.0, f64::max) / (weights.iter().sum::<f64>() / reducers as f64)
    }

    #[test]
    fn equal_partitions_go_round() {
        let expected: Vec<usize> = (0..64).map(|partition| partition % 5).collect();
        assert_eq!(largest_first(&[0.25; 64], 5), expected);
    }

    #[test]
    fn the_largest_partition_keeps_its_reducer_for_itself() {
        let mut weights = vec![1.0; 64];
        weights[37] = 30.0;
        let owners = largest_first(&weights, 4);
        let with_it = (0..64).filter(|at| owners[*at] == owners[37]).count();
        assert_eq!(with_it, 2, "itself, and the one that the reducer is named after");
        assert!((0..4).all(|reducer| owners[reducer] == reducer));
    }

    /// Eight workers got 1.4 times the fair part at most, 32 workers 2.2 times, when partitions went round.
    #[test]
    fn partitions_of_zipf_keys_are_balanced() {
        for (exponent, reducers) in [(0.9, 8), (0.9, 16), (0.9, 32), (1.2, 8)] {
            let mut weights = vec![0.0; reducers * 8];
            let mut largest = 0f64;
            for key in 1..100_000usize {
                let pairs = (key as f64).powf(-exponent);
                // Any hash will do.
                weights[key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & (reducers * 8 - 1)] += pairs;
                largest = largest.max(pairs);
            }
            let fair = weights.iter().sum::<f64>() / reducers as f64;
            let largest_partition = weights.iter().copied().fold(0.0, f64::max) / fair;
            let bound = 1.1f64.max(largest_partition + 0.2);
            let owners = largest_first(&weights, reducers);
            let found = fullest(&weights, &owners, reducers);
            assert!(
                found <= bound,
                "{exponent}, {reducers} reducers: {found}, the largest partition has {largest_partition}"
            );
        }
    }
}
