//! What a job leaves on disk, so that running it again continues.
//!
//! In: facts (tasks that are done, runs that are saved). Out: the same facts, or a sentence why the folder is not believed. The
//! coordinator writes it, reducers read it. Nothing is noted before the disk has it.

pub(crate) mod log;
