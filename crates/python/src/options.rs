//! The engine's options, as the settings of the Python package list them.

use gristmill::{JobOption, OPTIONS};
use pyo3::{pyclass, pyfunction};

/// The kind of values that an option takes.
#[pyclass]
pub enum Takes {
    Switch {
        default: bool,
    },
    /// A whole number within bounds.
    Count {
        least: u64,
        most: u64,
    },
    Bytes {},
    Duration {},
    Folders {},
    OneOf {
        names: Vec<String>,
    },
}

/// Returns the name of each option, the values that it takes, its default in words, and what it does.
#[pyfunction]
#[pyo3(name = "options")]
pub fn listed() -> Vec<(&'static str, Takes, &'static str, &'static str)> {
    OPTIONS.iter().map(|option| (option.name, takes(option), option.default, option.help)).collect()
}

fn takes(option: &JobOption) -> Takes {
    match option.takes() {
        gristmill::Takes::Switch { default } => Takes::Switch { default },
        gristmill::Takes::Count(bounds) => Takes::Count { least: *bounds.start(), most: *bounds.end() },
        gristmill::Takes::CountOrAll(all) => Takes::Count { least: 0, most: all },
        gristmill::Takes::Bytes => Takes::Bytes {},
        gristmill::Takes::Duration => Takes::Duration {},
        gristmill::Takes::Folders => Takes::Folders {},
        gristmill::Takes::OneOf(names) => {
            Takes::OneOf { names: names.iter().map(|each| each.name.to_owned()).collect() }
        }
    }
}
