//! The whole plan of a job, and the options that it ignores.

use gristmill_os::machine::{NumaNode, Processors};

use crate::error::Result;
use crate::plan::arena::ARENA_BYTES;
use crate::plan::balance::patience_ms;
use crate::plan::explain::explain;
use crate::plan::job_plan::Plan;
use crate::plan::known::{Known, Properties, Resources};
use crate::plan::sample::Sample;
use crate::plan::settings::{Buffer, Combining, PagePolicy, Placement, Settings, Trial};
use crate::plan::splits::{CHUNK_BYTES, SPLIT_BYTES_MAX, SPLITS_PER_WORKER};

/// A program with a combiner.
const PROGRAM: Properties = Properties {
    combines: true,
    rounds: false,
    keys: None,
    keys_max: 0,
    iterates: false,
    passes: false,
    joins: false,
    decoder_bytes_max: 0,
    unpacks: false,
    hash_bytes: 0,
    place_bytes: 0,
};

/// A machine with some processors and 1 GiB of memory.
fn machine(processors: usize) -> Resources<'static> {
    Resources { processors: Processors::within(processors, None), nodes: &[], available_bytes: 1 << 30 }
}

/// Makes a plan from these facts.
fn made(
    settings: &Settings,
    machine: Resources<'_>,
    input_bytes: u64,
    program: Properties,
    sample: Option<&Sample>,
) -> Result<Plan> {
    Plan::new(&Known::new(settings, machine, input_bytes, program, sample))
}

/// Returns the plan of a job that leaves everything open, on eight processors.
fn plan(input_bytes: u64, sample: Option<Sample>) -> Plan {
    let plan = made(&Settings::default(), machine(8), input_bytes, PROGRAM, sample.as_ref());
    plan.expect("nothing was asked for that cannot be")
}

fn sample(ns_per_byte: f64) -> Option<Sample> {
    Some(Sample { pieces: 3, bytes: 24 << 10, ns_per_byte, ..Sample::default() })
}

#[test]
fn a_small_input_gets_one_worker_and_a_large_one_all() {
    assert_eq!(plan(100, None).map_workers, 1);
    assert_eq!(plan(1 << 20, sample(1.0)).map_workers, 1);
    assert_eq!(plan(5 << 20, sample(1.0)).map_workers, 3);
    assert_eq!(plan(1 << 30, sample(1.0)).map_workers, 8);
    assert_eq!(plan(1 << 30, None).map_workers, 8);
}

#[test]
fn a_slow_map_function_gets_all_workers_and_small_splits_for_little_input() {
    let plan = plan(1 << 20, sample(1000.0));
    assert_eq!((plan.map_workers, plan.split_bytes), (8, (1 << 20) / (8 * SPLITS_PER_WORKER)));
    assert!(self::plan(1 << 30, sample(1000.0)).split_bytes <= 50_000);
    assert_eq!(self::plan(1 << 30, sample(1.0)).split_bytes, SPLIT_BYTES_MAX);
}

#[test]
fn a_disk_that_makes_readers_wait_gets_more_of_them_than_there_are_processors() {
    // 64 MiB: 336 ms of work for one, and as much of waiting.
    let waiting = |wait_ns| Some(Sample { read_bytes: 1 << 20, wait_ns, ..sample(5.0).expect("made above") });
    let workers = |wait_ns| {
        let plan = plan(64 << 20, waiting(wait_ns));
        (plan.map_workers, plan.map_at_once)
    };
    assert_eq!(workers(0), (8, 8));
    assert_eq!(workers(1 << 20), (8, 8), "a fifth of the work is noise");
    assert_eq!(workers(5 << 20), (16, 16));
    assert_eq!(workers(500 << 20), (32, 32));
    // A little that is waited for long.
    assert_eq!(plan(64 << 10, waiting(100 << 20)).map_workers, 4);
}

#[test]
fn earlier_times_choose_workers_and_chunks_unless_the_user_or_a_cold_disk_objects() {
    let trial = |workers, chunk_bytes, seconds| Trial { workers, map_at_once: None, chunk_bytes, seconds };
    let history = vec![trial(1, None, 2.0), trial(3, Some(4096), 1.0), trial(8, None, 1.5)];
    let settings = Settings { history, ..Settings::default() };
    let plan = |settings: &Settings, sample: Option<Sample>| {
        let known = Known::new(settings, machine(8), 64 << 20, PROGRAM, sample.as_ref());
        let plan = Plan::new(&known).expect("it is possible");
        (plan.map_workers, plan.chunk_bytes, known.learned.is_some())
    };
    assert_eq!(plan(&settings, sample(5.0)), (3, 4096, true));
    assert_eq!(plan(&Settings { workers: Some(2), ..settings.clone() }, None), (2, CHUNK_BYTES, false));
    let cold = Sample { read_bytes: 1, wait_ns: 1000, ..sample(5.0).expect("made above") };
    assert_eq!(plan(&settings, Some(cold)), (32, CHUNK_BYTES, false));
}

#[test]
fn splits_are_for_the_workers_that_map_at_once() {
    // With 128 workers on 2 processors, 175 MB were cut into 2,049 tasks, of which 2 ran at a time.
    let machine = Resources { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 30 };
    let split_bytes = |workers| {
        let settings = Settings { workers: Some(workers), ..Settings::default() };
        made(&settings, machine, 32 << 20, PROGRAM, None).expect("it is possible").split_bytes
    };
    assert_eq!(split_bytes(128), split_bytes(2));
}

#[test]
fn arenas_have_a_reserve_if_there_is_memory() {
    let machine = Resources { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 34 };
    let plan = |settings: Settings, sample| made(&settings, machine, 1 << 30, PROGRAM, sample).expect("it is possible");
    let has_32_mib = |plan: Plan| plan.reserve_pages > 0 && plan.pages_per_arena * plan.page_bytes == ARENA_BYTES;
    assert!(has_32_mib(plan(Settings::default(), None)));
    let short = sample(5.0);
    let cut = Settings { split_bytes: Some(1 << 28), ..Settings::default() };
    assert!(has_32_mib(plan(cut, short.as_ref())));
    // Two workers waited for each other's pages for a fifth of a word count whose tasks emitted as much as they read.
    let planned = plan(Settings::default(), short.as_ref());
    assert_eq!(planned.reserve_pages * planned.page_bytes, 4 << 20);
    let small = Settings { memory_bytes: Some(128 << 20), ..Settings::default() };
    assert_eq!(plan(small, None).reserve_pages, 0);
    let prealloc = Settings { pages: PagePolicy::Prealloc, ..Settings::default() };
    assert_eq!(plan(prealloc, None).reserve_pages, 0);
}

#[test]
fn pages_that_memory_cannot_hold_are_not_faulted_in() {
    // The kernel killed a job of three lines, whose pages took 24 GiB.
    let machine = Resources { processors: Processors::within(2, None), nodes: &[], available_bytes: 20 << 30 };
    let settings =
        Settings { workers: Some(3), partitions: Some(4096), page_bytes: Some(1 << 20), ..Settings::default() };
    let prealloc = Settings { pages: PagePolicy::Prealloc, ..settings.clone() };
    let why = made(&prealloc, machine, 6, PROGRAM, None).expect_err("too many pages").to_string();
    assert!(why.contains("take 24.") && why.contains("and 20.0 GiB are available"), "{why}");
    made(&settings, machine, 6, PROGRAM, None).expect("pages that are not used take no memory");
    let smaller = Settings { partitions: Some(1024), ..prealloc };
    made(&smaller, machine, 6, PROGRAM, None).expect("6 GiB are there");
}

#[test]
fn pages_of_many_workers_are_not_tiny() {
    let page = |processors, workers| {
        let machine =
            Resources { processors: Processors::within(processors, None), nodes: &[], available_bytes: 1 << 36 };
        let settings = Settings { workers, ..Settings::default() };
        let plan = made(&settings, machine, 1 << 30, PROGRAM, sample(5.0).as_ref()).expect("it is possible");
        plan.page_bytes
    };
    // Sixteen workers had pages of 4 KiB: 13 % more processor time for sums by key than with 16 KiB.
    assert_eq!(page(16, None), 16 << 10);
    // With 8 KiB, 128 workers on two processors took a seventh more.
    assert_eq!(page(2, Some(128)), 16 << 10);
    assert_eq!([page(2, None), page(2, Some(1024)), page(64, None)], [32 << 10, 4 << 10, 4 << 10]);
}

#[test]
fn reducers_are_apart_if_the_job_wants_that_and_is_long() {
    let machine = Resources { processors: Processors::within(8, None), nodes: &[], available_bytes: 1 << 34 };
    let workers = |settings: Settings, sample: Option<Sample>| {
        let plan = made(&settings, machine, 64 << 20, PROGRAM, sample.as_ref()).expect("it is possible");
        (plan.map_workers, plan.reduce_workers, plan.fused)
    };
    let apart = Settings { reduce_apart: true, ..Settings::default() };
    // 336 ms of work, and 7 ms.
    assert_eq!(workers(apart.clone(), sample(5.0)), (8, 4, false));
    assert_eq!(workers(apart.clone(), sample(0.1)), (4, 4, true));
    assert_eq!(workers(Settings::default(), sample(5.0)), (8, 8, true));
    assert_eq!(workers(Settings { workers: Some(3), ..apart.clone() }, sample(5.0)), (3, 2, false));
    assert_eq!(workers(Settings { workers: Some(1), ..apart.clone() }, sample(5.0)), (1, 1, true));
    assert_eq!(workers(Settings { map_workers: Some(1), ..apart }, sample(5.0)), (1, 4, false));
}

#[test]
fn a_quota_of_processor_time_limits_the_workers_and_is_named() {
    // On a node of 64 processors whose control group allowed 2, a job started 64 workers.
    let machine = |quota| Resources { processors: Processors::within(64, quota), nodes: &[], available_bytes: 1 << 34 };
    let choice = |quota, sample: Option<Sample>| {
        let settings = Settings::default();
        let known = Known::new(&settings, machine(quota), 1 << 30, PROGRAM, sample.as_ref());
        let choices = explain(&Plan::new(&known).expect("it is possible"), &known, None);
        let choice = choices.into_iter().find(|choice| choice.what == "workers").expect("it is explained");
        format!("{}: {}", choice.chosen, choice.why)
    };
    let limited = "2, each maps and reduces: one for each processor: the control group allows 2 of 64 processors";
    assert_eq!(choice(Some(1.5), None), limited);
    assert!(choice(Some(2.0), sample(5.0)).starts_with("2, "), "{}", choice(Some(2.0), sample(5.0)));
    assert!(choice(Some(2.0), sample(5.0)).ends_with(", and the control group allows 2 of 64 processors"));
    assert!(choice(None, None).ends_with(": there are 64 processors"), "{}", choice(None, None));
    assert!(choice(Some(100.0), None).starts_with("64, "));
}

#[test]
fn pairs_count_as_work() {
    let many = Sample { pairs: 24 << 10, ..sample(0.1).expect("made above") };
    assert!(plan(1 << 20, Some(many)).map_workers == 8);
}

#[test]
fn steps_get_all_workers_even_for_a_small_first_input() {
    let program = Properties { iterates: true, ..PROGRAM };
    let plan = made(&Settings::default(), machine(8), 8, program, None);
    assert_eq!(plan.expect("nothing impossible was asked for").map_workers, 8);
}

const ONE_NODE: [usize; 1] = [0];
const TWO_NODES: [usize; 2] = [0, 1];

/// Returns the names of options that a job with these settings ignores.
fn names(settings: &Settings, program: Properties, nodes: &[usize]) -> Vec<&'static str> {
    let node = |number| NumaNode { number, cpus: vec![number], has_memory: true, distances: vec![10; nodes.len()] };
    let nodes: Vec<NumaNode> = nodes.iter().copied().map(node).collect();
    let machine = Resources { processors: Processors::within(2, None), nodes: &nodes, available_bytes: 1 << 34 };
    let plan = made(settings, machine, 64 << 20, program, None).expect("nothing contradicts itself");
    plan.why.ignored().map(|(option, _)| option).collect()
}

#[test]
fn nothing_is_ignored_of_what_is_left_open() {
    for nodes in [&ONE_NODE[..], &TWO_NODES] {
        assert_eq!(names(&Settings::default(), PROGRAM, nodes), [""; 0]);
    }
}

#[test]
fn each_option_that_a_job_cannot_follow_is_named() {
    // `--placement pinned` on a machine with one node, and `--combine map` without a combiner, were ignored without a
    // word.
    let placed = |placement| Settings { placement, ..Settings::default() };
    let plain = Properties { combines: false, ..PROGRAM };
    let joins = Properties { joins: true, ..PROGRAM };
    let none = [""; 0];
    for placement in [Placement::Pinned, Placement::ByNode] {
        assert_eq!(names(&placed(placement), joins, &ONE_NODE), ["placement"]);
        assert_eq!(names(&placed(placement), joins, &TWO_NODES), none);
        let one = Settings { workers: Some(1), ..placed(placement) };
        assert_eq!(names(&one, joins, &TWO_NODES), ["placement"]);
    }
    assert_eq!(names(&placed(Placement::ByNode), PROGRAM, &TWO_NODES), ["placement"]);
    assert_eq!(names(&placed(Placement::Off), PROGRAM, &ONE_NODE), none);
    for combine in [Combining::Map, Combining::Reduce] {
        let settings = Settings { combine, ..Settings::default() };
        assert_eq!(names(&settings, plain, &ONE_NODE), ["combine"]);
        assert_eq!(names(&settings, PROGRAM, &ONE_NODE), none);
        let in_order = Settings { deterministic: true, ..settings };
        assert_eq!(names(&in_order, Properties { rounds: true, ..PROGRAM }, &ONE_NODE), ["combine"]);
    }
    let off = Settings { combine: Combining::Off, ..Settings::default() };
    assert_eq!(names(&off, plain, &ONE_NODE), none, "nothing is combined, as was asked");
    let after = Settings { combine_after: Some(9), ..Settings::default() };
    assert_eq!(names(&after, PROGRAM, &ONE_NODE), ["combine-after"]);
    assert_eq!(names(&Settings { combine: Combining::Map, ..after }, PROGRAM, &ONE_NODE), none);
    let at_once = |map_at_once| Settings { workers: Some(4), map_at_once: Some(map_at_once), ..Settings::default() };
    assert_eq!(names(&at_once(4), PROGRAM, &ONE_NODE), none);
    assert_eq!(names(&at_once(5), PROGRAM, &ONE_NODE), ["map-at-once"]);
    let parts = |partitions| Settings { workers: Some(4), partitions: Some(partitions), ..Settings::default() };
    assert_eq!(names(&parts(4), PROGRAM, &ONE_NODE), none);
    assert_eq!(names(&parts(3), PROGRAM, &ONE_NODE), ["partitions"]);
    let split = |bytes| Settings { split_bytes: Some(bytes), ..Settings::default() };
    assert_eq!(names(&split(1024), PROGRAM, &ONE_NODE), none);
    assert_eq!(names(&split(1023), PROGRAM, &ONE_NODE), ["split-bytes"]);
}

#[test]
fn an_array_that_is_to_combine_in_map_is_refused() {
    // `--buffer array --combine map` was accepted, and combined nowhere before the end.
    let settings = Settings { buffer: Buffer::Array, combine: Combining::Map, ..Settings::default() };
    let machine = Resources { processors: Processors::within(2, None), nodes: &[], available_bytes: 1 << 34 };
    let why = made(&settings, machine, 1 << 20, PROGRAM, None).expect_err("they contradict each other").to_string();
    assert!(why.starts_with("the array buffer combines nothing, and values were to be combined in map only"), "{why}");
    made(&Settings { combine: Combining::Off, ..settings }, machine, 1 << 20, PROGRAM, None).expect("nothing combines");
}

/// Returns the line of `--explain` about one choice, on a machine with eight processors and two nodes.
fn line(what: &str, settings: &Settings, program: Properties, input_bytes: u64, sample: Option<Sample>) -> String {
    let node = |number: usize| NumaNode {
        number,
        cpus: (number * 4..number * 4 + 4).collect(),
        has_memory: true,
        distances: vec![10; 2],
    };
    let nodes = [node(0), node(1)];
    let machine = Resources { nodes: &nodes, available_bytes: 1 << 34, ..machine(8) };
    let known = Known::new(settings, machine, input_bytes, program, sample.as_ref());
    let choices = explain(&Plan::new(&known).expect("nothing contradicts itself"), &known, None);
    let choice = choices.into_iter().find(|choice| choice.what == what).expect("it is explained");
    format!("{} ({})", choice.chosen, choice.why)
}

/// Checks the lines of `--explain` about one choice of jobs with these settings, over 64 MiB.
fn check(what: &str, program: Properties, cases: &[(Settings, &str)]) {
    for (settings, expected) in cases {
        assert_eq!(line(what, settings, program, 64 << 20, None), *expected);
    }
}

#[test]
fn the_number_of_workers_has_the_reason_that_decided_it() {
    let open = Settings::default();
    let apart = || Settings { reduce_apart: true, ..Settings::default() };
    let cut = |bytes| Settings { split_bytes: Some(bytes), ..Settings::default() };
    let trial = |workers, seconds| Trial { workers, map_at_once: Some(1), chunk_bytes: Some(4096), seconds };
    let learned = Settings { history: vec![trial(2, 1.0), trial(4, 2.0)], ..Settings::default() };
    let crash = "those that reduce lose nothing if the map function crashes";
    let best = "history: the best of 2 times, 1.000 s; the worst was 2.000 s";
    check(
        "workers",
        PROGRAM,
        &[
            (open.clone(), "8, each maps and reduces (one for each processor: there are 8 processors)"),
            (Settings { workers: Some(3), ..open.clone() }, "3, each maps and reduces (as asked for)"),
            (Settings { map_workers: Some(3), ..open.clone() }, "3 map, 4 reduce (as asked for)"),
            // "As asked for" was said of workers that nobody had asked for.
            (apart(), &format!("8 map, 4 reduce (one for each processor: there are 8 processors; {crash})")),
            (Settings { workers: Some(2), ..apart() }, &format!("2 map, 1 reduce (as asked for; {crash})")),
            // "One for each processor" was said of fewer.
            (cut(32 << 20), "2, each maps and reduces (one for each split of the input)"),
            (learned.clone(), &format!("2, each maps and reduces ({best})")),
        ],
    );
    check("mapping at once", PROGRAM, &[(learned.clone(), &format!("1 ({best})"))]);
    check("chunks", PROGRAM, &[(learned, &format!("4 KiB ({best})"))]);
    let small = line("workers", &open, PROGRAM, 100, None);
    assert_eq!(small, "1, which maps and reduces (the input is so small that one more would cost more than it brings)");
    let sampled = line("workers", &open, PROGRAM, 1 << 20, sample(5.0));
    assert_eq!(
        sampled,
        "3, each maps and reduces (the input is about 5.2 ms of work for one, and there are 8 processors)"
    );
    let cold = Sample { read_bytes: 1 << 20, wait_ns: 5 << 20, ..sample(5.0).expect("made above") };
    let waits = line("workers", &open, PROGRAM, 1 << 20, Some(cold));
    assert!(waits.contains("5.2 ms of work for one, which would wait 5.2 ms for the disk, and there are 8"), "{waits}");
    let steps = line("workers", &open, Properties { iterates: true, ..PROGRAM }, 100, None);
    assert_eq!(steps, "8, each maps and reduces (one for each processor: there are 8 processors)");
}

#[test]
fn splits_and_pages_have_the_reasons_that_decided_them() {
    let open = Settings::default();
    let cut = |bytes| Settings { split_bytes: Some(bytes), ..Settings::default() };
    let paged = |page_bytes| Settings { page_bytes: Some(page_bytes), ..Settings::default() };
    check(
        "splits",
        PROGRAM,
        &[
            (open.clone(), "128 of 512 KiB (enough of them that the last ones wait little for each other)"),
            (cut(1 << 20), "64 of 1 MiB (as asked for)"),
            (cut(1), "65536 of 1 KiB (splits of 1 bytes would be too many tasks, so they have 1024 bytes)"),
            (
                Settings { deterministic: true, ..open.clone() },
                "32 of 2 MiB (values combine within a task, so its end must not depend on the workers)",
            ),
        ],
    );
    let sampled = line("splits", &open, PROGRAM, 64 << 20, sample(5.0));
    let expected =
        "128 of 512 KiB (about 2.6 ms each, and enough of them that the last ones wait little for each other)";
    assert_eq!(sampled, expected);
    check(
        "chunks",
        PROGRAM,
        &[
            (open.clone(), "256 KiB (input and combining table share the second-level cache)"),
            (Settings { chunk_bytes: Some(4096), ..open.clone() }, "4 KiB (as asked for)"),
        ],
    );
    // Whole huge pages lie on a node, so there are many.
    let page = |settings: &Settings, input_bytes| {
        let line = line("pages", settings, PROGRAM, input_bytes, sample(5.0));
        line.split_once(" of ").map(|(_, size)| size.to_owned()).expect("a number of pages")
    };
    let often = "smaller ones would wake reducers too often";
    assert_eq!(page(&open, 64 << 20), format!("16 KiB for each worker, and 256 in reserve ({often})"));
    assert_eq!(page(&paged(4096), 64 << 20), "4 KiB for each worker, and 1024 in reserve (as asked for)");
    let short = Settings { memory_bytes: Some(64 << 20), ..Settings::default() };
    let affordable = "the pages of all workers take an eighth of the memory";
    assert_eq!(page(&short, 64 << 20), format!("4 KiB for each worker ({affordable})"));
    let unknown = "so small an input does not say what will be emitted";
    assert_eq!(page(&open, 8 << 10), format!("8 KiB for each worker, and 512 in reserve ({unknown})"));
}

#[test]
fn buffers_and_stations_of_combining_have_the_reasons_that_decided_them() {
    let open = Settings::default();
    let buffer = |buffer| Settings { buffer, ..Settings::default() };
    let combine = |combine| Settings { combine, ..Settings::default() };
    let in_order = |settings: Settings| Settings { deterministic: true, ..settings };
    let plain = Properties { combines: false, ..PROGRAM };
    let rounds = Properties { rounds: true, ..PROGRAM };
    let dense = Properties { keys: Some(768), keys_max: 1 << 16, place_bytes: 16, ..PROGRAM };
    let table = "hash (values combine; where keys hardly repeat, pairs go past the table)";
    check(
        "buffer",
        PROGRAM,
        &[
            (open.clone(), table),
            (buffer(Buffer::Hash), "hash (as asked for)"),
            (buffer(Buffer::Array), "array (as asked for)"),
            (combine(Combining::Reduce), "array (nothing is combined in map)"),
        ],
    );
    check("buffer", plain, &[(open.clone(), "array (the job has no combiner)")]);
    check("buffer", dense, &[(open.clone(), "dense (a place for each of 768 keys)")]);
    check("buffer", Properties { keys: Some(1 << 17), keys_max: 1 << 32, ..dense }, &[(open.clone(), table)]);
    check("buffer", rounds, &[(in_order(open.clone()), "hash (the values of a task combine)")]);
    check(
        "combining",
        PROGRAM,
        &[
            (open.clone(), "in map and in reduce (less is sent, and memory grows with the keys, not with the pairs)"),
            (combine(Combining::Map), "in map, and at the end (as asked for)"),
            (combine(Combining::Reduce), "in reduce (as asked for)"),
            (combine(Combining::Off), "at the end (as asked for)"),
            (buffer(Buffer::Array), "in reduce (the array buffer combines nothing)"),
        ],
    );
    let at_the_end = "in map, and at the end (rounded values are combined at the end, in ascending order)";
    check(
        "combining",
        rounds,
        &[
            (
                in_order(open.clone()),
                "in map, and at the end (each task adds up in its own order, and tasks are added up in order)",
            ),
            (
                in_order(buffer(Buffer::Array)),
                "at the end (in ascending order, so that rounded sums have the same bits)",
            ),
            (in_order(combine(Combining::Map)), at_the_end),
            (in_order(combine(Combining::Off)), "at the end (as asked for)"),
        ],
    );
    check(
        "combining",
        plain,
        &[
            (open, "nowhere (the job has no combiner)"),
            (combine(Combining::Map), "nowhere (this job combines no values)"),
        ],
    );
    let after = Settings { combine_after: Some(9), ..combine(Combining::Map) };
    check("heavy keys", PROGRAM, &[(after, "combined in reduce once a key has more than 9 values (as asked for)")]);
}

#[test]
fn partitions_and_places_have_the_reasons_that_decided_them() {
    let open = Settings::default();
    let parts = |partitions| Settings { partitions: Some(partitions), ..Settings::default() };
    let placed = |placement| Settings { placement, ..Settings::default() };
    let dense = Properties { keys: Some(768), keys_max: 1 << 16, place_bytes: 16, ..PROGRAM };
    let cached = "what is reduced of one stays in the cache for millions of keys, and each reducer has several";
    check(
        "partitions",
        PROGRAM,
        &[
            (open.clone(), &format!("64 ({cached})")),
            (parts(100), "128 (as asked for)"),
            (parts(3), "8 (3 would be fewer than the 8 workers that reduce)"),
        ],
    );
    check("partitions", dense, &[(open.clone(), "16 (several for each reducer, and no more than the keys can fill)")]);
    let joins = Properties { joins: true, ..PROGRAM };
    check(
        "placement",
        joins,
        &[
            (open.clone(), "pinned to 2 nodes (their memory is there, too; pages cross)"),
            (placed(Placement::Pinned), "pinned to 2 nodes (as asked for)"),
            (placed(Placement::ByNode), "pinned to 2 nodes, each reduces its own pairs (as asked for)"),
            (placed(Placement::Off), "wherever the kernel puts them (as asked for)"),
            (
                Settings { workers: Some(1), ..open.clone() },
                "wherever the kernel puts them (one worker has nothing to exchange)",
            ),
        ],
    );
    let repeating = Sample { told_apart: 1000, keys: 10, ..sample(5.0).expect("made above") };
    assert_eq!(
        line("placement", &open, joins, 64 << 20, Some(repeating)),
        "pinned to 2 nodes, each reduces its own pairs (keys repeat, so each of them crosses once from each node instead of with each page)"
    );
    check(
        "placement",
        PROGRAM,
        &[(
            placed(Placement::ByNode),
            "pinned to 2 nodes (what the nodes would reduce cannot be joined in this job, so workers are pinned only)",
        )],
    );
}

#[test]
fn partitions_are_weighed_where_a_key_is_heavy_and_map_does_not_combine() {
    let plain = Properties { combines: false, ..PROGRAM };
    let skewed = Sample {
        pairs: 2000,
        told_apart: 1000,
        told_bytes: 10_000,
        heaviest_bytes: 1000,
        ..sample(5.0).expect("made above")
    };
    let even = Sample { heaviest_bytes: 100, ..skewed };
    let patience = |settings: &Settings, program, sample: &Sample, input_bytes, chooses| {
        let known = Known::new(settings, machine(8), input_bytes, program, Some(sample));
        let plan = Plan::new(&known).expect("nothing was asked for that cannot be");
        patience_ms(&known, &plan, chooses)
    };
    let open = Settings::default();
    let one = Settings { workers: Some(1), ..Settings::default() };
    // A twentieth of 7.55 s of work for eight processors.
    assert_eq!(patience(&open, plain, &skewed, 1 << 30, false), Some(47));
    assert_eq!(patience(&open, plain, &skewed, 1 << 40, false), Some(100), "never longer");
    assert_eq!(patience(&open, plain, &skewed, 1 << 24, false), None, "not worth it");
    assert_eq!(patience(&open, plain, &even, 1 << 30, false), None, "no key is heavy");
    assert_eq!(patience(&open, plain, &even, 1 << 30, true), Some(47), "the program chooses partitions");
    assert_eq!(patience(&one, plain, &skewed, 1 << 30, false), None, "there is one reducer");
    assert_eq!(patience(&open, PROGRAM, &skewed, 1 << 30, false), None, "map combines");
    assert_eq!(patience(&open, Properties { iterates: true, ..plain }, &skewed, 1 << 30, false), None);
    assert_eq!(patience(&open, Properties { passes: true, ..plain }, &skewed, 1 << 30, false), None, "ranges");
}
