//! A page that shows what choosing programs gained, run by run, from the history.

use gristmill_history::Repeated;
use gristmill_report::plane::{self, Axis, Dot, Line, plane};
use gristmill_report::table;
use gristmill_report::text::escape;

const STYLE: &str = "
.usual { fill: var(--other); } .chosen { fill: var(--first); } .mixed { fill: none; stroke: var(--soft); }
svg .line.mean { stroke: var(--ideal); }
svg.key { display: inline-block; width: .8em; height: .8em; margin: 0 .35em 0 .9em; }
";

/// The runs in each order from which the difference is shown. With fewer it is chance.
const RUNS_MIN: usize = 3;

/// Returns why there is no gain to draw; `quanta` are those in which programs were chosen, and all.
pub fn nothing(all: &[Repeated], [chosen, quanta]: [u64; 2]) -> Option<String> {
    let is_chosen = |run: &gristmill_history::Repeat| run.is_chosen == Some(true);
    if all.iter().any(|of| !of.saved().is_empty() && of.runs.iter().any(is_chosen)) {
        return None;
    }
    Some(match chosen {
        0 => format!("nothing was chosen (0 of {quanta} quanta), so there is no gain to draw"),
        _ => format!(
            "programs were chosen in {chosen} of {quanta} quanta, but in no whole run that can be compared with one in the system's order, so there is no gain to draw"
        ),
    })
}

/// Renders the page. Runs of inputs that never ran in the system's order have nothing to be compared with, and are left
/// out.
pub fn html(all: &[Repeated]) -> String {
    let compared: Vec<(&Repeated, Vec<f64>)> =
        all.iter().map(|of| (of, of.saved())).filter(|(_, saved)| !saved.is_empty()).collect();
    let class = |is_chosen: Option<bool>| match is_chosen {
        Some(true) => "chosen",
        Some(false) => "usual",
        None => "mixed",
    };
    let dots: Vec<Dot> = compared
        .iter()
        .flat_map(|(of, saved)| of.runs.iter().zip(saved).enumerate())
        .map(|(at, (run, saved))| Dot { x: (at + 1) as f64, y: saved * 100.0, class: class(run.is_chosen) })
        .collect();
    let longest = compared.iter().map(|(_, saved)| saved.len()).max().unwrap_or(0);
    let mean = |at: usize| {
        let at_this_run = compared.iter().filter_map(|(_, saved)| saved.get(at));
        let (count, sum) = at_this_run.fold((0, 0.0), |(count, sum), saved| (count + 1, sum + saved));
        ((at + 1) as f64, sum / f64::from(count) * 100.0)
    };
    let line = Line { points: (0..longest).map(mean).collect(), class: "mean" };
    let most = (dots.iter().map(|dot| dot.y.abs()).fold(1.0, f64::max) / 10.0).ceil() * 10.0;
    let y = Axis { from: -most, to: most, name: "processor time saved, %" };
    let x = Axis { from: 0.0, to: (longest as f64).max(4.0), name: "run of the same program with the same input" };
    let runs = |is_chosen: bool| {
        compared.iter().flat_map(|(of, _)| &of.runs).filter(|run| run.is_chosen == Some(is_chosen)).count()
    };
    let row = |(of, _): &(&Repeated, Vec<f64>)| {
        let (usual, chosen) = (of.usual_seconds().unwrap_or(0.0), of.chosen_seconds());
        let count = |is_chosen: bool| of.runs.iter().filter(|run| run.is_chosen == Some(is_chosen)).count();
        let is_enough = count(true).min(count(false)) >= RUNS_MIN;
        let of_chosen = chosen.map_or("<td></td><td></td>".to_owned(), |chosen| match is_enough {
            true => format!("<td>{chosen:.2}</td><td>{:+.1}</td>", (1.0 - chosen / usual) * 100.0),
            false => format!("<td>{chosen:.2}</td><td>too few runs to tell</td>"),
        });
        format!(
            "<td>{}</td><td>{}</td><td>{}</td><td>{usual:.2}</td>{of_chosen}",
            escape(&of.build),
            escape(&of.host),
            of.runs.len()
        )
    };
    let columns = ["program", "machine", "runs", "system's order, s", "chosen, s", "saved, %"];
    let key = |class: &str, name: &str| {
        format!("<svg class='key' viewBox='0 0 8 8'><rect class='{class}' width='8' height='8'/></svg>{name}")
    };
    let body = format!(
        "<h1>What choosing programs gained</h1>\
         <p>Each dot is a run of a program: the processor time that it saved, compared with the mean of its runs with the same input in which the \
         system shared the processors out. Programs that wait for each other's memory take more processor time. The line is the mean of all programs.</p>\
         <p class='result'>Runs in the system's order: {}. Chosen: {}.</p>\
         <h2>Processor time saved, percent</h2><figure>{}<figcaption>{}{}{}</figcaption></figure>{}",
        runs(false),
        runs(true),
        plane(&x, &y, &dots, &[line]),
        key("usual", "in the system's order"),
        key("chosen", "chosen"),
        key("mixed", "a mixture of both"),
        table(&columns, compared.iter().map(row)),
    );
    gristmill_report::document("Gristmill: what choosing programs gained", &[plane::STYLE, STYLE], &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_history::Repeat;

    fn repeated(build: &str, runs: &[(f64, Option<bool>)]) -> Repeated {
        let repeat = |(processor_seconds, is_chosen): &(f64, Option<bool>)| Repeat {
            processor_seconds: *processor_seconds,
            is_chosen: *is_chosen,
        };
        Repeated { build: build.into(), host: "h".into(), runs: runs.iter().map(repeat).collect() }
    }

    #[test]
    fn each_run_is_a_dot_and_each_program_a_row() {
        let some = repeated("a<b", &[(4.0, Some(false)), (3.0, Some(true)), (5.0, None)].repeat(3));
        let page = html(&[some, repeated("never in the system's order", &[(1.0, Some(true))])]);
        assert_eq!(["dot usual", "dot chosen", "dot mixed"].map(|class| page.matches(class).count()), [3, 3, 3]);
        assert!(page.contains("<td>a&lt;b</td><td>h</td><td>9</td><td>4.00</td><td>3.00</td><td>+25.0</td>"), "{page}");
        assert!(page.contains("order: 3. Chosen: 3.") && !page.contains("never"), "{page}");
    }

    #[test]
    fn one_run_in_each_order_tells_no_difference() {
        let page = html(&[repeated("a", &[(4.0, Some(false)), (3.0, Some(true))])]);
        assert!(page.contains("<td>3.00</td><td>too few runs to tell</td>"), "{page}");
    }

    /// After "0 of 181 quanta chosen", a page with a curve of chance was written.
    #[test]
    fn nothing_is_drawn_where_nothing_was_chosen() {
        let usual = repeated("a", &[(4.0, Some(false)), (3.0, Some(false))]);
        assert_eq!(
            nothing(std::slice::from_ref(&usual), [0, 181]).as_deref(),
            Some("nothing was chosen (0 of 181 quanta), so there is no gain to draw")
        );
        let mixed = repeated("b", &[(4.0, Some(false)), (3.0, None)]);
        let never = repeated("c", &[(4.0, Some(true))]);
        assert!(
            nothing(&[mixed, never], [7, 181]).is_some_and(|why| why.contains("7 of 181 quanta, but in no whole run"))
        );
        assert_eq!(nothing(&[usual, repeated("d", &[(4.0, Some(false)), (3.0, Some(true))])], [99, 181]), None);
    }
}
