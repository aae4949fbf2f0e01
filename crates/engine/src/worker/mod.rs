//! One worker: it maps tasks that it can claim, reduces pages that arrive, and sleeps if there are neither.
//!
//! In: the [`Work`](work::Work) of a job. Out: pages, commits, a part of the result. The coordinator starts it.
//! [`next_action`] alone decides what it does next. It sees the plan, never the settings.

pub(crate) mod setup;
pub(crate) mod work;
pub(crate) mod bad_record_search;
pub(crate) mod mapper;
pub(crate) mod reduction;
pub(crate) mod deliver;
pub(crate) mod save;
pub(crate) mod next_action;
pub(crate) mod main_loop;
