//! A figure, a table or a slide of a paper.

use gristmill_cli::Failure;

use super::Answer;

/// A figure, a table or a slide. `R` holds the experiments of the paper, and the results of those that several items
/// ask about.
pub struct Item<R> {
    /// `figure 7`, `table 2` or `slide 9`.
    pub label: &'static str,
    /// The subject of the picture or the table.
    pub title: &'static str,
    /// The finding of the paper, with its numbers.
    pub paper: &'static str,
    /// When it is said that this machine agrees, fixed before anything runs. Empty for a drawing.
    pub agrees_if: &'static str,
    /// Runs the experiment.
    pub ask: fn(&mut R) -> Result<Answer, Failure>,
}

impl<R> Item<R> {
    /// A drawing, about which there is no rule.
    pub const fn drawing(
        label: &'static str,
        title: &'static str,
        paper: &'static str,
        ask: fn(&mut R) -> Result<Answer, Failure>,
    ) -> Item<R> {
        Item { label, title, paper, agrees_if: "", ask }
    }
}
