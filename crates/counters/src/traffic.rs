//! Memory traffic of programs, as the processor counts it for `resctrl` (Linux,
//! `Documentation/filesystems/resctrl.rst`).
//!
//! A monitoring group is a folder. What runs in it, and all that this starts, is counted together. Processors have a
//! few hundred groups at most.

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;

use gristmill_os::program::left_behind;
use rustix::process::Pid;

/// Where `resctrl` is mounted.
const MOUNT: &str = "/sys/fs/resctrl";
/// How the names of our groups begin. The number of the process that made the group follows.
const OURS: &str = "gristmill-";

/// The control group of this process, in which monitoring groups can be made.
#[derive(Debug)]
pub struct Traffic {
    control: PathBuf,
    made: Cell<u64>,
}

impl Traffic {
    /// Finds the control group, and removes groups that a process left behind when it was killed.
    ///
    /// # Errors
    ///
    /// When `resctrl` is not mounted, the processor does not count traffic, or this user may not make a group.
    ///
    /// ```
    /// use gristmill_counters::traffic::Traffic;
    ///
    /// match Traffic::here() {
    ///     Ok(traffic) => println!("{} bytes so far", traffic.bytes()?),
    ///     Err(why) => println!("no traffic: {why}"),
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn here() -> io::Result<Traffic> {
        let groups = fs::read_to_string("/proc/self/cpu_resctrl_groups").unwrap_or_default();
        Traffic::under(Path::new(MOUNT), control_group(&groups))
    }

    /// As [`Traffic::here`], with the folder where `resctrl` is mounted, or a recorded one, and the path of the control
    /// group in it.
    ///
    /// # Errors
    ///
    /// As [`Traffic::here`].
    pub fn under(mount: &Path, control: &str) -> io::Result<Traffic> {
        let traffic = Traffic { control: mount.join(control), made: Cell::new(0) };
        traffic.bytes()?;
        for group in left_behind(&traffic.groups(), maker) {
            // Another process may be removing it too.
            let _ = fs::remove_dir(group);
        }
        drop(Monitored::new(traffic.next_name())?);
        Ok(traffic)
    }

    fn groups(&self) -> PathBuf {
        self.control.join("mon_groups")
    }

    fn next_name(&self) -> PathBuf {
        let number = self.made.replace(self.made.get() + 1);
        self.groups().join(format!("{OURS}{}-{number}", process::id()))
    }

    /// Counts the traffic of a process, and of all that it starts from now on.
    ///
    /// # Errors
    ///
    /// When the processor has no group left, or the process has ended.
    pub fn of(&self, pid: Pid) -> io::Result<Monitored> {
        let group = Monitored::new(self.next_name())?;
        fs::write(group.0.join("tasks"), format!("{}\n", pid.as_raw_nonzero()))?;
        Ok(group)
    }

    /// Returns the bytes that all programs of the control group have moved from and to memory, those of its monitoring
    /// groups with them.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the processor has no counter for it.
    pub fn bytes(&self) -> io::Result<u64> {
        bytes(&self.control)
    }
}

/// A monitoring group. It ends with this value; what runs in it goes on.
#[derive(Debug)]
pub struct Monitored(PathBuf);

impl Monitored {
    fn new(folder: PathBuf) -> io::Result<Monitored> {
        fs::create_dir(&folder)?;
        Ok(Monitored(folder))
    }

    /// Returns the bytes that its programs have moved from and to memory.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the processor has no counter for the group.
    pub fn bytes(&self) -> io::Result<u64> {
        bytes(&self.0)
    }
}

impl Drop for Monitored {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Returns the control group from the text of `/proc/self/cpu_resctrl_groups`, as a path below the mount.
fn control_group(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("res:/")).unwrap_or("")
}

/// Returns the number of the process that made the group of this name, if it is one of ours.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(OURS)?.split('-').next()?.parse().ok()
}

/// Returns the traffic of a group: the sum over the processor's parts that share a last-level cache.
fn bytes(group: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for part in fs::read_dir(group.join("mon_data"))? {
        let path = part?.path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mon_L3_")) {
            continue;
        }
        let path = path.join("mbm_total_bytes");
        let text = fs::read_to_string(&path)?;
        // Without a counter, the text is a word such as Unavailable.
        let count: u64 =
            text.trim().parse().map_err(|_| io::Error::other(format!("{}: {}", path.display(), text.trim())))?;
        sum += count;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Files as the kernel has them on a processor of two parts.
    fn recorded(group: &Path, counts: [&str; 2]) {
        for (part, count) in counts.iter().enumerate() {
            let part = group.join(format!("mon_data/mon_L3_{part:02}"));
            fs::create_dir_all(&part).expect("a folder");
            fs::write(part.join("mbm_total_bytes"), format!("{count}\n")).expect("written");
        }
    }

    fn mounted() -> TempDir {
        let mount = tempfile::tempdir().expect("a folder");
        recorded(mount.path(), ["1000", "234"]);
        fs::create_dir(mount.path().join("mon_groups")).expect("a folder");
        mount
    }

    fn groups(mount: &Path) -> usize {
        fs::read_dir(mount.join("mon_groups")).expect("there").count()
    }

    #[test]
    fn the_traffic_of_a_group_is_the_sum_over_the_processors_parts() {
        let mount = mounted();
        let traffic = Traffic::under(mount.path(), "").expect("it is mounted");
        assert_eq!(traffic.bytes().expect("counted"), 1234);
        let group = traffic.of(Pid::from_raw(77).expect("a number")).expect("a group");
        assert_eq!(fs::read_to_string(group.0.join("tasks")).expect("written"), "77\n");
        recorded(&group.0, ["7", "70"]);
        assert_eq!(group.bytes().expect("counted"), 77);
        recorded(&group.0, ["7", "Unavailable"]);
        assert!(group.bytes().expect_err("not counted").to_string().ends_with("mbm_total_bytes: Unavailable"));
    }

    #[test]
    fn groups_of_processes_that_have_ended_are_removed() {
        let mount = mounted();
        // No process has this number: it is above the kernel's limit.
        let names = ["gristmill-4194305-0".to_owned(), format!("gristmill-{}-9", process::id()), "somebody".to_owned()];
        names.iter().for_each(|name| fs::create_dir(mount.path().join("mon_groups").join(name)).expect("a folder"));
        let traffic = Traffic::under(mount.path(), "").expect("it is mounted");
        assert_eq!(groups(mount.path()), 2);
        drop(Monitored::new(traffic.next_name()).expect("a group"));
        assert_eq!(groups(mount.path()), 2);
    }

    #[test]
    fn groups_are_made_in_the_control_group_of_this_process() {
        assert_eq!(control_group("res:/batch\nmon:/\n"), "batch");
        assert_eq!((control_group("res:/\nmon:/\n"), control_group("")), ("", ""));
        let mount = mounted();
        recorded(&mount.path().join("batch"), ["5", "6"]);
        assert!(Traffic::under(mount.path(), "batch").is_err());
        fs::create_dir(mount.path().join("batch/mon_groups")).expect("a folder");
        assert_eq!(Traffic::under(mount.path(), "batch").and_then(|traffic| traffic.bytes()).expect("there"), 11);
    }

    #[test]
    fn without_resctrl_there_is_an_error() {
        let empty = tempfile::tempdir().expect("a folder");
        assert_eq!(Traffic::under(empty.path(), "").expect_err("nothing").kind(), io::ErrorKind::NotFound);
    }
}
