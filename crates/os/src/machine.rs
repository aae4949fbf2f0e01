//! The machine as this process may use it: processors, NUMA nodes, caches, memory.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::cgroup;
pub use crate::cgroup::{memory_limit_bytes, oom_kills, processors_quota};

/// Returns the name of this host.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The processors that this thread may run on, ascending.
///
/// `taskset` and cpusets are respected.
///
/// # Errors
///
/// When the machine has more than 1024 processors.
///
/// ```
/// let cpus = gristmill_os::machine::cpus_allowed()?;
/// assert!(!cpus.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn cpus_allowed() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect())
}

/// Keeps the calling thread on processor `cpu`.
///
/// # Errors
///
/// When `cpu` does not exist, is off-line, or is not allowed to this process.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    pin_to_cpus(&[cpu])
}

/// Keeps the calling thread on these processors.
///
/// # Errors
///
/// When none of them exists, is on-line and is allowed to this process.
pub fn pin_to_cpus(cpus: &[usize]) -> io::Result<()> {
    let mut only = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        only.set(*cpu);
    }
    Ok(sched_setaffinity(None, &only)?)
}

/// The processor that the calling thread runs on now. Unless it is pinned, it may run on another one by the time this
/// returns.
pub fn cpu_now() -> usize {
    sched_getcpu()
}

/// Bytes of memory that this process could fill without swapping or being killed.
///
/// It is the kernel's estimate for the machine (`MemAvailable`), or what its cgroups leave if that is less.
///
/// # Errors
///
/// When `/proc/meminfo` cannot be read.
pub fn memory_available_bytes() -> io::Result<u64> {
    let machine = meminfo("MemAvailable")?;
    Ok(cgroup::memory_left_bytes().map_or(machine, |left| left.min(machine)))
}

/// Bytes of memory that this process could have at most: that of the machine, or the limit of its cgroups if that is
/// less.
///
/// ```
/// use gristmill_os::machine::{memory_available_bytes, memory_bytes};
///
/// assert!(memory_bytes()? >= memory_available_bytes()?);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// When `/proc/meminfo` cannot be read.
pub fn memory_bytes() -> io::Result<u64> {
    let machine = meminfo("MemTotal")?;
    Ok(cgroup::memory_limit_bytes().map_or(machine, |limit| limit.min(machine)))
}

/// The number of threads on this machine that run now, or wait for a processor or for a disk. This thread is not
/// counted.
///
/// It is the load of this moment, of which the load average is the mean of the last minutes.
///
/// ```
/// let load = gristmill_os::machine::load_now()?;
/// assert!(load < 1_000_000);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// When `/proc/stat` cannot be read, or does not say it.
pub fn load_now() -> io::Result<usize> {
    let wrong = || io::Error::other("/proc/stat has no lines procs_running and procs_blocked");
    load_in(&fs::read_to_string("/proc/stat")?).map(|load| load.saturating_sub(1)).ok_or_else(wrong)
}

fn load_in(stat: &str) -> Option<usize> {
    let count = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<usize>().ok();
    Some(count("procs_running ")? + count("procs_blocked ")?)
}

/// The number of processors that this process may keep busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The number of processors that it may run on: `taskset` and cpusets leave them.
    pub allowed: usize,
    /// The number to count with: `allowed`, or less if the quota of its cgroups gives less time.
    pub usable: usize,
}

impl Processors {
    /// Applies a quota. As in Java and Go, a part of a processor counts as one, and there is at least one.
    ///
    /// ```
    /// use gristmill_os::machine::Processors;
    ///
    /// assert_eq!(Processors::within(64, Some(1.5)), Processors { allowed: 64, usable: 2 });
    /// assert_eq!(Processors::within(2, Some(3.0)).usable, 2);
    /// ```
    pub fn within(allowed: usize, quota: Option<f64>) -> Processors {
        let allowed = allowed.max(1);
        let usable = quota.map_or(allowed, |quota| allowed.min(quota.ceil().max(1.0) as usize));
        Processors { allowed, usable }
    }
}

/// Counts the processors of this thread: those it may run on, and how many of them its cgroups let it keep busy.
///
/// If the machine has more than 1024 processors, it counts one.
///
/// ```
/// let processors = gristmill_os::machine::processors();
/// assert!(1 <= processors.usable && processors.usable <= processors.allowed);
/// ```
pub fn processors() -> Processors {
    Processors::within(cpus_allowed().map_or(1, |cpus| cpus.len()), cgroup::processors_quota())
}

/// The hypervisor's name for itself, such as `KVMKVMKVM`.
///
/// `None` on bare metal, and if the processor does not report it.
pub fn hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        const IS_GUEST: u32 = 1 << 31;
        // In newer compilers these functions are safe.
        #[allow(unused_unsafe)]
        // SAFETY: every x86-64 processor has this instruction and leaf 1; a guest has leaf 0x4000_0000.
        unsafe {
            if __cpuid(1).ecx & IS_GUEST == 0 {
                return None;
            }
            let named = __cpuid(0x4000_0000);
            let bytes = [named.ebx, named.ecx, named.edx].map(u32::to_le_bytes).concat();
            let name = String::from_utf8_lossy(&bytes);
            Some(name.trim_matches(['\0', ' ']).to_owned())
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

fn meminfo(name: &str) -> io::Result<u64> {
    let bytes = meminfo_bytes(&fs::read_to_string("/proc/meminfo")?, &format!("{name}:"));
    bytes.ok_or_else(|| io::Error::other(format!("/proc/meminfo has no line {name}")))
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// A NUMA node as this process may use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNode {
    /// The number.
    pub number: usize,
    /// Its processors that this thread may run on, ascending.
    pub cpus: Vec<usize>,
    /// Whether it has memory that this process may use.
    pub has_memory: bool,
    /// The distance to each node that is on-line, in their order; 10 is local. Empty if the machine does not say.
    pub distances: Vec<u32>,
}

/// The NUMA nodes, by ascending number; none if the machine has only one, or reports none.
///
/// `taskset` and cpusets are respected.
///
/// # Errors
///
/// As [`cpus_allowed`].
pub fn numa_nodes() -> io::Result<Vec<NumaNode>> {
    let dir = Path::new("/sys/devices/system/node");
    if online_nodes(dir).len() < 2 {
        return Ok(Vec::new());
    }
    Ok(nodes_in(dir, &cpus_allowed()?, &fs::read_to_string("/proc/self/status").unwrap_or_default()))
}

fn online_nodes(dir: &Path) -> Vec<usize> {
    fs::read_to_string(dir.join("online")).ok().and_then(|text| cpu_list(&text)).unwrap_or_default()
}

/// The nodes that `dir` describes. `status` is that of the process, which says whose memory it may use.
fn nodes_in(dir: &Path, cpus_allowed: &[usize], status: &str) -> Vec<NumaNode> {
    let list = |text: Option<&str>| text.and_then(cpu_list);
    let with_memory = list(fs::read_to_string(dir.join("has_memory")).ok().as_deref());
    let allowed = list(status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:")));
    // What the kernel does not say is not a limit.
    let is_in = |nodes: &Option<Vec<usize>>, number: &usize| nodes.as_ref().is_none_or(|nodes| nodes.contains(number));
    let node = |number: usize| {
        let read = |name: &str| fs::read_to_string(dir.join(format!("node{number}")).join(name)).ok();
        let mut cpus = list(read("cpulist").as_deref()).unwrap_or_default();
        cpus.retain(|cpu| cpus_allowed.contains(cpu));
        let distances = read("distance").unwrap_or_default();
        NumaNode {
            number,
            cpus,
            has_memory: is_in(&with_memory, &number) && is_in(&allowed, &number),
            distances: distances.split_ascii_whitespace().map_while(|distance| distance.parse().ok()).collect(),
        }
    };
    online_nodes(dir).into_iter().map(node).collect()
}

/// Reads the kernel's notation for sets of processors or nodes, such as `0-3,8`.
///
/// `None` if it is not one, or if a number is too large for any machine.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    const END: usize = 1 << 16;
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last >= END || cpus.len() >= END {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// The size of an OS page in bytes: the grain of faults and of [`crate::Region::discard`].
pub fn os_page_bytes() -> usize {
    rustix::param::page_size()
}

/// Reads the kernel's notation for the size of a cache, such as `2048K`.
pub fn size_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, unit) = match text.strip_suffix(['K', 'M']) {
        Some(digits) if text.ends_with('K') => (digits, 1 << 10),
        Some(digits) => (digits, 1 << 20),
        None => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// Returns the limit on the address space of this process in bytes (`ulimit -v`), if there is one.
pub fn address_space_limit_bytes() -> Option<u64> {
    getrlimit(Resource::As).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_processor_counts_as_one() {
        let usable = |allowed, quota| Processors::within(allowed, quota).usable;
        assert_eq!((usable(8, Some(2.5)), usable(8, None), usable(8, Some(2.0)), usable(2, Some(2.5))), (3, 8, 2, 2));
        assert_eq!((usable(8, Some(0.01)), usable(0, Some(0.1)), usable(0, None)), (1, 1, 1));
    }

    #[test]
    fn cpu_lists_read_as_the_kernel_writes_them() {
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(cpu_list("5\n"), Some(vec![5]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("0-x"), None);
        // A file that is none of the kernel's would have filled the memory.
        assert_eq!(cpu_list("0-99999999999"), None);
    }

    #[test]
    fn cache_sizes_read_as_the_kernel_writes_them() {
        assert_eq!(size_bytes("2048K\n"), Some(2 << 20));
        assert_eq!(size_bytes("32M"), Some(32 << 20));
        assert_eq!(size_bytes("512"), Some(512));
        assert_eq!(size_bytes("many"), None);
        assert_eq!(size_bytes("99999999999999999K"), None);
    }

    #[test]
    fn the_load_is_what_runs_and_what_waits_for_a_disk() {
        assert_eq!(load_in("cpu 1 2\nprocesses 99\nprocs_running 5\nprocs_blocked 2\nsoftirq 1\n"), Some(7));
        assert_eq!(load_in("cpu 1 2\nprocs_running 5\n"), None);
    }

    #[test]
    fn available_memory_is_read_in_kibibytes() {
        assert_eq!(meminfo_bytes("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", "MemAvailable:"), Some(2 << 20));
        assert_eq!(meminfo_bytes("MemTotal: 9 kB\n", "MemAvailable:"), None);
    }

    #[test]
    fn nodes_have_the_processors_and_the_memory_that_this_process_may_use() {
        let dir = std::env::temp_dir().join(format!("gristmill-nodes-{}", std::process::id()));
        for (file, text) in [
            ("online", "0,2-3\n"),
            ("has_memory", "0,2\n"),
            ("node0/cpulist", "0-1,4\n"),
            ("node0/distance", "10 20 30\n"),
            ("node2/cpulist", "2,5\n"),
            ("node3/cpulist", "3\n"),
        ] {
            let file = dir.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let node = |number, cpus: &[usize], has_memory, distances: &[u32]| NumaNode {
            number,
            cpus: cpus.to_vec(),
            has_memory,
            distances: distances.to_vec(),
        };
        let nodes = nodes_in(&dir, &[0, 1, 2, 3], "Name:\tx\nMems_allowed_list:\t2-3\n");
        // Memory of node 0 is not allowed, and node 3 has none.
        assert_eq!(
            nodes,
            [node(0, &[0, 1], false, &[10, 20, 30]), node(2, &[2], true, &[]), node(3, &[3], false, &[])]
        );
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(nodes_in(&dir, &[0], ""), []);
    }

    #[test]
    fn this_machine_has_processors_memory_and_pages() {
        let cpus = cpus_allowed().unwrap();
        assert!(!cpus.is_empty());
        assert!(numa_nodes().unwrap().iter().all(|node| node.cpus.iter().all(|cpu| cpus.contains(cpu))));
        assert!(cpus.contains(&cpu_now()));
        assert!(memory_available_bytes().unwrap() > 0);
        assert!(os_page_bytes().is_power_of_two());
    }

    #[test]
    fn a_pinned_thread_stays_on_its_processor() {
        std::thread::spawn(|| {
            let last = *cpus_allowed().unwrap().last().unwrap();
            pin_to_cpu(last).unwrap();
            assert_eq!(cpus_allowed().unwrap(), [last]);
            assert!(pin_to_cpu(1 << 20).is_err());
        })
        .join()
        .unwrap();
    }
}
