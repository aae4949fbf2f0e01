//! The choices of a run. In words they are `hash+map+reduce,remap,processes,pipeline,8`, or `phoenix+map+reduce,8`.

use std::fmt;
use std::str::FromStr;

/// The choices of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub way: Way,
    /// The number of map workers, and of reduce workers.
    pub workers: usize,
}

/// The system whose way is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Pages go through channels.
    Dmr { buffer: BufferKind, combine: CombineAt, channel: ChannelKind, isolated: bool, barrier: bool },
    /// Threads, and a global array of hash tables.
    Phoenix { combine: bool },
    /// The map functions alone, on one worker; pairs are thrown away.
    MapOnly,
}

/// How pairs are gathered into pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BufferKind {
    /// Appended to the page.
    Array,
    /// Appended to a list, which is sorted and combined when it is full.
    SortedArray,
    /// Kept by key, and copied into the page when there are enough.
    Hash,
    /// The same, with the keys of a bucket in order, found by halves.
    HashInOrder,
}

/// How pages are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelKind {
    /// A mailbox for each worker, without a lock: the engine's.
    Mailbox,
    /// A queue with a lock for each worker: MRPhi's.
    Queue,
    /// A channel for each pair of workers, whose pages are handed over by mapping others in their place: DMR's.
    Remap,
}

/// Where values of a key are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CombineAt {
    pub map: bool,
    pub reduce: bool,
}

pub const BUFFERS: [(BufferKind, &str); 4] = [
    (BufferKind::Array, "array"),
    (BufferKind::SortedArray, "sorted-array"),
    (BufferKind::Hash, "hash"),
    (BufferKind::HashInOrder, "hash-in-order"),
];
pub const CHANNELS: [(ChannelKind, &str); 3] =
    [(ChannelKind::Mailbox, "mailbox"), (ChannelKind::Queue, "queue"), (ChannelKind::Remap, "remap")];

impl Strategy {
    /// DMR as in the paper: processes that remap pages.
    pub fn dmr(buffer: BufferKind, combine: CombineAt, workers: usize) -> Strategy {
        let channel = ChannelKind::Remap;
        Strategy { way: Way::Dmr { buffer, combine, channel, isolated: true, barrier: false }, workers }
    }

    pub fn phoenix(combine: bool, workers: usize) -> Strategy {
        Strategy { way: Way::Phoenix { combine }, workers }
    }

    /// Returns the buffer and the combiner in words.
    pub fn gathering(&self) -> String {
        let Way::Dmr { buffer, combine, .. } = self.way else { return self.to_string() };
        let name = BUFFERS[buffer as usize].1.replace('-', " ");
        let place = match (combine.map, combine.reduce) {
            (true, true) => "combined in map and in reduce",
            (true, false) => "combined in map",
            (false, true) => "combined in reduce",
            (false, false) => "not combined",
        };
        format!("{name}, {place}")
    }
}

impl CombineAt {
    pub const NOWHERE: CombineAt = CombineAt { map: false, reduce: false };
    pub const MAP: CombineAt = CombineAt { map: true, reduce: false };
    pub const REDUCE: CombineAt = CombineAt { map: false, reduce: true };
    pub const BOTH: CombineAt = CombineAt { map: true, reduce: true };
}

/// Returns every buffer with every place to combine at that it has.
pub fn gatherings() -> Vec<(BufferKind, CombineAt)> {
    let places = [CombineAt::NOWHERE, CombineAt::REDUCE, CombineAt::MAP, CombineAt::BOTH];
    let pairs = BUFFERS.iter().flat_map(|(buffer, _)| places.map(|place| (*buffer, place)));
    // An array has no keys to combine by, and one that is sorted is sorted in order to combine.
    pairs
        .filter(|(buffer, place)| match buffer {
            BufferKind::Array => !place.map,
            BufferKind::SortedArray => place.map,
            BufferKind::Hash | BufferKind::HashInOrder => true,
        })
        .collect()
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let combined =
            |at: CombineAt| [("+map", at.map), ("+reduce", at.reduce)].map(|(word, on)| if on { word } else { "" });
        match self.way {
            Way::Dmr { buffer, combine, channel, isolated, barrier } => {
                let [map, reduce] = combined(combine);
                let (buffer, channel) = (BUFFERS[buffer as usize].1, CHANNELS[channel as usize].1);
                let workers = if isolated { "processes" } else { "threads" };
                let exchange = if barrier { "barrier" } else { "pipeline" };
                write!(f, "{buffer}{map}{reduce},{channel},{workers},{exchange},{}", self.workers)
            }
            Way::Phoenix { combine } => {
                let [map, reduce] = combined(CombineAt { map: combine, reduce: combine });
                write!(f, "phoenix{map}{reduce},{}", self.workers)
            }
            Way::MapOnly => write!(f, "map-only,{}", self.workers),
        }
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Strategy, String> {
        let unknown =
            |word: &str| format!("'{word}' is no choice of a run: hash+map+reduce,remap,processes,pipeline,8 are");
        let words: Vec<&str> = text.split(',').collect();
        let [gathering, between @ .., workers] = &words[..] else { return Err(unknown(text)) };
        let workers = workers.parse().ok().filter(|count| (1..=256).contains(count)).ok_or_else(|| unknown(workers))?;
        let mut parts = gathering.split('+');
        let name = parts.next().unwrap_or_default();
        let mut combine = CombineAt::NOWHERE;
        for part in parts {
            match part {
                "map" => combine.map = true,
                "reduce" => combine.reduce = true,
                _ => return Err(unknown(part)),
            }
        }
        let way = match (name, between) {
            ("map-only", []) => Way::MapOnly,
            ("phoenix", []) => Way::Phoenix { combine: combine.map },
            (name, [channel, workers, exchange]) => {
                let buffer = BUFFERS.iter().find(|(_, known)| *known == name).ok_or_else(|| unknown(name))?.0;
                let found = CHANNELS.iter().find(|(_, known)| known == channel);
                let channel = found.ok_or_else(|| unknown(channel))?.0;
                let either = |word: &str, [yes, no]: [&str; 2]| match word {
                    word if word == yes => Ok(true),
                    word if word == no => Ok(false),
                    word => Err(unknown(word)),
                };
                let isolated = either(workers, ["processes", "threads"])?;
                let barrier = either(exchange, ["barrier", "pipeline"])?;
                Way::Dmr { buffer, combine, channel, isolated, barrier }
            }
            _ => return Err(unknown(text)),
        };
        Ok(Strategy { way, workers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_is_read_as_it_is_written() {
        for text in [
            "array,queue,threads,barrier,1",
            "sorted-array+map,mailbox,processes,pipeline,2",
            "hash+map+reduce,remap,processes,pipeline,32",
            "hash-in-order+reduce,remap,threads,barrier,4",
            "phoenix+map+reduce,8",
            "phoenix,8",
            "map-only,1",
        ] {
            assert_eq!(text.parse::<Strategy>().expect("known").to_string(), text);
        }
        for text in
            ["", "hash", "hash,8", "hash,pigeon,threads,barrier,1", "hash+sort,queue,threads,barrier,1", "map-only,0"]
        {
            assert!(text.parse::<Strategy>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_array_is_not_combined_in_map_unless_it_is_sorted() {
        assert_eq!(gatherings().len(), 12);
        assert!(!gatherings().contains(&(BufferKind::Array, CombineAt::BOTH)));
        assert!(!gatherings().contains(&(BufferKind::SortedArray, CombineAt::REDUCE)));
        assert!(gatherings().contains(&(BufferKind::Hash, CombineAt::NOWHERE)));
    }
}
