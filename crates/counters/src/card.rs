//! The card of a machine: its components and its counters, as text and as JSON.

use gristmill_os::machine::{hypervisor, memory_available_bytes, memory_limit_bytes, os_page_bytes, processors_quota};
use serde_json::{Value, json};

use crate::access::{Access, Attempts};
use crate::files::{Files, field, here};
use crate::memory::Memory;
use crate::topology::{Cache, Topology};
use crate::units::{bytes, list};

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The host name.
    pub host: String,
    /// The name and release of the kernel.
    pub kernel: String,
    /// The model name of the processor.
    pub model: Option<String>,
    /// The hypervisor, if it is a virtual machine.
    pub hypervisor: Option<String>,
    /// Processors, caches, nodes.
    pub topology: Topology,
    /// The processor time that the cgroups grant, in processors; `None` without a limit.
    pub quota: Option<f64>,
    /// Memory.
    pub memory: Memory,
    /// The size of an OS page.
    pub os_page_bytes: u64,
    /// The access to counters.
    pub access: Access,
}

impl Default for Card {
    fn default() -> Card {
        Card {
            host: String::new(),
            kernel: String::new(),
            model: None,
            hypervisor: None,
            topology: Topology::default(),
            quota: None,
            memory: Memory::default(),
            os_page_bytes: 4096,
            access: Access { sources: Vec::new() },
        }
    }
}

/// Finds the processor's model name in `/proc/cpuinfo`.
fn model(cpuinfo: &str) -> Option<String> {
    ["model name", "Hardware", "cpu model", "uarch"]
        .into_iter()
        .find_map(|name| field(cpuinfo, name))
        .filter(|name| !name.is_empty())
}

/// Returns the usual name of a hypervisor, given the name it reports.
fn known(name: &str) -> &str {
    match name {
        "KVMKVMKVM" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU without hardware support",
        "" => "a virtual machine of an unknown kind",
        other => other,
    }
}

impl Card {
    /// Makes the card of this machine.
    pub fn here() -> Card {
        let files: Files<'_> = &here;
        let system = rustix::system::uname();
        let mut memory = Memory::read(files, memory_limit_bytes());
        // A cgroup may leave less.
        memory.available_bytes = memory_available_bytes().ok().or(memory.available_bytes);
        Card {
            host: system.nodename().to_string_lossy().into_owned(),
            kernel: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
            model: files("/proc/cpuinfo").and_then(|text| model(&text)),
            hypervisor: hypervisor().map(|name| known(&name).to_owned()),
            topology: Topology::here(),
            quota: processors_quota(),
            memory,
            os_page_bytes: os_page_bytes() as u64,
            access: Access::read(files, &Attempts::here(files)),
        }
    }

    /// Returns the key for this host's stored ceilings. Hosts with equal names usually differ in their processors.
    pub fn identity(&self) -> String {
        format!(
            "{}, {}, {} processors",
            self.host,
            self.model.as_deref().unwrap_or("unknown"),
            self.topology.allowed.len()
        )
    }

    /// Returns the facts as names and values, for people.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let unknown = || "unknown".to_owned();
        let topology = &self.topology;
        let mut facts =
            vec![("Processor", self.model.clone().unwrap_or_else(unknown)), ("Processors", self.processors())];
        if topology.allowed.len() < topology.processors.len() {
            facts.push(("Allowed here", format!("{} ({})", topology.allowed.len(), list(&topology.allowed))));
        }
        if let Some(quota) = self.quota {
            facts.push(("Quota of time", format!("{quota:.2} processors (cgroup)")));
        }
        facts.push(("Caches", self.caches()));
        facts.push(("NUMA nodes", self.nodes()));
        facts.push(("Memory", self.memory_fact()));
        facts.push(("Huge pages", self.huge_pages()));
        facts.push(("Hypervisor", self.hypervisor.clone().unwrap_or_else(|| "none, or it hides".to_owned())));
        facts.push(("Kernel", self.kernel.clone()));
        facts.push(("Counters", self.access.tier().to_string()));
        facts
    }

    fn processors(&self) -> String {
        let topology = &self.topology;
        let (processors, cores, packages) = (topology.processors.len(), topology.cores(), topology.packages());
        let mut text = format!("{processors} on {cores} core{}", if cores == 1 { "" } else { "s" });
        if packages > 1 {
            text += &format!(" of {packages} packages");
        }
        text +=
            if topology.has_shared_cores() { ", threads share cores (SMT)" } else { ", no core is shared (no SMT)" };
        if let kinds @ [_, _, ..] = &topology.kinds()[..] {
            let kinds: Vec<String> = kinds
                .iter()
                .map(|(capacity, count)| format!("{count} with {:.0} %", f64::from(*capacity) / 10.24))
                .collect();
            text += &format!("; of two kinds or more: {} of the speed of the fastest", kinds.join(", "));
        }
        if !topology.offline.is_empty() {
            text += &format!("; {} are off-line", topology.offline.len());
        }
        text
    }

    fn caches(&self) -> String {
        let mut shown: Vec<String> = Vec::new();
        for kind in self.topology.caches.chunk_by(|a, b| a.level == b.level) {
            let same =
                |cache: &Cache| (cache.bytes, cache.processors.len()) == (kind[0].bytes, kind[0].processors.len());
            let shared = match kind[0].processors.len() {
                _ if !kind.iter().all(same) => "each (and others)".to_owned(),
                0 | 1 => "each".to_owned(),
                sharers => format!("for {sharers} processors each"),
            };
            let count = if kind.len() == 1 { String::new() } else { format!("{} x ", kind.len()) };
            let shared = if kind.len() == 1 { String::new() } else { format!(" {shared}") };
            shown.push(format!("level {} {count}{}{shared}", kind[0].level, bytes(kind[0].bytes)));
        }
        if shown.is_empty() { "unknown: the machine does not tell".to_owned() } else { shown.join(", ") }
    }

    fn nodes(&self) -> String {
        match &self.topology.nodes[..] {
            [] => "unknown: the machine does not tell".to_owned(),
            [_] => "1".to_owned(),
            nodes => {
                let described = |node: &crate::topology::Node| {
                    let memory = node.bytes.map_or(String::new(), |memory| format!(" {}", bytes(memory)));
                    let cpus = if node.processors.is_empty() { "none".to_owned() } else { list(&node.processors) };
                    format!("node {}: processors {cpus}{memory}", node.number)
                };
                format!("{} ({})", nodes.len(), nodes.iter().map(described).collect::<Vec<String>>().join("; "))
            }
        }
    }

    fn memory_fact(&self) -> String {
        let shown = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), bytes);
        let limit = self
            .memory
            .limit_bytes
            .map_or("no limit of a cgroup".to_owned(), |limit| format!("limited by a cgroup to {}", bytes(limit)));
        format!("{}, {} available, {limit}", shown(self.memory.total_bytes), shown(self.memory.available_bytes))
    }

    fn huge_pages(&self) -> String {
        let by_itself = match self.memory.transparent.as_deref() {
            Some("always") => "the kernel uses them by itself",
            Some("madvise") => "on request",
            Some("never") => "never",
            _ => "unknown",
        };
        let reserved: Vec<String> = self
            .memory
            .reserved
            .iter()
            .map(|pages| format!("{} of {} set aside, {} free", pages.pages, bytes(pages.page_bytes), pages.free))
            .collect();
        match &reserved[..] {
            [] => by_itself.to_owned(),
            reserved => format!("{by_itself}; {}", reserved.join("; ")),
        }
    }

    /// Returns the facts as JSON.
    pub fn to_json(&self) -> Value {
        let topology = &self.topology;
        json!({
            "host": self.host,
            "kernel": self.kernel,
            "model": self.model,
            "hypervisor": self.hypervisor,
            "processors": {
                "online": topology.processors.iter().map(|processor| json!({
                    "number": processor.number,
                    "package": processor.package,
                    "core_shared_by": processor.siblings,
                    "capacity": processor.capacity,
                })).collect::<Vec<Value>>(),
                "offline": topology.offline,
                "allowed": topology.allowed,
                "cores": topology.cores(),
                "packages": topology.packages(),
                "smt": topology.has_shared_cores(),
                "quota": self.quota,
            },
            "caches": topology.caches.iter().map(|cache| json!({
                "level": cache.level,
                "bytes": cache.bytes,
                "processors": cache.processors,
            })).collect::<Vec<Value>>(),
            "last_level_cache_bytes": topology.last_level_bytes(),
            "nodes": topology.nodes.iter().map(|node| json!({
                "number": node.number,
                "processors": node.processors,
                "memory_bytes": node.bytes,
                "distances": node.distances,
            })).collect::<Vec<Value>>(),
            "memory": {
                "total_bytes": self.memory.total_bytes,
                "available_bytes": self.memory.available_bytes,
                "swap_bytes": self.memory.swap_bytes,
                "cgroup_limit_bytes": self.memory.limit_bytes,
                "os_page_bytes": self.os_page_bytes,
            },
            "huge_pages": {
                "transparent": self.memory.transparent,
                "transparent_shared": self.memory.transparent_shared,
                "reserved": self.memory.reserved.iter().map(|pages| json!({
                    "page_bytes": pages.page_bytes,
                    "pages": pages.pages,
                    "free": pages.free,
                })).collect::<Vec<Value>>(),
            },
            "counters": {
                "tier": format!("{:?}", self.access.tier()),
                "sources": self.access.sources.iter().map(|source| json!({
                    "name": source.name,
                    "readable": source.refused.is_none(),
                    "why_not": source.refused,
                })).collect::<Vec<Value>>(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_card() {
        let card = Card::here();
        assert!(card.facts().iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
        let json = card.to_json();
        assert!(json["processors"]["allowed"].as_array().is_some_and(|allowed| !allowed.is_empty()));
        assert_eq!(json["counters"]["sources"].as_array().map(Vec::len), Some(7));
    }

    #[test]
    fn processors_have_names_on_x86_and_on_arm() {
        assert_eq!(model("processor : 0\nmodel name\t: AMD EPYC\n").as_deref(), Some("AMD EPYC"));
        assert_eq!(model("processor : 0\nHardware\t: BCM2835\n").as_deref(), Some("BCM2835"));
        assert_eq!(model("model name :\n"), None);
        assert_eq!(known("Microsoft Hv"), "Hyper-V");
    }

    #[test]
    fn a_machine_without_any_facts_has_a_card() {
        let facts = Card::default().facts();
        assert!(facts.iter().any(|(name, value)| *name == "Caches" && value.starts_with("unknown")), "{facts:?}");
    }
}
