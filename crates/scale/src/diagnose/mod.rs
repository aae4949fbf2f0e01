//! Explains why a program does not get faster with more workers.
//!
//! This room only computes; it starts no process and reads no file. It does not depend on the engine: times may come
//! from anywhere.
//!
//! ```text
//!  times       seconds at each number of workers, measured or from a table
//!  law         laws of scaling: Amdahl, universal scalability, a floor
//!  fit         fits the parameters of a law to times (simplex: the search for them)
//!  noise       deviations of times by disturbance; intervals by bootstrap
//!  lack_of_fit the test whether times miss a law by more than equal runs differ
//!  region      regions where more workers gain, saturate or lose
//!  kernel_work what the kernel does for a program, by the functions in which samples find it
//!  account     divides the workers' time into parts
//!  cause_kinds the kinds of causes of a loss
//!  asleep      sleep that grew: for a lock, for work, or for something else
//!  loss        compares two accounts, and finds the cause of a loss
//!  loss_sentence a loss and its cause in plain words
//!  change      changes of the circumstances of a run
//!  suspect     possible causes of a loss, and what each of them predicts of a change
//!  experiment  runs under changed circumstances, and which suspects they rule out
//!  curve       the analysis of the times: the law, the best number of workers, and their uncertainty
//!  headline    whether more workers help, and up to how many
//!  law_sentence the law in plain words
//!  conclusion  all that a report concludes, from the curve, failures, load and an account
//! ```
//!
//! The times of a palindromic tree (10,000 files of 100,000 characters) in thread bottlenecks (Chen 2020;
//! docs/bibliography.md):
//!
//! ```
//! use gristmill_scale::diagnose::{Circumstances, Conclusion, Curve, FittedLaw, Law, Times};
//!
//! let mut times = Times::default();
//! for (workers, seconds) in [(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)] {
//!     times.add(workers, seconds)?;
//! }
//! let curve = Curve::of(&times)?;
//! assert_eq!(curve.verdict, FittedLaw::Law(Law::Universal));
//! assert_eq!(curve.best.workers, 16);
//! println!("{}", Conclusion::of(&curve, &Circumstances::default()).sentence());
//! # Ok::<(), gristmill_scale::diagnose::Error>(())
//! ```

mod kernel_work;
mod account;
mod cause_kinds;
mod asleep;
mod loss;
mod loss_sentence;
mod change;
mod suspect;
mod experiment;
mod law;
mod simplex;
mod times;
mod noise;
mod lack_of_fit;
mod fit;
mod region;
mod curve;
mod headline;
mod law_sentence;
mod conclusion;
#[cfg(test)]
mod simulation;

pub use account::{Account, Counted, Moment, Seen, TimePart};
pub use cause_kinds::{Cause, Object};
pub use change::Change;
pub use conclusion::{Circumstances, Conclusion, Disturbance, Failure, Statement};
pub use curve::{Best, Curve, FittedLaw, Predicted};
pub use experiment::{ChangeTrial, Cost, Effect, Experiments, Finding, Findings, Spread};
pub use fit::{Fit, Fitted};
pub use headline::Help;
pub use kernel_work::KernelWork;
pub use law::Law;
pub use loss::Loss;
pub use noise::Interval;
pub use region::{BestRegion, Trend};
pub use suspect::{Prediction, Suspect};
pub use times::{Error, Point, Times};
