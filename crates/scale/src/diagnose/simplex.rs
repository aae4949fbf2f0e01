//! Minimises a function of one or two numbers between 0 and 1.
//!
//! 1. A grid is laid over the square. The lowest place of each column is a start, because there may be several
//!    valleys.
//! 2. From each start Nelder and Mead's simplex descends to the bottom. A corner that would leave the square is
//!    mirrored at its edge; moving it onto the edge would flatten the simplex.
//! 3. A second, small simplex starts there, because the first may have collapsed on the way.

/// A place in the square. For a function of one number the second coordinate stays 0.
pub type Position = [f64; 2];

const BOTTOMS_MAX: usize = 3;
/// The distance below which two bottoms are one.
const APART: f64 = 0.02;
const STEPS_MAX: usize = 100;

/// Returns the lowest places of `f` and their values, the lowest first: at most three, one per valley.
pub fn bottoms(first: &[f64], second: &[f64], f: impl Fn(Position) -> f64) -> Vec<(Position, f64)> {
    let dimensions = if second.len() == 1 { 1 } else { 2 };
    let lowest = |places: &mut dyn Iterator<Item = Position>| {
        places.map(|place| (place, f(place))).min_by(|a, b| a.1.total_cmp(&b.1)).expect("a grid has places")
    };
    let mut found: Vec<(Position, f64)> = Vec::new();
    for column in first {
        let start = lowest(&mut second.iter().map(|row| [*column, *row]));
        // A long step may cross a kink into another valley; a short one may stop on a slope.
        for length in [0.05, 0.008] {
            let walked = walk(dimensions, start, length, 1e-5, &f);
            found.push(walk(dimensions, walked, length / 8.0, 1e-5, &f));
        }
    }
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut apart: Vec<(Position, f64)> = Vec::new();
    for bottom in found {
        let is_near =
            |other: &(Position, f64)| [0, 1].iter().all(|side| (other.0[*side] - bottom.0[*side]).abs() < APART);
        if apart.len() < BOTTOMS_MAX && !apart.iter().any(is_near) {
            apart.push(bottom);
        }
    }
    apart
}

/// Returns the lowest place near one of `starts`, less precisely.
pub fn nearby(dimensions: usize, starts: &[Position], f: impl Fn(Position) -> f64) -> Position {
    let bottom = |start: &Position| walk(dimensions, (*start, f(*start)), 0.02, 5e-4, &f);
    starts.iter().map(bottom).min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a start").0
}

fn walk(
    dimensions: usize,
    start: (Position, f64),
    length: f64,
    length_min: f64,
    f: &impl Fn(Position) -> f64,
) -> (Position, f64) {
    let valued = |place: Position| {
        let inside = place.map(|side| (1.0 - (1.0 - side.abs()).abs()).clamp(0.0, 1.0));
        (inside, f(inside))
    };
    let mut corners = vec![start];
    for side in 0..dimensions {
        let mut place = start.0;
        // Steps inwards if there is room.
        place[side] += if place[side] + length > 1.0 { -length } else { length };
        corners.push(valued(place));
    }
    for _ in 0..STEPS_MAX {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (corners[0], corners[dimensions]);
        let far = corners.iter().flat_map(|corner| [0, 1].map(|side| (corner.0[side] - best.0[side]).abs()));
        if far.fold(0.0, f64::max) < length_min {
            break;
        }
        let others = &corners[..dimensions];
        let middle = [0, 1].map(|side| others.iter().map(|corner| corner.0[side]).sum::<f64>() / dimensions as f64);
        let beyond = |by: f64| valued([0, 1].map(|side| middle[side] + by * (middle[side] - worst.0[side])));
        let reflected = beyond(1.0);
        let next = if reflected.1 < best.1 {
            let expanded = beyond(2.0);
            if expanded.1 < reflected.1 { expanded } else { reflected }
        } else if reflected.1 < corners[dimensions - 1].1 {
            reflected
        } else {
            beyond(if reflected.1 < worst.1 { 0.5 } else { -0.5 })
        };
        if next.1 < worst.1 {
            corners[dimensions] = next;
        } else {
            for corner in &mut corners[1..] {
                *corner = valued([0, 1].map(|side| (corner.0[side] + best.0[side]) / 2.0));
            }
        }
    }
    corners.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("it has corners")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dimensions: usize, f: impl Fn(Position) -> f64) -> (Position, f64) {
        let grid: Vec<f64> = (0..9).map(|at| f64::from(at) / 8.0).collect();
        bottoms(&grid, if dimensions == 1 { &[0.0] } else { &grid }, f)[0]
    }

    #[test]
    fn a_valley_is_found_anywhere() {
        for x in [0.0, 0.013, 0.37, 1.0] {
            let (place, _) = found(1, |[a, b]| (a - x).powi(2) + b);
            assert!((place[0] - x).abs() < 1e-4 && place[1] == 0.0, "{x}: {place:?}");
            for y in [0.0, 0.52, 0.999, 1.0] {
                // Long and narrow, across both axes.
                let (place, _) = found(2, |[a, b]| (a - x + b - y).powi(2) + 0.01 * (a - x - b + y).powi(2));
                assert!((place[0] - x).abs() < 1e-3 && (place[1] - y).abs() < 1e-3, "{x} {y}: {place:?}");
            }
        }
    }

    #[test]
    fn the_search_passes_kinks_and_plains() {
        let (place, _) = found(2, |[a, b]| (a - 0.3).abs().max((b - 0.7).abs()));
        assert!((place[0] - 0.3).abs() < 1e-3 && (place[1] - 0.7).abs() < 1e-3, "{place:?}");
        assert_eq!(found(2, |_| 1.0).1, 1.0);
    }
}
