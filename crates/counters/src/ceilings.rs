//! The ceilings of a machine: the highest rates, in bytes per second, for each number of threads.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::card::Card;
use crate::load::{Load, Watch};
use crate::storage::Sample;
use crate::stream;
use crate::units;

/// A plan of measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements {
    /// The size of each of the three arrays.
    pub array_bytes: u64,
    /// A remark if that size is not ideal.
    pub array_note: Option<String>,
    /// The size of the file for page cache and disk.
    pub file_bytes: u64,
    /// The number of runs of each kernel; the best counts.
    pub passes: usize,
    /// The processors of each measurement, with one thread each.
    pub processors: Vec<Vec<usize>>,
    /// The folder for the file.
    pub folder: PathBuf,
}

/// The measured ceilings, and their time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Seconds since 1970.
    pub at: u64,
    /// The size of each array.
    pub array_bytes: u64,
    /// One row per number of threads.
    pub rows: Vec<Rates>,
    /// The rate at which one thread writes to the disk, in bytes per second.
    pub disk_write: Option<f64>,
    /// Remarks about failed and doubtful measurements.
    pub notes: Vec<String>,
}

/// The rates with one number of threads, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// The number of threads, each on its own processor.
    pub threads: usize,
    /// Reading memory.
    pub read: f64,
    /// Copying memory.
    pub copy: f64,
    /// Triad of STREAM.
    pub triad: f64,
    /// Reading a file from the page cache.
    pub page_cache: Option<f64>,
    /// Handing pages of shared memory over, between processes on each two of the processors.
    pub hand_over: Option<f64>,
    /// Reading a file that is not in the page cache.
    pub disk_read: Option<f64>,
}

/// The size of arrays if the size of the caches is unknown.
const ARRAY_BYTES_DEFAULT: u64 = 128 << 20;
/// STREAM's rule: an array is at least four times the caches.
const TIMES_CACHE: u64 = 4;
const FILE_BYTES: u64 = 128 << 20;

impl Measurements {
    /// Plans for this machine: arrays of four times the last-level caches, if three of them fit in half of the
    /// memory.
    pub fn new(card: &Card, folder: &Path) -> Measurements {
        let wanted = card.topology.last_level_bytes().map(|bytes| bytes.saturating_mul(TIMES_CACHE));
        let limits = [card.memory.available_bytes, card.memory.limit_bytes];
        let memory = limits.into_iter().flatten().min().unwrap_or(u64::MAX);
        let array_bytes = wanted.unwrap_or(ARRAY_BYTES_DEFAULT).max(stream::BLOCK_BYTES).min(memory / 6);
        let shown = units::bytes(array_bytes);
        let array_note = match wanted {
            None => Some(format!(
                "the machine does not tell how large its caches are: arrays of {shown} may partly lie in them"
            )),
            Some(wanted) if array_bytes < wanted => Some(format!(
                "arrays have {shown}, less than four times the last-level caches, because more does not fit into memory: \
                 caches make the rates higher than those of memory"
            )),
            Some(_) => None,
        };
        Measurements {
            array_bytes,
            array_note,
            file_bytes: FILE_BYTES.min(memory / 8),
            passes: 10,
            processors: counts(card.topology.allowed.len()).into_iter().map(|count| chosen(card, count)).collect(),
            folder: folder.to_owned(),
        }
    }
}

/// Returns 1, 2, 4 and so on, and `most`.
fn counts(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> =
        std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count < most).collect();
    counts.push(most.max(1));
    counts
}

/// Chooses processors for this many threads, each on a separate core as long as there are cores.
fn chosen(card: &Card, count: usize) -> Vec<usize> {
    let topology = &card.topology;
    let first_of_core = |cpu: &usize| {
        let processor = topology.processors.iter().find(|processor| processor.number == *cpu);
        processor.is_none_or(|processor| {
            processor.siblings.iter().find(|other| topology.allowed.contains(other)) == Some(cpu)
        })
    };
    let (first, second): (Vec<usize>, Vec<usize>) = topology.allowed.iter().partition(|cpu| first_of_core(cpu));
    first.into_iter().chain(second).take(count).collect()
}

impl Ceilings {
    /// Measures. Calls `begins` before each part, with its name.
    pub fn measure(plan: &Measurements, mut begins: impl FnMut(&str)) -> Ceilings {
        let mut notes: Vec<String> = plan.array_note.iter().cloned().collect();
        if cfg!(debug_assertions) {
            notes.push("measured by a program that was not optimised: the rates of memory may be too low".to_owned());
        }
        begins("memory");
        let watch = Watch::start();
        let mut rows: Vec<Rates> = plan
            .processors
            .iter()
            .filter(|processors| !processors.is_empty())
            .map(|processors| {
                let rates = stream::measure(processors, plan.array_bytes, plan.passes);
                let stream::Rates { read, copy, triad } = rates;
                Rates { threads: processors.len(), read, copy, triad, ..Rates::default() }
            })
            .collect();
        if let Some(load) = watch.load().filter(Load::disturbs) {
            let (share, stolen) = (load.foreign * 100.0, load.stolen * 100.0);
            notes.push(format!(
                "other programs took {share:.0} % of the processors meanwhile (stolen by the host: {stolen:.0} %), so the rates of \
                 memory may be too low"
            ));
        }
        begins("page cache and disk");
        let folder = plan.folder.display();
        let mut disk_write = None;
        match Sample::write(&plan.folder, plan.file_bytes) {
            Ok(sample) => {
                if sample.is_memory() {
                    notes.push(format!(
                        "{folder} lies in memory, so there is no disk to measure (choose another folder with --dir)"
                    ));
                } else {
                    disk_write = Some(sample.write);
                }
                for (row, processors) in rows.iter_mut().zip(&plan.processors) {
                    // The disk is read first, which leaves the file in the page cache.
                    let disk = if sample.is_memory() { Ok(None) } else { sample.from_disk(processors).map(Some) };
                    match disk.and_then(|disk| Ok((disk, sample.cached(processors, plan.passes)?))) {
                        Ok((disk, cached)) => (row.disk_read, row.page_cache) = (disk, Some(cached)),
                        Err(error) => {
                            notes.push(format!("page cache and disk, {} threads: {folder}: {error}", row.threads))
                        }
                    }
                }
            }
            Err(error) => notes.push(format!("page cache and disk were not measured: {folder}: {error}")),
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ceilings { at, array_bytes: plan.array_bytes, rows, disk_write, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::topology::{Cache, Processor, Topology};

    fn card(processors: usize, cache: Option<u64>, available: u64) -> Card {
        let half = processors / 2;
        let processor = |number| Processor {
            number,
            package: 0,
            siblings: vec![number % half.max(1), number % half.max(1) + half],
            capacity: 1024,
        };
        let allowed: Vec<usize> = (0..processors).collect();
        let cache = cache.map(|bytes| Cache { level: 3, bytes, processors: allowed.clone() });
        let topology = Topology {
            processors: (0..processors).map(processor).collect(),
            allowed,
            caches: cache.into_iter().collect(),
            ..Topology::default()
        };
        Card { topology, memory: Memory { available_bytes: Some(available), ..Memory::default() }, ..Card::default() }
    }

    #[test]
    fn arrays_are_four_times_the_caches_where_memory_allows() {
        let folder = Path::new("/tmp");
        let plan = Measurements::new(&card(2, Some(32 << 20), 8 << 30), folder);
        assert_eq!((plan.array_bytes, plan.array_note), (128 << 20, None));
        let plan = Measurements::new(&card(2, Some(512 << 20), 1 << 30), folder);
        assert!(
            plan.array_bytes < 1 << 30 && plan.array_note.is_some_and(|note| note.contains("less than four times"))
        );
        let plan = Measurements::new(&card(2, None, 8 << 30), folder);
        assert!(plan.array_note.is_some_and(|note| note.contains("does not tell")));
    }

    #[test]
    fn threads_double_and_take_a_core_each_first() {
        let plan = Measurements::new(&card(12, Some(1 << 20), 8 << 30), Path::new("/tmp"));
        let counts: Vec<usize> = plan.processors.iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 2, 4, 8, 12]);
        assert_eq!(plan.processors[3], [0, 1, 2, 3, 4, 5, 6, 7]);
        // The first thread of a core does not always have the lowest number.
        let mut odd = card(4, None, 8 << 30);
        odd.topology.processors[1].siblings = vec![0, 1];
        odd.topology.processors[0].siblings = vec![0, 1];
        odd.topology.processors[2].siblings = vec![2, 3];
        odd.topology.processors[3].siblings = vec![2, 3];
        assert_eq!(Measurements::new(&odd, Path::new("/tmp")).processors[1], [0, 2]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_rest() {
        let mut plan = Measurements::new(&card(2, Some(1 << 10), 8 << 30), Path::new("/nowhere"));
        (plan.array_bytes, plan.passes, plan.processors) = (1, 1, vec![vec![0]]);
        let ceilings = Ceilings::measure(&plan, |_| {});
        assert!(ceilings.rows[0].read > 0.0 && ceilings.rows[0].page_cache.is_none());
        assert!(ceilings.notes.iter().any(|note| note.contains("/nowhere")), "{:?}", ceilings.notes);
        plan.folder = gristmill_os::room::temporary_folder();
        plan.file_bytes = 1 << 20;
        assert!(Ceilings::measure(&plan, |_| {}).rows[0].page_cache.is_some());
    }
}
