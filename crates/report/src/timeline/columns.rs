//! The columns of a picture: buckets of tracks, made equally long and few enough.

use gristmill::stats::{PHASES, Phase, Timeline, Track};

/// The time of each phase in a column, in nanoseconds.
pub type Column = [u64; PHASES.len()];

/// The most columns of all workers together, so that a page of a thousand workers has a few megabytes.
const COLUMNS_MAX: u64 = 8192;
/// The fewest columns that a worker may have.
const COLUMNS_MIN: u64 = 32;

/// Returns the length of a column, which all workers have in common. It is a multiple of every track's.
pub fn width_ns(timeline: &Timeline) -> u64 {
    let widest_ns = timeline.tracks.iter().map(|track| track.width_ns).max().unwrap_or(1);
    let columns_max = (COLUMNS_MAX / timeline.tracks.len().max(1) as u64).max(COLUMNS_MIN);
    let is_fine = |width_ns: &u64| timeline.wall_ns.div_ceil(*width_ns) <= columns_max;
    (0..).map(|times| widest_ns << times).find(is_fine).expect("one column is enough")
}

/// Returns the columns of a track. The time before its worker was started is left out.
pub fn columns(track: &Track, width_ns: u64) -> Vec<Column> {
    let buckets = (width_ns / track.width_ns) as usize;
    let mut columns: Vec<Column> = track
        .buckets
        .chunks(buckets)
        .map(|chunk| std::array::from_fn(|phase| chunk.iter().map(|bucket| bucket[phase]).sum()))
        .collect();
    for (column, from_ns) in columns.iter_mut().zip((0..).map(|at| at * width_ns)) {
        let unborn_ns = track.born_ns.saturating_sub(from_ns).min(width_ns);
        let start = &mut column[Phase::Start as usize];
        *start = start.saturating_sub(unborn_ns);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(width_ns: u64, buckets: usize) -> Track {
        let mut of_map = [0; PHASES.len()];
        of_map[Phase::Map as usize] = width_ns;
        let buckets = vec![of_map; buckets];
        Track { number: 1, maps: true, reduces: true, born_ns: 0, end_ns: 0, width_ns, buckets }
    }

    #[test]
    fn tracks_of_different_resolution_share_their_columns() {
        let tracks = vec![track(8, 5), track(32, 3)];
        let timeline = Timeline { wall_ns: 96, tracks, marks: Vec::new(), marked_every: 1 };
        assert_eq!(width_ns(&timeline), 32);
        let map = |track| columns(track, 32).iter().map(|column| column[Phase::Map as usize]).collect::<Vec<_>>();
        assert_eq!(timeline.tracks.iter().map(map).collect::<Vec<_>>(), [vec![32, 8], vec![32, 32, 32]]);
    }

    #[test]
    fn a_thousand_workers_have_few_columns_each() {
        let tracks = vec![track(8, 256); 1000];
        let timeline = Timeline { wall_ns: 8 * 256, tracks, marks: Vec::new(), marked_every: 1 };
        assert_eq!(width_ns(&timeline), 64);
    }

    #[test]
    fn the_time_before_the_birth_of_a_worker_is_not_drawn() {
        let mut born_late = track(8, 4);
        let mut of_start = [0; PHASES.len()];
        of_start[Phase::Start as usize] = 8;
        (born_late.buckets[0], born_late.buckets[1], born_late.born_ns) = (of_start, of_start, 13);
        let start: Vec<u64> = columns(&born_late, 8).iter().map(|column| column[Phase::Start as usize]).collect();
        assert_eq!(start, [0, 3, 0, 0]);
    }
}
