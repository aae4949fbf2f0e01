//! Where the measurements were made.

use std::fs;

use gristmill_os::machine::{cpus_allowed, l2_cache_bytes};

use super::load::pressure;

/// A machine, in words.
pub struct Machine {
    pub processors: usize,
    /// What the report says, a name and a value each.
    pub facts: Vec<(&'static str, String)>,
}

impl Machine {
    /// The one that runs this.
    pub fn here() -> Machine {
        let processors = cpus_allowed().map_or(1, |cpus| cpus.len());
        let line = |path: &str, name: &str| -> Option<String> {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
        };
        let unknown = || "unknown".to_owned();
        let memory = line("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        let system = rustix::system::uname();
        let facts = vec![
            ("Processor", line("/proc/cpuinfo", "model name").unwrap_or_else(unknown)),
            ("Processors used", processors.to_string()),
            (
                "Second-level cache",
                l2_cache_bytes().map_or_else(unknown, |bytes| indicatif::BinaryBytes(bytes as u64).to_string()),
            ),
            ("Memory", memory.map_or_else(unknown, |kib: u64| indicatif::BinaryBytes(kib << 10).to_string())),
            ("Kernel", format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy())),
            ("Gristmill", env!("CARGO_PKG_VERSION").to_owned()),
            ("Date", humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()),
            (
                "Load before",
                line("/proc/loadavg", "").map_or_else(unknown, |text| text.split(' ').next().unwrap_or("").to_owned()),
            ),
            ("Pressure before", pressure().unwrap_or_else(unknown)),
        ];
        Machine { processors, facts }
    }
}
