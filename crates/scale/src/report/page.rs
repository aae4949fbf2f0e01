//! The report as a self-contained page.

use crate::diagnose::{Conclusion, Curve, Fit};

use super::chart;
use super::text::{crowded, range, regions};
use crate::measure::evidence::Evidence;
use crate::section::{About, shown};
use gristmill_report::text::escape;

/// Renders the whole page.
pub fn html(about: &About, curve: &Curve, evidence: Option<&Evidence>) -> String {
    let facts: String = about
        .facts
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
        .collect();
    let facts = if facts.is_empty() { facts } else { format!("<h2>Circumstances</h2><dl>{facts}</dl>") };
    let Conclusion { failures, statements } = &about.conclusion;
    let result: String = failures
        .iter()
        .chain(statements)
        .map(|statement| format!("<p class='result'>{}</p>", escape(&statement.sentence)))
        .collect();
    let notes: String = about.notes.iter().map(|note| format!("<p class='note'>{}</p>", escape(note))).collect();
    let body = format!(
        "<h1>Where more workers stop helping</h1><p class='soft'>{}</p>{result}{notes}\
         <div class='charts'><figure><h3>{} over workers</h3>{}<figcaption>{}</figcaption></figure>\
         <figure><h3>Efficiency over workers</h3>{}<figcaption>The speed-up, divided by the workers: 100 % means that no worker \
         is wasted.</figcaption></figure></div>\
         {}{}{}<h2>Numbers</h2><p>{}.</p>{}{}{facts}",
        escape(&about.title),
        escape(&sentence_case(about.time)),
        chart::times(curve),
        legend(curve),
        chart::efficiency(curve),
        about.varied.html,
        about.phases.html,
        evidence.map_or(String::new(), Evidence::html),
        escape(&sentence_case(&regions(curve))),
        numbers(curve),
        laws(curve),
    );
    gristmill_report::document("Gristmill: where more workers stop helping", &[include_str!("page.css")], &body)
}

/// Names what is drawn in the curve of times.
fn legend(curve: &Curve) -> String {
    let key = |class: &str, text: &str| {
        format!("<span class='entry'><span class='key of-{class}'></span>{}</span> ", escape(text))
    };
    let mut keys = vec![key("point", "median; the line through it, all runs"), key("ideal", "without loss")];
    for (at, fit) in chart::laws(curve).into_iter().enumerate() {
        keys.push(key(&format!("law{}", at.min(2)), &fit.fitted.law.to_string()));
        if at == 0 {
            keys.push(key("band", "where that law lies in nine of ten cases"));
        }
    }
    if curve.best.interval.is_some_and(|(from, to)| from < to) {
        keys.push(key("best", "where the best number of workers lies in nine of ten cases"));
    }
    if let Some(processors) = crowded(curve) {
        keys.push(key("limit", &format!("the {processors} processors: beyond, workers take turns")));
    }
    keys.concat() + "<br>Both axes double from line to line, so perfect scaling is straight."
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(|| "One number of workers".to_owned(), |first| first.to_uppercase().chain(letters).collect())
}

fn numbers(curve: &Curve) -> String {
    let rows: String = curve
        .points
        .iter()
        .map(|point| {
            let class = if point.workers == curve.best.workers { " first" } else { "" };
            let mark = if curve.is_crowded(point.workers) { " *" } else { "" };
            format!(
                "<tr><td class='number{class}'>{}{mark}</td><td class='number'>{}</td><td class='number'>{}</td>\
                 <td class='number'>{}</td><td class='number'>{:.2}</td><td class='number'>{:.0} %</td></tr>",
                point.workers,
                shown(point.median()),
                range(point, "–"),
                point.seconds.len(),
                curve.speed_up(point),
                curve.efficiency(point) * 100.0,
            )
        })
        .collect();
    let heads = ["Workers", "Median", "All runs", "Runs", "Speed-up", "Efficiency"]
        .map(|head| format!("<th class='number'>{head}</th>"));
    let crowd = crowded(curve).map_or(String::new(), |processors| {
        format!("<p class='soft'>* more workers than the {processors} processors, so they take turns.</p>")
    });
    format!("<div class='scroll'><table><tr>{}</tr>{rows}</table></div>{crowd}", heads.concat())
}

/// Renders every law with its parameters.
fn laws(curve: &Curve) -> String {
    if curve.fits.is_empty() {
        return String::new();
    }
    let best = curve.fits[0].aicc;
    let row = |fit: &Fit| {
        let law = fit.fitted.law;
        let named = law.meanings().iter().zip(&fit.parameters);
        let parameters: Vec<String> = named.map(|(name, value)| format!("{name} {value}")).collect();
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class='number'>{:.1} %</td><td class='number'>{}</td>\
             <td class='number'>{:.1}</td></tr>",
            escape(&law.to_string()),
            escape(&parameters.join(", ")),
            escape(&fit.best.to_string()),
            fit.deviation * 100.0,
            fit.chance.map_or("unknown".to_owned(), |chance| format!("{:.0} %", chance * 100.0)),
            fit.aicc - best
        )
    };
    let rows: String = curve.fits.iter().map(row).collect();
    format!(
        "<details><summary>Laws</summary><p class='soft'>In brackets: where the true value lies in nine of ten cases. Then: how far \
         the times are from the law; the chance that a law which holds would miss them by as much (below 10 % it is rejected; unknown if \
         nothing ran twice); and Akaike's criterion above that of the best, where less than 2 is no difference. A bend is never named as the law, \
         but a law must describe the times better than it does.</p>\
         <div class='scroll'><table><tr><th>Law</th><th>Parameters</th><th>Best number of workers</th>\
         <th class='number'>Deviation</th><th class='number'>Chance</th><th class='number'>Criterion</th></tr>{rows}</table></div></details>"
    )
}
