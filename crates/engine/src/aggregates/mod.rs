//! Aggregates that programs often need.
//!
//! | aggregate | items | results | bytes |
//! |---|---|---|---|
//! | [`Numbers`] | `f64` | count, sum, mean, variance, least and greatest | 40 |
//! | [`Top`] | any key | the greatest `K` | those of the items |
//! | [`ApproxDistinct`] | bytes | number of different items, with a standard error of 1.6 % | up to 4,096 |
//! | [`ApproxQuantiles`] | `f64` | quantiles, whose rank is off by about 1 % at most | up to 7,000, in memory 33,000 |
//!
//! A tuple of up to four aggregates of the same item is an aggregate, too: it adds each item to all of them. A program
//! that has several items in a record makes a struct of aggregates:
//!
//! ```
//! use gristmill::aggregates::{ApproxDistinct, Numbers};
//! use gristmill::{Aggregate, Bytes, Chunk, Datum, Emit, Input, Isolation, Job, MapReduce, ProgramError};
//!
//! /// How long users stayed on a page, and how many there were.
//! #[derive(Clone, Debug, Default, Datum)]
//! #[datum(borrowed = VisitsRef)]
//! struct Visits {
//!     seconds: Numbers,
//!     users: ApproxDistinct,
//! }
//!
//! impl Aggregate for Visits {
//!     type Item = (f64, Bytes);
//!
//!     fn add(visits: &mut Visits, (seconds, user): (f64, &[u8])) {
//!         Numbers::add(&mut visits.seconds, seconds);
//!         ApproxDistinct::add(&mut visits.users, user);
//!     }
//!
//!     fn merge(visits: &mut Visits, other: Visits) {
//!         Numbers::merge(&mut visits.seconds, other.seconds);
//!         ApproxDistinct::merge(&mut visits.users, other.users);
//!     }
//! }
//!
//! /// Lines of a page, a user, and how long the user was there.
//! struct Log;
//!
//! impl MapReduce for Log {
//!     type Key = Bytes;
//!     type Value = Visits;
//!
//!     fn combiner(&self) -> Option<impl Fn(Visits, Visits) -> Visits> {
//!         Some(Visits::merged)
//!     }
//!
//!     fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Visits>) -> Result<(), ProgramError> {
//!         for line in str::from_utf8(chunk.bytes())?.lines() {
//!             let [page, user, seconds] = line.split(' ').collect::<Vec<_>>()[..] else {
//!                 return Err(ProgramError::new("a line has a page, a user and a time"));
//!             };
//!             out.add(page.as_bytes(), (seconds.parse()?, user.as_bytes()));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let input = Input::bytes("log", b"/mill ann 2.5\n/pond bob 1\n/mill ann 3.5\n/mill bob 6\n")?;
//! # // This doctest runs beside others in one process, so its workers are threads.
//! let (pages, _) = Job::new(&Log, input).isolation(Isolation::Thread).run()?;
//! let mill = pages.get(b"/mill").expect("a page");
//! assert_eq!((mill.seconds.mean(), mill.seconds.greatest()), (Some(4.0), Some(6.0)));
//! assert_eq!(mill.users.estimate().round(), 2.0);
//! # Ok::<(), gristmill::Error>(())
//! ```

mod approx_distinct;
mod approx_quantiles;
mod numbers;
mod top;
mod tuples;

pub use approx_distinct::{ApproxDistinct, ApproxDistinctRef};
pub use approx_quantiles::{ApproxQuantiles, Quantiles, QuantilesRef};
pub use numbers::Numbers;
pub use top::{Top, TopItems, TopRef};
