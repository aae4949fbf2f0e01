//! Requests and ideal time of a group, and the resulting bandwidth (the paper's section 2.1).

use crate::know::work::ProgramWork;

/// `TotalMemoryRequest = sum of M_j`: returns the requests of a group.
pub fn total_requests(group: &[ProgramWork]) -> f64 {
    group.iter().map(|work| work.requests).sum()
}

/// `IdealTurnaroundTime = T_nN + (1/C) * sum_{i=1}^{N-C} T_ni`, where `T_n1 <= ... <= T_nN` are the times alone.
///
/// A round robin without any slowdown takes this long: the longest program, and an equal share of all the others that
/// did not run at the same time. With `N <= C` nothing is left to share, and the longest time remains.
///
/// The formula is damaged in our copy of the paper. This form gives the averages of its table 3 within 10 %. A program
/// with several threads counts as that many programs.
pub fn ideal_time_us(group: &[ProgramWork], processors: usize) -> f64 {
    let mut longest_first: Vec<(f64, usize)> = group.iter().map(|work| (work.alone_us, work.threads)).collect();
    longest_first.sort_by(|a, b| b.0.total_cmp(&a.0));
    let longest = longest_first.first().map_or(0.0, |(alone_us, _)| *alone_us);
    let (mut beside, mut shared) = (processors, 0.0);
    for (alone_us, threads) in longest_first {
        let fits = threads.min(beside);
        beside -= fits;
        shared += alone_us * (threads - fits) as f64;
    }
    longest + shared / processors.max(1) as f64
}

/// `IdealAverageBandwidth = TotalMemoryRequest / IdealTurnaroundTime`, in requests per microsecond; 0 without work.
pub fn ideal_average_bandwidth(group: &[ProgramWork], processors: usize) -> f64 {
    match ideal_time_us(group, processors) {
        0.0 => 0.0,
        time_us => total_requests(group) / time_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(alone_us: &[f64]) -> Vec<ProgramWork> {
        alone_us.iter().map(|&alone_us| ProgramWork { alone_us, requests: 10.0 * alone_us, threads: 1 }).collect()
    }

    #[test]
    fn total_memory_request_is_the_sum_of_all_programs() {
        assert_eq!(total_requests(&works(&[1.0, 2.0, 3.0])), 60.0);
        assert_eq!(total_requests(&[]), 0.0);
    }

    #[test]
    fn ideal_turnaround_time_is_the_longest_time_plus_a_share_of_the_rest() {
        // Two processors: 9 and 5 run at the same time, and 1 + 3 are shared.
        assert_eq!(ideal_time_us(&works(&[5.0, 1.0, 9.0, 3.0]), 2), 9.0 + (1.0 + 3.0) / 2.0);
        // Equal times: N / C of one.
        assert_eq!(ideal_time_us(&works(&[10.0; 28]), 8), 35.0);
    }

    #[test]
    fn ideal_turnaround_time_of_a_group_that_fits_is_that_of_its_longest_program() {
        assert_eq!(ideal_time_us(&works(&[2.0, 7.0]), 2), 7.0);
        assert_eq!(ideal_time_us(&works(&[7.0]), 8), 7.0);
        assert_eq!(ideal_time_us(&[], 8), 0.0);
    }

    #[test]
    fn a_program_with_threads_counts_as_that_many_programs() {
        let wide = ProgramWork { alone_us: 4.0, requests: 0.0, threads: 3 };
        assert_eq!(ideal_time_us(&[wide], 2), ideal_time_us(&works(&[4.0; 3]), 2));
        let with_another = [wide, works(&[6.0])[0]];
        assert_eq!(ideal_time_us(&with_another, 2), ideal_time_us(&works(&[6.0, 4.0, 4.0, 4.0]), 2));
    }

    #[test]
    fn ideal_average_bandwidth_is_requests_by_ideal_time() {
        assert_eq!(ideal_average_bandwidth(&works(&[10.0; 28]), 8), 28.0 * 100.0 / 35.0);
        assert_eq!(ideal_average_bandwidth(&[], 8), 0.0);
    }
}
