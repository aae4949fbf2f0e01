//! Figure 14: cache misses of hash buffers and of arrays.

use gristmill_cli::Failure;

use super::words::{median, table};
use crate::dmr::experiments::{Experiments, GLIBC, share_of_pairs, too_few_pairs};
use crate::dmr::judge::{Claim, decided_hold, judged};
use crate::dmr::model::application::ModelApp;
use crate::dmr::model::strategy::{BufferKind, ChannelKind, CombineAt, Strategy, Way};
use crate::dmr::runs::{failed, is_installed, model};
use crate::page::Answer;

/// One worker of each kind, as threads: the way that tools can follow.
fn with(buffer: BufferKind, combine: CombineAt) -> Strategy {
    Strategy {
        way: Way::Dmr { buffer, combine, channel: ChannelKind::Mailbox, isolated: false, barrier: false },
        workers: 1,
    }
}

/// Words of input that are simulated: it takes fifty times as long as a run.
const SIMULATED: usize = 40_000;

pub fn figure_14(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let strategies = [with(BufferKind::Hash, CombineAt::BOTH), with(BufferKind::Array, CombineAt::REDUCE)];
    let [hash, array] = &strategies;
    let (mut body, mut parts, mut load, mut is_counted) = (Vec::new(), Vec::new(), None, false);
    let simulates = is_installed("valgrind");
    for app in ModelApp::ALL {
        let runs = experiments.compare(app, &strategies)?;
        load = crate::dmr::experiments::worst([&load, &runs.load]);
        let [of_hash, of_array] = [hash, array].map(|strategy| runs.tally(GLIBC, strategy, "cache_misses"));
        let times = [hash, array].map(|strategy| runs.tally(GLIBC, strategy, "wall_ns"));
        let groups = runs.tally(GLIBC, hash, "group_ns");
        let few = too_few_pairs(&runs, &strategies);
        let part = |holds, found| Claim { application: app.title(), holds, found };
        let misses = match (of_hash, of_array) {
            (Some(of_hash), Some(of_array)) => {
                is_counted = true;
                Some([of_hash.median, of_array.median])
            }
            _ if simulates => Some(simulated(app, &strategies)?),
            _ => None,
        };
        parts.push(match (misses, few) {
            (_, Some(why)) => part(None, why),
            (None, None) => part(None, "misses cannot be counted".into()),
            (Some([of_hash, of_array]), None) => {
                part(Some(of_array < of_hash), format!("{of_array:.0} misses with the array, {of_hash:.0} with hash"))
            }
        });
        let shown = misses.map_or(["-".to_owned(), "-".to_owned()], |misses| misses.map(|count| format!("{count:.0}")));
        let share = share_of_pairs(&runs, hash).map_or("-".into(), |share| format!("{:.1} %", share * 100.0));
        let times = times.map(|time| median(time, 1e6)).to_vec();
        body.push([vec![app.title().to_owned()], shown.to_vec(), times, vec![median(groups, 1e6), share]].concat());
    }
    if !is_counted && !simulates {
        let why = "this machine has no counter of cache misses (virtual machines seldom have), and valgrind is not here to \
                   simulate a cache (apt-get install valgrind)";
        return Ok(Answer::cannot_be_asked(why));
    }
    let how = match is_counted {
        true => "Misses of the last-level cache by the processor's counter, in user mode.".to_owned(),
        false => format!(
            "This machine counts no cache misses. They are simulated, those of a first-level data cache, by cachegrind on \
             an input of {SIMULATED} words of 8 bytes, once; those of the map function alone are subtracted."
        ),
    };
    let head = [
        "application",
        "misses, hash",
        "misses, array",
        "ms, hash",
        "ms, array",
        "ms of that to copy hash buffers",
        "processor time of pairs, at most",
    ];
    let found = format!(
        "One worker of threads. Hash buffers are combined in map and in reduce, arrays in reduce only, as in figures 13 and 15. {how} \
         The times are of the whole input.\n\n{}",
        table(&head, body)
    );
    // A simulation counts the same each time, whatever else runs.
    let load = if is_counted { load } else { None };
    let verdict = judged(experiments.rounds, load, || decided_hold(parts));
    Ok(Answer::new(found, verdict))
}

/// Returns the misses of a simulated first-level data cache, without those of the map function.
fn simulated(app: ModelApp, strategies: &[Strategy; 2]) -> Result<[f64; 2], Failure> {
    let map_only = Strategy { way: Way::MapOnly, workers: 1 };
    let misses = |strategy: &Strategy| -> Result<f64, Failure> {
        let own = model(app, crate::generate::Size::Small)?;
        let mut command = std::process::Command::new("valgrind");
        command.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
        command.arg(own.get_program()).args([
            "dmr-model",
            "--unchecked",
            "--here",
            "--app",
            &crate::generate::name(app),
        ]);
        command.args(["--words", &SIMULATED.to_string(), &strategy.to_string()]);
        let output = command.stdin(std::process::Stdio::null()).output().map_err(failed)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let misses = data_misses(&said).filter(|_| output.status.success());
        misses.ok_or_else(|| failed(std::io::Error::other(said.into_owned())))
    };
    let base = misses(&map_only)?;
    let [first, second] = strategies;
    Ok([(misses(first)? - base).max(0.0), (misses(second)? - base).max(0.0)])
}

/// Returns the misses of the first-level data cache that cachegrind prints.
fn data_misses(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.split_once("D1  misses:"))?.1;
    line.split_whitespace().next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_cachegrind_is_read() {
        let said = "==8== D   refs:  9,000\n==8== D1  misses:       1,234  (  1,000 rd   + 234 wr)\n";
        assert_eq!(data_misses(said), Some(1234.0));
        assert_eq!(data_misses("valgrind: no such program"), None);
    }
}
