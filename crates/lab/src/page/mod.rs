//! A page for each paper: every figure and table of it, what the paper found, what was found here, and whether both
//! agree.
//!
//! ```text
//!  ask       the options that all pages have
//!  item      a figure, a table or a slide: what the paper found, and the experiment that asks the same
//!  answer    what was found here, and the verdict
//!  contrast  how one time compares with another
//!  turns     several ways to do the same, run in turn, and the verdict that such runs allow
//!  picture   curves as a picture of its own, beside a page
//!  paper     a paper: its items, and how their answers become a page
//! ```

mod answer;
mod ask;
mod contrast;
mod item;
mod turns;
pub mod picture;
mod paper;

pub use answer::{Answer, Judgement};
pub use ask::Ask;
pub use contrast::{Contrast, all_of};
pub use item::Item;
pub use paper::Paper;
pub use turns::{ROUNDS_MIN, Turns, allowed, spread, under};
