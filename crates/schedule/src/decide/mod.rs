//! Which programs run in the next quantum.
//!
//! ```text
//!  ideal      the bandwidth that a group demands: the target
//!  select     programs that come near to the target together
//!  beyond     rules that go beyond the paper
//!  scheduler  decides, by all of these
//! ```

pub mod ideal;
pub mod select;
pub mod beyond;
pub mod scheduler;
