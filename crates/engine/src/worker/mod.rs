//! The life of one worker: map what it can claim, reduce what arrives, sleep when there is neither.
//!
//! In: the [`Work`](work::Work) of a job. Out: pages, commits, a part of the result. The coordinator starts it. What it does next is decided
//! in [`next_action`] alone; it sees the plan, never the settings.

pub(crate) mod work;
pub(crate) mod bad_record_search;
pub(crate) mod mapper;
pub(crate) mod reduction;
pub(crate) mod deliver;
pub(crate) mod save;
pub(crate) mod next_action;
pub(crate) mod main_loop;
