//! Settings: everything about a run that a user can choose, with the defaults.

use std::path::PathBuf;
use std::time::Duration;

use gristmill_os::machine::NumaNode;
use gristmill_os::room::temporary_folder;

use crate::data::order::Order;
use crate::error::{Error, Result};
use crate::input::records::Records;
use crate::testing::kill_points::{Deed, Moment};

/// Whether workers share an address space.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::Isolation;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // A program that has threads cannot fork: its workers are threads, too.
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).isolation(Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!(counts.get(b'a'), Some(2));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Every worker is a process.
    #[default]
    Process,
    /// Every worker is a thread of this process.
    Thread,
}

/// The moment at which reducers begin.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::options::Exchange;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // No choice changes the result: this one shows how long map takes alone.
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).exchange(Exchange::Barrier);
/// # // This doctest runs beside others in one process, so its workers are threads.
/// # let job = job.isolation(gristmill::Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!((counts.get(b'a'), counts.get(b'b')), (Some(2), Some(2)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exchange {
    /// As soon as the first page is committed.
    #[default]
    Pipelined,
    /// After all input is mapped, as in Phoenix.
    Barrier,
}

/// The map-side buffer between the map function and the pages.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::options::Buffer;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // When hardly any key occurs twice, a table has nothing to combine.
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).buffer(Buffer::Array);
/// # // This doctest runs beside others in one process, so its workers are threads.
/// # let job = job.isolation(gristmill::Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!((counts.get(b'a'), counts.get(b'b')), (Some(2), Some(2)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Buffer {
    /// The plan chooses.
    #[default]
    Auto,
    /// Append only.
    Array,
    /// A combining table.
    Hash,
    /// A plain array with a place for each key of a small domain ([`MapReduce::keys`](crate::MapReduce::keys)).
    Dense,
}

/// The stations at which values are combined, if the job has a combiner.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::options::Combining;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // When map functions rarely meet a key twice, only reducers find pairs to combine.
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).combine(Combining::Reduce);
/// # // This doctest runs beside others in one process, so its workers are threads.
/// # let job = job.isolation(gristmill::Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!((counts.get(b'a'), counts.get(b'b')), (Some(2), Some(2)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Combining {
    /// In map and in reduce workers.
    #[default]
    Both,
    /// Only before they are sent; reducers combine when everything has arrived.
    Map,
    /// Only as they arrive.
    Reduce,
    /// Only when everything has arrived.
    Off,
}

/// The source of the memory of pages.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::options::PagePolicy;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // A measurement without the time that the kernel takes to provide memory.
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).pages(PagePolicy::Prealloc);
/// # // This doctest runs beside others in one process, so its workers are threads.
/// # let job = job.isolation(gristmill::Isolation::Thread);
/// let (counts, _) = job.run()?;
/// assert_eq!((counts.get(b'a'), counts.get(b'b')), (Some(2), Some(2)));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PagePolicy {
    /// Given back to the kernel after each use and faulted in again.
    Fresh,
    /// Reused.
    #[default]
    Reuse,
    /// Faulted in before the first task by the worker that will write them, then reused.
    Prealloc,
}

/// The processors that workers run on, if the machine has several NUMA nodes.
///
/// ```
/// # use gristmill::{Chunk, Emit, Input, Job, MapReduce, ProgramError};
/// use gristmill::options::Placement;
/// # /// How often each byte occurs.
/// # struct Count;
/// # impl MapReduce for Count {
/// #     type Key = u8;
/// #     type Value = u64;
/// #     fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
/// #         Some(|a, b| a + b)
/// #     }
/// #     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u8, u64>) -> Result<(), ProgramError> {
/// #         chunk.bytes().iter().for_each(|byte| out.emit(*byte, 1));
/// #         Ok(())
/// #     }
/// # }
/// // To compare: how much is read of other nodes' memory if the kernel moves workers as it likes?
/// let job = Job::new(&Count, Input::bytes("text", b"abba")?).placement(Placement::Off);
/// # // This doctest runs beside others in one process, so its workers are threads.
/// # let job = job.isolation(gristmill::Isolation::Thread);
/// let (counts, summary) = job.run()?;
/// assert_eq!((counts.get(b'a'), counts.get(b'b')), (Some(2), Some(2)));
/// let remote = summary.node_reads.iter().filter(|read| read.memory != read.reader);
/// println!("{} bytes", remote.map(|read| read.bytes).sum::<u64>());
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// As `Pinned`, or as `ByNode` if the sample says that keys repeat.
    #[default]
    Auto,
    /// Each worker stays on one node, where its memory is.
    Pinned,
    /// Besides, each node reduces the pairs of its own workers, and the results of the nodes are joined at the end.
    /// This has no effect on jobs whose results cannot be joined: those without a combiner, with a reduce function, a
    /// sink, steps or a checkpoint, with sums that are combined in a fixed order, or whose result is not in the order
    /// of keys.
    ByNode,
    /// The kernel moves workers as it likes.
    Off,
}

/// The time of an earlier run of the same program, over a similar input, on this machine
/// ([`Job::history`](crate::Job::history)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The number of workers.
    pub workers: usize,
    /// The number of workers that mapped at the same time; `None` if it was left to the plan.
    pub map_at_once: Option<usize>,
    /// The bytes that a worker read at a time; `None` if it was left to the plan.
    pub chunk_bytes: Option<usize>,
    /// The time from start to end.
    pub seconds: f64,
}

/// Where a job saves its progress, so that running it again continues.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointSettings {
    pub dir: PathBuf,
    /// Everything that the map function depends on besides its input.
    pub program: String,
    /// The interval between saves, which is the most work that can be lost.
    pub every: Duration,
}

/// Everything about a run that a user can choose.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub workers: Option<usize>,
    pub map_workers: Option<usize>,
    pub reduce_workers: Option<usize>,
    pub reduce_apart: bool,
    pub in_order: bool,
    pub isolation: Isolation,
    pub exchange: Exchange,
    pub buffer: Buffer,
    pub combine: Combining,
    pub combine_after: Option<u32>,
    pub pages: PagePolicy,
    pub placement: Placement,
    pub page_bytes: Option<usize>,
    pub split_bytes: Option<u64>,
    pub chunk_bytes: Option<usize>,
    pub order: Order,
    /// The most pairs that the result has. By default all.
    pub limit: Option<usize>,
    pub records: Records,
    /// By default [`RECORD_BYTES_MAX`].
    pub record_bytes_max: Option<usize>,
    /// By default [`RETRIES`].
    pub retries: Option<u32>,
    pub max_failures: Option<u32>,
    pub skip_bad_records: u32,
    pub task_timeout: Option<Duration>,
    pub deadline: Option<Duration>,
    pub checkpoint: Option<CheckpointSettings>,
    pub timeline: bool,
    pub map_at_once: Option<usize>,
    pub partitions: Option<usize>,
    pub keep_bytes: Option<u64>,
    /// Whether the plan follows a sample. By default it does.
    pub sample: Option<bool>,
    /// Times of earlier runs.
    pub history: Vec<Trial>,
    pub memory_bytes: Option<usize>,
    /// The memory of the program before the job begins, and that which it takes besides while the job runs.
    pub held_bytes: usize,
    pub will_hold_bytes: usize,
    /// If empty, the folder for temporary files.
    pub spill_dirs: Vec<PathBuf>,
    /// The bytes that temporary files leave free; by default a part of those free at the start.
    pub keep_free_bytes: Option<u64>,
    pub deterministic: bool,
    /// For tests: the nodes of the machine. Empty: those that it has.
    pub nodes: Vec<NumaNode>,
    /// For tests: the worker in this slot sends itself this signal at the n-th such moment.
    pub kill_points: Vec<(usize, Moment, u64, Deed)>,
}

/// The length of the longest record in bytes, unless a setting says another.
pub(crate) const RECORD_BYTES_MAX: usize = 64 << 20;

/// The number of times that a failed task is retried, unless a setting says another.
pub(crate) const RETRIES: u32 = 2;

/// The largest number of records that a job may set aside: the shared words have a place for each.
pub(crate) const BAD_RECORDS_MAX: u32 = 1_000_000;

impl Settings {
    /// Returns the length of the longest record in bytes.
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max.unwrap_or(RECORD_BYTES_MAX)
    }

    /// Returns the folders to spill to: at least one.
    pub fn spill_folders(&self) -> Vec<PathBuf> {
        if self.spill_dirs.is_empty() { vec![temporary_folder()] } else { self.spill_dirs.clone() }
    }

    /// Refuses settings that no plan can honour.
    pub fn check(&self) -> Result<()> {
        self.records.check()?;
        if self.skip_bad_records > BAD_RECORDS_MAX {
            return Err(Error::Setting(format!(
                "{} records were to be set aside; a job sets aside at most {BAD_RECORDS_MAX}",
                self.skip_bad_records
            )));
        }
        for (what, bytes, method) in [
            ("chunks", self.chunk_bytes.map(|bytes| bytes as u64), "Job::chunk_bytes"),
            ("splits", self.split_bytes, "Job::split_bytes"),
        ] {
            if bytes == Some(0) {
                return Err(Error::Setting(format!(
                    "{what} of 0 bytes were asked for with {method}: the least is 1 byte"
                )));
            }
        }
        if self.isolation == Isolation::Thread && self.task_timeout.is_some() {
            return Err(Error::Setting(
                "a task timeout needs process isolation: a thread cannot be ended from outside".into(),
            ));
        }
        Ok(())
    }
}
