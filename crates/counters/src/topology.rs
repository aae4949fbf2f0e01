//! Processors, cores, caches and NUMA nodes, from `/sys/devices/system`.
//!
//! The facts of a missing or malformed file are left out: sandboxes hide some files, and a virtual machine may report
//! no caches.

use gristmill_os::machine::{cpu_list, cpus_allowed, size_bytes};

use crate::files::{self, Files};

/// The topology of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topology {
    /// The processors that are online, in ascending order.
    pub processors: Vec<Processor>,
    /// The processors that exist but are offline.
    pub offline: Vec<usize>,
    /// The processors that this process may use (`taskset`, cpusets), in ascending order.
    pub allowed: Vec<usize>,
    /// All data caches, the smallest level first.
    pub caches: Vec<Cache>,
    /// All NUMA nodes, including those without processors, in ascending order.
    pub nodes: Vec<Node>,
}

/// A logical processor: if two threads share a core, each is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Processor {
    /// The number.
    pub number: usize,
    /// The number of its package (socket).
    pub package: usize,
    /// All processors of its core, including itself.
    pub siblings: Vec<usize>,
    /// Its speed relative to the fastest, which has 1024. If all are alike, 1024.
    pub capacity: u32,
}

/// A cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// The level: 1, 2 or 3.
    pub level: u8,
    /// The size.
    pub bytes: u64,
    /// The processors that share it.
    pub processors: Vec<usize>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The number.
    pub number: usize,
    /// Its processors. Added memory may have none.
    pub processors: Vec<usize>,
    /// Its memory.
    pub bytes: Option<u64>,
    /// The distance to each node, in the order of the nodes; 10 is local.
    pub distances: Vec<u32>,
}

const SYSTEM: &str = "/sys/devices/system";

impl Topology {
    /// Reads the topology of this machine.
    ///
    /// ```
    /// assert!(!gristmill_counters::topology::Topology::here().allowed.is_empty());
    /// ```
    pub fn here() -> Topology {
        Topology::read(&files::here, &cpus_allowed().unwrap_or_else(|_| vec![0]))
    }

    /// Reads the topology; `allowed` lists the processors that this process may use.
    pub fn read(files: Files<'_>, allowed: &[usize]) -> Topology {
        let list = |path: &str| files(path).and_then(|text| cpu_list(&text));
        // Without /sys, at least the allowed processors are known.
        let online = list(&format!("{SYSTEM}/cpu/online")).filter(|cpus| !cpus.is_empty());
        let online = distinct(online.unwrap_or_else(|| allowed.to_vec()));
        let offline = distinct(list(&format!("{SYSTEM}/cpu/offline")).unwrap_or_default());
        let offline = offline.into_iter().filter(|cpu| online.binary_search(cpu).is_err()).collect();
        Topology {
            processors: processors(files, &online),
            offline,
            allowed: allowed.to_vec(),
            caches: caches(files, &online),
            nodes: nodes(files),
        }
    }

    /// The number of cores.
    pub fn cores(&self) -> usize {
        distinct(self.processors.iter().map(|processor| processor.siblings.clone())).len()
    }

    /// The number of packages (sockets).
    pub fn packages(&self) -> usize {
        distinct(self.processors.iter().map(|processor| processor.package)).len()
    }

    /// Returns true if two processors share a core.
    pub fn has_shared_cores(&self) -> bool {
        self.cores() < self.processors.len()
    }

    /// Returns the size of all last-level caches of the allowed processors; `None` if the machine does not report it.
    pub fn last_level_bytes(&self) -> Option<u64> {
        let level = self.caches.iter().map(|cache| cache.level).max()?;
        let of_ours = |cache: &&Cache| cache.processors.iter().any(|cpu| self.allowed.contains(cpu));
        let bytes = self.caches.iter().filter(|cache| cache.level == level).filter(of_ours).map(|cache| cache.bytes);
        Some(bytes.fold(0, u64::saturating_add)).filter(|bytes| *bytes > 0)
    }

    /// Returns the number of processors of each kind, the fastest first, with their capacity (1024: the fastest).
    pub fn kinds(&self) -> Vec<(u32, usize)> {
        let capacities = distinct(self.processors.iter().map(|processor| processor.capacity));
        let count = |capacity| self.processors.iter().filter(|processor| processor.capacity == capacity).count();
        capacities.into_iter().rev().map(|capacity| (capacity, count(capacity))).collect()
    }
}

fn distinct<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    values.dedup();
    values
}

fn processors(files: Files<'_>, online: &[usize]) -> Vec<Processor> {
    // Intel's hybrid processors list the slower cores separately, without their capacity.
    const SLOWER: u32 = 512;
    let slower = files("/sys/devices/cpu_atom/cpus").and_then(|text| cpu_list(&text)).unwrap_or_default();
    let processor = |&number: &usize| {
        let read = |name: &str| files(&format!("{SYSTEM}/cpu/cpu{number}/{name}"));
        let siblings = ["topology/core_cpus_list", "topology/thread_siblings_list"]
            .into_iter()
            .find_map(|name| cpu_list(&read(name)?))
            .map(distinct)
            .filter(|siblings| siblings.contains(&number));
        let package = read("topology/physical_package_id").and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let capacity = read("cpu_capacity").and_then(|text| text.trim().parse().ok()).filter(|capacity| *capacity > 0);
        let capacity = capacity.unwrap_or(if slower.contains(&number) { SLOWER } else { 1024 });
        Processor { number, package, siblings: siblings.unwrap_or_else(|| vec![number]), capacity }
    };
    let mut processors: Vec<Processor> = online.iter().map(processor).collect();
    // Capacities are relative to the fastest possible processor; scale them to the fastest present.
    let most = processors.iter().map(|processor| processor.capacity).max().unwrap_or(1024);
    for processor in &mut processors {
        processor.capacity = (u64::from(processor.capacity) * 1024 / u64::from(most)) as u32;
    }
    processors
}

fn caches(files: Files<'_>, online: &[usize]) -> Vec<Cache> {
    const INDEX_END: usize = 16;
    let mut caches: Vec<Cache> = Vec::new();
    for cpu in online {
        for index in 0..INDEX_END {
            let read = |name: &str| files(&format!("{SYSTEM}/cpu/cpu{cpu}/cache/index{index}/{name}"));
            let Some(kind) = read("type") else { break };
            let cache = || {
                Some(Cache {
                    level: read("level")?.trim().parse().ok()?,
                    bytes: size_bytes(&read("size")?)? as u64,
                    processors: read("shared_cpu_list").and_then(|text| cpu_list(&text)).unwrap_or_else(|| vec![*cpu]),
                })
            };
            let known = |cache: &Cache| caches.contains(cache);
            if let Some(cache) = cache().filter(|cache| kind.trim() != "Instruction" && !known(cache)) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn nodes(files: Files<'_>) -> Vec<Node> {
    let numbers = files(&format!("{SYSTEM}/node/online")).and_then(|text| cpu_list(&text)).unwrap_or_default();
    let node = |number: usize| {
        let read = |name: &str| files(&format!("{SYSTEM}/node/node{number}/{name}"));
        // Node 0 MemTotal:       16336820 kB
        let memory = |text: String| {
            let line = text.lines().find_map(|line| Some(line.split_once("MemTotal:")?.1.to_owned()))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        let distances = read("distance").unwrap_or_default();
        Node {
            number,
            processors: read("cpulist").and_then(|text| cpu_list(&text)).map(distinct).unwrap_or_default(),
            bytes: read("meminfo").and_then(memory),
            distances: distances.split_ascii_whitespace().map_while(|distance| distance.parse().ok()).collect(),
        }
    };
    distinct(numbers).into_iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::recorded;

    fn read(files: &[(&str, &str)], allowed: &[usize]) -> Topology {
        Topology::read(&recorded(files), allowed)
    }

    /// A server of two packages with two nodes of two cores each, two threads per core, and memory without
    /// processors.
    #[test]
    fn a_machine_of_several_nodes_is_read() {
        let mut files: Vec<(String, String)> = vec![
            ("cpu/online".into(), "0-7\n".into()),
            ("cpu/offline".into(), "\n".into()),
            ("node/online".into(), "0-2\n".into()),
            ("node/node0/cpulist".into(), "0-1,4-5\n".into()),
            ("node/node1/cpulist".into(), "2-3,6-7\n".into()),
            ("node/node2/cpulist".into(), "\n".into()),
            ("node/node0/meminfo".into(), "Node 0 MemTotal:       16336820 kB\nNode 0 MemFree: 1 kB\n".into()),
            ("node/node0/distance".into(), "10 21 17\n".into()),
        ];
        for cpu in 0..8 {
            let core = cpu % 4;
            for (name, text) in [
                ("topology/physical_package_id", format!("{}\n", core / 2)),
                ("topology/core_cpus_list", format!("{core},{}\n", core + 4)),
                ("cache/index0/type", "Data\n".into()),
                ("cache/index0/level", "1\n".into()),
                ("cache/index0/size", "48K\n".into()),
                ("cache/index0/shared_cpu_list", format!("{core},{}\n", core + 4)),
                ("cache/index1/type", "Instruction\n".into()),
                ("cache/index1/level", "1\n".into()),
                ("cache/index1/size", "32K\n".into()),
                ("cache/index2/type", "Unified\n".into()),
                ("cache/index2/level", "3\n".into()),
                ("cache/index2/size", "32768K\n".into()),
                ("cache/index2/shared_cpu_list", if core < 2 { "0-1,4-5\n".into() } else { "2-3,6-7\n".into() }),
            ] {
                files.push((format!("cpu/cpu{cpu}/{name}"), text));
            }
        }
        let files: Vec<(String, String)> =
            files.into_iter().map(|(path, text)| (format!("/sys/devices/system/{path}"), text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let topology = read(&files, &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((topology.processors.len(), topology.cores(), topology.packages()), (8, 4, 2));
        assert!(topology.has_shared_cores());
        assert_eq!(topology.kinds(), [(1024, 8)]);
        assert_eq!(topology.last_level_bytes(), Some(64 << 20));
        // One package alone has one of the two caches.
        assert_eq!(read(&files, &[0, 4]).last_level_bytes(), Some(32 << 20));
        let levels: Vec<(u8, usize)> =
            topology.caches.iter().map(|cache| (cache.level, cache.processors.len())).collect();
        assert_eq!(levels, [(1, 2), (1, 2), (1, 2), (1, 2), (3, 4), (3, 4)]);
        let nodes: Vec<(usize, usize)> =
            topology.nodes.iter().map(|node| (node.number, node.processors.len())).collect();
        assert_eq!(nodes, [(0, 4), (1, 4), (2, 0)]);
        assert_eq!((topology.nodes[0].bytes, topology.nodes[1].bytes), (Some(16_336_820 << 10), None));
        assert_eq!(topology.nodes[0].distances, [10, 21, 17]);
    }

    #[test]
    fn processors_of_two_kinds_are_counted_apart() {
        let intel = [("/sys/devices/system/cpu/online", "0-5"), ("/sys/devices/cpu_atom/cpus", "2-5\n")];
        assert_eq!(read(&intel, &[0]).kinds(), [(1024, 2), (512, 4)]);
        let arm = [
            ("/sys/devices/system/cpu/online", "0-2"),
            ("/sys/devices/system/cpu/cpu0/cpu_capacity", "250\n"),
            ("/sys/devices/system/cpu/cpu1/cpu_capacity", "1000\n"),
            ("/sys/devices/system/cpu/cpu2/cpu_capacity", "1000\n"),
        ];
        assert_eq!(read(&arm, &[0]).kinds(), [(1024, 2), (256, 1)]);
    }

    #[test]
    fn processors_that_are_switched_off_are_named() {
        let files = [("/sys/devices/system/cpu/online", "0,2\n"), ("/sys/devices/system/cpu/offline", "1,3-127\n")];
        let topology = read(&files, &[0, 2]);
        assert_eq!((topology.processors.len(), topology.offline.len()), (2, 126));
    }

    #[test]
    fn hostile_and_missing_files_only_leave_out_their_facts() {
        let empty = read(&[], &[3, 5]);
        assert_eq!((empty.processors.len(), empty.cores(), empty.last_level_bytes()), (2, 2, None));
        assert!(empty.nodes.is_empty() && empty.offline.is_empty());
        let hostile = read(
            &[
                ("/sys/devices/system/cpu/online", "0-999999999999\n"),
                ("/sys/devices/system/cpu/offline", "3-1,-,\n"),
                ("/sys/devices/system/node/online", "0,0,0\n"),
                ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 99999999999999999999 kB"),
                ("/sys/devices/system/node/node0/distance", "10 x 10"),
                ("/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "7\n"),
                ("/sys/devices/system/cpu/cpu1/topology/physical_package_id", "-1\n"),
                ("/sys/devices/system/cpu/cpu1/cpu_capacity", "0\n"),
                ("/sys/devices/system/cpu/cpu1/cache/index0/type", "Unified\n"),
                ("/sys/devices/system/cpu/cpu1/cache/index0/level", "400\n"),
                ("/sys/devices/system/cpu/cpu1/cache/index0/size", "99999999999999999999K\n"),
            ],
            &[1],
        );
        assert_eq!(hostile.processors, [Processor { number: 1, package: 0, siblings: vec![1], capacity: 1024 }]);
        assert!(hostile.caches.is_empty() && hostile.offline.is_empty());
        assert_eq!(
            (hostile.nodes.len(), hostile.nodes[0].bytes, &hostile.nodes[0].distances[..]),
            (1, None, &[10][..])
        );
        assert_eq!(read(&[], &[]).kinds(), []);
    }
}
