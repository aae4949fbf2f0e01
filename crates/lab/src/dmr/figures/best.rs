//! Table 2: the best strategy of each application, found by running all.

use gristmill_cli::Failure;
use gristmill_report::messages::tell;
use gristmill_report::tally::Tally;

use super::words::{median, table};
use crate::compare::verdict::Fastest;
use crate::dmr::engine;
use crate::dmr::experiments::{Experiments, GLIBC, too_few_pairs, worst};
use crate::dmr::judge::{Claim, all_hold, judged};
use crate::dmr::model::application::ModelApp;
use crate::dmr::model::strategy::{BufferKind, CombineAt, Strategy, Way, gatherings};
use crate::dmr::runs::{COLUMNS, ModelRuns};
use crate::page::Answer;

/// The paper's choice for an application: hash or array, and whether values are combined in map.
fn best_of_paper(app: ModelApp) -> (BufferKind, bool, &'static str) {
    match app {
        ModelApp::Histogram | ModelApp::WordCount => (BufferKind::Array, false, "array, no combiner in map"),
        ModelApp::LinearRegression | ModelApp::Pca => (BufferKind::Hash, true, "hash, combiner in map"),
        ModelApp::StringMatch => (BufferKind::Hash, false, "hash, no combiner in map"),
    }
}

/// Returns whether a strategy is that of the paper, which has one kind of array, and does not say where it combines.
fn is_of_paper(app: ModelApp, buffer: BufferKind, combine: CombineAt) -> bool {
    let (kind, combines, _) = best_of_paper(app);
    let same = match kind {
        BufferKind::Hash | BufferKind::HashInOrder => matches!(buffer, BufferKind::Hash | BufferKind::HashInOrder),
        BufferKind::Array | BufferKind::SortedArray => buffer == BufferKind::Array,
    };
    same && combine.map == combines
}

pub fn table_2(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let workers = experiments.own_processors().max(2);
    let strategies: Vec<Strategy> =
        gatherings().into_iter().map(|(buffer, combine)| Strategy::dmr(buffer, combine, workers)).collect();
    let (mut short, mut all, mut parts, mut loads, mut rows) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), String::new());
    for app in ModelApp::ALL {
        tell(format_args!("{}: all strategies", app.title()));
        let runs = experiments.compare(app, &strategies)?;
        let engine =
            engine::race(app, experiments.size, engine::gatherings(experiments.processors), experiments.rounds)?;
        let planned = engine::plan(app, experiments.size)?;
        let times: Vec<(Strategy, Tally)> = strategies
            .iter()
            .filter_map(|strategy| Some((*strategy, runs.tally(GLIBC, strategy, "wall_ns")?)))
            .collect();
        let tallies: Vec<Tally> = times.iter().map(|(_, time)| *time).collect();
        let fastest = Fastest::of(&tallies);
        let first: Vec<String> = fastest.first.iter().map(|place| times[*place].0.gathering()).collect();
        let few = too_few_pairs(&runs, &strategies);
        let holds = fastest.first.iter().any(|place| match times[*place].0.way {
            Way::Dmr { buffer, combine, .. } => is_of_paper(app, buffer, combine),
            Way::Phoenix { .. } | Way::MapOnly => false,
        });
        let best = few.clone().map_or_else(|| first.join(" = "), |why| format!("undecided: {why}"));
        let part = |holds, found| Claim { application: app.title(), holds, found };
        parts.push(match few {
            Some(why) => part(None, why),
            None => part(Some(holds), format!("{} is fastest", first.join(" = "))),
        });
        let ran: Vec<(&str, Tally)> =
            engine.runs.iter().filter_map(|run| Some((run.name.as_str(), run.wall_ms?))).collect();
        let engine_first = Fastest::of(&ran.iter().map(|(_, time)| *time).collect::<Vec<_>>()).first;
        let engine_best: Vec<&str> = engine_first.iter().map(|place| ran[*place].0).collect();
        let why = reason(&runs, &times[fastest.first[0]].0);
        let paper = best_of_paper(app).2.to_owned();
        short.push(vec![app.title().to_owned(), paper, best, why, engine_best.join(" = "), planned]);
        let of_model = times.iter().map(|(strategy, time)| {
            let numbers = ["group_ns", "hand_over_ns"].map(|name| median(runs.tally(GLIBC, strategy, name), 1e6));
            let sent = median(runs.tally(GLIBC, strategy, "sent"), 1.0);
            [vec![app.title().to_owned(), strategy.gathering(), median(Some(*time), 1e6), sent], numbers.to_vec()]
                .concat()
        });
        all.extend(of_model);
        let of_engine = ran.iter().map(|(name, time)| {
            let unknown = || String::from("-");
            vec![
                app.title().to_owned(),
                format!("engine: {name}"),
                median(Some(*time), 1.0),
                unknown(),
                unknown(),
                unknown(),
            ]
        });
        all.extend(of_engine);
        loads.extend([runs.load, engine.load]);
        rows += &runs.csv(app.title());
    }
    let head = [
        "application",
        "best of the paper",
        "best of the model",
        "its pairs and copies",
        "best of the engine",
        "what the engine plans",
    ];
    let details =
        ["application", "strategy", "ms", "pairs sent", "ms in copies of buffers", "ms in hand-over, with waiting"];
    let found = format!(
        "Every buffer with every place to combine, {workers} workers. Strategies with `=` between them are level:\n\n{}\n\
         All of them; times of copies and of hand-over are sums over workers:\n\n{}",
        table(&head, short),
        table(&details, all)
    );
    let verdict = judged(experiments.rounds, worst(&loads), || all_hold(&parts));
    let rows = format!("{COLUMNS}\n{rows}");
    Ok(Answer::new(found, verdict).with("table-2-runs.csv", rows))
}

/// Returns the reason why the fastest strategy is fast, in numbers.
fn reason(runs: &ModelRuns, fastest: &Strategy) -> String {
    let [emitted, sent, copied] = ["emitted", "sent", "group_ns"].map(|name| runs.tally(GLIBC, fastest, name));
    let (sent, emitted, copied) = (median(sent, 1.0), median(emitted, 1.0), median(copied, 1e6));
    format!("it sends {sent} of {emitted} pairs, and copies buffers for {copied} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_of_the_paper_is_known_by_buffer_and_combiner() {
        assert!(is_of_paper(ModelApp::WordCount, BufferKind::Array, CombineAt::REDUCE));
        assert!(!is_of_paper(ModelApp::WordCount, BufferKind::SortedArray, CombineAt::MAP));
        assert!(!is_of_paper(ModelApp::WordCount, BufferKind::Hash, CombineAt::NOWHERE));
        assert!(is_of_paper(ModelApp::Pca, BufferKind::HashInOrder, CombineAt::BOTH));
        assert!(!is_of_paper(ModelApp::Pca, BufferKind::Hash, CombineAt::REDUCE));
        assert!(is_of_paper(ModelApp::StringMatch, BufferKind::Hash, CombineAt::NOWHERE));
    }
}
