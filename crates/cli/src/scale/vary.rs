//! Parameters other than the number of workers: their combinations, and a table with a row for each.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};

use super::runs::Series;
use super::section::{Section, shown};
use super::words::varied;
use crate::terminal::messages::printable;
use gristmill_report::text::escape;

/// The limit on the combinations of all parameters.
const COMBINATIONS_MAX: usize = 64;

/// A parameter and the values that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    values: Vec<String>,
}

impl Parameter {
    /// Parses `NAME=a,b,c`.
    pub fn parse(text: &str) -> Result<Parameter, String> {
        let (name, values) = text.split_once('=').ok_or("write it as NAME=a,b,c")?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err("a name has letters, digits, - and _".to_owned());
        }
        if name == "workers" {
            return Err("numbers of workers are given by --workers".to_owned());
        }
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if values.iter().any(String::is_empty) {
            return Err(format!("{name} has a value without a letter"));
        }
        match values.iter().enumerate().find(|(at, value)| values[..*at].contains(value)) {
            Some((_, twice)) => Err(format!("{name} has the value {} twice", printable(twice))),
            None => Ok(Parameter { name: name.to_owned(), values }),
        }
    }
}

/// A value of each parameter, with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combination(Vec<(String, String)>);

impl Combination {
    /// Returns all combinations, in the order of the values. Without parameters, that is one.
    ///
    /// # Errors
    /// A parameter is there twice, or there are too many combinations; a sentence.
    pub fn all(parameters: &[Parameter]) -> Result<Vec<Combination>, String> {
        let mut all = vec![Combination::default()];
        for (at, Parameter { name, values }) in parameters.iter().enumerate() {
            if parameters[..at].iter().any(|other| other.name == *name) {
                return Err(format!("--vary names {name} twice"));
            }
            if all.len().saturating_mul(values.len()) > COMBINATIONS_MAX {
                return Err(format!("the values of --vary have more than {COMBINATIONS_MAX} combinations"));
            }
            let with = |Combination(before): &Combination, value: &String| {
                Combination([&before[..], &[(name.clone(), value.clone())]].concat())
            };
            all = all.iter().flat_map(|before| values.iter().map(move |value| with(before, value))).collect();
        }
        Ok(all)
    }

    /// Returns the word with values in the places of the parameters.
    pub fn fill(&self, word: &OsStr) -> OsString {
        self.0.iter().fold(word.to_owned(), |word, (name, value)| varied(&word, name, value))
    }

    /// Returns the values as options: `--NAME=value`.
    pub fn options(&self) -> Vec<OsString> {
        self.0.iter().map(|(name, value)| format!("--{name}={value}").into()).collect()
    }

    /// Returns the first parameter for which these words have no place.
    pub fn without_place(&self, words: &[OsString]) -> Option<&str> {
        let is_without = |(name, _): &&(String, String)| words.iter().all(|word| varied(word, name, "") == *word);
        self.0.iter().find(is_without).map(|(name, _)| name.as_str())
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={}", printable(value))).collect();
        f.write_str(&all.join(" "))
    }
}

/// The times of all combinations.
pub struct Table<'t> {
    pub combinations: &'t [Combination],
    /// Those of each combination, one for each number of workers.
    pub series: &'t [Vec<Series>],
    /// True if the work grew with the workers, so that times are divided by them.
    pub is_weak: bool,
}

impl Table<'_> {
    fn median(&self, series: &Series) -> Option<f64> {
        let share = if self.is_weak { series.workers as f64 } else { 1.0 };
        series.median().map(|seconds| seconds / share)
    }

    /// Returns the number of workers with the shortest median, and that.
    fn best(&self, series: &[Series]) -> Option<(u64, f64)> {
        let medians = series.iter().filter_map(|series| Some((series.workers, self.median(series)?)));
        medians.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the place of the combination with the shortest time.
    pub fn fastest(&self) -> usize {
        let times = self.series.iter().map(|series| self.best(series).map_or(f64::INFINITY, |(_, seconds)| seconds));
        times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(at, _)| at)
    }

    /// Returns the cells of all rows, the heads first: names, times by number of workers, and the best number.
    fn rows(&self) -> Vec<Vec<String>> {
        let names = self.combinations[0].0.iter().map(|(name, _)| name.clone());
        let numbers = self.series[0].iter().map(|series| series.workers.to_string());
        let mut rows = vec![names.chain(numbers).chain(["best".to_owned()]).collect()];
        for (Combination(values), series) in self.combinations.iter().zip(self.series) {
            let values = values.iter().map(|(_, value)| printable(value));
            let times = series.iter().map(|series| self.median(series).map_or("failed".to_owned(), shown));
            let best = self.best(series).map_or("none".to_owned(), |(workers, _)| workers.to_string());
            rows.push(values.chain(times).chain([best]).collect());
        }
        rows
    }

    /// Formats a row for each combination; empty without parameters.
    pub fn section(&self) -> Section {
        if self.combinations[0].0.is_empty() {
            return Section::default();
        }
        Section { text: self.text(), html: self.html() }
    }

    fn text(&self) -> String {
        let rows = self.rows();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let mut text = "Median time by number of workers, and the number with the shortest:\n".to_owned();
        for row in &rows {
            for (column, cell) in row.iter().enumerate() {
                write!(text, "{cell:>width$}  ", width = width(column)).expect("a string takes everything");
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        writeln!(text, "\n{} has the shortest time; what follows is about it.\n", self.combinations[self.fastest()])
            .expect("a string takes everything");
        text
    }

    fn html(&self) -> String {
        let fastest = self.fastest();
        let row = |(at, cells): (usize, Vec<String>)| {
            let (tag, class) = match at {
                0 => ("th", ""),
                _ if at == fastest + 1 => ("td", " first"),
                _ => ("td", ""),
            };
            let cells: String =
                cells.iter().map(|cell| format!("<{tag} class='number{class}'>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>")
        };
        let rows: String = self.rows().into_iter().enumerate().map(row).collect();
        format!(
            "<h2>Parameters</h2><p class='soft'>Median time by number of workers, and the number with the shortest. All else on this \
             page is about {}, which has the shortest time.</p><div class='scroll'><table>{rows}</table></div>",
            escape(&self.combinations[fastest].to_string())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_combined_with_each_other() {
        let of = |texts: &[&str]| {
            let parameters: Result<Vec<_>, _> = texts.iter().map(|text| Parameter::parse(text)).collect();
            Combination::all(&parameters?).map(|all| all.iter().map(Combination::to_string).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), Ok(vec![String::new()]));
        let all = ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"].map(str::to_owned).to_vec();
        assert_eq!(of(&["a=1,2", "b=x,y"]), Ok(all));
        let many: Vec<String> = (0..65).map(|value| value.to_string()).collect();
        for (texts, why) in [
            (&["a"][..], "write it as NAME=a,b,c"),
            (&["=1"], "a name has"),
            (&["{a}=1"], "a name has"),
            (&["workers=1"], "numbers of workers are given by --workers"),
            (&["a=1,,2"], "a has a value without a letter"),
            (&["a=1,2,1"], "a has the value 1 twice"),
            (&["a=1", "a=2"], "--vary names a twice"),
            (&[&format!("a={}", many.join(","))], "the values of --vary have more than 64"),
        ] {
            assert!(of(texts).expect_err(why).starts_with(why), "{texts:?}");
        }
    }

    #[test]
    fn a_combination_fills_places_or_becomes_options() {
        let combination = Combination(vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x".to_owned())]);
        assert_eq!(combination.fill(OsStr::new("{a}{b}{workers}")), "1x{workers}");
        assert_eq!(combination.options(), ["--a=1", "--b=x"]);
        assert_eq!(combination.without_place(&["{a}".into(), "{b}".into()]), None);
        assert_eq!(combination.without_place(&["{a}".into()]), Some("b"));
    }
}
