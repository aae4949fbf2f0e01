//! The finding of this machine on one figure or table.

/// The answer of an experiment to one figure or table.
pub struct Answer {
    /// The finding, in Markdown: a sentence, or a table.
    pub found: String,
    pub verdict: Judgement,
    /// Files to write beside the page: their name and their content. A name that ends in `.svg` is shown on the page.
    pub files: Vec<(String, String)>,
}

impl Answer {
    pub fn new(found: impl Into<String>, verdict: Judgement) -> Answer {
        Answer { found: found.into(), verdict, files: Vec::new() }
    }

    /// Returns the answer to a drawing: what corresponds to it here.
    pub fn drawing(corresponds: &str) -> Answer {
        Answer::new("", Judgement::Drawing(corresponds.to_owned()))
    }

    /// Returns the answer to what needs something that this machine does not have.
    pub fn cannot_be_asked(because: impl Into<String>) -> Answer {
        Answer::new("", Judgement::CannotBeAsked(because.into()))
    }

    /// Adds a file beside the page.
    pub fn with(mut self, name: impl Into<String>, content: String) -> Answer {
        self.files.push((name.into(), content));
        self
    }
}

/// Whether this machine agrees with the paper.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    Agrees,
    /// It does not; why, as far as that is known.
    Differs(String),
    /// No verdict: too few rounds, a machine under load, or an effect of less than one hundredth of the time.
    Undecided(String),
    /// It cannot be asked here; because of what.
    CannotBeAsked(String),
    /// A drawing, a list or a text, which claims nothing that could be measured; what corresponds to it here.
    Drawing(String),
}

impl Judgement {
    /// Returns the verdict of a claim that holds or not.
    pub fn of(agrees: bool, otherwise: impl FnOnce() -> String) -> Judgement {
        if agrees { Judgement::Agrees } else { Judgement::Differs(otherwise()) }
    }

    /// Returns the verdict in one or two words, and the reason.
    pub fn words(&self) -> (&'static str, &str) {
        match self {
            Judgement::Agrees => ("agrees", ""),
            Judgement::Differs(why) => ("does not agree", why),
            Judgement::Undecided(why) => ("undecided", why),
            Judgement::CannotBeAsked(why) => ("cannot be asked here", why),
            Judgement::Drawing(what) => ("not an experiment", what),
        }
    }
}
