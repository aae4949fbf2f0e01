//! The cgroups of this process: limits of memory and processor time, and kills.
//!
//! Both versions of cgroups are read, where distributions and container engines mount them. A
//! limit may be set on any ancestor, so limits are looked up from the process's own directory to
//! the mount point. In a container the path in `/proc/self/cgroup` may be the host's and not exist;
//! then the walk ends at the mount point, which is the container's own directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The places of limits and counts of one version.
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

/// The tightest limit in bytes, if any.
pub fn memory_limit_bytes() -> Option<u64> {
    let (generation, path) = own_cgroup(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    directories(Path::new(generation.mount), &path).iter().filter_map(|dir| limit_in(generation, dir)).min()
}

fn limit_in(generation: &Generation, dir: &Path) -> Option<u64> {
    // An unlimited cgroup says "max" in v2, which is no number, and almost 2^63 in v1.
    fs::read_to_string(dir.join(generation.limit)).ok()?.trim().parse::<u64>().ok().filter(|&limit| limit < 1 << 62)
}

/// The tightest quota of time in processors, if any.
pub fn processors_quota() -> Option<f64> {
    quota_below(Path::new(V2.mount), &fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// The tightest quota along the path that `proc_self_cgroup` names, where all cgroups are mounted below `root`.
fn quota_below(root: &Path, proc_self_cgroup: &str) -> Option<f64> {
    let (is_v1, path) = own_path(proc_self_cgroup, "cpu")?;
    let mount = if is_v1 { root.join("cpu") } else { root.to_owned() };
    directories(&mount, &path).iter().filter_map(|dir| quota_in(is_v1, dir)).min_by(f64::total_cmp)
}

fn quota_in(is_v1: bool, dir: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(dir.join(name)).ok();
    // Unlimited is "max 100000" in v2, and a quota of -1 in v1.
    let (quota, period) = if is_v1 {
        (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)
    } else {
        let both = read("cpu.max")?;
        let (quota, period) = both.trim().split_once(' ')?;
        (quota.to_owned(), period.to_owned())
    };
    let number = |text: String| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    Some(number(quota)? / number(period)?)
}

/// The bytes left below the tightest limit, if any.
///
/// File cache that the kernel drops first counts as free.
pub fn memory_left_bytes() -> Option<u64> {
    let (generation, path) = own_cgroup(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    directories(Path::new(generation.mount), &path).iter().filter_map(|dir| left_in(generation, dir)).min()
}

fn left_in(generation: &Generation, dir: &Path) -> Option<u64> {
    let number = |name| fs::read_to_string(dir.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = limit_in(generation, dir)?;
    let usage = number(generation.usage)?;
    let stat = fs::read_to_string(dir.join("memory.stat")).unwrap_or_default();
    let reclaimable = field(&stat, generation.reclaimable).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
}

/// The count of processes killed for lack of memory in this process's cgroup.
///
/// Without a cgroup it is that of the whole machine. `None` if the kernel does not report it.
pub fn oom_kills() -> Option<u64> {
    static COUNTER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let counter = COUNTER.get_or_init(oom_counter).as_ref()?;
    field(&fs::read_to_string(counter).ok()?, "oom_kill")
}

/// The file with the nearest `oom_kill` line.
fn oom_counter() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let cgroup = own_cgroup(&own).into_iter().flat_map(|(generation, path)| {
        directories(Path::new(generation.mount), &path).into_iter().map(|dir| dir.join(generation.kills))
    });
    cgroup
        .chain([PathBuf::from("/proc/vmstat")])
        .find(|file| fs::read_to_string(file).is_ok_and(|text| field(&text, "oom_kill").is_some()))
}

/// The version that governs memory, and this process's path in it.
fn own_cgroup(proc_self_cgroup: &str) -> Option<(&'static Generation, String)> {
    let (is_v1, path) = own_path(proc_self_cgroup, "memory")?;
    Some((if is_v1 { &V1 } else { &V2 }, path))
}

/// Returns the lines of `/proc/self/cgroup`: the number of a hierarchy, its controllers, and the path in it.
pub(crate) fn hierarchies(proc_self_cgroup: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    proc_self_cgroup.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        Some((number, controllers, path))
    })
}

/// True if `controller` belongs to v1; and this process's path in its hierarchy.
///
/// With both mounted (a hybrid system) a controller belongs to v1 if v1 lists it.
pub(crate) fn own_path(proc_self_cgroup: &str, controller: &str) -> Option<(bool, String)> {
    // Each line is `hierarchy:controllers:path`; v2 is hierarchy 0 and names no controllers.
    let lines = || hierarchies(proc_self_cgroup);
    let v1 = lines().find(|(_, controllers, _)| controllers.split(',').any(|name| name == controller));
    let v2 = lines().find(|&(hierarchy, controllers, _)| hierarchy == "0" && controllers.is_empty());
    v1.map(|(_, _, path)| (true, path.to_owned())).or(v2.map(|(_, _, path)| (false, path.to_owned())))
}

/// The directory at `path` below the mount point and its ancestors, innermost first.
fn directories(mount: &Path, path: &str) -> Vec<PathBuf> {
    let own = mount.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|dir| dir.starts_with(mount)).map(Path::to_owned).collect()
}

/// The number on the line `name number`.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
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
        let mount = Path::new(V2.mount);
        assert_eq!(directories(mount, "/a/b"), expected.map(PathBuf::from));
        assert_eq!(directories(mount, "/"), [PathBuf::from("/sys/fs/cgroup/")]);
    }

    #[test]
    fn a_quota_is_worth_processors_in_both_generations() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name, text| fs::write(dir.path().join(name), text).unwrap();
        assert_eq!(quota_in(true, dir.path()), None);
        write("cpu.cfs_quota_us", "250000\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!(quota_in(true, dir.path()), Some(2.5));
        write("cpu.cfs_quota_us", "-1\n");
        assert_eq!(quota_in(true, dir.path()), None);
        write("cpu.max", "50000 100000\n");
        assert_eq!(quota_in(false, dir.path()), Some(0.5));
        for text in ["max 100000\n", "1\n", "", "1 0\n", "0 100000", "x y"] {
            write("cpu.max", text);
            assert_eq!(quota_in(false, dir.path()), None, "{text}");
        }
    }

    #[test]
    fn the_tightest_quota_along_the_path_counts_in_both_generations() {
        // On a node of 64 processors whose slice had a limit of 2, jobs started 64 workers: only the queue of
        // `gristmill batch` looked at the quota.
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("slice/pod/cpu.max", "max 100000\n");
        write("slice/cpu.max", "150000 100000\n");
        write("other/cpu.max", "50000 100000\n");
        let quota = |own: &str| quota_below(root.path(), own);
        assert_eq!(quota("0::/slice/pod\n"), Some(1.5));
        assert_eq!(quota("0::/slice/pod/made-later\n"), Some(1.5));
        assert_eq!(quota("0::/\n"), None);
        // In a container the path may be the host's; the container's own directory is where cgroups are mounted.
        write("cpu.max", "300000 100000\n");
        assert_eq!(quota("0::/docker/ab\n"), Some(3.0));
        for (file, text) in [("a/b", "400000"), ("a", "250000"), ("", "-1")] {
            write(&format!("cpu/{file}/cpu.cfs_quota_us"), text);
            write(&format!("cpu/{file}/cpu.cfs_period_us"), "100000\n");
        }
        assert_eq!(quota("4:cpu,cpuacct:/a/b\n0::/other\n"), Some(2.5));
        assert_eq!(quota("4:cpu,cpuacct:/\n0::/other\n"), None);
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
