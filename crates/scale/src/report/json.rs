//! The report for programs: one object.

use crate::diagnose::{Curve, FittedLaw, Interval, Point, Predicted, Statement};
use serde_json::{Value, json};

use crate::section::About;

/// Formats the times, the verdict and the law as one object.
pub fn object(about: &About, curve: &Curve) -> String {
    let statements = |all: &[Statement]| -> Vec<Value> {
        all.iter().map(|one| json!({ "kind": one.kind, "sentence": one.sentence })).collect()
    };
    let best = curve.best;
    json!({
        "command": about.title,
        "verdict": curve.help().name(),
        "failures": statements(&about.conclusion.failures),
        "statements": statements(&about.conclusion.statements),
        "notes": about.notes,
        "best": { "workers": best.workers, "from": best.interval.map(|range| range.0), "to": best.interval.map(|range| range.1) },
        "law": law(curve),
        "noise": curve.noise,
        "processors": curve.processors,
        "points": curve.points.iter().map(|point| measured(curve, point)).collect::<Vec<_>>(),
    })
    .to_string()
}

fn measured(curve: &Curve, point: &Point) -> Value {
    json!({
        "workers": point.workers,
        "seconds": point.median(),
        "runs": point.seconds,
        "speed_up": curve.speed_up(point),
        "efficiency": curve.efficiency(point),
        "takes_turns": curve.is_crowded(point.workers),
    })
}

/// Returns the law with its parameters; null unless one law is named. An infinite end of an interval is null, too.
fn law(curve: &Curve) -> Value {
    let FittedLaw::Law(law) = &curve.verdict else { return Value::Null };
    let fit = &curve.fits[0];
    let parameter = |(name, value): (&&str, &Interval)| json!({ "name": name, "value": value.value, "from": value.from, "to": value.to });
    let parameters: Vec<Value> = law.meanings().iter().zip(&fit.parameters).map(parameter).collect();
    let predicted = match &curve.predicted {
        Some(Predicted::Workers(best)) => json!({ "value": best.value, "from": best.from, "to": best.to }),
        _ => Value::Null,
    };
    json!({
        "name": law.to_string(),
        "is_tested": curve.noise.is_some(),
        "chance": fit.chance,
        "deviation": fit.deviation,
        "parameters": parameters,
        "predicted_workers": predicted,
    })
}
