//! Section 4.2: a pipeline against a barrier, with one worker.

use gristmill_cli::Failure;

use super::words::{by_workers, drawn_quotients, median, quotient, ratio};
use crate::compare::comparison::Variant;
use crate::dmr::curves::Curve;
use crate::dmr::engine;
use crate::dmr::experiments::{Experiments, GLIBC, WORKERS, too_few_pairs, worst};
use crate::dmr::judge::{Claim, all_hold, judged};
use crate::dmr::model::application::ModelApp;
use crate::dmr::model::strategy::{BufferKind, ChannelKind, CombineAt, Strategy, Way};
use crate::page::{Answer, Contrast};

/// DMR with an array and mailboxes, so that the barrier is all that differs.
fn with(barrier: bool, workers: usize) -> Strategy {
    let (buffer, combine, channel) = (BufferKind::Array, CombineAt::REDUCE, ChannelKind::Mailbox);
    Strategy { way: Way::Dmr { buffer, combine, channel, isolated: true, barrier }, workers }
}

pub fn section_4_2(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let strategies: Vec<Strategy> =
        WORKERS.iter().flat_map(|workers| [with(false, *workers), with(true, *workers)]).collect();
    let (mut body, mut lines, mut parts, mut loads) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for app in ModelApp::ALL {
        let runs = experiments.compare(app, &strategies)?;
        let both = |workers| [false, true].map(|barrier| runs.tally(GLIBC, &with(barrier, workers), "wall_ns"));
        let cells = WORKERS.map(|workers| {
            let [pipeline, barrier] = both(workers);
            quotient(barrier, pipeline)
        });
        body.push((app.title().to_owned(), cells.to_vec()));
        let values = WORKERS.map(|workers| {
            let [pipeline, barrier] = both(workers);
            ratio(barrier, pipeline)
        });
        lines.push(Curve { name: app.title().to_owned(), values: values.to_vec() });
        let part = |holds, found| Claim { application: app.title(), holds, found };
        if too_few_pairs(&runs, &[with(false, 1), with(true, 1)]).is_none() {
            parts.push(match both(1) {
                [Some(pipeline), Some(barrier)] => {
                    let times = barrier.median / pipeline.median;
                    let contrast = Contrast::of(&barrier, &pipeline);
                    let caveat = contrast.caveat();
                    part(
                        contrast.holds(Contrast::Slower),
                        format!("the barrier takes {times:.2} times as long{caveat}"),
                    )
                }
                _ => part(None, "it did not run".into()),
            });
        }
        loads.push(runs.load);
    }
    let found = format!(
        "Behind the barrier reducers hold all pages, and none is copied. Time with the barrier divided by time with the \
         pipeline:\n\n{}\n{}",
        by_workers("application", body),
        beside(experiments)?
    );
    let verdict = judged(experiments.rounds, worst(&loads), || all_hold(&parts));
    Ok(drawn_quotients(Answer::new(found, verdict), "section-4.2", "time with a barrier ÷ time without", &lines))
}

/// Returns the same question to the engine, whose barrier copies.
fn beside(experiments: &Experiments) -> Result<String, Failure> {
    let with = |exchange| Variant::new(exchange, &format!("--workers 1 --exchange {exchange}"));
    let mut rows = String::new();
    for app in ModelApp::ALL {
        let runs = engine::race(app, experiments.size, vec![with("pipelined"), with("barrier")], experiments.rounds)?;
        let time = |at: usize| runs.runs.get(at).and_then(|run| run.wall_ms);
        rows += &format!("| {} | {} | {} |\n", app.title(), median(time(0), 1.0), median(time(1), 1.0));
    }
    Ok(format!(
        "Beside it the engine with one worker, milliseconds from start to exit. Its barrier copies pages out, so this is not \
         the barrier alone:\n\n| application | pipelined | barrier |\n|---|---|---|\n{rows}"
    ))
}
