//! Memory: its size, its limits, and its page sizes.

use crate::files::{Files, field, here};

/// The memory of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The memory that the kernel manages.
    pub total_bytes: Option<u64>,
    /// The memory that can be used now without swapping.
    pub available_bytes: Option<u64>,
    /// The swap space.
    pub swap_bytes: Option<u64>,
    /// The tightest limit of this process's cgroups.
    pub limit_bytes: Option<u64>,
    /// The kernel's use of transparent huge pages: `always`, `madvise` (on request) or `never`.
    pub transparent: Option<String>,
    /// The same setting for memory that processes share.
    pub transparent_shared: Option<String>,
    /// Huge pages that were set aside, by size.
    pub reserved: Vec<Reserved>,
}

/// Huge pages of one size that were set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The size of one page.
    pub page_bytes: u64,
    /// The number of pages.
    pub pages: u64,
    /// The number of free ones.
    pub free: u64,
}

/// The huge page sizes of all architectures.
const HUGE_KIB: [u64; 9] = [64, 512, 1024, 2048, 16 << 10, 32 << 10, 512 << 10, 1 << 20, 16 << 20];

/// Returns how many processes the kernel has killed for lack of memory since it started; `None` if it does not count
/// them.
pub fn kills() -> Option<u64> {
    let counts = here("/proc/vmstat")?;
    counts.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

impl Memory {
    /// Reads the facts. The caller provides the limit, which is found in a cgroup's folder.
    pub fn read(files: Files<'_>, limit_bytes: Option<u64>) -> Memory {
        let meminfo = files("/proc/meminfo").unwrap_or_default();
        let bytes =
            |name: &str| field(&meminfo, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024);
        let chosen = |name: &str| {
            // always [madvise] never
            let text = files(&format!("/sys/kernel/mm/transparent_hugepage/{name}"))?;
            let (_, rest) = text.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        };
        let reserved = HUGE_KIB.into_iter().filter_map(|kib| {
            let count = |name: &str| {
                files(&format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/{name}"))?.trim().parse::<u64>().ok()
            };
            let pages = count("nr_hugepages").filter(|pages| *pages > 0)?;
            Some(Reserved { page_bytes: kib << 10, pages, free: count("free_hugepages").unwrap_or(0) })
        });
        Memory {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            swap_bytes: bytes("SwapTotal"),
            limit_bytes,
            transparent: chosen("enabled"),
            transparent_shared: chosen("shmem_enabled"),
            reserved: reserved.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::recorded;

    #[test]
    fn memory_and_huge_pages_are_read() {
        let files = recorded(&[
            (
                "/proc/meminfo",
                "MemTotal:       24683684 kB\nMemFree: 1 kB\nMemAvailable:   23919616 kB\nSwapTotal: 0 kB\n",
            ),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12\n"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5\n"),
            ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n"),
        ]);
        let memory = Memory::read(&files, Some(1 << 30));
        assert_eq!(memory.total_bytes, Some(24_683_684 << 10));
        assert_eq!((memory.available_bytes, memory.swap_bytes), (Some(23_919_616 << 10), Some(0)));
        assert_eq!(memory.transparent.as_deref(), Some("madvise"));
        assert_eq!(memory.transparent_shared.as_deref(), Some("never"));
        assert_eq!(memory.reserved, [Reserved { page_bytes: 2 << 20, pages: 12, free: 5 }]);
        assert_eq!(memory.limit_bytes, Some(1 << 30));
    }

    #[test]
    fn hostile_and_missing_files_give_no_facts() {
        assert_eq!(Memory::read(&|_| None, None), Memory::default());
        let hostile = recorded(&[
            ("/proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -1 kB\nSwapTotal: 5\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise] [never"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "many\n"),
        ]);
        assert_eq!(Memory::read(&hostile, None), Memory::default());
    }
}
