//! The least value of a function of one or two numbers between 0 and 1.
//!
//! 1. A grid finds the valleys: there may be more than one low place.
//! 2. From the lowest of them Nelder and Mead's simplex walks to the bottom. A corner that would leave the square is mirrored
//!    on its edge; put onto the edge it would flatten the simplex.
//! 3. A second, small simplex starts there, because the first may have collapsed on the way.

/// A place in the square; of a function of one number the second stays 0.
pub type Place = [f64; 2];

const VALLEYS_MAX: usize = 3;
const STEPS_MAX: usize = 100;

/// Where to start: the places of a grid whose neighbours are higher, the lowest first.
pub fn valleys(first: &[f64], second: &[f64], f: impl Fn(Place) -> f64) -> Vec<Place> {
    let (columns, rows) = (first.len(), second.len());
    let place = |at: usize| [first[at % columns], second[at / columns]];
    let values: Vec<f64> = (0..rows * columns).map(|at| f(place(at))).collect();
    let around = |at: usize, end: usize| at.saturating_sub(1)..(at + 2).min(end);
    let is_low = |at: &usize| {
        let mut there = around(at / columns, rows)
            .flat_map(|row| around(at % columns, columns).map(move |column| row * columns + column));
        there.all(|other| values[*at] <= values[other])
    };
    let mut low: Vec<usize> = (0..values.len()).filter(is_low).collect();
    low.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    low.into_iter().take(VALLEYS_MAX).map(place).collect()
}

/// The place with the least value of `f` that is found from `starts`, of which there is one, and that value.
pub fn least(dimensions: usize, starts: &[Place], f: impl Fn(Place) -> f64) -> (Place, f64) {
    let bottom = |start: &Place| {
        let walked = walk(dimensions, (*start, f(*start)), 0.05, 1e-5, &f);
        walk(dimensions, walked, 0.004, 1e-5, &f)
    };
    starts.iter().map(bottom).min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a start")
}

/// The same, where the bottom is known to be near one of `starts`, and need not be known so well.
pub fn nearby(dimensions: usize, starts: &[Place], f: impl Fn(Place) -> f64) -> Place {
    let bottom = |start: &Place| walk(dimensions, (*start, f(*start)), 0.02, 5e-4, &f);
    starts.iter().map(bottom).min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a start").0
}

fn walk(
    dimensions: usize,
    start: (Place, f64),
    length: f64,
    length_min: f64,
    f: &impl Fn(Place) -> f64,
) -> (Place, f64) {
    let valued = |place: Place| {
        let inside = place.map(|side| (1.0 - (1.0 - side.abs()).abs()).clamp(0.0, 1.0));
        (inside, f(inside))
    };
    let mut corners = vec![start];
    for side in 0..dimensions {
        let mut place = start.0;
        // Inwards, where there is room.
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

    fn found(dimensions: usize, f: impl Fn(Place) -> f64) -> (Place, f64) {
        let grid: Vec<f64> = (0..9).map(|at| f64::from(at) / 8.0).collect();
        least(dimensions, &valleys(&grid, if dimensions == 1 { &[0.0] } else { &grid }, &f), f)
    }

    #[test]
    fn a_valley_is_found_wherever_it_is() {
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
    fn a_kink_and_a_plain_are_no_trap() {
        let (place, _) = found(2, |[a, b]| (a - 0.3).abs().max((b - 0.7).abs()));
        assert!((place[0] - 0.3).abs() < 1e-3 && (place[1] - 0.7).abs() < 1e-3, "{place:?}");
        assert_eq!(found(2, |_| 1.0).1, 1.0);
    }
}
