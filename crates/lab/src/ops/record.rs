//! Runs of the Spark plugin and of Spark's own shuffle that were recorded in `bench/runs`.

use std::collections::BTreeMap;

use gristmill_report::tally::Tally;
use serde_json::Value;

/// The recorded runs of `bench/spark/headline.sh`: 32 to 128 maps into the same 32 partitions, on slow disks.
pub const HEADLINE: &str = include_str!("../../../../bench/runs/2026-11-28-spark-headline/runs.jsonl");
/// The recorded runs of `bench/spark/rows.sh`.
const ROWS: &str = include_str!("../../../../bench/runs/2026-11-22-spark-rows-5/runs.jsonl");

/// A run of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRun {
    /// The disks and the network of its cluster: see `bench/spark/cluster.sh`.
    cluster: String,
    job: String,
    pub shuffle: Shuffle,
    pub maps: u64,
    pub bytes: u64,
    /// The time of the whole job.
    pub job_s: f64,
    /// Writing and waiting for fetches, summed over all tasks.
    pub shuffle_s: f64,
}

/// The shuffle of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Spark's default.
    Sort,
    /// Spark's push-based one.
    Magnet,
    /// Gristmill's plugin.
    Gristmill,
}

/// One run with each of two shuffles, made one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPair {
    pub sort: RecordedRun,
    pub gristmill: RecordedRun,
}

/// Reads lines as `bench/spark/events.py` writes them. Lines without a job say what the cluster was like.
///
/// # Errors
/// The number of the first line that is not such an object, and why.
pub fn runs(lines: &str) -> Result<Vec<RecordedRun>, String> {
    let mut runs = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let object: Value = serde_json::from_str(line).map_err(|why| format!("line {number}: {why}"))?;
        if object["job"].is_null() || object["seconds"].is_null() {
            continue;
        }
        runs.push(run(&object).ok_or_else(|| format!("line {number} lacks a number, or names an unknown shuffle"))?);
    }
    Ok(runs)
}

fn run(object: &Value) -> Option<RecordedRun> {
    let text = |name: &str| object[name].as_str();
    let shuffle = match text("shuffle")? {
        "sort" => Shuffle::Sort,
        "magnet" => Shuffle::Magnet,
        "gristmill" => Shuffle::Gristmill,
        _ => return None,
    };
    Some(RecordedRun {
        cluster: text("cluster")?.to_owned(),
        job: text("job")?.to_owned(),
        shuffle,
        maps: text("maps")?.parse().ok()?,
        bytes: text("bytes")?.parse().ok()?,
        job_s: text("seconds")?.parse().ok()?,
        shuffle_s: object["write_s"].as_f64()? + object["fetch_wait_s"].as_f64()?,
    })
}

/// Returns the pairs of Spark-sort on throttled disks, of `headline` and of the recorded rows.
pub fn pairs(headline: &[RecordedRun]) -> Vec<RunPair> {
    let rows = runs(ROWS).expect("a test reads the record");
    [headline, &rows].into_iter().flat_map(pairs_of).collect()
}

fn pairs_of(all: &[RecordedRun]) -> Vec<RunPair> {
    let mut sides: BTreeMap<(u64, u64), [Vec<&RecordedRun>; 2]> = BTreeMap::new();
    for run in all.iter().filter(|run| run.cluster == "disks" && run.job == "sparksort") {
        let [sort, gristmill] = sides.entry((run.bytes, run.maps)).or_default();
        match run.shuffle {
            Shuffle::Sort => sort.push(run),
            Shuffle::Gristmill => gristmill.push(run),
            Shuffle::Magnet => {}
        }
    }
    let paired = |[sort, gristmill]: [Vec<&RecordedRun>; 2]| -> Vec<RunPair> {
        sort.into_iter().zip(gristmill).map(|(a, b)| RunPair { sort: a.clone(), gristmill: b.clone() }).collect()
    };
    sides.into_values().flat_map(paired).collect()
}

/// A number of maps, the count of runs with it, and their median time.
pub type Point = (u64, usize, f64);

/// Returns the median time for each number of maps of Spark-sort on throttled disks.
pub fn by_maps(all: &[RecordedRun], shuffle: Shuffle, time: fn(&RecordedRun) -> f64) -> Vec<Point> {
    let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in all.iter().filter(|run| run.cluster == "disks" && run.job == "sparksort" && run.shuffle == shuffle) {
        times.entry(run.maps).or_default().push(time(run));
    }
    times.into_iter().map(|(maps, times)| (maps, times.len(), Tally::of(&times).median)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the README beside the record.
    #[test]
    fn the_record_is_read_as_its_readme_says() {
        let headline = runs(HEADLINE).expect("a record");
        assert_eq!(
            by_maps(&headline, Shuffle::Sort, |run| run.job_s),
            [(32, 3, 73.51), (64, 3, 65.93), (128, 3, 71.64)]
        );
        let ours = by_maps(&headline, Shuffle::Gristmill, |run| run.job_s);
        assert_eq!(ours, [(32, 3, 15.69), (64, 3, 16.03), (128, 3, 17.35)]);
        assert_eq!(by_maps(&headline, Shuffle::Magnet, |run| run.job_s)[2], (128, 3, 44.44));
        // Nine of 150 MB, and two of 450 MB with 96 maps.
        let pairs = pairs(&headline);
        assert_eq!(
            pairs.iter().map(|pair| pair.sort.maps).collect::<Vec<_>>(),
            [32, 32, 32, 64, 64, 64, 128, 128, 128, 96, 96]
        );
        let ratio = |pair: &RunPair| format!("{:.2}", pair.gristmill.job_s / pair.sort.job_s);
        let ratios: Vec<_> = pairs.iter().map(ratio).collect();
        assert_eq!((&ratios[3][..], &ratios[6][..]), ("0.24", "0.29"));
    }

    #[test]
    fn a_line_that_is_no_run_is_named() {
        assert_eq!(runs("{\"disk\": 1}\n"), Ok(Vec::new()));
        let wrong = runs("{\"disk\": 1}\n{\"job\": \"sort\", \"seconds\": \"1\", \"shuffle\": \"new\"}");
        assert_eq!(wrong, Err("line 2 lacks a number, or names an unknown shuffle".to_owned()));
    }
}
