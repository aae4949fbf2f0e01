//! The engine's options, as the settings of the Python package list them.

use gristmill::options::{JobOption, OPTIONS, Takes};
use pyo3::pyfunction;

/// The kind of values that an option takes, and its default, its bounds, or the names that there are.
type Kind = (&'static str, Vec<String>);

/// Returns the name of each option, the values that it takes, its default in words, and what it does.
#[pyfunction]
#[pyo3(name = "options")]
pub fn listed() -> Vec<(&'static str, Kind, &'static str, &'static str)> {
    OPTIONS.iter().map(|option| (option.name, kind(option), option.default, option.help)).collect()
}

fn kind(option: &JobOption) -> Kind {
    match option.takes() {
        Takes::Switch { default } => ("switch", vec![default.to_string()]),
        Takes::Count(bounds) => ("count", vec![bounds.start().to_string(), bounds.end().to_string()]),
        Takes::CountOrAll(all) => ("count", vec![0.to_string(), all.to_string()]),
        Takes::Bytes => ("bytes", Vec::new()),
        Takes::Duration => ("duration", Vec::new()),
        Takes::Folders => ("folders", Vec::new()),
        Takes::OneOf(names) => ("one of", names.iter().map(|each| each.name.to_owned()).collect()),
    }
}
