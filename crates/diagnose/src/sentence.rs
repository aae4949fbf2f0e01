//! The first sentences for a reader: one about the best number of workers, one about the law.

use crate::curve::{Curve, POINTS_MIN, Predicted, Verdict};
use crate::region::Trend;

impl Curve {
    /// Returns where more workers stop helping, and the law, in plain words.
    pub fn sentence(&self) -> String {
        match self.verdict {
            Verdict::Flat => "The time does not depend on the number of workers at all.".to_owned(),
            _ => format!("{} {}", self.stops(), self.law()),
        }
    }

    /// Returns where more workers stop helping.
    fn stops(&self) -> String {
        let (best, base, last) = (self.best_point(), self.base(), &self.points[self.points.len() - 1]);
        if self.points.len() == 1 {
            return format!("Only {} was measured.", workers(base.workers));
        }
        let range = match self.best.interval {
            Some((from, to)) if from < to => format!(" (between {from} and {to})"),
            _ => String::new(),
        };
        let gain = format!(
            "{:.1} times as fast as {}, efficiency {:.0} %",
            self.speed_up(best),
            base.workers,
            self.efficiency(best) * 100.0
        );
        let is_after = |trend| self.regions.iter().any(|region| region.from >= best.workers && region.trend == trend);
        let saturates =
            self.regions.iter().find(|region| region.trend == Trend::Saturation && region.to >= best.workers);
        match saturates {
            _ if best.workers == base.workers => {
                let how = if is_after(Trend::Loss) { "make it slower" } else { "do not help" };
                format!("More workers than {} {how}{range}.", base.workers)
            }
            Some(region) if region.from < best.workers && region.from > base.workers => format!(
                "Beyond {} more workers gain less than a tenth where they double; the shortest time is that of {}{range}, {gain}.",
                region.from, best.workers
            ),
            _ if best.workers == last.workers => {
                format!("More workers help up to {}, the most that were measured{range}: {gain}.", best.workers)
            }
            _ => {
                let after = if is_after(Trend::Loss) { "the time rises" } else { "the time hardly changes" };
                format!("More workers help up to {}{range}: {gain}. Beyond that {after}.", best.workers)
            }
        }
    }

    /// Returns the law.
    fn law(&self) -> String {
        match &self.verdict {
            Verdict::Flat => String::new(),
            Verdict::TooFew => {
                let room = self.points.iter().filter(|point| !self.is_crowded(point.workers)).count();
                let of = self.processors.map_or(String::new(), |count| format!(" up to the {count} processors"));
                let counted = if room == 1 { "number of workers was" } else { "numbers of workers were" };
                format!(
                    "The curve alone cannot tell more: {room} {counted} measured{of}, a law needs {POINTS_MIN} or more."
                )
            }
            Verdict::NoLaw => {
                "The times follow none of the known laws, so nothing is said about other numbers.".to_owned()
            }
            Verdict::Several(laws) => {
                let names: Vec<String> = laws.iter().map(ToString::to_string).collect();
                let (last, others) = names.split_last().expect("several");
                format!(
                    "The curve alone cannot tell the law: {} and {last} describe it equally well.",
                    others.join(", ")
                )
            }
            Verdict::Law(law) => {
                let fit = &self.fits[0];
                let parameters = law.meanings().iter().zip(&fit.parameters);
                let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name} {value}")).collect();
                let best = match self.predicted {
                    Some(Predicted::Workers(best)) => format!("; by it, {best} workers are best"),
                    Some(Predicted::Beyond) => {
                        "; by it, more than twice the workers that were measured would still help a little".to_owned()
                    }
                    None => String::new(),
                };
                format!("It follows {law}: {}{best}.", parameters.join(", "))
            }
        }
    }
}

fn workers(count: u64) -> String {
    if count == 1 { "1 worker".to_owned() } else { format!("{count} workers") }
}

#[cfg(test)]
mod tests {
    use crate::{Curve, Times};

    fn said(table: &[(u64, f64)]) -> String {
        let mut times = Times::default();
        table.iter().for_each(|(workers, seconds)| times.add(*workers, *seconds).expect("a time"));
        Curve::of(&times).expect("there are times").sentence()
    }

    #[test]
    fn a_sentence_names_the_best_number_and_the_law() {
        let tree = said(&[(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)]);
        println!("{tree}");
        assert!(tree.starts_with("More workers help up to 16"), "{tree}");
        assert!(tree.contains("7.8 times as fast as 1, efficiency 49 %. Beyond that the time rises."), "{tree}");
        assert!(tree.contains("It follows the universal scalability law: contention 0.044 ("), "{tree}");
        assert!(tree.contains("coherence 0.0019 (") && tree.contains("by it, 22 ("), "{tree}");

        let reading = said(&[(1, 70.2), (2, 35.9), (5, 15.3), (10, 9.10), (15, 8.93), (20, 8.08)]);
        println!("{reading}");
        assert!(reading.contains("The curve alone cannot tell the law"), "{reading}");
    }

    #[test]
    fn few_or_useless_times_have_a_sentence_too() {
        assert_eq!(
            said(&[(1, 2.0)]),
            "Only 1 worker was measured. The curve alone cannot tell more: 1 number of workers was measured, a law needs 5 or more."
        );
        assert_eq!(
            said(&[(1, 4.0), (2, 2.0), (4, 1.0)]),
            "More workers help up to 4, the most that were measured: 4.0 times as fast as 1, efficiency 100 %. \
             The curve alone cannot tell more: 3 numbers of workers were measured, a law needs 5 or more."
        );
        assert!(said(&[(1, 1.0), (2, 1.3), (4, 2.0)]).starts_with("More workers than 1 make it slower."));
        assert_eq!(said(&[(1, 1.0), (2, 1.0), (4, 1.0)]), "The time does not depend on the number of workers at all.");
    }
}
