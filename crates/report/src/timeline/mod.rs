//! The timeline of a job as HTML: a lane for each worker, coloured by phase, and the same numbers as a table.
//!
//! A column of a lane stacks the shares of the phases in a short time. Colours are those of Okabe and Ito, which people
//! with any kind of colour vision can tell apart; phases beyond these have stripes. Names, times and shares appear
//! under the pointer, and in the table. The picture takes the colour of its text from the page around it, so it fits a
//! light and a dark page, and a notebook.

// Sorted: a module imports only from those above it (ci/rooms.py).
mod words;
mod columns;
mod picture;
mod table;

use std::time::Duration;

use gristmill::stats::Timeline;

use crate::document::document;
use crate::text::escape;
pub use words::role;
use words::seconds;

const STYLE: &str = include_str!("../timeline.css");

/// One job, or one of several that a program ran.
pub struct TimelineJob<'t> {
    /// Its work, in a few words.
    pub title: String,
    /// When it began, after the first one.
    pub began: Duration,
    /// Its timeline.
    pub timeline: &'t Timeline,
}

/// Returns a page with the timelines of `runs`; `title` is the command or the program.
///
/// ```
/// use gristmill::stats::Timeline;
/// use gristmill_report::timeline::{TimelineJob, page};
///
/// let timeline = Timeline { wall_ns: 1_000_000, tracks: Vec::new(), marks: Vec::new(), marked_every: 1 };
/// let run = TimelineJob { title: "nothing".into(), began: Default::default(), timeline: &timeline };
/// assert!(page("A job", &[run]).contains("A job</p>"));
/// ```
pub fn page(title: &str, runs: &[TimelineJob<'_>]) -> String {
    let body = format!("<h1>When each worker did what</h1><p class='soft'>{}</p>{}", escape(title), pictures(runs));
    document("Gristmill: when each worker did what", &[STYLE], &body)
}

/// Returns the timelines of `runs` as a part of a page, with all styles that it needs.
pub fn fragment(runs: &[TimelineJob<'_>]) -> String {
    format!("<style>{STYLE}</style>{}", pictures(runs))
}

fn pictures(runs: &[TimelineJob<'_>]) -> String {
    let several = runs.len() > 1;
    let picture = |run: &TimelineJob<'_>| {
        let heading = match several {
            true => format!("<h2>{}</h2><p>Began after {}.</p>", escape(&run.title), seconds(run.began.as_secs_f64())),
            false => String::new(),
        };
        let TimelineJob { timeline, .. } = run;
        format!(
            "{heading}<div class='gm-timeline'>{}{}{}</div>",
            picture::picture(timeline),
            table::numbers(timeline),
            table::events(timeline)
        )
    };
    picture::patterns() + &runs.iter().map(picture).collect::<String>()
}

#[cfg(test)]
mod tests;
