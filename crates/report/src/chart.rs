//! The frame of a chart as SVG, its labels, and times in words, in the colours of a page (`page.css`).

use crate::text::escape;

/// The width of a chart.
pub const WIDTH: f64 = 560.0;
/// The height of letters, and their maximum width: the page uses the reader's fonts, some of which are wide.
const LETTER_HEIGHT: f64 = 12.5;
const LETTER_WIDTH: f64 = 0.64 * LETTER_HEIGHT;

/// A text in a chart.
pub struct Label {
    /// Its words.
    pub text: String,
    anchor: Anchor,
    x: f64,
    /// The vertical middle.
    y: f64,
}

/// The part of a text that is at its x; each is a class in `page.css`.
#[derive(Clone, Copy, PartialEq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Label {
    /// Places a text; `y` is its middle.
    pub fn new(anchor: Anchor, x: f64, y: f64, text: impl Into<String>) -> Label {
        Label { text: text.into(), anchor, x, y }
    }

    /// Returns the bounds, left to right and top to bottom.
    pub fn bounds(&self) -> ([f64; 2], [f64; 2]) {
        let width = self.text.chars().count() as f64 * LETTER_WIDTH;
        let left = match self.anchor {
            Anchor::Start => self.x,
            Anchor::Middle => self.x - width / 2.0,
            Anchor::End => self.x - width,
        };
        ([left, left + width], [self.y - LETTER_HEIGHT / 2.0, self.y + LETTER_HEIGHT / 2.0])
    }

    /// Returns true if the two cover a place in common.
    pub fn overlaps(&self, other: &Label) -> bool {
        let (a, b) = (self.bounds(), other.bounds());
        let meet = |a: [f64; 2], b: [f64; 2]| a[0] < b[1] && b[0] < a[1];
        meet(a.0, b.0) && meet(a.1, b.1)
    }

    fn svg(&self) -> String {
        let class = match self.anchor {
            Anchor::Start => "time",
            Anchor::Middle => "tick",
            Anchor::End => "name",
        };
        format!("<text class='{class}' x='{:.1}' y='{:.1}'>{}</text>", self.x, self.y, escape(&self.text))
    }
}

/// The labels of a chart. No two of them overlap.
#[derive(Default)]
pub struct Labels(Vec<Label>);

impl Labels {
    /// Adds the label at the first free place of `places`. Without a free place it is omitted: the tables have all
    /// numbers.
    pub fn add(&mut self, places: impl IntoIterator<Item = Label>) {
        let free = |place: &Label| !self.0.iter().any(|there| there.overlaps(place));
        if let Some(label) = places.into_iter().find(free) {
            self.0.push(label);
        }
    }

    /// Returns them as SVG.
    pub fn svg(&self) -> String {
        self.0.iter().map(Label::svg).collect()
    }
}

/// Opens a chart of this height; `label` says what it shows.
pub fn begin(height: f64, label: &str) -> String {
    format!("<svg viewBox='0 0 {WIDTH} {height}' role='img' aria-label='{label}'>")
}

/// Formats a time with three digits.
pub fn milliseconds(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..1.0 => format!("{value:.3} ms"),
        ..10.0 => format!("{value:.2} ms"),
        ..100.0 => format!("{value:.1} ms"),
        ..1000.0 => format!("{value:.0} ms"),
        ..100e3 => format!("{:.2} s", value / 1e3),
        _ => format!("{:.0} s", value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let shown = [0.8126, 8.126, 81.26, 812.6, 8126.0].map(milliseconds);
        assert_eq!(shown, ["0.813 ms", "8.13 ms", "81.3 ms", "813 ms", "8.13 s"]);
    }
}
