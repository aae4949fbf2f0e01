//! Figure 3 and table 1: the states in which a program keeps its speed.

use std::fmt::Write;

use gristmill_cli::Failure;
use gristmill_report::plane::Dot;
use gristmill_schedule::{COVERAGE_MIN, Little, Settings, states};

use crate::bandwidth::experiments::Experiments;
use crate::bandwidth::figure_3::Point;
use crate::bandwidth::pictures::{Ticks, picture};
use crate::page::{Answer, Judgement};

/// The states, each with its name and its colour.
const STATES: [(Option<Little>, &str, &str); 4] = [
    (Some(Little::OwnDemand), "own demand low", "green"),
    (Some(Little::System), "system low", "blue"),
    (Some(Little::OnlyOne), "only one asks for much", "orange"),
    (None, "none of the three", "grey"),
];

pub fn table_1(_: &mut Experiments) -> Result<Answer, Failure> {
    // The thresholds are found by asking the rule of the scheduler, in thousandths of the peak.
    let from =
        |is_low: &dyn Fn(f64) -> bool| (1..1000).find(|share| !is_low(f64::from(*share) / 1000.0)).unwrap_or(1000);
    let beside = |own: f64, other: f64| states(&[own, other], own + other, 0.0, 1.0)[0];
    let own = from(&|share| beside(share, 0.9) == Some(Little::OwnDemand));
    let system = from(&|share| beside(share / 2.0, share / 2.0).is_some());
    let (quantum_ms, coverage) = (Settings::paper().quantum_us / 1000.0, COVERAGE_MIN * 100.0);
    let found = format!(
        "the table itself is lost in our text, so our values are compared with those of sections 3.1 and 5.2. A quantum has \
         {quantum_ms:.0} ms. The demand of a program is low below {:.1} %, that of all together below {:.1} % (tried in steps of \
         0.1 %: {:.1} % is still low). A program is known from a coverage of {coverage:.0} %. The threshold for the distance of \
         two basic-block vectors is in neither section; here it is 0.5 of 2.",
        f64::from(own) / 10.0,
        f64::from(system) / 10.0,
        f64::from(system - 1) / 10.0
    );
    let agrees = quantum_ms == 100.0 && own == 40 && (333..=334).contains(&system) && coverage == 80.0;
    Ok(Answer::new(found, Judgement::of(agrees, || "the scheduler has other parameters".into())))
}

pub fn figure_3(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let points = experiments.contention();
    let mut found = String::from(
        "programs in quanta on the simulated machine, four of them at a time:\n\n\
         | state | quanta | quanta at 95 % of the speed or more | lowest speed |\n|---|---|---|---|\n",
    );
    for (state, name, _) in STATES {
        let speeds: Vec<f64> = points.iter().filter(|point| point.state == state).map(|point| point.speed).collect();
        let kept = speeds.iter().filter(|speed| **speed >= 0.95).count() as f64 / speeds.len() as f64 * 100.0;
        let slowest = speeds.iter().copied().fold(1.0, f64::min) * 100.0;
        let cells = if speeds.is_empty() { "? | ?".into() } else { format!("{kept:.0} % | {slowest:.0} %") };
        writeln!(found, "| {name} | {} | {cells} |", speeds.len()).expect("a string takes everything");
    }
    let mut csv = String::from("own,system,state,speed\n");
    for Point { own, system, state, speed } in &points {
        let state = state.map_or("none".to_owned(), |state| format!("{state:?}"));
        writeln!(csv, "{own:.4},{system:.4},{state},{speed:.4}").expect("a string takes everything");
    }
    let because = "the simulated memory is calibrated to this figure, so it would agree by its making. A processor that counts \
                   requests to memory for each program could ask it";
    Ok(Answer::new(found, Judgement::CannotBeAsked(because.into()))
        .with("figure-3.svg", drawn(&points))
        .with("figure-3.csv", csv))
}

fn drawn(points: &[Point]) -> String {
    let colour = |state| STATES.iter().find(|(one, ..)| *one == state).map_or("grey", |(_, _, colour)| *colour);
    let dots: Vec<Dot> =
        points.iter().map(|point| Dot { x: point.system, y: point.speed, class: colour(point.state) }).collect();
    let x = Ticks { from: 0.0, to: 1.0, step: 0.2, name: "bandwidth of all programs, share of the peak" };
    let y = Ticks { from: 0.4, to: 1.0, step: 0.1, name: "speed, share of that alone" };
    picture("Programs in quanta, by state", &x, &y, &dots, &[], &STATES.map(|(_, name, colour)| (name, colour)))
}
