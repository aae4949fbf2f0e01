//! One run of a command with all its processes, and the order of the runs.
//!
//! ```text
//!  words          the words of a command, with places for the number of workers
//!  parameters     combinations of other parameters
//!  phases         where the workers of our own applications spend their time
//!  reads          the files that one of our own applications reads, and their copies in memory
//!  applications   what the command knows of our own applications
//!  own            one of our own applications as a command
//!  look           what the threads of a run do now
//!  beside         processes that keep the machine busy beside a run
//!  circumstances  what differs from an ordinary run
//!  command        one run with all its processes
//!  rounds         the order of the runs, and which of them count
//! ```

pub mod words;
pub mod parameters;
pub mod phases;
pub mod reads;
pub mod applications;
pub mod own;
pub mod look;
pub mod beside;
pub mod circumstances;
pub mod command;
pub mod rounds;
