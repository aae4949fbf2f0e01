//! The law that the times follow, in plain words, with what it predicts.

use crate::diagnose::curve::{Curve, FittedLaw, POINTS_MIN, Predicted};
use crate::diagnose::fit::Fit;
use crate::diagnose::law::Law;

/// The time with twice the workers, as a share, from which on more of them gain little.
const LITTLE: f64 = 0.9;

impl Curve {
    /// Returns the law in plain words; empty if there is nothing to say about it.
    pub(crate) fn law_sentence(&self) -> String {
        match &self.verdict {
            FittedLaw::Flat => String::new(),
            FittedLaw::TooFew if self.points.len() == 1 => String::new(),
            FittedLaw::TooFew => self.too_few(),
            FittedLaw::NoLaw => format!("{}, so nothing is said about other numbers.", self.no_law()),
            FittedLaw::Several(laws) => self.several(laws),
            FittedLaw::Law(law) => self.one_law(*law),
        }
    }

    fn several(&self, laws: &[Law]) -> String {
        let names: Vec<String> = laws.iter().map(ToString::to_string).collect();
        let (last, others) = names.split_last().expect("several");
        let tested = if self.noise.is_some() { "" } else { " Nothing ran twice, so none of them was tested." };
        format!(
            "The curve alone cannot tell the law: {} and {last} describe the times equally well.{tested}",
            others.join(", ")
        )
    }

    fn too_few(&self) -> String {
        let room = self.points.iter().filter(|point| !self.is_crowded(point.workers)).count();
        let limit = self.processors.map_or(String::new(), |count| format!(" up to the {count} processors"));
        let counted = if room == 1 { "number of workers was" } else { "numbers of workers were" };
        format!("The curve alone cannot tell more: {room} {counted} measured{limit}, a law needs {POINTS_MIN} or more.")
    }

    /// Says why no law is named.
    fn no_law(&self) -> String {
        let is_law = |fit: &&Fit| fit.fitted.law != Law::Bend;
        match (self.fits.iter().find(is_law), self.fits.iter().find(|fit| !is_law(fit))) {
            (Some(law), Some(bend)) if bend.aicc < law.aicc => format!(
                "A curve that bends at about {:.0} workers describes the times better than any known law",
                1.0 / bend.fitted.shape[0]
            ),
            (Some(law), _) if law.deviation >= 0.005 => {
                let noise = self
                    .explained_by_noise()
                    .map_or(String::new(), |noise| format!(", of which noise explains {:.0} %", noise * 100.0));
                format!(
                    "The times follow none of the known laws: the nearest, {}, misses them by {:.0} %{noise}",
                    law.fitted.law,
                    law.deviation * 100.0
                )
            }
            _ => "The times follow none of the known laws".to_owned(),
        }
    }

    fn one_law(&self, law: Law) -> String {
        let parameters = law.meanings().iter().zip(&self.fits[0].parameters);
        let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name} {value}")).collect();
        let parameters = parameters.join(", ");
        let predicted =
            self.predicted.as_ref().map_or(String::new(), |predicted| format!("; by it, {}", said(predicted)));
        if self.noise.is_some() {
            format!("It follows {law}: {parameters}{predicted}.")
        } else {
            format!(
                "Of the known laws, {law} comes nearest: {parameters}{predicted}. Nothing ran twice, so it was not tested whether the \
                 times follow it."
            )
        }
    }
}

fn said(predicted: &Predicted) -> String {
    match predicted {
        Predicted::Workers(best) => format!("{best} workers would be best"),
        Predicted::Beyond { doubled } if *doubled < LITTLE => {
            format!("twice as many workers, each with a processor, would take {:.0} % of the time", doubled * 100.0)
        }
        Predicted::Beyond { doubled } => format!(
            "more workers would gain little: twice as many, each with a processor, would take {:.0} % of the time",
            doubled * 100.0
        ),
        Predicted::Beaten { best, by } => {
            format!("{best:.0} would be best, but {by} were measured faster, so it is not used to predict")
        }
    }
}
