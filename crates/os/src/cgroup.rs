//! The memory cgroup this process lives in: how much memory it leaves, how often it killed.
//!
//! Both generations of cgroups are read, where distributions and container engines mount them. A
//! limit may be set on any ancestor, so limits are looked up from the process's own directory to
//! the mount point. In a container the path in `/proc/self/cgroup` may be the host's and not exist;
//! then the walk ends at the mount point, which is the container's own directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where limits and counts of one generation are found.
struct Generation {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// The line of `memory.stat` with the bytes of file cache that the kernel drops first.
    reclaimable: &'static str,
    kills: &'static str,
}

const V1: Generation = Generation {
    mount: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
    kills: "memory.oom_control",
};

const V2: Generation = Generation {
    mount: "/sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
    kills: "memory.events",
};

/// How many more bytes the tightest limit allows, counting as free the file cache that the kernel
/// drops first. `None` without a limit.
pub fn memory_left_bytes() -> Option<u64> {
    let (generation, path) = own_cgroup(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    directories(generation, &path).iter().filter_map(|dir| left_in(generation, dir)).min()
}

fn left_in(generation: &Generation, dir: &Path) -> Option<u64> {
    let number = |name| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
    // An unlimited cgroup says "max" in v2, which is no number, and almost 2^63 in v1.
    let limit = number(generation.limit).filter(|&limit| limit < 1 << 62)?;
    let usage = number(generation.usage)?;
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let reclaimable = field(&stat, generation.reclaimable).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
}

/// How many processes the out-of-memory killer has ended in this process's cgroup; where there is
/// none, on the whole machine. `None` when the kernel does not tell.
pub fn oom_kills() -> Option<u64> {
    static COUNTER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let counter = COUNTER.get_or_init(oom_counter).as_ref()?;
    field(&fs::read_to_string(counter).ok()?, "oom_kill")
}

/// The file with the nearest `oom_kill` line.
fn oom_counter() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = own_cgroup(&own).into_iter().flat_map(|(generation, path)| {
        directories(generation, &path).into_iter().map(|dir| dir.join(generation.kills))
    });
    cgroup
        .chain([PathBuf::from("/proc/vmstat")])
        .find(|file| fs::read_to_string(file).is_ok_and(|text| field(&text, "oom_kill").is_some()))
}

/// The generation that governs memory, and this process's path in it, from `/proc/self/cgroup`.
///
/// With both mounted (a hybrid system) memory belongs to v1 if v1 lists it.
fn own_cgroup(proc_self_cgroup: &str) -> Option<(&'static Generation, String)> {
    // Each line is `hierarchy:controllers:path`; v2 is hierarchy 0 and names no controllers.
    let lines = || {
        proc_self_cgroup.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        })
    };
    let v1 = lines().find(|(_, controllers, _)| controllers.split(',').any(|name| name == "memory"));
    let v2 = lines().find(|&(hierarchy, controllers, _)| hierarchy == "0" && controllers.is_empty());
    v1.map(|(_, _, path)| (&V1, path.to_owned())).or(v2.map(|(_, _, path)| (&V2, path.to_owned())))
}

/// The directory at `path` below the mount point and its ancestors, innermost first.
fn directories(generation: &Generation, path: &str) -> Vec<PathBuf> {
    let mount = Path::new(generation.mount);
    let own = mount.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|dir| dir.starts_with(mount)).map(Path::to_owned).collect()
}

/// The number on the line `name number`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_belongs_to_v1_where_v1_lists_it_and_to_v2_otherwise() {
        let hybrid = "9:name=systemd:/\n4:cpu,memory:/docker/ab:c\n0::/\n";
        let (generation, path) = own_cgroup(hybrid).unwrap();
        assert_eq!((generation.mount, path.as_str()), (V1.mount, "/docker/ab:c"));

        let (generation, path) = own_cgroup("0::/user.slice/a.scope\n").unwrap();
        assert_eq!((generation.mount, path.as_str()), (V2.mount, "/user.slice/a.scope"));

        assert!(own_cgroup("1:cpu:/\n").is_none());
        assert!(own_cgroup("").is_none());
    }

    #[test]
    fn limits_are_looked_up_to_the_mount_point_and_no_further() {
        let expected = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"];
        assert_eq!(directories(&V2, "/a/b"), expected.map(PathBuf::from));
        assert_eq!(directories(&V2, "/"), [PathBuf::from("/sys/fs/cgroup/")]);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let events = "oom 7\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(field(events, "oom_kill"), Some(2));
        assert_eq!(field(events, "oom"), Some(7));
        assert_eq!(field(events, "max"), None);
    }

    #[test]
    fn free_memory_counts_the_file_cache_that_is_dropped_first() {
        let dir = std::env::temp_dir().join(format!("gristmill-cgroup-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let write = |name, text| fs::write(dir.join(name), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 400\ninactive_file 250\n");
        assert_eq!(left_in(&V2, &dir), Some(550));
        write("memory.max", "max\n");
        assert_eq!(left_in(&V2, &dir), None);
        fs::remove_dir_all(&dir).unwrap();
    }
}
