//! Comparisons: the strategies of one choice, each defined by a few arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use super::shell;
use super::subject::Subject;
use crate::workloads::{PairKind, Workload};

/// The strategies to compare.
pub struct Comparison {
    /// The name on the command line and in the CSV.
    pub name: String,
    pub title: &'static str,
    /// The question, and the meaning of the strategies.
    pub question: &'static str,
    pub kind: Kind,
    pub variants: Vec<Variant>,
    /// Strategies that are not available on this machine.
    pub absent: Vec<String>,
    /// Tells the workloads to which it applies.
    pub asks: fn(&Workload) -> bool,
}

/// How a comparison is drawn and concluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Times over numbers of workers.
    Workers,
    /// The first strategy against the best of the others.
    Plan,
    /// Each strategy against all others.
    Strategies,
}

/// One strategy.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    pub arguments: Vec<String>,
    /// A library to preload.
    pub preload: Option<PathBuf>,
    /// The pairs that an application must emit at least.
    pub needs: PairKind,
}

impl Variant {
    pub fn new(name: impl Into<String>, arguments: &str) -> Variant {
        let arguments = arguments.split_whitespace().map(str::to_owned).collect();
        Variant { name: name.into(), arguments, preload: None, needs: PairKind::Any }
    }

    /// Makes a strategy for a worker on each processor. There are at least two: a single worker has no other to hand a
    /// page to.
    pub fn on_all(processors: usize, name: &str, arguments: &str) -> Variant {
        Variant::new(name, &format!("--workers {} {arguments}", processors.max(2)))
    }

    pub fn needing(self, needs: PairKind) -> Variant {
        Variant { needs, ..self }
    }

    /// Returns true if `subject` can run with this strategy.
    pub fn suits(&self, subject: &Subject) -> bool {
        subject.workload.pairs >= self.needs
    }
}

impl Comparison {
    /// Makes a comparison of strategies, for all workloads but that of small files.
    pub fn new(title: &'static str, question: &'static str, variants: Vec<Variant>) -> Comparison {
        Comparison {
            name: String::new(),
            title,
            question,
            kind: Kind::Strategies,
            variants,
            absent: Vec::new(),
            asks: |workload| workload.name != "small-files",
        }
    }

    /// Returns the arguments with which this program runs what is compared, for an application with these arguments.
    pub fn arguments(&self, application: &[OsString]) -> Vec<OsString> {
        [&["application".into()], application, &["--quiet".into()]].concat()
    }

    /// Returns the command of a strategy as a user types it.
    pub fn line(&self, subject: &Subject, variant: &Variant) -> String {
        let words = &self.arguments(&subject.shown)[1..];
        let more =
            variant.arguments.iter().map(|word| format!(" {}", shell::quoted(word.as_ref()))).collect::<String>();
        let preload = variant.preload.as_ref();
        let preload = preload.map(|library| format!("LD_PRELOAD={} ", shell::quoted(library.as_ref())));
        format!("{}gristmill {}{more}", preload.unwrap_or_default(), shell::line(words))
    }
}
