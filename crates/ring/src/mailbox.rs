//! A mailbox of page numbers: any worker puts numbers in, its owner takes all of them out.
//!
//! The numbers in a mailbox are a chain. `first` names the number that was put in last, and each number has a link
//! that names the one before it:
//!
//! ```text
//!   first    9 ----> 4 ----> 7 ----> none       put in: 7, then 4, then 9
//!                   links[9] links[4] links[7]
//! ```
//!
//! Putting in is one compare-and-swap of `first`, and taking out is one swap of it for "none". A number is in one
//! mailbox at a time, so one link for each number is enough for all mailboxes: what they take does not grow with the
//! pairs of workers that might write to each other. A mailbox that nobody has written to is a word of zero that nobody
//! has touched.
//!
//! The bits of a word above those of the largest number are a check of the number. A word that somebody else has
//! written, through a stray pointer, is found when the chain is taken out, unless it happens to be right.

use std::fmt;

use crate::sync::{AtomicU32, Ordering};

/// An empty mailbox, as zeroed memory is one.
const NONE: u32 = 0;
/// An odd number whose bits are spread, for the checks of words.
const SPREAD: u32 = 0x9e37_79b1;

/// A shared word has a value that no worker gives it: somebody else has written to it. Says which word, or what is
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwritten(pub &'static str);

impl fmt::Display for Overwritten {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a shared word was overwritten: {}", self.0)
    }
}

impl std::error::Error for Overwritten {}

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
/// mailbox.take_all(&mut pages)?;
/// assert_eq!(pages, [9, 4, 7]); // the newest comes first
/// assert!(mailbox.is_empty());
/// # Ok::<(), gristmill_ring::Overwritten>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mailbox<'a> {
    first: &'a AtomicU32,
    links: &'a [AtomicU32],
}

impl<'a> Mailbox<'a> {
    /// The mailbox whose chain begins in `first`. `links` has a link for each number that there is, and all mailboxes
    /// have the same.
    pub fn new(first: &'a AtomicU32, links: &'a [AtomicU32]) -> Mailbox<'a> {
        Mailbox { first, links }
    }

    /// Puts `page` in. Whoever takes it out sees everything that this thread wrote before.
    ///
    /// The number is in no mailbox, and the caller is the only one who may put it into one: it writes the number's
    /// link.
    ///
    /// # Panics
    ///
    /// When there is no link for `page`.
    #[inline]
    pub fn put(&self, page: u32) {
        let link = &self.links[page as usize];
        let word = self.word(page + 1);
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            link.store(if first == NONE { self.word(self.end()) } else { first }, Ordering::Relaxed);
            // PAIRS WITH take_all, swap of first: the link, and the page, are written before the chain has them. A
            // later put is a read-modify-write too, and passes on what this one published.
            match self.first.compare_exchange_weak(first, word, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes everything out and appends it to `pages`, the newest number first.
    ///
    /// Numbers that one worker put in keep their order. Only the owner of the mailbox calls this.
    ///
    /// # Errors
    ///
    /// A word of the chain was overwritten. Then nothing is appended, and what was in the chain is lost.
    #[inline]
    pub fn take_all(&self, pages: &mut Vec<u32>) -> Result<(), Overwritten> {
        // A mailbox that is looked at often and empty mostly stays in this processor's cache, and is not written.
        if self.first.load(Ordering::Relaxed) == NONE {
            return Ok(());
        }
        // PAIRS WITH put.
        let mut word = self.first.swap(NONE, Ordering::Acquire);
        let before = pages.len();
        loop {
            let number = word & self.mask();
            let is_whole = self.word(number) == word && number != NONE && number <= self.end();
            if !is_whole || pages.len() - before > self.links.len() {
                pages.truncate(before);
                return Err(Overwritten("a mailbox names no page"));
            }
            if number == self.end() {
                return Ok(());
            }
            pages.push(number - 1);
            word = self.links[number as usize - 1].load(Ordering::Relaxed);
        }
    }

    /// True if there is nothing to take out now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // PAIRS WITH put.
        self.first.load(Ordering::Acquire) == NONE
    }

    /// The number in the link of the page that was put in first: the one after all pages + 1.
    #[inline]
    fn end(&self) -> u32 {
        self.links.len() as u32 + 1
    }

    /// The bits of a word that hold a number up to [`Mailbox::end`].
    #[inline]
    fn mask(&self) -> u32 {
        u32::MAX >> self.end().leading_zeros()
    }

    /// A number with its check in the bits above it.
    #[inline]
    fn word(&self, number: u32) -> u32 {
        number | (number.wrapping_mul(SPREAD) & !self.mask())
    }
}
