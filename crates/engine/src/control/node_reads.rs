//! How many bytes of pages are read of each NUMA node, by which. Nothing is counted on a machine with one node.

use std::sync::atomic::Ordering;

use gristmill_os::machine::cpu_now;

use crate::control::words::Shared;
use crate::plan::placement::Places;

/// The bytes of pages that the workers of one NUMA node have read in the memory of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReads {
    /// The number of the node whose memory was read.
    pub memory: usize,
    /// The number of the node whose processors have read it.
    pub reader: usize,
    /// The bytes.
    pub bytes: u64,
}

/// Counts what one process reads. It adds up in its own memory and publishes at task boundaries.
pub(crate) struct NodeMeter<'p> {
    places: &'p Places,
    /// The node on which this process runs.
    here: usize,
    /// The bytes that are not published, for each pair of nodes.
    bytes: Vec<u64>,
}

impl<'p> NodeMeter<'p> {
    pub fn new(places: &'p Places) -> NodeMeter<'p> {
        NodeMeter { places, here: 0, bytes: vec![0; places.nodes.len() * places.nodes.len()] }
    }

    /// Finds out where this process runs. To be called before some pages are read.
    #[inline]
    pub fn begin(&mut self) {
        if !self.bytes.is_empty() {
            self.here = self.places.node_of(cpu_now());
        }
    }

    /// Counts a page of `bytes` in the memory of `node`.
    #[inline]
    pub fn read(&mut self, node: usize, bytes: usize) {
        if let Some(count) = self.bytes.get_mut(node * self.places.nodes.len() + self.here) {
            *count += bytes as u64;
        }
    }

    /// Adds to the counts of the job.
    pub fn publish(&mut self, shared: &Shared<'_>) {
        for (word, bytes) in shared.node_words.iter().zip(&mut self.bytes).filter(|(_, bytes)| **bytes > 0) {
            word.fetch_add(std::mem::take(bytes), Ordering::Relaxed);
        }
    }
}

impl Shared<'_> {
    /// Returns the bytes read between each pair of these nodes.
    pub fn node_reads(&self, nodes: &[usize]) -> Vec<NodeReads> {
        let pairs = nodes.iter().flat_map(|memory| nodes.iter().map(|reader| (*memory, *reader)));
        let words = self.node_words.iter().map(|word| word.load(Ordering::Relaxed));
        pairs.zip(words).map(|((memory, reader), bytes)| NodeReads { memory, reader, bytes }).collect()
    }
}
