//! A table of the phases of our own applications, with a row for each number of workers.

use crate::run::phases::{KINDS, Phases};
use crate::run::rounds::Series;
use crate::section::Section;

/// Returns the phases of the run whose time is the median, for each number of workers.
pub fn medians(all: &[Series]) -> Vec<(u64, Phases)> {
    let median = |series: &Series| {
        let mut runs: Vec<_> = series.runs.iter().filter(|run| run.phases.is_some()).collect();
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Some((series.workers, runs.get(runs.len() / 2)?.phases?))
    };
    all.iter().filter_map(median).collect()
}

const TITLE: &str = "Thread-seconds by phase, all workers together, in the run of median time";

/// Formats a row for each number of workers; empty for other commands than our own.
pub fn section(all: &[Series]) -> Section {
    let medians = medians(all);
    if medians.is_empty() { Section::default() } else { Section { text: text(&medians), html: html(&medians) } }
}

fn text(medians: &[(u64, Phases)]) -> String {
    let mut text = format!("{TITLE}:\n{:>8}", "workers");
    KINDS.iter().for_each(|(kind, _)| text.push_str(&format!("{kind:>10}")));
    for (workers, Phases { seconds, .. }) in medians {
        text.push_str(&format!("\n{workers:>8}"));
        seconds.iter().for_each(|seconds| text.push_str(&format!("{seconds:>10.3}")));
    }
    text + "\n\n"
}

fn html(medians: &[(u64, Phases)]) -> String {
    let heads: String = KINDS.iter().map(|(kind, _)| format!("<th class='number'>{kind}</th>")).collect();
    let row = |(workers, Phases { seconds, .. }): &(u64, Phases)| {
        let cells: String = seconds.iter().map(|seconds| format!("<td class='number'>{seconds:.3}</td>")).collect();
        format!("<tr><td class='number'>{workers}</td>{cells}</tr>")
    };
    let rows: String = medians.iter().map(row).collect();
    format!(
        "<h2>Phases</h2><p class='soft'>{TITLE}.</p>\
         <div class='scroll'><table><tr><th class='number'>Workers</th>{heads}</tr>{rows}</table></div>"
    )
}
