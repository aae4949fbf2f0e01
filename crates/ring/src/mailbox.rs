//! A mailbox of page numbers: any worker puts numbers in, its owner takes all of them out.
//!
//! The numbers in a mailbox are a chain. `first` names the number that was put in last, and each number has a link that names
//! the one before it:
//!
//! ```text
//!   first    9 ----> 4 ----> 7 ----> none       put in: 7, then 4, then 9
//!                   links[9] links[4] links[7]
//! ```
//!
//! Putting in is one compare-and-swap of `first`, and taking out is one swap of it for "none". A number is in one mailbox at a
//! time, so one link for each number is enough for all mailboxes: what they take does not grow with the pairs of workers that
//! might write to each other. A mailbox that nobody has written to is a word of zero that nobody has touched.

use crate::sync::{AtomicU32, Ordering};

/// The end of a chain. A word holds a number + 1, so that zeroed memory is an empty mailbox.
const NONE: u32 = 0;

/// The shared words of one mailbox.
///
/// ```
/// use gristmill_ring::{Mailbox, sync::AtomicU32};
///
/// let (first, links) = (AtomicU32::new(0), [0; 10].map(AtomicU32::new));
/// let mailbox = Mailbox::new(&first, &links);
/// for page in [7, 4, 9] {
///     mailbox.put(page);
/// }
/// let mut pages = Vec::new();
/// mailbox.take_all(&mut pages);
/// assert_eq!(pages, [9, 4, 7]); // the newest comes first
/// assert!(mailbox.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mailbox<'a> {
    first: &'a AtomicU32,
    links: &'a [AtomicU32],
}

impl<'a> Mailbox<'a> {
    /// The mailbox whose chain begins in `first`. `links` has a link for each number that there is, and all mailboxes have
    /// the same.
    pub fn new(first: &'a AtomicU32, links: &'a [AtomicU32]) -> Mailbox<'a> {
        Mailbox { first, links }
    }

    /// Puts `page` in. Whoever takes it out sees everything that this thread wrote before.
    ///
    /// The number is in no mailbox, and the caller is the only one who may put it into one: it writes the number's link.
    ///
    /// # Panics
    ///
    /// When there is no link for `page`.
    #[inline]
    pub fn put(&self, page: u32) {
        let link = &self.links[page as usize];
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            link.store(first, Ordering::Relaxed);
            // PAIRS WITH take_all, swap of first: the link, and the page, are written before the chain has them. A later put is a
            // read-modify-write too, and passes on what this one published.
            match self.first.compare_exchange_weak(first, page + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes everything out and appends it to `pages`, the newest number first.
    ///
    /// Numbers that one worker put in keep their order. Only the owner of the mailbox calls this.
    ///
    /// # Panics
    ///
    /// When the chain names a number for which there is no link, or has no end: somebody else has written to these words.
    #[inline]
    pub fn take_all(&self, pages: &mut Vec<u32>) {
        // A mailbox that is looked at often and empty mostly stays in this processor's cache, and is not written.
        if self.first.load(Ordering::Relaxed) == NONE {
            return;
        }
        // PAIRS WITH put.
        let mut next = self.first.swap(NONE, Ordering::Acquire);
        let most = pages.len() + self.links.len();
        while next != NONE {
            assert!(pages.len() < most, "a chain of pages has an end");
            pages.push(next - 1);
            next = self.links[next as usize - 1].load(Ordering::Relaxed);
        }
    }

    /// True if there is nothing to take out now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // PAIRS WITH put.
        self.first.load(Ordering::Acquire) == NONE
    }
}
