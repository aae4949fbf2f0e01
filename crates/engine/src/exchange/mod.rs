//! Pages on their way between workers: out of the map side, into the reduce side.
//!
//! In: pairs from buffers. Out: pages of committed epochs, given to `reduce`. Buffers and workers call it. Here a page
//! is handed over ([`outbox`]) and taken in ([`inbox`]; results: `coordinator::results`); a worker that waits for a page drains its own inbox meanwhile ([`lane`]).

pub(crate) mod header;
pub(crate) mod outbox;
pub(crate) mod inbox;
pub(crate) mod lane;
