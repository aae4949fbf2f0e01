//! Bandwidth-aware scheduling (Xu et al.; docs/bibliography.md): its experiments, repeated on a simulated machine.
//!
//! ```text
//!  simulation   a machine in memory, whose clock jumps
//!  paper        its programs and groups, as data
//!  group        runs a group once
//!  offline      knowledge of the paper's rival: used bandwidth, and a target corrected by a polynomial
//!  exact        knowledge of every program's profile
//!  figure_3     loss of speed by the three states; the simulation is calibrated to it
//!  table_2      executions needed until a program is covered, and figure 6
//!  comparison   figures 7 and 8: groups of programs with several methods
//!  oracle       the best possible order, for small groups
//!  scale        many programs on many processors
//!  figure_5     what the scheduler costs
//!  experiments  runs each of them once, in several rounds
//!  claims       claims of the paper, and their verdict
//!  pictures     pictures of the page
//!  answers      the answers to its figures and tables
//!  items        its page: `gristmill-lab bandwidth`
//! ```

mod simulation;
mod paper;
mod group;
mod offline;
mod exact;
mod figure_3;
mod table_2;
mod comparison;
mod oracle;
mod scale;
mod figure_5;
mod experiments;
mod claims;
mod pictures;
mod answers;
pub mod items;
