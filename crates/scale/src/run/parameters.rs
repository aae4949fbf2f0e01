//! Parameters other than the number of workers, and their combinations.

use std::ffi::{OsStr, OsString};
use std::fmt;

use gristmill_report::messages::printable;

use super::words::varied;

/// The limit on the combinations of all parameters.
const COMBINATIONS_MAX: usize = 64;

/// A parameter and the values that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    name: String,
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
pub struct Combination(pub Vec<(String, String)>);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_combined_with_each_other() {
        let combined = |texts: &[&str]| {
            let parameters: Result<Vec<_>, _> = texts.iter().map(|text| Parameter::parse(text)).collect();
            Combination::all(&parameters?).map(|all| all.iter().map(Combination::to_string).collect::<Vec<_>>())
        };
        assert_eq!(combined(&[]), Ok(vec![String::new()]));
        let all = ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"].map(str::to_owned).to_vec();
        assert_eq!(combined(&["a=1,2", "b=x,y"]), Ok(all));
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
            assert!(combined(texts).expect_err(why).starts_with(why), "{texts:?}");
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
