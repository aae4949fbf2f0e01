//! Knowledge about programs, from earlier executions and from the current one.
//!
//! ```text
//!  work         the time and the requests of a program
//!  blocks       samples of instruction addresses become vectors
//!  estimate     means of valid samples
//!  phases       similar vectors are one phase
//!  contention   the three states in which a program runs as if alone
//!  transitions  predicts the next phase
//!  store        the data kept for the next execution
//!  knowledge    the interface of sources of knowledge
//!  learning     the parameters of learning
//!  execution    the phases of a current execution, and the work done in them
//!  learned      the paper's source of knowledge
//! ```

pub mod work;
pub mod blocks;
pub mod estimate;
pub mod phases;
pub mod contention;
pub mod transitions;
pub mod store;
pub mod knowledge;
pub mod learning;
pub mod execution;
pub mod learned;
