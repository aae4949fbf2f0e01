//! All numbers of a simulation as CSV, one per row.

use std::fmt::Write;

use crate::bandwidth::comparison::{Comparison, Method};
use crate::bandwidth::repetition::Repetition;

/// Returns the name of a method in rows, tables and legends.
pub fn name(method: Method) -> &'static str {
    match method {
        Method::Offline => "offline",
        Method::Across => "across executions",
        Method::Exact => "exact",
        Method::Beyond => "with additions",
    }
}

/// Formats CSV with the columns experiment, subject, setting, number, measure, value.
pub fn csv(repetition: &Repetition) -> String {
    let mut csv = String::from("experiment,subject,setting,number,measure,value\n");
    let mut row = |experiment: &str, subject: &str, setting: &str, number: usize, measure: &str, value: f64| {
        writeln!(csv, "{experiment},{subject},{setting},{number},{measure},{value:.4}")
            .expect("a string takes everything");
    };
    for (number, point) in repetition.figure_3.iter().enumerate() {
        let state = point.state.map_or("none".to_owned(), |state| format!("{state:?}"));
        row("figure 3", "program", &state, number, "own", point.own);
        row("figure 3", "program", &state, number, "system", point.system);
        row("figure 3", "program", &state, number, "speed", point.speed);
    }
    for (load, _, programs) in &repetition.table_2 {
        for program in programs {
            let executions = program.executions.map_or(f64::NAN, |count| count as f64);
            row("table 2", program.name, load, 0, "executions until covered", executions);
            row("table 2", program.name, load, 0, "executions", program.executed as f64);
            row("table 2", program.name, load, 0, "accuracy", program.accuracy);
            row("table 2", program.name, load, 0, "phases", program.phases as f64);
            for (state, quanta) in &program.states {
                let state = state.map_or("none".to_owned(), |state| format!("{state:?}"));
                row("figure 6", program.name, load, 0, &state, *quanta as f64);
            }
        }
    }
    for (number, (ideal, best)) in repetition.training.iter().enumerate() {
        row("training", "group", "", number, "ideal average", *ideal);
        row("training", "group", "", number, "best target", *best);
    }
    let mut groups = |experiment: &str, groups: &[Comparison]| {
        for group in groups {
            for (number, one) in group.linux.iter().enumerate() {
                row(experiment, &group.name, "Linux", number, "makespan_s", one.makespan_us / 1e6);
                row(experiment, &group.name, "Linux", number, "turnaround_s", one.turnaround_us / 1e6);
            }
            for (method, executions) in &group.methods {
                for (number, one) in executions.iter().enumerate() {
                    row(experiment, &group.name, name(*method), number, "makespan_s", one.makespan_us / 1e6);
                    row(experiment, &group.name, name(*method), number, "turnaround_s", one.turnaround_us / 1e6);
                    row(experiment, &group.name, name(*method), number, "chosen", one.chosen);
                    if matches!(method, Method::Across | Method::Beyond) {
                        row(experiment, &group.name, name(*method), number, "coverage", one.coverage);
                        row(experiment, &group.name, name(*method), number, "accuracy", one.accuracy);
                    }
                }
            }
        }
    };
    groups("figures 7 and 8", &repetition.groups);
    groups("unseen groups", &repetition.unseen);
    for small in &repetition.small {
        let subject = small.demands.iter().map(|demand| format!("{demand:.0}")).collect::<Vec<_>>().join(" ");
        for (setting, time_us) in [
            ("Linux", small.linux_us),
            ("exact", small.exact_us),
            ("exact with the target of the rest", small.rest_us),
            ("oracle", small.least_us),
        ] {
            row("oracle", &subject, setting, 0, "makespan_s", time_us / 1e6);
        }
    }
    let scale = &repetition.scale;
    let subject = format!("{} programs on {} processors", scale.programs, scale.processors);
    row("scale", &subject, "", 0, "makespan_s", scale.makespan_us / 1e6);
    row("scale", &subject, "", 0, "selections", scale.cost.selections as f64);
    row("scale", &subject, "", 0, "looks", scale.cost.looks as f64);
    row("scale", &subject, "", 0, "looks in one selection at most", scale.cost.looks_max as f64);
    csv
}
