//! MR-Search (Döbbelin et al. 2012; docs/bibliography.md): where memory comes from, and shared memory against messages.
//!
//! A MapReduce small enough to read at once: its buffers, tables and lists come from the source of memory that is asked
//! for. The engine has no such choice.
//!
//! ```text
//!  allocator    implementations of malloc
//!  supply       memory from malloc each time, kept, from a pool, or touched before
//!  table        the pairs of a partition by key
//!  jobs         a search of states, and a word count
//!  exchange     pairs from worker to worker: in threads, in shared pages, in messages
//!  steps        one worker: map, exchange, reduce, again and again
//!  job          one run: `gristmill-lab mr-search-job`
//!  measure      its runs as programs, in turn
//!  grid         the costs of every source of memory with every number of workers
//!  passing      the times of a job with every way to pass pairs
//!  verdicts     when this machine agrees with a slide
//!  paper        the page: `gristmill-lab mr-search`
//!  comparisons  the engine's own choice: memory of pages
//! ```

pub mod allocator;
mod supply;
mod table;
mod jobs;
mod exchange;
mod steps;
pub mod job;
mod measure;
mod grid;
mod passing;
mod verdicts;
pub mod paper;
pub mod comparisons;
