//! The timeline: a self-contained page with a bar for each attempt.

use std::path::Path;

use crate::queue::{BatchJob, Outcome};
use gristmill::Error;
use gristmill_report::table;

use super::record::Record;
use gristmill_os::whole_file::Aside;
use gristmill_report::text::{counted, escape};

const WIDTH: f64 = 900.0;
const LANE: f64 = 18.0;

/// Fails if the page cannot be written, before hours of work and not after them.
pub fn check(path: &Path) -> Result<(), Error> {
    Aside::create_file(path).map(drop).map_err(|source| Error::Output { path: path.to_owned(), source })
}

/// Writes the page.
pub fn write(path: &Path, page: &str) -> Result<(), Error> {
    let written = Aside::create_file(path).and_then(|aside| aside.write(|to| to.write_all(page.as_bytes())));
    written.map_err(|source| Error::Output { path: path.to_owned(), source })
}

/// Renders the page.
pub fn html(jobs: &[BatchJob], records: &[Record]) -> String {
    let begin = records.iter().map(|record| record.at_ms).min().unwrap_or(0);
    let end = |record: &Record| record.at_ms as f64 + record.took.as_secs_f64() * 1e3;
    let span = (records.iter().map(end).fold(0.0, f64::max) - begin as f64).max(1.0);
    let x = |ms: f64| (ms - begin as f64) / span * WIDTH;
    let lanes = lanes(&records.iter().map(|record| (record.at_ms as f64, end(record))).collect::<Vec<_>>());
    let height = (lanes.iter().max().map_or(0, |lane| lane + 1) as f64) * LANE;
    let bar = |(record, lane): (&Record, &usize)| {
        let (left, right) = (x(record.at_ms as f64), x(end(record)));
        let colour = match &record.outcome {
            Some(Outcome::Exited(0)) => "#3a7ca5",
            Some(_) => "#c8553d",
            None => "#999",
        };
        let title = format!("{}: {}, {:.2} s", jobs[record.job].name, record.status(), record.took.as_secs_f64());
        format!(
            "<rect x='{left:.1}' y='{:.1}' width='{:.1}' height='{:.1}' fill='{colour}'><title>{}</title></rect>",
            *lane as f64 * LANE,
            (right - left).max(1.0),
            LANE - 3.0,
            escape(&title)
        )
    };
    let bars: String = records.iter().zip(&lanes).map(bar).collect();
    let row = |record: &Record| {
        format!(
            "<td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{:.2}</td>",
            escape(&jobs[record.job].name),
            record.attempt,
            escape(&record.status()),
            (record.at_ms - begin) as f64 / 1e3,
            record.took.as_secs_f64()
        )
    };
    let columns = ["program", "attempt", "outcome", "began, s", "took, s"];
    let body = format!(
        "<h1>When each program ran</h1><p class='soft'>{} in {:.1} seconds</p>\
         <figure><svg viewBox='0 0 {WIDTH} {height}' role='img'>{bars}</svg>\
         <figcaption>Each bar is a program. Blue: succeeded. Red: failed. Grey: ended on request, or with the queue.</figcaption></figure>{}",
        counted(records.len() as u64, "program"),
        span / 1e3,
        table(&columns, records.iter().map(row)),
    );
    gristmill_report::document("Gristmill: when each program ran", &[], &body)
}

/// Puts each span of time into the first lane that is free.
fn lanes(spans: &[(f64, f64)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by(|a, b| spans[*a].0.total_cmp(&spans[*b].0));
    let (mut ends, mut lanes) = (Vec::<f64>::new(), vec![0; spans.len()]);
    for at in order {
        let (begin, end) = spans[at];
        let lane = ends.iter().position(|end| *end <= begin).unwrap_or(ends.len());
        if lane == ends.len() {
            ends.push(end);
        } else {
            ends[lane] = end;
        }
        lanes[at] = lane;
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_ran_at_the_same_time_are_in_different_lanes() {
        assert_eq!(lanes(&[(0.0, 5.0), (5.0, 6.0), (1.0, 9.0), (2.0, 3.0)]), [0, 0, 1, 2]);
    }
}
