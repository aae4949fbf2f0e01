//! The paper's experiments, repeated on the simulated machine. Each is a function whose result is data.
//!
//! ```text
//!  repetition  runs all of them
//!   figure_3     loss of speed by the three states; the simulation is calibrated to it
//!   table_2      executions needed until a program is covered
//!   comparison   figures 7 and 8: groups of programs with several sources of knowledge
//!    group         runs a group once
//!    offline       knowledge of the paper's rival: used bandwidth, and a target corrected by a polynomial
//!    exact         knowledge of every program's profile
//!   oracle       the best possible order, for small groups
//!   scale        ten thousand programs
//!  interval    confidence intervals of means
//! ```

mod interval;
mod group;
mod offline;
mod exact;
mod figure_3;
mod table_2;
mod comparison;
mod oracle;
mod scale;
mod repetition;

pub use comparison::{Comparison, Execution, METHODS, Method, Team, compare, train};
pub use exact::Profiled;
pub use figure_3::{Point, figure_3};
pub use group::{Nothing, Outcome, Programs, run_group};
pub use interval::Interval;
pub use offline::{Measured, Polynomial};
pub use oracle::{Small, least_time_us, small_groups};
pub use repetition::{Plan, Repetition};
pub use scale::{Scale, scale};
pub use table_2::{Covered, LOADS, table_2};
