//! Pages of shared memory, and the channels that hand them from worker to worker.
//!
//! Unsafe room 2 of Gristmill: everything promised here is about *aliasing*. A page of the region is
//! written by at most one worker at a time and read by at most one, although every worker maps all of
//! them at the same address. The promise rests on three facts:
//!
//! 1. a slot (worker number) can be claimed once in the life of a region ([`Pages::claim`]), so there is
//!    one [`Sender`] and one [`Receiver`] per slot;
//! 2. a page number enters a mailbox only by giving up the [`PageMut`] or [`PageRef`] that named it;
//! 3. a mailbox gives each number out exactly once (`gristmill-ring`, README).
//!
//! Pages of a dead worker are taken back only with a proof that it was that worker which has ended
//! ([`Ended`](gristmill_os::ended::Ended)), and what a worker claims never leaves its thread. A fork has copies of the
//! ends, which panic there.
//!
//! Pairs that must stay and have many readers lie on the [`Shelf`]; `shelf.rs` states its own promise. Its users are
//! counted, and nothing is cleared while there are any.
//!
//! ```text
//!  slot p: Sender                                          slot c: Receiver
//!    take() -> PageMut --write--> send(c, page) ==mailbox of c==> recv() -> PageRef --read-->
//!    free list <---------collect()------------  <==mailbox of p== give_back(page)
//! ```
//!
//! A [`Master`] is memory that stays in place. A worker that changes a part of it is [`Inside`], and holds that part's
//! latch. The process that made it reads it when it is [`Closed`], which it cannot be while somebody is inside.
//!
//! ```
//! use gristmill_page::{Pages, Shape};
//! let pages = Pages::new(Shape { slots: 2, pages_per_arena: 4, page_bytes: 4096, ..Shape::default() })?;
//! let (mut sender, _) = pages.claim(0);
//! let (_, mut receiver) = pages.claim(1);
//! let mut page = sender.take().expect("a fresh arena has free pages");
//! page.bytes_mut()[0] = 42;
//! sender.send(1, page);
//! let page = receiver.recv().expect("the page has arrived");
//! assert_eq!(page.bytes()[0], 42);
//! receiver.give_back(page);
//! # Ok::<(), std::io::Error>(())
//! ```

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod prefetch;
mod reuse;
mod layout;
mod channel;
mod shelf;
mod gate;
mod master;

pub use channel::{PageMut, PageRef, Receiver, Sender};
pub use gristmill_ring::Overwritten;
pub use layout::{Pages, Shape, ShelfFile};
pub use master::{Closed, Inside, Master, MasterOriginal, MasterView};
pub use prefetch::{prefetch, prefetch_to_write};
pub use reuse::Reuse;
pub use shelf::{Extent, NoExtent, Piece, Reader, Shelf, Shelver};
