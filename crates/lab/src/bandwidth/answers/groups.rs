//! Table 3: the groups, and the bandwidth that each would need.

use std::fmt::Write;

use gristmill_cli::Failure;

use crate::bandwidth::comparison::Team;
use crate::bandwidth::experiments::Experiments;
use crate::bandwidth::group::Programs;
use crate::bandwidth::paper::{ALONE_US, GROUPS, marked};
use crate::bandwidth::simulation::Ground;
use crate::page::{Answer, Judgement};

/// The tolerance of an ideal average bandwidth.
const OFF_MAX: f64 = 0.1;

pub fn table_3(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let programs = Programs::new(experiments.seeds[0], ALONE_US);
    let mut found = String::from(
        "by the formula of section 2.1 and the demands of table 2:\n\n\
         | group | programs | made up | IABW in the paper | IABW here | demand assumed |\n|---|---|---|---|---|---|\n",
    );
    let mut wrong = Vec::new();
    for group in &GROUPS {
        let members = group.members();
        let assumed = members.iter().filter(|benchmark| !benchmark.legible).count();
        let team = Team::new(group.name, &programs, &members);
        let here = team.ideal_average(Ground::paper().processors);
        if group.is_legible() && (here / group.ideal_average - 1.0).abs() > OFF_MAX {
            wrong.push(group.name);
        }
        let (name, made_up) = (marked(group.name), group.made_up());
        writeln!(
            found,
            "| {name} | {} | {made_up} | {} | {here:.0} | {assumed} |",
            group.programs, group.ideal_average
        )
        .expect("a string takes everything");
    }
    found += "\nIABW: ideal average bandwidth, requests per microsecond. WL#01 to WL#08 are judged. Where the end of a row is cut \
              off, programs that ask for hardly anything fill it up. The demands of lbm, gcc and wrf, and of all programs that \
              ask for less, are assumed; the last column counts these programs. *: not judged: most programs are made up, because \
              the row is cut off (WL#09) or missing (WL#10). Those of WL#10 were chosen to have its average. Means without \
              these two groups are given beside those of all ten.";
    let why = || format!("{} are off by more than a tenth", wrong.join(", "));
    Ok(Answer::new(found, Judgement::of(wrong.is_empty(), why)))
}
