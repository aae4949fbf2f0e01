//! Bandwidth-aware scheduling (Xu et al.; docs/bibliography.md): its experiments, repeated on a simulated machine.
//!
//! Each experiment is a function whose result is data.
//!
//! ```text
//!  simulation   a machine in memory, whose clock jumps
//!  paper        its programs and groups, as data
//!  interval     confidence intervals of means
//!  group        runs a group once
//!  offline      knowledge of the paper's rival: used bandwidth, and a target corrected by a polynomial
//!  exact        knowledge of every program's profile
//!  figure_3     loss of speed by the three states; the simulation is calibrated to it
//!  table_2      executions needed until a program is covered, and figure 6
//!  comparison   figures 7 and 8: groups of programs with several sources of knowledge
//!  oracle       the best possible order, for small groups
//!  scale        ten thousand programs
//!  repetition   runs all of them
//!  report       their results as tables, as a page and as rows
//!  simulate     `gristmill-lab simulate`
//! ```

mod simulation;
mod paper;
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
mod report;
pub mod simulate;
