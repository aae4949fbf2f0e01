//! One running program, and what it writes.
//!
//! ```text
//!  ready      what the scheduler waits for
//!  stream     a pipe that a program writes to, and the file that keeps it
//!  capture    the streams of a program, and the folders of --output
//!  handed     the streams that the guard would finish
//!  heartbeat  the stages that a program tells
//!  identity   the names of programs and inputs in the history
//!  observed   what is counted and sampled of a program
//!  running    the program: its group of processes, its time, and how it is ended
//!  remains    what programs left running when they ended
//! ```

pub mod ready;
pub mod stream;
pub mod capture;
pub mod handed;
pub mod heartbeat;
pub mod identity;
pub mod observed;
pub mod running;
pub mod remains;
