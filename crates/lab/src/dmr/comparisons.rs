//! The comparisons of DMR.

use crate::compare::comparison::{Comparison, Kind, Variant};
use crate::workloads::PairKind;

pub fn workers(processors: usize) -> Comparison {
    let numbers = std::iter::successors(Some(1), |workers| Some(workers * 2));
    let variants = numbers
        .take_while(|workers| *workers <= 4 * processors.max(2))
        .map(|workers| Variant::new(workers.to_string(), &format!("--workers {workers}")));
    let question = "How does the time fall when more workers share the work? Beyond the number of processors there is nothing to \
                    gain; the question is what the additional workers cost.";
    Comparison { kind: Kind::Workers, asks: |_| true, ..Comparison::new("Workers", question, variants.collect()) }
}

pub fn plan(processors: usize) -> Comparison {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    let variants = vec![
        Variant::new("the plan", ""),
        Variant::new("one worker", "--workers 1"),
        with("hash (both)", "--buffer hash").needing(PairKind::Combining),
        with("hash (map)", "--buffer hash --combine map").needing(PairKind::Combining),
        with("array (reduce)", "--buffer array --combine reduce").needing(PairKind::Combining),
        with("array (off)", "--buffer array --combine off"),
        with("dense (both)", "--buffer dense").needing(PairKind::Dense),
        with("pages of 4 KiB", "--page-bytes 4KiB"),
        with("pages of 128 KiB", "--page-bytes 128KiB"),
    ];
    let question = "Left alone, the engine plans each job itself. Is that as fast as the best strategy that a user could have \
                    named? In brackets: where values are combined.";
    let compared = Comparison::new("The plan against fixed strategies", question, variants);
    Comparison { kind: Kind::Plan, asks: |_| true, ..compared }
}

pub fn isolation(processors: usize) -> Comparison {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    Comparison::new(
        "Processes or threads",
        "The same engine with workers that have an address space of their own, and with workers that share one. \
         The claim of DMR (Yu and Zhang 2017): sharing an address space makes page faults and memory maps wait for each other.",
        vec![with("processes", "--isolation process"), with("threads", "--isolation thread")],
    )
}

pub fn topology(processors: usize) -> Comparison {
    let half = processors.div_ceil(2);
    let split = Variant::new("split", &format!("--map-workers {half} --reduce-workers {half}"));
    Comparison::new(
        "Fused or split",
        "Either every worker maps and reduces (fused), or half of them map and the others reduce (split, the \
         layout of DMR).",
        vec![Variant::on_all(processors, "fused", ""), split],
    )
}

pub fn exchange(processors: usize) -> Comparison {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    Comparison::new(
        "Pipeline or barrier",
        "Do reducers begin with the first page that arrives, or when everything is mapped, as Phoenix does?",
        vec![with("pipelined", "--exchange pipelined"), with("barrier", "--exchange barrier")],
    )
}

pub fn buffer(processors: usize) -> Comparison {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    Comparison::new(
        "Buffers of map workers",
        "PairKind are appended to pages as they come (array), combined in a table that fits the cache (hash), or added \
         into an array with a place for every key (dense; for keys that are small numbers).",
        vec![
            with("array", "--buffer array --combine reduce").needing(PairKind::Combining),
            with("hash", "--buffer hash").needing(PairKind::Combining),
            with("dense", "--buffer dense").needing(PairKind::Dense),
        ],
    )
}

pub fn combiner(processors: usize) -> Comparison {
    let with = |place: &&str| Variant::on_all(processors, place, &format!("--combine {place}"));
    Comparison::new(
        "Combiner",
        "Where are the values of one key combined: before they are sent and as they arrive (both), only before, only \
         as they arrive (reduce), or once at the end (off)?",
        ["both", "map", "reduce", "off"].iter().map(|place| with(place).needing(PairKind::Combining)).collect(),
    )
}

pub fn output(processors: usize) -> Comparison {
    let with = |name: &str, arguments: &str| Variant::on_all(processors, name, arguments);
    let variants = vec![
        with("shared output", "--way shared-output"),
        with("pairs", "--way pairs"),
        with("shared by threads", "--way shared-output --isolation thread"),
        with("pairs by threads", "--way pairs --isolation thread"),
    ];
    let question = "Workers write the rows of a product into a shared array, each into a view of its own, of which what has changed \
                    is merged when a task is done; or they emit every row as a pair, and the array is filled from the result.";
    let compared = Comparison::new("Shared output or pairs", question, variants);
    Comparison { asks: |workload| workload.name == "matrix-multiply", ..compared }
}
