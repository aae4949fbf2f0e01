//! When this machine agrees with a slide of MR-Search. Each rule was fixed before anything was measured.

use gristmill_report::tally::Tally;

use crate::page::{Contrast, Judgement, all_of};

/// Leaves open what memory costs where it costs nearly nothing.
fn too_little(kernel: f64) -> Option<Judgement> {
    let why = "with malloc each time, less than 1 % of the processor time is in the kernel";
    (kernel < 0.01).then(|| Judgement::Undecided(why.into()))
}

/// Returns the verdict on a claim about memory of other nodes, with the finding within a node where there is only one.
pub fn beyond_one_node(nodes: usize, within: Judgement) -> Judgement {
    if nodes > 1 {
        return within;
    }
    let found = match within {
        Judgement::CannotBeAsked(_) => return within,
        Judgement::Agrees => "within it, the rule holds".to_owned(),
        Judgement::Differs(why) | Judgement::Undecided(why) | Judgement::Drawing(why) => format!("within it, {why}"),
    };
    Judgement::CannotBeAsked(format!("the slide is about memory of other nodes, and there is one NUMA node; {found}"))
}

/// The quotient of times from which on a source counts as faster.
const FASTER: f64 = 1.05;

/// Slide 7. `kernel` is the share of the kernel in the processor time of the first.
pub fn faster(malloc: &Tally, reuse: &Tally, prealloc: &Tally, kernel: f64) -> Judgement {
    if let Some(open) = too_little(kernel) {
        return open;
    }
    let compared = [("reuse", reuse), ("prealloc", prealloc)].map(|(name, other)| {
        let (contrast, times) = (Contrast::of(other, malloc), malloc.median / other.median);
        let found = format!("{name} is {times:.2} times as fast{}", contrast.caveat());
        let holds = match malloc.most < FASTER * other.least {
            true => Some(false),
            false => contrast.holds(Contrast::Faster).map(|is_faster| is_faster && times >= FASTER),
        };
        (holds, found)
    });
    let found = format!("beside malloc each time, {}; {}", compared[0].1, compared[1].1);
    match all_of(&compared.map(|(holds, _)| holds)) {
        Some(false) => Judgement::Differs(found),
        None => Judgement::Undecided(found),
        Some(true) => Judgement::Agrees,
    }
}

/// Slide 8: remote bytes by source, the C library first.
pub fn less_remote(bytes: &[(&str, u64)]) -> Judgement {
    let of_source = |wanted: &str| bytes.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, bytes)| *bytes);
    let (malloc, prealloc) = (bytes[0].1, of_source("prealloc"));
    let others = bytes[1..].iter().filter(|(name, _)| !["reuse", "pool", "prealloc"].contains(name));
    let agrees =
        of_source("reuse") * 2 < malloc && prealloc * 2 < malloc && others.clone().all(|(_, bytes)| *bytes > prealloc);
    Judgement::of(agrees, || {
        let all: Vec<String> =
            bytes.iter().map(|(name, bytes)| format!("{name} {:.1} MB", *bytes as f64 / 1e6)).collect();
        format!("remote are: {}", all.join(", "))
    })
}

/// Slide 9: speed-ups by source, the C library first; `kernel` as for slide 7.
pub fn in_order(speed_ups: &[(&str, f64)], kernel: f64) -> Judgement {
    if let Some(open) = too_little(kernel) {
        return open;
    }
    let prealloc = speed_ups.iter().find(|(name, _)| *name == "prealloc").map_or(0.0, |(_, speed_up)| *speed_up);
    let malloc = speed_ups[0].1;
    let above = speed_ups.iter().find(|(_, speed_up)| *speed_up > 1.03 * prealloc);
    let below = speed_ups.iter().find(|(_, speed_up)| *speed_up < malloc / 1.03);
    match (above, below) {
        (Some((name, speed_up)), _) => {
            Judgement::Differs(format!("{name} has a speed-up of {speed_up:.2}, prealloc one of {prealloc:.2}"))
        }
        (None, Some((name, speed_up))) => {
            Judgement::Differs(format!("{name} has a speed-up of {speed_up:.2}, the C library one of {malloc:.2}"))
        }
        (None, None) => Judgement::Agrees,
    }
}

/// Slide 10: for each job the speed-ups of threads, pages, pipes and sockets.
pub fn shared_as_good(jobs: &[(&str, Vec<f64>)]) -> Judgement {
    let mut worse = Vec::new();
    for (job, speed_ups) in jobs {
        let (shared, sent) = speed_ups.split_at(2);
        let [shared, sent] = [shared, sent].map(|ways| ways.iter().copied().fold(0.0, f64::max));
        if shared < 0.9 * sent {
            worse.push(format!("{job}: sharing has a speed-up of {shared:.2}, messages one of {sent:.2}"));
        }
    }
    Judgement::of(worse.is_empty(), || worse.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(verdict: &Judgement) -> &'static str {
        verdict.words().0
    }

    #[test]
    fn a_memory_source_is_judged_only_where_memory_takes_time() {
        let [slow, fast] = [[10.0, 10.1, 10.2], [5.0, 5.1, 5.2]].map(|runs| Tally::of(&runs));
        assert_eq!(faster(&slow, &fast, &fast, 0.3), Judgement::Agrees);
        assert_eq!(words(&faster(&slow, &fast, &fast, 0.009)), "undecided");
        let spread = Tally::of(&[9.0, 10.1, 11.0]);
        assert_eq!(words(&faster(&spread, &fast, &spread, 0.3)), "undecided");
        let Judgement::Differs(why) = faster(&slow, &fast, &slow, 0.3) else { panic!("prealloc is as fast as malloc") };
        let expected =
            "beside malloc each time, reuse is 1.98 times as fast; prealloc is 1.00 times as fast, which is level";
        assert_eq!(why, expected);
    }

    #[test]
    fn remote_bytes_and_speed_ups_are_judged_as_the_slides_order_them() {
        let bytes = [("C library", 100), ("tbbmalloc", 60), ("reuse", 10), ("pool", 90), ("prealloc", 0)];
        assert_eq!(less_remote(&bytes), Judgement::Agrees);
        assert_eq!(words(&less_remote(&[("C library", 100), ("reuse", 60), ("prealloc", 0)])), "does not agree");
        assert_eq!(in_order(&[("C library", 1.5), ("reuse", 1.9), ("prealloc", 1.95)], 0.2), Judgement::Agrees);
        let Judgement::Differs(why) = in_order(&[("C library", 1.5), ("reuse", 1.9), ("prealloc", 1.7)], 0.2) else {
            panic!()
        };
        assert_eq!(why, "reuse has a speed-up of 1.90, prealloc one of 1.70");
        assert_eq!(
            words(&in_order(&[("C library", 1.5), ("jemalloc", 1.2), ("prealloc", 1.7)], 0.2)),
            "does not agree"
        );
    }

    #[test]
    fn one_node_cannot_tell_and_says_what_it_found() {
        assert_eq!(beyond_one_node(2, Judgement::Agrees), Judgement::Agrees);
        let Judgement::CannotBeAsked(why) = beyond_one_node(1, Judgement::Differs("reuse is slower".into())) else {
            panic!("there is one node")
        };
        assert!(why.ends_with("there is one NUMA node; within it, reuse is slower"), "{why}");
        assert_eq!(words(&beyond_one_node(1, Judgement::Agrees)), "cannot be asked here");
    }

    #[test]
    fn sharing_is_worse_only_if_both_ways_to_share_are() {
        assert_eq!(shared_as_good(&[("search", vec![1.1, 2.0, 2.0, 1.7])]), Judgement::Agrees);
        let Judgement::Differs(why) = shared_as_good(&[("search", vec![1.1, 1.25, 2.0, 1.7])]) else { panic!() };
        assert_eq!(why, "search: sharing has a speed-up of 1.25, messages one of 2.00");
    }
}
