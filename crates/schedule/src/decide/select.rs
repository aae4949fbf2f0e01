//! Selects the programs that run in the next quantum (the paper's sections 2.1 and 4).
//!
//! 1. The program that has waited longest runs, so that none starves: a program waits at most as many quanta as there
//!    were programs ahead of it when it began to wait.
//! 2. The rest of the target, divided by the free processors, is the share of a processor. The program whose demand is
//!    nearest to its share runs too. This repeats until the processors are used up. Programs that are late (beyond the
//!    paper) go first.
//!
//! Each of the C steps examines N programs at most, and N more if there are pairs to keep apart.

/// A program that could run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its bandwidth in the next quantum, in requests per microsecond.
    pub demand: f64,
    /// The number of processors it will keep busy: its threads, less if it waits for input and output.
    pub processors: f64,
    /// The number of the last quantum in which it ran.
    pub last_ran: u64,
    /// It must run now, or it would end later than all others.
    pub is_late: bool,
}

/// Selects candidates, by their places, for this many processors and this bandwidth.
///
/// `conflict` tells whether two places should not run together; they do only if no other candidate is left. `looks`
/// is increased by the number of candidates that were examined.
pub fn select(
    candidates: &[Candidate],
    processors: f64,
    target: f64,
    conflict: Option<&dyn Fn(usize, usize) -> bool>,
    looks: &mut u64,
) -> Vec<usize> {
    /// The tolerance for sums of processor shares, which are not exact.
    const EXACT: f64 = 1e-9;
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let mut avoided = vec![false; candidates.len()];
    let (mut chosen, mut processors, mut bandwidth) = (Vec::new(), processors, target);
    while processors > EXACT && !left.is_empty() {
        *looks += left.len() as u64;
        let place = if chosen.is_empty() {
            (0..left.len()).min_by_key(|at| (candidates[left[*at]].last_ran, left[*at]))
        } else {
            let share = bandwidth / processors;
            let mut best = None;
            for (at, &place) in left.iter().enumerate() {
                let candidate = &candidates[place];
                if candidate.processors > processors + EXACT {
                    continue;
                }
                let distance = (candidate.demand - share * candidate.processors).abs();
                let rank = (!candidate.is_late, avoided[place], distance, candidate.last_ran, place);
                if best.is_none_or(|(_, least)| rank < least) {
                    best = Some((at, rank));
                }
            }
            best.map(|(at, _)| at)
        };
        let Some(at) = place else { break };
        let place = left.swap_remove(at);
        processors -= candidates[place].processors;
        bandwidth -= candidates[place].demand;
        if let Some(conflict) = conflict {
            *looks += left.len() as u64;
            left.iter().for_each(|other| avoided[*other] |= conflict(place, *other));
        }
        chosen.push(place);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(demand: f64, last_ran: u64) -> Candidate {
        Candidate { demand, processors: 1.0, last_ran, is_late: false }
    }

    fn chosen(candidates: &[Candidate], processors: f64, target: f64) -> Vec<usize> {
        select(candidates, processors, target, None, &mut 0)
    }

    #[test]
    fn the_program_that_waited_longest_runs_first_at_any_demand() {
        let candidates = [candidate(10.0, 5), candidate(90.0, 3), candidate(10.0, 4)];
        assert_eq!(chosen(&candidates, 2.0, 20.0)[0], 1);
    }

    #[test]
    fn the_program_nearest_to_the_remaining_share_runs_next() {
        // 50 of 60 are taken, so 10 are left for two: 5 each.
        let candidates = [candidate(50.0, 0), candidate(30.0, 1), candidate(6.0, 1), candidate(3.0, 1)];
        assert_eq!(chosen(&candidates, 3.0, 60.0), [0, 2, 3]);
        // With 140, there are 45 each.
        assert_eq!(chosen(&candidates, 3.0, 140.0), [0, 1, 2]);
    }

    #[test]
    fn programs_that_are_late_come_before_the_others() {
        let late = Candidate { is_late: true, ..candidate(90.0, 1) };
        let candidates = [candidate(10.0, 0), candidate(10.0, 1), late, candidate(10.0, 1)];
        assert_eq!(chosen(&candidates, 3.0, 30.0)[..2], [0, 2]);
    }

    #[test]
    fn a_program_with_threads_takes_their_processors_and_their_share() {
        let wide = Candidate { demand: 40.0, processors: 2.0, last_ran: 1, is_late: false };
        let candidates = [candidate(0.0, 0), wide, candidate(35.0, 1)];
        // A share of 20 per processor: 40 for two is exact.
        assert_eq!(chosen(&candidates, 3.0, 40.0), [0, 1]);
        // It does not fit next to the first on two processors.
        assert_eq!(chosen(&candidates, 2.0, 40.0), [0, 2]);
        // The program that has waited longest runs, however wide it is.
        let widest = Candidate { processors: 9.0, last_ran: 0, ..wide };
        assert_eq!(chosen(&[widest, candidate(1.0, 4)], 2.0, 40.0), [0]);
    }

    #[test]
    fn a_program_in_conflict_runs_only_if_no_other_is_left() {
        let candidates = [candidate(10.0, 0), candidate(10.0, 1), candidate(50.0, 1)];
        let conflict = |one: usize, other: usize| one + other == 1;
        assert_eq!(select(&candidates, 2.0, 20.0, Some(&conflict), &mut 0), [0, 2]);
        assert_eq!(select(&candidates[..2], 2.0, 20.0, Some(&conflict), &mut 0), [0, 1]);
    }

    #[test]
    fn a_decision_looks_at_no_more_than_n_times_c_programs() {
        for (count, processors) in [(10, 2), (100, 8), (1000, 64), (3000, 128)] {
            let candidates: Vec<Candidate> = (0..count).map(|at| candidate((at * 37 % 101) as f64, 0)).collect();
            let mut looks = 0;
            let chosen = select(&candidates, processors as f64, 1000.0, None, &mut looks);
            assert_eq!(chosen.len(), processors);
            // Each step has one candidate less.
            assert_eq!(looks, (count * processors - processors * (processors - 1) / 2) as u64);
        }
    }

    proptest! {
        /// Programs with any demands, some of them wide, on any machine.
        #[test]
        fn no_program_waits_more_quanta_than_there_are_programs(
            demands in prop::collection::vec((0.0..100.0_f64, 1..4_usize), 2..24),
            processors in 1..8_usize,
            target in 0.0..300.0_f64,
        ) {
            let mut candidates: Vec<Candidate> = demands
                .iter()
                .map(|(demand, threads)| Candidate { demand: *demand, processors: *threads as f64, last_ran: 0, is_late: false })
                .collect();
            for now in 1..200_u64 {
                let chosen = chosen(&candidates, processors as f64, target);
                prop_assert!(!chosen.is_empty());
                for place in chosen {
                    candidates[place].last_ran = now;
                }
                for candidate in &candidates {
                    prop_assert!(now - candidate.last_ran < candidates.len() as u64);
                }
            }
        }

        #[test]
        fn processors_are_never_promised_twice(
            demands in prop::collection::vec((0.0..100.0_f64, 0.1..1.0_f64), 1..24),
            processors in 1..8_usize,
        ) {
            let candidates: Vec<Candidate> =
                demands.iter().map(|(demand, share)| Candidate { demand: *demand, processors: *share, last_ran: 0, is_late: false }).collect();
            let mut chosen = chosen(&candidates, processors as f64, 100.0);
            let busy: f64 = chosen.iter().map(|place| candidates[*place].processors).sum();
            prop_assert!(busy <= processors as f64 + 1e-6);
            let count = chosen.len();
            chosen.sort_unstable();
            chosen.dedup();
            prop_assert_eq!(chosen.len(), count);
        }
    }
}
