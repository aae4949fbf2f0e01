use super::*;
use gristmill::stats::{Event, Mark, PHASES, Phase, Track};

const WIDTH_NS: u64 = 1 << 20;

/// Returns the timeline of two workers, of which the second one died and was replaced.
fn timeline() -> Timeline {
    let bucket = |phases: &[(Phase, u64)]| {
        let mut bucket = [0; PHASES.len()];
        phases.iter().for_each(|(phase, share)| bucket[*phase as usize] = WIDTH_NS / 4 * share);
        bucket
    };
    let map = bucket(&[(Phase::Input, 1), (Phase::Map, 3)]);
    let reduce = bucket(&[(Phase::SendWait, 1), (Phase::Reduce, 2), (Phase::Idle, 1)]);
    let start = bucket(&[(Phase::Start, 4)]);
    let track = |number: usize, born_ns: u64, buckets: Vec<[u64; PHASES.len()]>| {
        let end_ns = buckets.len() as u64 * WIDTH_NS;
        Track { number, maps: true, reduces: true, born_ns, end_ns, width_ns: WIDTH_NS, buckets }
    };
    let tracks = vec![
        track(1, 0, vec![map, map, map, reduce]),
        track(2, 0, vec![map, map]),
        track(3, 2 * WIDTH_NS, vec![start, start, map, reduce]),
    ];
    let mark = |at: u64, event| Mark { at_ns: at * WIDTH_NS, event };
    let how = "worker 2 died in map on <pond>'s &.txt: signal 9 (SIGKILL)".to_owned();
    let marks = vec![mark(2, Event::Death { worker: 2, how }), mark(3, Event::Redo)];
    Timeline { wall_ns: 4 * WIDTH_NS, tracks, marks, marked_every: 1 }
}

fn shown(timeline: &Timeline) -> String {
    page("A <job>", &[TimelineJob { title: "it".into(), began: Duration::ZERO, timeline }])
}

#[test]
fn a_page_needs_nothing_else_and_closes_what_it_opens() {
    for page in [shown(&timeline()), shown(&Timeline { tracks: Vec::new(), marks: Vec::new(), ..timeline() })] {
        for foreign in
            ["http", "//", "<script", "<link", "src=", "href", "@import", "url(\"", "<job>", "<pond>", "NaN", "inf"]
        {
            assert!(!page.contains(foreign), "{foreign} in {page}");
        }
        let mut open = Vec::new();
        for tag in page.split('<').skip(1).map(|rest| &rest[..rest.find('>').expect("a tag ends")]) {
            let name = tag.split([' ', '/']).find(|word| !word.is_empty()).expect("a tag has a name");
            match tag.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop(), Some(closed)),
                None if tag.ends_with('/') || ["!doctype", "meta"].contains(&name) => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn a_column_stacks_the_shares_of_its_phases() {
    let page = shown(&timeline());
    // The first two columns of worker 2 are equal, so they are drawn as one.
    assert!(
        page.contains("<path class='gm-input' d='M0 22.50h2v7.50h-2z'/><path class='gm-map' d='M0 0.00h2v22.50h-2z'/>"),
        "{page}"
    );
    assert!(page.contains("worker 2, 0 to 2.10 ms: map 75 %, input 25 %"), "{page}");
    // Worker 3 has nothing before its birth, but the table says all of it.
    assert!(!page.contains("<path class='gm-start'"), "{page}");
    assert!(
        page.contains(
            "<tr><th scope='row'>3</th><td class='gm-text'>map+reduce</td><td>2.10</td><td>4.19</td><td>2.10</td>"
        ),
        "{page}"
    );
}

#[test]
fn deaths_are_in_the_lane_of_their_worker_until_the_job_begins_anew() {
    let mut timeline = timeline();
    let page = shown(&timeline);
    assert!(
        page.contains("<b class='gm-death' style='left:50.00%' title='2.10 ms: worker 2 died in map on &lt;pond&gt;"),
        "{page}"
    );
    assert_eq!((page.matches("class='gm-line'").count(), page.matches("<span>redo</span>").count()), (1, 1));
    timeline.marks.push(Mark { at_ns: 3 * WIDTH_NS, event: Event::Anew("other pairs".into()) });
    let page = shown(&timeline);
    assert_eq!((page.matches("<b class='gm-death'").count(), page.matches("class='gm-line'").count()), (0, 3));
}

#[test]
fn the_axis_has_round_times_for_any_length_of_job() {
    for wall_ns in (0..19).flat_map(|digits| [1, 3, 9].map(|first| first * 10_u64.pow(digits))) {
        let page = shown(&Timeline { wall_ns, tracks: Vec::new(), marks: Vec::new(), marked_every: 1 });
        let axis = page.split("<div class='gm-axis'").nth(1).expect("an axis").split("</div>").next().expect("an end");
        assert!((1..=9).contains(&axis.matches("<span").count()), "{wall_ns}: {axis}");
    }
}

#[test]
fn times_have_three_digits() {
    assert_eq!(
        [0.0, 1.5e-6, 0.0123, 0.456, 7.891, 123.4].map(seconds),
        ["0", "1.50 µs", "12.3 ms", "456 ms", "7.89 s", "123 s"]
    );
}
