//! The picture: lanes of workers, marks, axis and legend.

use gristmill::stats::{Event, Mark, PHASES, Phase, Timeline, Track};

use super::columns::{Column, columns, width_ns};
use super::words::{percent, role, seconds, told};
use crate::text::escape;

/// The most marks that have their names in the picture.
const NAMES_MAX: usize = 12;
/// The least distance of two names, as a share of the width.
const NAMES_APART: f64 = 0.08;

/// Returns the stripes that some phases have, for all pictures of a page.
pub fn patterns() -> String {
    let stripes = |name: &str, ground: &str, line: &str| {
        format!(
            "<pattern id='gm-{name}' width='4' height='4' patternUnits='userSpaceOnUse'>\
             <rect width='4' height='4' fill='{ground}'/><rect width='4' height='1.6' fill='{line}'/></pattern>"
        )
    };
    format!(
        "<svg style='position:absolute;width:0;height:0' aria-hidden='true'><defs>{}{}{}</defs></svg>",
        stripes("start", "none", "#888"),
        stripes("merge", "#0072b2", "#fff"),
        stripes("receive", "#e69f00", "#6b3d00"),
    )
}

/// Draws the lanes with all that belongs to them.
pub fn picture(timeline: &Timeline) -> String {
    let width_ns = width_ns(timeline);
    let workers = timeline.tracks.len();
    // The pixels of a lane, and of the gap to the next.
    let (lane, gap) = match workers {
        0..=8 => (36, 6),
        9..=48 => (24, 5),
        49..=160 => (13, 2),
        _ => (6, 1),
    };
    // Where lanes are low, not all of them have room for a name.
    let named_every = 14_usize.div_ceil(lane);
    let splits_roles = timeline.tracks.iter().any(|track| track.maps != track.reduces);
    let marks = Marks::of(timeline);
    let lanes: String = timeline
        .tracks
        .iter()
        .enumerate()
        .map(|(at, track)| {
            let name = match (at % named_every, splits_roles) {
                (0, true) => format!("<i class='gm-role'>{} </i>{}", role(track.maps, track.reduces), track.number),
                (0, false) => format!("<i class='gm-role'>worker </i>{}", track.number),
                _ => String::new(),
            };
            format!(
                "<div class='gm-lane'><span>{name}</span><div class='gm-track'>{}{}</div></div>",
                bars(track, timeline, width_ns, (lane - gap) as u32),
                marks.of_worker(track.number)
            )
        })
        .collect();
    format!(
        "{}<figure><div class='gm-plot' style='--gm-lane:{lane}px;--gm-gap:{gap}px'>{}{lanes}{}</div>\
         <figcaption>{}</figcaption></figure>",
        legend(timeline),
        marks.lines(),
        axis(timeline.wall_ns),
        caption(timeline, width_ns)
    )
}

fn caption(timeline: &Timeline, width_ns: u64) -> String {
    let workers = match timeline.tracks.len() {
        1 => "One worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let thinned = match timeline.marked_every {
        1 => String::new(),
        every => format!(" There were very many steps, stages or rounds: one of {every} is marked."),
    };
    format!(
        "{workers}, {}. A column stands for {} and is coloured by the shares of its phases; a longer job has longer columns.{thinned}",
        seconds(timeline.wall_ns as f64 / 1e9),
        seconds(width_ns as f64 / 1e9),
    )
}

/// Names the phases that occur, with their shares of the time of all workers.
fn legend(timeline: &Timeline) -> String {
    let total_ns: u64 = timeline.tracks.iter().map(|track| track.end_ns).sum();
    let entries = PHASES.iter().filter_map(|phase| {
        let ns: u64 = timeline.tracks.iter().map(|track| track.time_ns(*phase)).sum();
        let name = phase.name();
        (ns > 0).then(|| {
            format!(
                "<span><svg class='gm-key' aria-hidden='true'><rect class='gm-{name}' width='100%' height='100%'/></svg>{} {}</span>",
                name.replace('_', " "),
                percent(ns, total_ns)
            )
        })
    });
    format!("<p class='gm-legend'>{}</p>", entries.collect::<String>())
}

/// Draws the columns of a worker, `height` pixels high. A path for each phase has all of its parts, and equal columns
/// are drawn as one.
fn bars(track: &Track, timeline: &Timeline, width_ns: u64, height: u32) -> String {
    let columns = columns(track, width_ns);
    let mut paths = PHASES.map(|_| String::new());
    let mut hits = String::new();
    let mut at = 0;
    for same in columns.chunk_by(|one, other| shares(one, width_ns) == shares(other, width_ns)) {
        let (from, count) = (at, same.len());
        at += count;
        let shares = shares(&same[0], width_ns);
        let mut filled = 0.0;
        for (path, share) in paths.iter_mut().zip(shares) {
            if share > 0 {
                let part = f64::from(share) / 1000.0 * f64::from(height);
                filled += part;
                path.push_str(&format!("M{from} {:.2}h{count}v{part:.2}h-{count}z", f64::from(height) - filled));
            }
        }
        if filled > 0.0 {
            let [from_ns, to_ns] = [from, at].map(|column| (column as u64 * width_ns).min(timeline.wall_ns));
            hits.push_str(&format!("<rect class='gm-hit' x='{from}' width='{count}' height='{height}'><title>worker {}, {}: {}</title></rect>",
                track.number,
                span(from_ns, to_ns),
                spelt(same)));
        }
    }
    let paths: String = PHASES
        .iter()
        .zip(&paths)
        .filter(|(_, path)| !path.is_empty())
        .map(|(phase, path)| format!("<path class='gm-{}' d='{path}'/>", phase.name()))
        .collect();
    let whole: Column = std::array::from_fn(|phase| track.time_ns(PHASES[phase]));
    format!(
        "<svg class='gm-bars' viewBox='0 0 {:.3} {height}' preserveAspectRatio='none' role='img' aria-label='worker {}: {}'>{paths}{hits}</svg>",
        timeline.wall_ns as f64 / width_ns as f64,
        track.number,
        spelt(&[whole])
    )
}

/// Returns the shares of the phases in a column, in thousandths of its width.
fn shares(column: &Column, width_ns: u64) -> [u32; PHASES.len()] {
    column.map(|ns| (1000.0 * ns as f64 / width_ns as f64).round() as u32)
}

/// Returns the phases of some columns with their shares, the greatest first.
fn spelt(columns: &[Column]) -> String {
    let mut shares: Vec<(Phase, u64)> =
        PHASES.map(|phase| (phase, columns.iter().map(|column| column[phase as usize]).sum())).to_vec();
    shares.retain(|(_, ns)| *ns > 0);
    shares.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let total_ns = shares.iter().map(|(_, ns)| ns).sum();
    let spelt =
        shares.iter().map(|(phase, ns)| format!("{} {}", phase.name().replace('_', " "), percent(*ns, total_ns)));
    spelt.collect::<Vec<_>>().join(", ")
}

fn span(from_ns: u64, to_ns: u64) -> String {
    format!("{} to {}", seconds(from_ns as f64 / 1e9), seconds(to_ns as f64 / 1e9))
}

/// Draws the axis, with up to nine round times.
fn axis(wall_ns: u64) -> String {
    let wall_ns = wall_ns.max(1);
    let step = (0..20)
        .flat_map(|digits| [1, 2, 5].map(|first| first * 10_u64.pow(digits.min(18))))
        .find(|step| wall_ns / step <= 8)
        .unwrap_or(wall_ns);
    let (unit, unit_ns) = match wall_ns {
        0..1_000_000 => ("µs", 1e3),
        1_000_000..1_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    // A time at the right edge would leave the picture, or meet the one before.
    let times = (0..=wall_ns / step).map(|number| number * step).filter(|at| *at as f64 <= 0.97 * wall_ns as f64);
    let ticks = times.map(|at| {
        format!("<span style='left:{:.2}%'>{} {unit}</span>", 100.0 * at as f64 / wall_ns as f64, at as f64 / unit_ns)
    });
    format!("<div class='gm-axis' aria-hidden='true'>{}</div>", ticks.collect::<String>())
}

/// The marks of a timeline by place: deaths in the lane of their worker, all else across the lanes.
struct Marks<'t> {
    wall_ns: u64,
    deaths: Vec<(usize, &'t Mark)>,
    across: Vec<&'t Mark>,
}

impl<'t> Marks<'t> {
    fn of(timeline: &'t Timeline) -> Marks<'t> {
        // Before the last start there were other workers of the same numbers.
        let marks = &timeline.marks;
        let last_start = marks.iter().rposition(|mark| matches!(mark.event, Event::Anew(_))).map_or(0, |at| at + 1);
        let mut sorted = Marks { wall_ns: timeline.wall_ns.max(1), deaths: Vec::new(), across: Vec::new() };
        for (at, mark) in marks.iter().enumerate() {
            match mark.event {
                Event::Death { worker, .. } if at >= last_start => sorted.deaths.push((worker, mark)),
                _ => sorted.across.push(mark),
            }
        }
        sorted
    }

    fn share(&self, mark: &Mark) -> f64 {
        (mark.at_ns as f64 / self.wall_ns as f64).min(1.0)
    }

    fn of_worker(&self, number: usize) -> String {
        let deaths = self.deaths.iter().filter(|(worker, _)| *worker == number);
        deaths
            .map(|(_, mark)| {
                let title = format!("{}: {}", seconds(mark.at_ns as f64 / 1e9), told(mark).0);
                format!(
                    "<b class='gm-death' style='left:{:.2}%' title='{}'>×</b>",
                    self.share(mark) * 100.0,
                    escape(&title)
                )
            })
            .collect()
    }

    fn lines(&self) -> String {
        let mut named_until = f64::NEG_INFINITY;
        let lines: String = self
            .across
            .iter()
            .map(|mark| {
                let (share, (sentence, word)) = (self.share(mark), told(mark));
                let has_room = self.across.len() <= NAMES_MAX && share - named_until >= NAMES_APART;
                named_until = if has_room { share } else { named_until };
                let word = if has_room { format!("<span>{word}</span>") } else { String::new() };
                let class = if share > 0.9 { "gm-line gm-turned" } else { "gm-line" };
                let title = format!("{}: {sentence}", seconds(mark.at_ns as f64 / 1e9));
                format!(
                    "<div class='{class}' style='left:{:.2}%' title='{}'>{word}</div>",
                    share * 100.0,
                    escape(&title)
                )
            })
            .collect();
        format!("<div class='gm-over'>{lines}</div>")
    }
}
