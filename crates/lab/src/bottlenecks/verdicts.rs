//! When this machine agrees with a table of the paper. Each rule was fixed before anything was measured.

use gristmill_report::chart::milliseconds;
use gristmill_report::tally::Tally;

use crate::page::Judgement;

/// Numbers of threads and their efficiencies.
type Efficiencies<'e> = &'e [(u64, f64)];

const ONE_PROCESSOR: &str = "this machine has one processor: two threads take turns";

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn of_two(efficiencies: Efficiencies<'_>) -> Option<f64> {
    efficiencies.iter().find(|(threads, _)| *threads == 2).map(|(_, efficiency)| *efficiency)
}

/// Figure 1: one reader reads, and does not wait for other threads.
pub fn one_reader(waiting: f64) -> Judgement {
    Judgement::of(waiting < 0.5, || format!("it waits for other threads for {} of its time", percent(waiting)))
}

/// Figure 2: four readers are slower than one.
pub fn four_readers(one: &Tally, four: &Tally) -> Judgement {
    let slower = four.median >= 1.1 * one.median && !four.is_level_with(one);
    Judgement::of(slower, || {
        format!(
            "four readers take {:.2} times as long as one: a modern kernel hands over a file cheaply, or the spread hides it",
            four.median / one.median
        )
    })
}

/// Table 1: readers scale, less and less.
pub fn reading_scales(efficiencies: Efficiencies<'_>) -> Judgement {
    let Some(two) = of_two(efficiencies) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    let rising = efficiencies.windows(2).find(|pair| pair[1].1 > pair[0].1 + 0.05);
    match rising {
        _ if two < 0.8 => Judgement::Differs(format!("two readers have an efficiency of {}", percent(two))),
        Some([less, more]) => Judgement::Differs(format!(
            "{} readers are more efficient than {}: {} and {}",
            more.0,
            less.0,
            percent(more.1),
            percent(less.1)
        )),
        _ => Judgement::Agrees,
    }
}

/// Table 2: larger files scale as well as smaller ones, or better.
pub fn larger_files_scale_better(smaller: Efficiencies<'_>, larger: Efficiencies<'_>) -> Judgement {
    let Some(two) = of_two(larger) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    if two < 0.8 {
        return Judgement::Differs(format!("two readers have an efficiency of {}", percent(two)));
    }
    let worse = larger.iter().find_map(|(threads, efficiency)| {
        let (_, other) = smaller.iter().find(|(number, other)| number == threads && *other > efficiency + 0.05)?;
        Some((*threads, *efficiency, *other))
    });
    match worse {
        Some((threads, large, small)) => Judgement::Differs(format!(
            "{threads} readers have an efficiency of {} with the larger files and {} with those of table 1",
            percent(large),
            percent(small)
        )),
        None => Judgement::Agrees,
    }
}

/// Table 3: many readers wait for a lock in the kernel. `kernel` are numbers of readers, each with a processor, and the
/// share of their time in which they sleep in the kernel.
pub fn kernel_lock(kernel: Efficiencies<'_>, processors: u64) -> Judgement {
    let one = kernel.iter().find(|(readers, _)| *readers == 1).map_or(0.0, |(_, share)| *share);
    let most = kernel.iter().rfind(|(readers, _)| *readers >= 20);
    let Some((readers, most)) = most else {
        return Judgement::CannotBeAsked(format!(
            "the lock shows with 20 readers that run at the same time; this machine has {processors} processors"
        ));
    };
    Judgement::of(*most >= one + 0.05, || {
        format!("{readers} readers sleep in the kernel for {} of their time, one for {}", percent(*most), percent(one))
    })
}

/// Table 4: small chunks cost time. `waiting` is the greatest share of the readers' time in which they wait for others.
pub fn chunks_matter(greatest: &Tally, least: &Tally, waiting: f64) -> Judgement {
    if waiting < 0.01 {
        return Judgement::Undecided("readers wait for others less than 1 % of their time".into());
    }
    let slower = least.median >= 1.05 * greatest.median && !least.is_level_with(greatest);
    Judgement::of(slower, || {
        let [greatest, least] = [greatest.median, least.median].map(milliseconds);
        format!("the greatest chunks take {greatest}, the least {least}; so few rounds cost little here")
    })
}

/// Table 5: independent computation scales.
pub fn computation_scales(efficiencies: Efficiencies<'_>) -> Judgement {
    if of_two(efficiencies).is_none() {
        return Judgement::CannotBeAsked(ONE_PROCESSOR.into());
    }
    let low = efficiencies.iter().find(|(_, efficiency)| *efficiency < 0.85);
    low.map_or(Judgement::Agrees, |(workers, efficiency)| {
        Judgement::Differs(format!(
            "{workers} workers have an efficiency of {}; the start of workers is a part of a job this short",
            percent(*efficiency)
        ))
    })
}

/// Table 6: too little work to share.
pub fn nothing_to_share(best_speed_up: f64) -> Judgement {
    Judgement::of(best_speed_up <= 1.3, || format!("some number of workers is {best_speed_up:.2} times as fast as one"))
}

/// Table 7: the tree scales at first, and then memory is full.
pub fn tree_saturates(efficiencies: Efficiencies<'_>, processors: u64) -> Judgement {
    let Some(two) = of_two(efficiencies) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    if two < 0.85 {
        return Judgement::Differs(format!("two workers have an efficiency of {}", percent(two)));
    }
    match efficiencies.iter().find(|(workers, _)| *workers == 16) {
        None => Judgement::CannotBeAsked(format!(
            "the curve bends at 16 threads, and this machine has {processors} processors; so far it agrees"
        )),
        Some((_, sixteen)) => {
            Judgement::of(*sixteen < 0.7, || format!("16 workers have an efficiency of {}", percent(*sixteen)))
        }
    }
}

/// Figure 5: it takes as long without reading.
pub fn same_without_reading(with: &Tally, without: &Tally) -> Judgement {
    let apart = with.median / without.median - 1.0;
    Judgement::of(apart.abs() < 0.15, || format!("with reading it takes {:.2} times as long", apart + 1.0))
}

/// Figure 7: the traffic of the tree comes near to what memory can do.
pub fn memory_limits(traffic: f64, rate: f64) -> Judgement {
    Judgement::of(traffic >= 0.5 * rate, || {
        format!("it is {} of that rate, so memory bandwidth does not limit these workers", percent(traffic / rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(verdict: &Judgement) -> &'static str {
        verdict.words().0
    }

    /// The paper's own tables agree with the paper.
    #[test]
    fn the_papers_numbers_agree_with_it() {
        let middle = [(1, 1.0), (2, 0.95), (4, 0.83), (8, 0.54), (10, 0.45)];
        let large = [(1, 1.0), (2, 0.97), (5, 0.91), (10, 0.77), (15, 0.52), (20, 0.43)];
        assert_eq!(reading_scales(&middle), Judgement::Agrees);
        assert_eq!(larger_files_scale_better(&middle, &large), Judgement::Agrees);
        assert_eq!(kernel_lock(&[(1, 0.0), (5, 0.01), (20, 0.07), (40, 0.33)], 48), Judgement::Agrees);
        assert_eq!(computation_scales(&[(1, 1.0), (2, 0.99), (32, 0.98)]), Judgement::Agrees);
        assert_eq!(nothing_to_share(0.019 / 0.016), Judgement::Agrees);
        assert_eq!(tree_saturates(&[(1, 1.0), (2, 0.95), (8, 0.76), (16, 0.47)], 48), Judgement::Agrees);
        let [one, four] = [[12.0, 13.0, 14.0], [25.0, 26.0, 27.0]].map(|runs| Tally::of(&runs));
        assert_eq!(four_readers(&one, &four), Judgement::Agrees);
        let [greatest, least] = [[7.6, 7.7, 7.8], [9.3, 9.4, 9.5]].map(|runs| Tally::of(&runs));
        assert_eq!(chunks_matter(&greatest, &least, 0.1), Judgement::Agrees);
        // 208 GB in 5 s, and 60 % of 124 GB/s.
        assert_eq!(memory_limits(208.0 / 5.2, 75.0), Judgement::Agrees);
    }

    #[test]
    fn what_is_not_so_is_said_and_what_cannot_be_seen_is_open() {
        assert_eq!(words(&reading_scales(&[(1, 1.0), (2, 0.7)])), "does not agree");
        assert_eq!(words(&reading_scales(&[(1, 1.0)])), "cannot be asked here");
        assert_eq!(words(&reading_scales(&[(1, 1.0), (2, 0.85), (4, 0.95)])), "does not agree");
        assert_eq!(words(&larger_files_scale_better(&[(2, 0.95)], &[(2, 0.85)])), "does not agree");
        assert_eq!(words(&kernel_lock(&[(1, 0.0), (2, 0.5)], 2)), "cannot be asked here");
        let same = Tally::of(&[7.0, 7.1, 7.2]);
        assert_eq!(words(&chunks_matter(&same, &same, 0.001)), "undecided");
        assert_eq!(words(&chunks_matter(&same, &same, 0.1)), "does not agree");
        assert_eq!(words(&four_readers(&same, &same)), "does not agree");
        assert_eq!(words(&tree_saturates(&[(1, 1.0), (2, 0.9)], 2)), "cannot be asked here");
        assert_eq!(words(&tree_saturates(&[(1, 1.0), (2, 0.5)], 2)), "does not agree");
        assert_eq!(words(&same_without_reading(&same, &Tally::of(&[5.0]))), "does not agree");
        assert_eq!(words(&memory_limits(1.0, 20.0)), "does not agree");
    }
}
