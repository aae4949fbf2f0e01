//! The numbers of the picture as tables, for readers who cannot see it or want exact values.

use gristmill::stats::{PHASES, Phase, Timeline};

use super::words::{percent, role, seconds, told};
use crate::text::escape;

/// The most rows in a table of events.
const EVENTS_MAX: usize = 200;

/// Returns a table with a row for each worker, and a column for each phase that occurs.
pub fn numbers(timeline: &Timeline) -> String {
    let total_ns = |phase: Phase| timeline.tracks.iter().map(|track| track.time_ns(phase)).sum::<u64>();
    let phases: Vec<(Phase, u64)> =
        PHASES.into_iter().map(|phase| (phase, total_ns(phase))).filter(|(_, ns)| *ns > 0).collect();
    // One unit for the whole table.
    let (unit, digits) = if timeline.wall_ns < 1_000_000_000 { (("ms", 1e6), 2) } else { (("s", 1e9), 3) };
    let time = |ns: u64| format!("<td>{:.digits$}</td>", ns as f64 / unit.1);
    let rows: String = timeline
        .tracks
        .iter()
        .map(|track| {
            let times: String = phases.iter().map(|(phase, _)| time(track.time_ns(*phase))).collect();
            format!(
                "<tr><th scope='row'>{}</th><td class='gm-text'>{}</td>{}{}{times}</tr>",
                track.number,
                role(track.maps, track.reduces),
                time(track.born_ns),
                time(track.end_ns)
            )
        })
        .collect();
    let heads: String =
        phases.iter().map(|(phase, _)| format!("<th scope='col'>{}</th>", phase.name().replace('_', " "))).collect();
    let all_ns: u64 = phases.iter().map(|(_, ns)| ns).sum();
    let sums: String = phases.iter().map(|(_, ns)| time(*ns)).collect();
    let shares: String = phases.iter().map(|(_, ns)| format!("<td>{}</td>", percent(*ns, all_ns))).collect();
    format!(
        "<details><summary>The same as a table: {unit} of each worker in each phase</summary><div class='gm-scroll'><table>\
         <thead><tr><th scope='col'>worker</th><th scope='col' class='gm-text'>role</th><th scope='col'>started at</th>\
         <th scope='col'>ended at</th>{heads}</tr></thead>\
         <tbody>{rows}<tr><th scope='row'>all</th><td></td><td></td><td></td>{sums}</tr>\
         <tr><th scope='row'>share</th><td></td><td></td><td></td>{shares}</tr></tbody></table></div></details>",
        unit = unit.0
    )
}

/// Returns a table of what happened, or nothing.
pub fn events(timeline: &Timeline) -> String {
    if timeline.marks.is_empty() {
        return String::new();
    }
    let row = |mark| {
        let (sentence, _) = told(mark);
        format!("<tr><td>{}</td><td class='gm-text'>{}</td></tr>", seconds(mark.at_ns as f64 / 1e9), escape(&sentence))
    };
    let rows: String = timeline.marks.iter().take(EVENTS_MAX).map(row).collect();
    let more = match timeline.marks.len().saturating_sub(EVENTS_MAX) {
        0 => String::new(),
        more => format!("<p>And {more} more.</p>"),
    };
    format!(
        "<details><summary>What happened</summary><div class='gm-scroll'><table><thead><tr><th scope='col'>at</th>\
         <th scope='col' class='gm-text'>what</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</details>"
    )
}
