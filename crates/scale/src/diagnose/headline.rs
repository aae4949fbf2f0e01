//! The first sentence for a reader: whether more workers help, and up to how many.

use crate::diagnose::curve::{Curve, FittedLaw};
use crate::diagnose::region::{BestRegion, Trend};
use crate::diagnose::times::Point;
use gristmill_report::text::counted;

/// Whether more workers help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Only one number of workers was measured.
    One,
    /// The time is the same for all of them.
    Flat,
    /// The noise of the times hides whether they help.
    Unclear,
    /// The fewest workers are the fastest, and more are slower.
    Slower,
    /// The fewest workers are the fastest, and more take about as long.
    None,
    /// They take less than a tenth off the time.
    Little,
    /// They help.
    Yes,
}

impl Help {
    /// Returns a word for programs.
    pub fn name(self) -> &'static str {
        match self {
            Help::One => "one-number",
            Help::Flat => "flat",
            Help::Unclear => "unclear",
            Help::Slower => "slower",
            Help::None => "no-help",
            Help::Little => "little",
            Help::Yes => "helps",
        }
    }
}

/// The speed-up below which more workers help little.
const LITTLE: f64 = 1.1;
/// The share of the shortest time that fewer workers may take longer to be named.
const HARDLY: f64 = 0.1;

impl Curve {
    /// Returns whether more workers help.
    ///
    /// ```
    /// use gristmill_scale::diagnose::{Curve, Help, Times};
    ///
    /// let (times, _) = Times::from_table("1,4.0\n1,4.1\n2,2.0\n2,2.1\n")?;
    /// assert_eq!(Curve::of(&times)?.help(), Help::Yes);
    /// # Ok::<(), gristmill_scale::diagnose::Error>(())
    /// ```
    pub fn help(&self) -> Help {
        let (best, base) = (self.best_point(), self.base());
        if self.points.len() == 1 {
            Help::One
        } else if self.verdict == FittedLaw::Flat {
            Help::Flat
        } else if best.workers == base.workers {
            let seen = |trend| self.regions.iter().any(|region| region.trend == trend);
            match () {
                () if seen(Trend::Loss) => Help::Slower,
                () if seen(Trend::Saturation) => Help::None,
                () => Help::Unclear,
            }
        } else if !self.is_faster(best, base) {
            Help::Unclear
        } else if self.speed_up(best) < LITTLE {
            Help::Little
        } else {
            Help::Yes
        }
    }

    /// Returns whether more workers help, in plain words.
    pub(crate) fn headline(&self) -> String {
        let base = self.base().workers;
        let range = match self.best.interval {
            Some((from, to)) if from < to => {
                format!(" The best number lies between {from} and {to} in nine of ten cases.")
            }
            _ => String::new(),
        };
        match self.help() {
            Help::One => format!("Only one number of workers was measured: {base}."),
            Help::Flat => {
                "The time does not depend on the number of workers: all medians lie within 5 % of each other."
                    .to_owned()
            }
            Help::Unclear => self.unclear(),
            Help::Slower => format!("More workers than {base} make it slower.{range}"),
            Help::None => format!("More workers than {base} do not help.{range}"),
            Help::Little => format!(
                "More workers than {base} hardly help: the shortest time, that of {}, is {:.0} % shorter than with {base}.{range}",
                self.best.workers,
                (1.0 - 1.0 / self.speed_up(self.best_point())) * 100.0
            ),
            Help::Yes => self.helps() + &range,
        }
    }

    /// Says that the noise hides whether more workers help.
    fn unclear(&self) -> String {
        let differ = self
            .noise
            .map_or(String::new(), |noise| format!(", and equal runs differ by about {:.0} %", noise * 100.0));
        let (best, base) = (self.best_point(), self.base());
        let seen = if best.workers == base.workers {
            format!("the shortest median is that of {}", counted(base.workers, "worker"))
        } else {
            format!(
                "the shortest median, that of {}, is {:.0} % below that of {}",
                counted(best.workers, "worker"),
                (1.0 - 1.0 / self.speed_up(best)) * 100.0,
                base.workers
            )
        };
        format!("Whether more workers help cannot be told, because the times vary too much: {seen}{differ}.")
    }

    /// Says up to how many workers more of them help, and what happens beyond.
    fn helps(&self) -> String {
        let (best, last) = (self.best_point(), &self.points[self.points.len() - 1]);
        let gain = |workers: u64| {
            let point = self.points.iter().find(|point| point.workers == workers).expect("it was measured");
            format!(
                "{:.1} times as fast as {}, efficiency {:.0} %",
                self.speed_up(point),
                self.base().workers,
                self.efficiency(point) * 100.0
            )
        };
        let shortest = gain(best.workers);
        if let Some(enough) = self.enough() {
            return format!(
                "More workers help up to {enough}: {}. From {enough} to {} the time rises and falls again; the shortest median is that of \
                 {}, {shortest}.",
                gain(enough),
                best.workers,
                best.workers
            );
        }
        // The region that ends at the best number, or holds it.
        let up_to = self.regions.iter().find(|region| region.to >= best.workers).expect("the best is not the first");
        let starts_later = up_to.from > self.base().workers;
        match up_to.trend {
            Trend::Saturation if starts_later => format!(
                "Beyond {} more workers gain less than a tenth where they double; the shortest time is that of {}, {shortest}.",
                up_to.from, best.workers
            ),
            Trend::Unclear if starts_later => format!(
                "More workers help up to {}: {}. From {} to {} the times vary too much to tell; the shortest median is that of \
                 {}, {shortest}.",
                up_to.from,
                gain(up_to.from),
                up_to.from,
                up_to.to,
                best.workers
            ),
            Trend::Unclear => format!(
                "More workers help, but the times vary too much to say up to how many; the shortest median is that of {}, {shortest}.",
                best.workers
            ),
            Trend::Saturation => format!(
                "More workers help slowly: where they double, they gain less than a tenth. The shortest time is that of {}, {shortest}.",
                best.workers
            ),
            _ if best.workers == last.workers => {
                format!("More workers help up to {}, the most that were measured: {shortest}.", best.workers)
            }
            _ => format!("More workers help up to {}: {shortest}. {}", best.workers, self.beyond_best()),
        }
    }

    /// Returns the fewest workers that are as fast as the best number, within the noise, if the time rises between
    /// them.
    fn enough(&self) -> Option<u64> {
        let best = self.best_point();
        let enough = self.points.iter().find(|point| !self.is_faster(best, point))?.workers;
        let rises = |region: &BestRegion| region.trend == Trend::Loss && (enough..best.workers).contains(&region.from);
        self.regions.iter().any(rises).then_some(enough)
    }

    /// Says where the time rises before the best number, unless the headline does.
    pub(crate) fn rise(&self) -> Option<String> {
        let until = match self.help() {
            Help::Yes => self.enough().unwrap_or(self.best.workers),
            Help::Little => self.best.workers,
            _ => return None,
        };
        let is_loss = |workers: u64| {
            let mut losses = self.regions.iter().filter(|region| region.trend == Trend::Loss);
            losses.any(|region| (region.from..region.to).contains(&workers))
        };
        let before = self.points.windows(2).filter(|pair| pair[1].workers <= until && is_loss(pair[0].workers));
        let rise = |pair: &[Point]| pair[1].median() / pair[0].median();
        let highest = before.max_by(|a, b| rise(a).total_cmp(&rise(b)))?;
        Some(format!(
            "With {} it takes longer than with {}.",
            counted(highest[1].workers, "worker"),
            highest[0].workers
        ))
    }

    /// Names the fewest workers that take hardly longer than the best number, unless the headline says how they
    /// compare.
    pub(crate) fn fewer(&self) -> Option<String> {
        let best = self.best_point();
        let is_unclear = self.regions.iter().any(|region| {
            region.trend == Trend::Unclear
                && (region.from..=region.to).contains(&best.workers)
                && region.from < best.workers
        });
        if self.help() != Help::Yes || self.enough().is_some() || is_unclear {
            return None;
        }
        let longer = |point: &Point| point.median() / best.median() - 1.0;
        let fewest = self.points.iter().find(|point| longer(point) < HARDLY)?;
        let percent = match longer(fewest) * 100.0 {
            0.5.. => format!("{:.0} %", longer(fewest) * 100.0),
            _ => "less than 1 %".to_owned(),
        };
        let take = if fewest.workers == 1 { "takes" } else { "take" };
        let words = counted(fewest.workers, "worker");
        (fewest.workers < best.workers).then(|| format!("{words} {take} {percent} longer than {}.", best.workers))
    }

    /// Says what more workers than the best number do.
    fn beyond_best(&self) -> &'static str {
        let after = || self.regions.iter().filter(|region| region.from >= self.best.workers).map(|region| region.trend);
        match after().next() {
            _ if after().any(|trend| trend == Trend::Loss) => "Beyond that the time rises.",
            Some(Trend::Unclear) => "Beyond that the times vary too much to tell.",
            _ => "Beyond that the time hardly changes.",
        }
    }
}
