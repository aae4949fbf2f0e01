//! Limits of memory for groups, set by the kernel where this user may set them.
//!
//! ```text
//!  cgroup v2   memory.max, memory.swap.max and memory.oom.group in the folder of the group itself
//!  cgroup v1   memory.limit_in_bytes and memory.memsw.limit_in_bytes in another folder, which the program enters too
//! ```
//!
//! In version 2, a cgroup hands its memory controller on only if it has no processes of its own. So the queue moves
//! into a folder below, if nothing else is there.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use rustix::io::Errno;

use super::freezer::{Freezer, Group, mount, remove_left_over, remove_whole, write};
use crate::cgroup::{field, own_path};

/// The place where limits of memory are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryLimits {
    /// The folders of the groups in this one, below that of this process.
    V2(PathBuf),
    /// Folders of their own in this one.
    V1(PathBuf),
}

/// The cgroup below that of the groups which this process may have to move into.
const QUEUE: &str = "queue";

impl MemoryLimits {
    /// Finds out how the memory of the groups of a freezer can be limited. Undone by [`MemoryLimits::remove`].
    ///
    /// Call it while this process has no children, because it may move to another cgroup.
    ///
    /// # Errors
    ///
    /// The part of a sentence that says why it cannot.
    ///
    /// ```
    /// use gristmill_os::program::{Freezer, MemoryLimits};
    ///
    /// match MemoryLimits::here("gristmill-example", &Freezer::Sessions) {
    ///     Ok(limits) => limits.remove(),
    ///     Err(why) => assert!(!why.is_empty()),
    /// }
    /// ```
    pub fn here(name: &str, freezer: &Freezer) -> Result<MemoryLimits, String> {
        let [own, mounts] =
            ["cgroup", "mounts"].map(|name| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default());
        let limits = match own_path(&own, "memory") {
            None => return Err("the kernel has no cgroups with limits of memory".to_owned()),
            Some((true, path)) => {
                let mount = mount(&mounts, "cgroup", "memory").ok_or("the memory cgroups are not mounted")?;
                let around = mount.join(path.trim_start_matches('/'));
                remove_left_over(Some(&around), &format!("{name}-"));
                MemoryLimits::V1(around.join(format!("{name}-{}", process::id())))
            }
            Some((false, _)) => {
                let Freezer::V2(folder) = freezer else { return Err("this user may make no cgroups".to_owned()) };
                MemoryLimits::V2(folder.clone())
            }
        };
        limits.prepare().inspect_err(|_| limits.remove())?;
        Ok(limits)
    }

    fn folder(&self) -> &Path {
        match self {
            MemoryLimits::V2(folder) | MemoryLimits::V1(folder) => folder,
        }
    }

    /// Hands the controller on, and tries whether that works.
    fn prepare(&self) -> Result<(), String> {
        let folder = self.folder();
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        if let MemoryLimits::V2(_) = self {
            let around = folder.parent().ok_or("there is no cgroup around this one")?;
            hand_on(around)
                .or_else(|_| move_alone(around, &folder.join(QUEUE)).and_then(|()| hand_on(around)))
                .and_then(|()| hand_on(folder))
                .map_err(|error| {
                    format!(
                        "{} hands the memory controller on to nobody ({error}); under systemd-run --user --scope -p \
                         Delegate=yes it can",
                        around.display()
                    )
                })?;
        }
        let probe = folder.join("probe");
        let tried = fs::create_dir(&probe).and_then(|()| self.set(&probe, 1 << 30));
        remove_whole(&probe);
        tried.map_err(failed)
    }

    fn set(&self, folder: &Path, bytes: u64) -> io::Result<()> {
        // The kernel may count no swap.
        let set_if_there = |name: &str, value: &str| match write(&folder.join(name), value) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        let limit = bytes.to_string();
        match self {
            MemoryLimits::V2(_) => {
                write(&folder.join("memory.max"), &limit)?;
                set_if_there("memory.swap.max", "0")?;
                set_if_there("memory.oom.group", "1")
            }
            MemoryLimits::V1(_) => {
                write(&folder.join("memory.limit_in_bytes"), &limit)?;
                set_if_there("memory.memsw.limit_in_bytes", &limit)
            }
        }
    }

    /// Limits the memory of a group, before a program enters it. The file, if there is one, is for [`super::start()`].
    ///
    /// # Errors
    ///
    /// When the kernel refuses; `ENODEV` if another process has removed the group at this moment, as one that was left
    /// over.
    pub fn limit(&self, group: &mut Group, bytes: u64) -> io::Result<Option<File>> {
        let folder = self.folder().join(&group.name);
        let limited = match self {
            MemoryLimits::V2(_) => self.set(&folder, bytes).map(|()| None),
            MemoryLimits::V1(_) => {
                group.memory = Some(folder.clone());
                fs::create_dir_all(&folder)
                    .and_then(|()| self.set(&folder, bytes))
                    .and_then(|()| OpenOptions::new().write(true).open(folder.join("cgroup.procs")).map(Some))
            }
        };
        limited.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Errno::NODEV.into(),
            // The other errors speak for themselves.
            kind @ (io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::ResourceBusy) => {
                io::Error::new(kind, format!("its memory cannot be limited: {error}"))
            }
            _ => error,
        })
    }

    /// Removes those folders of [`MemoryLimits::here`] that no program is in, and moves this process back.
    pub fn remove(&self) {
        let folder = self.folder();
        if let (MemoryLimits::V2(_), true, Some(around)) = (self, folder.join(QUEUE).exists(), folder.parent()) {
            // The order is that of the kernel's rules. If one step fails, the cgroup stays, and systemd removes it with
            // the scope.
            for from in [folder, around] {
                let _ = write(&from.join("cgroup.subtree_control"), "-memory");
            }
            let _ = write(&around.join("cgroup.procs"), "0");
        }
        remove_whole(folder);
    }
}

/// Lets the cgroups in this one have limits of memory.
fn hand_on(cgroup: &Path) -> io::Result<()> {
    write(&cgroup.join("cgroup.subtree_control"), "+memory")
}

/// Moves this process into another cgroup, if it is alone in its own.
fn move_alone(from: &Path, to: &Path) -> io::Result<()> {
    let others = fs::read_to_string(from.join("cgroup.procs"))?;
    if others.lines().any(|pid| pid != process::id().to_string()) {
        return Err(io::Error::other("other processes are in it"));
    }
    fs::create_dir_all(to)?;
    write(&to.join("cgroup.procs"), "0")
}

impl Group {
    /// The number of its processes that the kernel has killed for lack of memory; `None` if they are not counted for
    /// this group.
    ///
    /// ```
    /// use gristmill_os::program::Freezer;
    ///
    /// assert_eq!(Freezer::Sessions.known_group("1-1").memory_kills(), None);
    /// ```
    pub fn memory_kills(&self) -> Option<u64> {
        let counts = match (&self.memory, &self.folder) {
            (Some(folder), _) => folder.join("memory.oom_control"),
            (None, Some(folder)) => folder.join("memory.events"),
            (None, None) => return None,
        };
        field(&fs::read_to_string(counts).ok()?, "oom_kill")
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::program::{now_ended, reap, start};
    use crate::wake::poll;

    /// The kernel's own limit is the oracle: `tail` keeps a line that has no end in memory.
    #[test]
    fn a_program_that_takes_more_than_its_limit_is_killed_and_counted() {
        let freezer = Freezer::here("gristmill-test-memory");
        // Not every user may set limits; then it says why.
        match MemoryLimits::here("gristmill-test-memory", &freezer) {
            Err(why) => assert!(!why.is_empty()),
            Ok(limits) => {
                let kills = |bytes: u64| {
                    let (mut group, procs) = freezer.group("x").expect("a group");
                    let limit = limits.limit(&mut group, bytes).expect("a limit");
                    let (_told, tell) = io::pipe().expect("a pipe");
                    let mut shell = Command::new("sh");
                    shell.args(["-c", "head -c 60000000 /dev/zero | tail | wc -c"]);
                    let groups: Vec<File> = procs.into_iter().chain(limit).collect();
                    let started = start(shell, &tell, b"", &groups, None).expect("it starts");
                    poll(&[std::os::fd::AsFd::as_fd(&started.pidfd)], None).expect("it ends");
                    let kills = group.memory_kills();
                    now_ended(started.pid).expect("a child").expect("it has ended");
                    reap(started.pid).expect("it has ended");
                    group.kill(&[started.pid]);
                    while !group.remove() {
                        std::thread::yield_now();
                    }
                    kills
                };
                assert_eq!(kills(1 << 30), Some(0));
                assert!(kills(20 << 20).is_some_and(|count| count > 0));
                limits.remove();
                assert!(!limits.folder().exists() || matches!(limits, MemoryLimits::V2(_)));
            }
        }
        freezer.remove();
    }

    /// A folder stands in for a cgroup of version 2, which this kernel may not have.
    #[test]
    fn a_limit_of_version_2_is_in_the_folder_of_the_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = dir.path().join("x");
        fs::create_dir(&folder).expect("made");
        for name in ["memory.max", "memory.oom.group", "memory.events"] {
            fs::write(folder.join(name), "oom 3\noom_kill 2\n").expect("written");
        }
        let mut group = Freezer::V2(dir.path().to_owned()).known_group("x");
        assert_eq!(group.memory_kills(), Some(2));
        let limits = MemoryLimits::V2(dir.path().to_owned());
        assert!(limits.limit(&mut group, 50 << 20).expect("a limit").is_none());
        let at = |name: &str| fs::read_to_string(folder.join(name)).expect("there");
        assert!(at("memory.max").starts_with("52428800") && at("memory.oom.group").starts_with('1'));
        assert!(!folder.join("memory.swap.max").exists());
    }
}
