//! When this machine agrees with a table of the paper. Each rule was fixed before anything was measured.

use gristmill_report::tally::Tally;

use super::scaling::{percents, quotient};
use crate::page::Judgement;

/// Numbers of threads and their efficiencies.
type Efficiencies<'e> = &'e [(u64, Tally)];

const ONE_PROCESSOR: &str = "this machine has one processor: two threads take turns";

fn of_two(efficiencies: Efficiencies<'_>) -> Option<&Tally> {
    efficiencies.iter().find(|(threads, _)| *threads == 2).map(|(_, efficiency)| efficiency)
}

/// Formats a factor and its range.
fn times(factor: &Tally) -> String {
    format!("{:.2} ({:.2} to {:.2}) times", factor.median, factor.least, factor.most)
}

/// Returns whether a value is at least `limit`; `None` if its range contains the limit.
fn reaches(value: &Tally, limit: f64) -> Option<bool> {
    (value.least >= limit || value.most < limit).then_some(value.least >= limit)
}

/// Returns the verdict of a claim that holds, does not, or holds in a part of the range of the runs.
fn judged(holds: Option<bool>, found: String) -> Judgement {
    match holds {
        Some(true) => Judgement::Agrees,
        Some(false) => Judgement::Differs(found),
        None => Judgement::Undecided(format!("{found}: the range of the runs contains the limit")),
    }
}

/// Returns true if a share is lower than another by more than 5 points, and in all runs.
fn is_lower(share: &Tally, other: &Tally) -> bool {
    share.median + 0.05 < other.median && share.most < other.least
}

/// Figure 1: one reader reads, and does not wait for other threads.
pub fn one_reader(waiting: &Tally) -> Judgement {
    let holds = reaches(waiting, 0.5).map(|waits| !waits);
    judged(holds, format!("it waits for other threads for {} of its time", percents(waiting)))
}

/// Figure 2: four readers are slower than one.
pub fn four_readers(one: &Tally, four: &Tally, processors: u64) -> Judgement {
    let slower = quotient(four, one);
    let found = format!("four readers take {} as long as one", times(&slower));
    if processors < 4 {
        return Judgement::CannotBeAsked(format!(
            "it takes four readers that run at the same time, and this machine has {processors} processors; on these, {found}"
        ));
    }
    judged(reaches(&slower, 1.1), found)
}

/// Returns whether two readers reach the efficiency that tables 1 and 2 ask for.
fn two_readers(two: &Tally, processors: u64) -> Judgement {
    let found = format!("two readers have an efficiency of {}", percents(two));
    match judged(reaches(two, 0.8), found) {
        Judgement::Differs(found) if processors < 3 => Judgement::CannotBeAsked(format!(
            "{found}, but with the thread that takes what they read they are three threads on {processors} processors"
        )),
        verdict => verdict,
    }
}

/// Table 1: readers scale, less and less.
pub fn reading_scales(efficiencies: Efficiencies<'_>, processors: u64) -> Judgement {
    let Some(two) = of_two(efficiencies) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    match efficiencies.windows(2).find(|pair| is_lower(&pair[0].1, &pair[1].1)) {
        Some([less, more]) => Judgement::Differs(format!(
            "{} readers are more efficient than {}: {} and {}",
            more.0,
            less.0,
            percents(&more.1),
            percents(&less.1)
        )),
        _ => two_readers(two, processors),
    }
}

/// Returns the efficiencies of the larger and of the smaller files with the numbers of threads that both have.
fn of_both<'e>(
    smaller: Efficiencies<'e>,
    larger: Efficiencies<'e>,
) -> impl Iterator<Item = (u64, &'e Tally, &'e Tally)> {
    larger.iter().filter(|(threads, _)| *threads > 1).filter_map(|(threads, large)| {
        smaller.iter().find(|(number, _)| number == threads).map(|(_, small)| (*threads, large, small))
    })
}

/// Returns how larger files compare with smaller ones.
pub fn larger_beside_smaller(smaller: Efficiencies<'_>, larger: Efficiencies<'_>) -> String {
    let compared = of_both(smaller, larger).map(|(threads, large, small)| {
        let so = if large.least > small.most { "better than" } else { "not clearly better than" };
        let [large, small] = [large, small].map(percents);
        format!("With {threads} readers the larger files scale {so} those of table 1: {large} against {small}.")
    });
    compared.collect::<Vec<_>>().join(" ")
}

/// Table 2: larger files scale as well as smaller ones, or better.
pub fn larger_files_scale_better(smaller: Efficiencies<'_>, larger: Efficiencies<'_>, processors: u64) -> Judgement {
    let Some(two) = of_two(larger) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    match of_both(smaller, larger).find(|(_, large, small)| is_lower(large, small)) {
        Some((threads, large, small)) => Judgement::Differs(format!(
            "{threads} readers have an efficiency of {} with the larger files and {} with those of table 1",
            percents(large),
            percents(small)
        )),
        None => two_readers(two, processors),
    }
}

/// Table 3: many readers wait for a lock in the kernel. `kernel` are numbers of readers, each with a processor, and the
/// share of their time in which they sleep in the kernel.
pub fn kernel_lock(kernel: &[(u64, Tally)], processors: u64) -> Judgement {
    let [Some((_, one)), Some((readers, many))] =
        [kernel.iter().find(|(readers, _)| *readers == 1), kernel.iter().rfind(|(readers, _)| *readers >= 20)]
    else {
        return Judgement::CannotBeAsked(format!(
            "the lock shows with 20 readers that run at the same time; this machine has {processors} processors"
        ));
    };
    let more = Tally::of(&[many.least - one.most, many.median - one.median, many.most - one.least]);
    judged(
        reaches(&more, 0.05),
        format!(
            "{readers} readers sleep in the kernel for {} of their time, one for {}",
            percents(many),
            percents(one)
        ),
    )
}

/// Table 4: small chunks cost time. `waiting` is the greatest share of the readers' time in which they wait for others.
pub fn chunks_matter(greatest: &Tally, least: &Tally, waiting: f64, processors: u64) -> Judgement {
    let slower = quotient(least, greatest);
    let found = format!("the least chunks take {} as long as the greatest", times(&slower));
    if processors < 20 {
        return Judgement::CannotBeAsked(format!(
            "it takes 20 readers that run at the same time, and this machine has {processors} processors; on these, {found}"
        ));
    }
    if waiting < 0.01 {
        return Judgement::Undecided("readers wait for others less than 1 % of their time".into());
    }
    judged(reaches(&slower, 1.05), found)
}

/// Table 5: independent computation scales, up to 32 threads.
pub fn computation_scales(efficiencies: Efficiencies<'_>, processors: u64) -> Judgement {
    if of_two(efficiencies).is_none() {
        return Judgement::CannotBeAsked(ONE_PROCESSOR.into());
    }
    let to_32 = efficiencies.iter().filter(|(workers, _)| *workers <= 32);
    let verdicts = to_32.map(|(workers, efficiency)| {
        judged(reaches(efficiency, 0.85), format!("{workers} workers have an efficiency of {}", percents(efficiency)))
    });
    let open = verdicts.filter(|verdict| *verdict != Judgement::Agrees);
    match open.min_by_key(|verdict| !matches!(verdict, Judgement::Differs(_))) {
        Some(verdict) => verdict,
        None if processors < 32 => Judgement::CannotBeAsked(format!(
            "the paper's threads scale up to 32, and this machine has {processors} processors; as far as these reach, it \
             agrees"
        )),
        None => Judgement::Agrees,
    }
}

/// Table 6: too little work to share. Takes the greatest speed-up of several workers.
pub fn nothing_to_share(best_speed_up: Option<&Tally>, processors: u64) -> Judgement {
    let Some(best) = best_speed_up.filter(|_| processors > 1) else {
        return Judgement::CannotBeAsked(ONE_PROCESSOR.into());
    };
    let holds = reaches(best, 1.3).map(|shares| !shares);
    judged(holds, format!("some number of workers is {} as fast as one", times(best)))
}

/// Table 7: the tree scales at first, and then no longer.
pub fn tree_saturates(efficiencies: Efficiencies<'_>, processors: u64) -> Judgement {
    let Some(two) = of_two(efficiencies) else { return Judgement::CannotBeAsked(ONE_PROCESSOR.into()) };
    match judged(reaches(two, 0.85), format!("two workers have an efficiency of {}", percents(two))) {
        Judgement::Agrees => {}
        verdict => return verdict,
    }
    match efficiencies.iter().find(|(workers, _)| *workers == 16) {
        None => Judgement::CannotBeAsked(format!(
            "the curve bends at 16 threads, and this machine has {processors} processors; as far as these reach, it agrees"
        )),
        Some((_, sixteen)) => judged(
            reaches(sixteen, 0.7).map(|scales| !scales),
            format!("16 workers have an efficiency of {}", percents(sixteen)),
        ),
    }
}

/// Figure 5: it takes as long without reading.
pub fn same_without_reading(with: &Tally, without: &Tally) -> Judgement {
    let longer = quotient(with, without);
    let holds = match (reaches(&longer, 0.85), reaches(&longer, 1.15)) {
        (Some(true), Some(false)) => Some(true),
        (Some(false), _) | (_, Some(true)) => Some(false),
        _ => None,
    };
    judged(holds, format!("with reading it takes {} as long", times(&longer)))
}

/// Figure 7: where the tree stops scaling, memory may be the limit. `all` is the efficiency of a worker for each
/// processor, and `traffic` the most bytes per second that can pass between caches and memory.
pub fn memory_limits(all: &Tally, traffic: f64, rate: f64) -> Judgement {
    let at_most = format!("they pass at most {:.0} % of the rate of memory", traffic / rate * 100.0);
    let found = format!("workers on all processors have an efficiency of {}, and {at_most}", percents(all));
    match reaches(all, 0.85) {
        Some(true) => Judgement::CannotBeAsked(format!("nothing keeps the workers from scaling here: {found}")),
        None => judged(None, found),
        Some(false) => {
            Judgement::of(traffic >= 0.5 * rate, || format!("{found}, so memory bandwidth is not the limit"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(verdict: &Judgement) -> &'static str {
        verdict.words().0
    }

    /// Efficiencies without a range.
    fn exactly(shares: &[(u64, f64)]) -> Vec<(u64, Tally)> {
        shares.iter().map(|(threads, share)| (*threads, Tally::of(&[*share]))).collect()
    }

    /// The paper's own tables agree with the paper.
    #[test]
    fn the_papers_numbers_agree_with_it() {
        let middle = exactly(&[(1, 1.0), (2, 0.95), (4, 0.83), (8, 0.54), (10, 0.45)]);
        let large = exactly(&[(1, 1.0), (2, 0.97), (5, 0.91), (10, 0.77), (15, 0.52), (20, 0.43)]);
        assert_eq!(reading_scales(&middle, 48), Judgement::Agrees);
        assert_eq!(larger_files_scale_better(&middle, &large, 48), Judgement::Agrees);
        assert_eq!(kernel_lock(&exactly(&[(1, 0.0), (5, 0.01), (20, 0.07), (40, 0.33)]), 48), Judgement::Agrees);
        let brute = exactly(&[(1, 1.0), (2, 0.99), (32, 0.89), (48, 0.74)]);
        assert_eq!(computation_scales(&brute, 48), Judgement::Agrees);
        assert_eq!(nothing_to_share(Some(&Tally::of(&[0.019 / 0.016])), 48), Judgement::Agrees);
        let tree = exactly(&[(1, 1.0), (2, 0.95), (8, 0.76), (16, 0.47)]);
        assert_eq!(tree_saturates(&tree, 48), Judgement::Agrees);
        let [one, four] = [[12.0, 13.0, 14.0], [25.0, 26.0, 27.0]].map(|runs| Tally::of(&runs));
        assert_eq!(four_readers(&one, &four, 48), Judgement::Agrees);
        let [greatest, least] = [[7.6, 7.7, 7.8], [9.3, 9.4, 9.5]].map(|runs| Tally::of(&runs));
        assert_eq!(chunks_matter(&greatest, &least, 0.1, 20), Judgement::Agrees);
        // 208 GB in 5.2 s, and 60 % of 124 GB/s.
        assert_eq!(memory_limits(&Tally::of(&[0.15]), 208.0 / 5.2, 75.0), Judgement::Agrees);
    }

    #[test]
    fn a_claim_that_does_not_hold_differs() {
        let same = Tally::of(&[7.0, 7.1, 7.2]);
        let verdicts = [
            one_reader(&Tally::of(&[0.6])),
            four_readers(&same, &same, 4),
            reading_scales(&exactly(&[(1, 1.0), (2, 0.7)]), 3),
            reading_scales(&exactly(&[(1, 1.0), (2, 0.85), (4, 0.95)]), 4),
            larger_files_scale_better(&exactly(&[(2, 0.95)]), &exactly(&[(2, 0.85)]), 2),
            kernel_lock(&exactly(&[(1, 0.0), (20, 0.01)]), 20),
            chunks_matter(&same, &same, 0.1, 20),
            computation_scales(&exactly(&[(1, 1.0), (2, 0.5)]), 2),
            nothing_to_share(Some(&Tally::of(&[1.57])), 2),
            tree_saturates(&exactly(&[(1, 1.0), (2, 0.5)]), 2),
            tree_saturates(&exactly(&[(1, 1.0), (2, 0.9), (16, 0.9)]), 16),
            same_without_reading(&same, &Tally::of(&[5.0])),
            memory_limits(&Tally::of(&[0.5]), 1.0, 20.0),
        ];
        assert_eq!(verdicts.each_ref().map(words), ["does not agree"; 13]);
    }

    #[test]
    fn a_range_that_contains_the_limit_leaves_the_verdict_open() {
        let wide = |least, most| Tally::of(&[least, (least + most) / 2.0, most]);
        let two = [(1, Tally::of(&[1.0])), (2, wide(0.728, 0.87))];
        let verdicts = [
            one_reader(&wide(0.4, 0.6)),
            four_readers(&wide(1.0, 1.1), &wide(1.1, 1.3), 4),
            reading_scales(&two, 2),
            larger_files_scale_better(&exactly(&[(2, 0.64)]), &two, 2),
            kernel_lock(&[(1, wide(0.0, 0.1)), (20, wide(0.1, 0.2))], 20),
            chunks_matter(&wide(7.0, 7.5), &wide(7.4, 7.9), 0.1, 20),
            chunks_matter(&Tally::of(&[7.0]), &Tally::of(&[9.0]), 0.001, 20),
            computation_scales(&two, 2),
            nothing_to_share(Some(&wide(1.2, 1.4)), 2),
            tree_saturates(&two, 2),
            same_without_reading(&wide(7.0, 9.0), &wide(7.0, 9.0)),
            memory_limits(&two[1].1, 1.0, 2.0),
        ];
        assert_eq!(verdicts.each_ref().map(words), ["undecided"; 12]);
        let Judgement::Undecided(why) = &verdicts[2] else { panic!("it is open") };
        assert_eq!(
            why,
            "two readers have an efficiency of 80 % (73 % to 87 %): the range of the runs contains the limit"
        );
    }

    #[test]
    fn few_processors_cannot_answer_but_tell_what_they_found() {
        let (one, four) = (Tally::of(&[6.0]), Tally::of(&[3.0]));
        let verdicts = [
            four_readers(&one, &four, 2),
            reading_scales(&exactly(&[(1, 1.0), (2, 0.64)]), 2),
            reading_scales(&exactly(&[(1, 1.0)]), 1),
            kernel_lock(&exactly(&[(1, 0.0), (2, 0.5)]), 2),
            chunks_matter(&one, &one, 0.1, 2),
            computation_scales(&exactly(&[(1, 1.0), (2, 0.96)]), 2),
            nothing_to_share(Some(&Tally::of(&[1.0])), 1),
            tree_saturates(&exactly(&[(1, 1.0), (2, 0.9)]), 2),
            memory_limits(&Tally::of(&[1.01]), 16.4, 29.5),
        ];
        assert_eq!(verdicts.each_ref().map(words), ["cannot be asked here"; 9]);
        let whys = verdicts.each_ref().map(|verdict| verdict.words().1);
        assert_eq!(
            whys[0],
            "it takes four readers that run at the same time, and this machine has 2 processors; on these, four readers \
             take 0.50 (0.50 to 0.50) times as long as one"
        );
        assert!(whys[1].contains("64 %, but with the thread that takes what they read they are three threads"));
        assert!(whys[5].ends_with("as far as these reach, it agrees") && whys[8].contains("at most 56 %"));
    }

    #[test]
    fn larger_files_are_compared_with_smaller_ones_at_the_same_numbers() {
        let [small, large] = [[(1, 1.0), (2, 0.64), (4, 0.3)], [(1, 1.0), (2, 0.79), (5, 0.2)]].map(|of| exactly(&of));
        let told = "With 2 readers the larger files scale better than those of table 1: 79 % against 64 %.";
        assert_eq!(larger_beside_smaller(&small, &large), told);
    }
}
