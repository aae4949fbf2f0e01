//! The way of pages between workers, from the map side to the reduce side.
//!
//! In: pairs from buffers. Out: pages of committed epochs, given to `reduce`. Buffers and workers call it. Pages are
//! handed over in [`outbox`] and received in [`inbox`] (results: in `coordinator::results`). A worker that waits for a
//! page drains its own inbox meanwhile ([`lane`]).

pub(crate) mod header;
pub(crate) mod outbox;
pub(crate) mod inbox;
pub(crate) mod lane;
