//! Regions of a curve: where more workers gain, saturate or lose, the three parts of the U.

use crate::diagnose::noise::Noise;
use crate::diagnose::times::Point;

/// The effect of more workers on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The time falls, by at least a tenth when workers double.
    Gain,
    /// The time hardly changes.
    Saturation,
    /// The time rises.
    Loss,
    /// The noise hides any change.
    Unclear,
}

/// A region of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestRegion {
    /// The number of workers at its beginning.
    pub from: u64,
    /// The number of workers at its end.
    pub to: u64,
    /// The effect of more workers in between.
    pub trend: Trend,
}

/// The slope, log time over log workers, of a tenth less time for twice the workers. Perfect scaling has -1.
const GAIN: f64 = -0.152;
/// The slope of three percent more time for twice the workers.
const LOSS: f64 = 0.0426;

/// Returns the regions between neighbouring points. Regions of equal trend are merged.
pub fn regions(points: &[Point], noise: Option<Noise>) -> Vec<BestRegion> {
    let mut regions: Vec<BestRegion> = Vec::new();
    for pair in points.windows(2) {
        let [few, many] = pair else { continue };
        let change = (many.median() / few.median()).ln();
        let doubled = (many.workers as f64 / few.workers as f64).ln();
        let chance = noise.map_or(0.0, |noise| noise.apart(few, many));
        let trend = match change / doubled {
            ..=GAIN if change < -chance => Trend::Gain,
            LOSS.. if change > chance => Trend::Loss,
            // So little that even with the noise it is neither.
            _ if chance < -GAIN * doubled => Trend::Saturation,
            _ => Trend::Unclear,
        };
        match regions.last_mut() {
            Some(last) if last.trend == trend => last.to = many.workers,
            _ => regions.push(BestRegion { from: few.workers, to: many.workers, trend }),
        }
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[(u64, &[f64])]) -> Vec<(u64, u64, Trend)> {
        let points: Vec<Point> =
            times.iter().map(|(workers, seconds)| Point { workers: *workers, seconds: seconds.to_vec() }).collect();
        let regions = regions(&points, Noise::of_repeats(&points));
        regions.iter().map(|region| (region.from, region.to, region.trend)).collect()
    }

    #[test]
    fn a_u_has_three_parts() {
        let times: &[(u64, &[f64])] =
            &[(1, &[8.0]), (2, &[4.1]), (4, &[2.3]), (8, &[2.2]), (16, &[2.2]), (32, &[2.6]), (64, &[3.5])];
        assert_eq!(of(times), [(1, 4, Trend::Gain), (4, 16, Trend::Saturation), (16, 64, Trend::Loss)]);
        assert!(of(&times[..1]).is_empty());
    }

    #[test]
    fn noise_is_neither_a_loss_nor_a_gain() {
        let times: &[(u64, &[f64])] =
            &[(1, &[8.0, 8.2, 8.4]), (2, &[4.0, 4.2, 4.4]), (4, &[2.9, 4.0, 5.5]), (8, &[2.9, 4.3, 5.7])];
        assert_eq!(of(times), [(1, 2, Trend::Gain), (2, 8, Trend::Unclear)]);
    }
}
