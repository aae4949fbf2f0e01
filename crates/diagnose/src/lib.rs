//! Why a program does not get faster with more workers.
//!
//! This crate computes; it starts nothing and reads no file. It knows nothing of the engine: times come from anywhere.
//!
//! ```text
//!  times    seconds at each number of workers, as measured or as a table says
//!  law      what time does as workers are added: Amdahl, universal scalability, a floor
//!  fit      the parameters of a law that are nearest to the times (simplex: how they are found)
//!  noise    how far a time is from what it would be without disturbance; intervals by bootstrap
//!  region   where more workers gain, saturate, lose
//!  account  where the time of the workers went, and what of it is a loss
//!  curve    all of it together: which law, which number of workers is best, and how sure that is
//! ```
//!
//! The times of the fourth paper's palindromic tree (10,000 files of 100,000 characters):
//!
//! ```
//! use gristmill_diagnose::{Curve, Law, Times, Verdict};
//!
//! let mut times = Times::default();
//! for (workers, seconds) in [(1, 40.6), (2, 21.2), (4, 11.0), (8, 6.6), (16, 5.2), (32, 5.7), (64, 6.7)] {
//!     times.add(workers, seconds)?;
//! }
//! let curve = Curve::of(&times)?;
//! assert_eq!(curve.verdict, Verdict::Law(Law::Universal));
//! assert_eq!(curve.best.workers, 16);
//! println!("{}", curve.sentence());
//! # Ok::<(), gristmill_diagnose::Error>(())
//! ```

mod account;
mod law;
mod simplex;
mod times;
mod noise;
mod fit;
mod region;
mod curve;
mod sentence;

pub use account::{Account, Cause, Counted, Loss, Moment, Part, Seen, Wait};
pub use curve::{Best, Curve, Predicted, Verdict};
pub use fit::{Fit, Fitted};
pub use law::Law;
pub use noise::Interval;
pub use region::{Region, Trend};
pub use times::{Error, Point, Times};
