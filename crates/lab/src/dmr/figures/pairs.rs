//! Table 1: the applications, with their pairs and keys.

use std::fs;
use std::io;
use std::process::{Command, Stdio};

use gristmill_cli::Failure;
use gristmill_os::room::{no_temporary, private_folder, temporary_folder};
use gristmill_report::messages::tell;
use serde_json::Value;

use super::words::table;
use crate::dmr::engine::with_input;
use crate::dmr::experiments::{Experiments, GLIBC, through};
use crate::dmr::model::application::ModelApp;
use crate::dmr::model::strategy::ChannelKind;
use crate::dmr::runs::{Group, ModelRuns};
use crate::generate::Size;
use crate::page::{Answer, Judgement};
use crate::workloads::{WORKLOADS, Workload};

/// A row of the paper's table.
struct Listed {
    /// The name of the workload.
    name: &'static str,
    data: &'static str,
    pairs: u64,
    keys: u64,
    /// The same application of the model.
    model: Option<ModelApp>,
    /// Whether pairs and keys follow from the data that the table names, so that they can be compared.
    is_defined: [bool; 2],
}

const LISTED: [Listed; 7] = [
    Listed {
        name: "word-count",
        data: "100 MB",
        pairs: 17_941_890,
        keys: 123_748,
        model: Some(ModelApp::WordCount),
        is_defined: [true, true],
    },
    Listed {
        name: "histogram",
        data: "1.4 GB",
        pairs: 761_903,
        keys: 692,
        model: Some(ModelApp::Histogram),
        is_defined: [false, false],
    },
    Listed {
        name: "linear-regression",
        data: "500 MB",
        pairs: 2590,
        keys: 5,
        model: Some(ModelApp::LinearRegression),
        is_defined: [true, true],
    },
    Listed {
        name: "pca",
        data: "4000 x 4000",
        pairs: 8_002_000,
        keys: 8_002_000,
        model: Some(ModelApp::Pca),
        is_defined: [true, true],
    },
    Listed { name: "matrix-multiply", data: "2000 x 2000", pairs: 0, keys: 0, model: None, is_defined: [true, true] },
    Listed {
        name: "kmeans",
        data: "-d 3 -c 1000 -p 100000 -s 1000",
        pairs: 340_300_000,
        keys: 1000,
        model: None,
        is_defined: [false, false],
    },
    Listed {
        name: "string-match",
        data: "500 MB",
        pairs: 0,
        keys: 0,
        model: Some(ModelApp::StringMatch),
        is_defined: [false, false],
    },
];

/// K-means with the clusters of the paper, until no centre moves.
const KMEANS_OF_PAPER: &str = "kmeans --start first --iterations 1000000 -k 1000";

pub fn table_1(experiments: &mut Experiments) -> Result<Answer, Failure> {
    let size = experiments.size;
    let (mut body, mut wrong) = (Vec::new(), Vec::new());
    for listed in &LISTED {
        let workload = WORKLOADS.iter().find(|workload| workload.name == listed.name).expect("a workload of each");
        tell(format_args!("{}: pairs and keys", workload.title));
        let engine = with_input(workload, size, |paths| counted(workload, size, paths))?;
        let model = listed.model.map(|app| of_model(app, size)).transpose()?;
        // The engine adds within a task what the paper's map function emits, so pairs are those of the model.
        let found = model.unwrap_or([engine.pairs, engine.keys]);
        for (number, (here, paper)) in found.into_iter().zip([listed.pairs, listed.keys]).enumerate() {
            if listed.is_defined[number] && here.abs_diff(paper) * 10 > paper {
                let what = ["pairs", "keys"][number];
                wrong.push(format!(
                    "{}: {} {what}, not {}",
                    workload.title,
                    counted_in_words(here),
                    counted_in_words(paper)
                ));
            }
        }
        let of_model = model.map_or([String::from("-"), String::from("-")], |counts| counts.map(counted_in_words));
        let EngineCounts { bytes, pairs, keys, steps } = engine;
        let input = match steps {
            1 => indicatif::DecimalBytes(bytes).to_string(),
            steps => format!("{}, {steps} steps", indicatif::DecimalBytes(bytes)),
        };
        body.push(vec![
            workload.title.to_owned(),
            listed.data.to_owned(),
            counted_in_words(listed.pairs),
            counted_in_words(listed.keys),
            input,
            counted_in_words(pairs),
            counted_in_words(keys),
            of_model[0].clone(),
            of_model[1].clone(),
        ]);
    }
    let head = [
        "application",
        "data of the paper",
        "pairs",
        "keys",
        "input of the engine",
        "its pairs",
        "its keys",
        "the model's pairs",
        "its keys",
    ];
    let found = format!(
        "The engine's map functions add what they can within a chunk, and PCA of the engine is by blocks; those of the model \
         are meant to emit what the paper's do, and its PCA is by elements. Histogram depends on the colours of the picture, string \
         match on the keys, and k-means on the points, whose steps the paper's pairs count:\n\n{}",
        table(&head, body)
    );
    let verdict = match size {
        Size::Large => Judgement::of(wrong.is_empty(), || wrong.join("; ")),
        _ => Judgement::Undecided("the input is smaller than that of the table: ask again with --size paper".into()),
    };
    Ok(Answer::new(found, verdict))
}

fn counted_in_words(count: u64) -> String {
    indicatif::HumanCount(count).to_string()
}

struct EngineCounts {
    bytes: u64,
    pairs: u64,
    keys: u64,
    steps: u64,
}

/// Runs an application of the engine once, and counts.
fn counted(workload: &Workload, size: Size, paths: &[std::path::PathBuf]) -> Result<EngineCounts, Failure> {
    let failed = |source| Failure::from(gristmill::Error::System { what: "starting this program again", source });
    let line =
        if size == Size::Large && workload.name == "kmeans" { KMEANS_OF_PAPER } else { (workload.command)(size) };
    let folder = private_folder(&temporary_folder()).map_err(no_temporary).map_err(failed)?;
    let statistics = folder.path().join("stats.json");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("application").args(line.split(' ')).args(paths).arg("--quiet").arg("--stats").arg(&statistics);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().map_err(failed)?;
    if !output.status.success() {
        return Err(failed(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())));
    }
    let text = fs::read(&statistics).map_err(failed)?;
    let json: Value = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    let workers = json["workers"].as_array().map_or(&[][..], Vec::as_slice);
    let sum = |name: &str| workers.iter().filter_map(|worker| worker["counts"][name].as_u64()).sum::<u64>();
    let steps = json["job"]["steps"].as_u64().unwrap_or(1).max(1);
    let bytes = paths.iter().filter_map(|path| path.metadata().ok()).map(|facts| facts.len()).sum();
    Ok(EngineCounts { bytes, pairs: sum("pairs_emitted"), keys: sum("keys") / steps, steps })
}

/// Returns the pairs and keys of the model.
fn of_model(app: ModelApp, size: Size) -> Result<[u64; 2], Failure> {
    let strategy = through(ChannelKind::Mailbox, 2);
    let runs = ModelRuns::measure(app, size, &[Group { preload: None, strategies: vec![strategy] }], 1, &[])?;
    let count = |name| runs.tally(GLIBC, &strategy, name).map_or(0, |tally| tally.median as u64);
    Ok([count("emitted"), count("keys")])
}
