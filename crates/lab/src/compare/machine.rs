//! The machine on which measurements are made.

use std::fs;
use std::path::Path;

use gristmill_counters::card::Card;
use gristmill_counters::load::pressure;
use gristmill_os::machine::{Processors, cpus_allowed, size_bytes};

/// The description of a machine.
pub struct MachineFacts {
    pub processors: usize,
    /// The facts in the report, as names and values.
    pub facts: Vec<(&'static str, String)>,
}

impl MachineFacts {
    /// Describes this machine.
    pub fn here() -> MachineFacts {
        let card = Card::here();
        let processors = Processors::within(card.topology.allowed.len(), card.quota).usable;
        let line = |path: &str, name: &str| -> Option<String> {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
        };
        let unknown = || "unknown".to_owned();
        let facts = vec![
            ("Processor", card.model.unwrap_or_else(unknown)),
            ("Processors used", processors.to_string()),
            (
                "Second-level cache",
                l2_cache_bytes().map_or_else(unknown, |bytes| indicatif::BinaryBytes(bytes as u64).to_string()),
            ),
            ("Memory", card.memory.total_bytes.map_or_else(unknown, |bytes| indicatif::BinaryBytes(bytes).to_string())),
            ("Kernel", card.kernel),
            ("Gristmill", env!("CARGO_PKG_VERSION").to_owned()),
            ("Date", humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()),
            (
                "Load before",
                line("/proc/loadavg", "").map_or_else(unknown, |text| text.split(' ').next().unwrap_or("").to_owned()),
            ),
            ("Pressure before", pressure().unwrap_or_else(unknown)),
        ];
        MachineFacts { processors, facts }
    }
}

/// The bytes of the second-level cache, if known.
///
/// It is that of the first processor allowed to this thread.
fn l2_cache_bytes() -> Option<usize> {
    let cpu = *cpus_allowed().ok()?.first()?;
    cache_bytes(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache")), "2")
}

fn cache_bytes(dir: &Path, level: &str) -> Option<usize> {
    fs::read_dir(dir).ok()?.filter_map(Result::ok).find_map(|index| {
        let read = |name| fs::read_to_string(index.path().join(name)).ok();
        let holds_data = read("type")?.trim() != "Instruction";
        (holds_data && read("level")?.trim() == level).then(|| size_bytes(&read("size")?))?
    })
}
