//! Groups of processes that are stopped, continued and ended together: cgroups, or sessions where there are none.
//!
//! ```text
//!                stop                        continue                 end
//!  cgroup v2     1 to cgroup.freeze          0 to cgroup.freeze       1 to cgroup.kill
//!  cgroup v1     FROZEN to freezer.state     THAWED to it             SIGKILL to each, then thaw
//!  session       SIGSTOP to each             SIGCONT to each          SIGKILL to each
//! ```
//!
//! A program may leave its session, but not its cgroup.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::cgroup::hierarchies;

/// The kind of groups that can be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freezer {
    /// Cgroups of version 2 in this folder.
    V2(PathBuf),
    /// Cgroups of version 1, with the freezer, in this folder.
    V1(PathBuf),
    /// Sessions.
    Sessions,
}

impl Freezer {
    /// Makes a folder for groups, of the best kind that this user may make. Removed by [`Freezer::remove`].
    ///
    /// Its name is `name` and the number of this process. Empty folders of processes that have died are removed.
    pub fn here(name: &str) -> Freezer {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for freezer in candidates(&own, &mounts, &format!("{name}-{}", std::process::id())) {
            remove_left_over(freezer.folder().and_then(Path::parent), &format!("{name}-"));
            if freezer.is_usable() {
                return freezer;
            }
            freezer.remove();
        }
        Freezer::Sessions
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Freezer::V2(folder) | Freezer::V1(folder) => Some(folder),
            Freezer::Sessions => None,
        }
    }

    /// Tries it out: a group is made, stopped, continued and removed.
    fn is_usable(&self) -> bool {
        let Some(folder) = self.folder() else { return true };
        if fs::create_dir(folder).is_err() {
            return false;
        }
        let Ok((group, procs)) = self.group("probe") else { return false };
        let works = procs.is_some() && group.stop(&[]).is_ok() && group.resume(&[]).is_ok();
        group.remove() && works
    }

    /// Makes a group. The file, if there is one, is for [`super::start()`].
    ///
    /// # Errors
    ///
    /// When the kernel refuses another group; `ENODEV` if another process has removed it at this moment, as one that
    /// was left over.
    pub fn group(&self, name: &str) -> io::Result<(Group, Option<File>)> {
        let group = self.known_group(name);
        let procs = match &group.folder {
            Some(folder) => {
                fs::create_dir_all(folder)?;
                let procs = OpenOptions::new().write(true).open(folder.join("cgroup.procs"));
                Some(procs.map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => Errno::NODEV.into(),
                    _ => error,
                })?)
            }
            None => None,
        };
        Ok((group, procs))
    }

    /// The group of this name, which another process has made.
    pub fn known_group(&self, name: &str) -> Group {
        let folder = self.folder().map(|folder| folder.join(name));
        Group { folder, is_v2: matches!(self, Freezer::V2(_)), name: name.to_owned(), memory: None }
    }

    /// Removes the folder, if every group in it was removed.
    pub fn remove(&self) {
        if let Some(folder) = self.folder() {
            remove_whole(folder);
        }
    }
}

/// Removes a folder of the kernel and all groups in it that have no processes. Returns true if it is gone.
pub(super) fn remove_whole(folder: &Path) -> bool {
    let is_gone = |removed: io::Result<()>| match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // Most have no other folder in them.
    if is_gone(fs::remove_dir(folder)) {
        return true;
    }
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).for_each(|entry| {
        remove_whole(&entry.path());
    });
    is_gone(fs::remove_dir(folder))
}

/// Removes the empty folders of processes that have died, named with this prefix and their number.
pub(super) fn remove_left_over(folder: Option<&Path>, prefix: &str) {
    let maker = |name: &str| name.strip_prefix(prefix)?.parse().ok();
    for left in folder.into_iter().flat_map(|folder| left_behind(folder, maker)) {
        // Any kind would do: only folders without processes can be removed.
        Freezer::V2(left).remove();
    }
}

/// Returns the entries of a folder whose makers have died. `maker` takes the name of an entry and returns the number of
/// the process that made it, or `None` if the entry is not one of ours.
pub fn left_behind(folder: &Path, maker: impl Fn(&str) -> Option<u32>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |entry: &fs::DirEntry| {
        let number = entry.file_name().to_str().and_then(&maker);
        number.is_some_and(|number| !Path::new(&format!("/proc/{number}")).exists())
    };
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

/// The places where this process might make groups, best first.
fn candidates(proc_self_cgroup: &str, mounts: &str, name: &str) -> Vec<Freezer> {
    let own = |controller: &str| {
        let mut lines = hierarchies(proc_self_cgroup);
        let (.., path) = lines.find(|(_, controllers, _)| controllers.split(',').any(|one| one == controller))?;
        Some(path.trim_start_matches('/').to_owned())
    };
    let v2 = mount(mounts, "cgroup2", "").zip(own("")).map(|(mount, path)| Freezer::V2(mount.join(path).join(name)));
    let v1 = mount(mounts, "cgroup", "freezer").zip(own("freezer"));
    let v1 = v1.map(|(mount, path)| Freezer::V1(mount.join(path).join(name)));
    v2.into_iter().chain(v1).collect()
}

/// Returns where a file system of this kind is mounted, with this option if it is not empty.
pub(super) fn mount(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, place, of_kind, options, ..] = fields[..] else { return None };
        let has = option.is_empty() || options.split(',').any(|one| one == option);
        (of_kind == kind && has).then(|| PathBuf::from(place))
    })
}

/// A group of processes. Where it is a session, the caller names its process groups, by their leaders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub(super) folder: Option<PathBuf>,
    is_v2: bool,
    pub(super) name: String,
    /// The folder that limits its memory, where that is another one.
    pub(super) memory: Option<PathBuf>,
}

impl Group {
    /// Stops all processes.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn stop(&self, leaders: &[Pid]) -> io::Result<()> {
        self.set("1", "FROZEN", leaders, Signal::STOP)
    }

    /// Continues all processes.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn resume(&self, leaders: &[Pid]) -> io::Result<()> {
        self.set("0", "THAWED", leaders, Signal::CONT)
    }

    fn set(&self, v2: &str, v1: &str, leaders: &[Pid], signal: Signal) -> io::Result<()> {
        match &self.folder {
            Some(folder) if self.is_v2 => write(&folder.join("cgroup.freeze"), v2),
            Some(folder) => write(&folder.join("freezer.state"), v1),
            None => {
                leaders.iter().for_each(|leader| signal_group(*leader, signal));
                Ok(())
            }
        }
    }

    /// Sends a signal to every process, whether it runs or is stopped.
    pub fn signal(&self, leaders: &[Pid], signal: Signal) {
        for process in self.processes() {
            let _ = kill_process(process, signal);
        }
        leaders.iter().for_each(|leader| signal_group(*leader, signal));
    }

    /// Ends every process by SIGKILL, which none can ignore.
    pub fn kill(&self, leaders: &[Pid]) {
        let at_once = match &self.folder {
            Some(folder) if self.is_v2 => write(&folder.join("cgroup.kill"), "1"),
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        if at_once.is_err() {
            self.signal(leaders, Signal::KILL);
        }
        // A process that is frozen by version 1 receives no signal.
        let _ = self.resume(leaders);
    }

    /// The processes of a cgroup; none for a session, unless its memory is limited.
    pub fn processes(&self) -> Vec<Pid> {
        let Some(folder) = self.folder.as_ref().or(self.memory.as_ref()) else { return Vec::new() };
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }

    /// Opens the clock of a cgroup of version 2.
    pub fn clock(&self) -> Option<Clock> {
        File::open(self.folder.as_ref()?.join("cpu.stat")).ok().map(Clock)
    }

    /// Removes the group, with those that its programs have made in it. Returns false while it has processes.
    pub fn remove(&self) -> bool {
        self.folder.iter().chain(&self.memory).all(|folder| remove_whole(folder))
    }
}

/// The processor time of a cgroup of version 2. Its file stays open: of all that a reading of a file costs, opening it
/// is the most.
#[derive(Debug)]
pub struct Clock(File);

impl Clock {
    /// Microseconds of processor time so far.
    pub fn us(&self) -> Option<u64> {
        // The time is in the first line.
        let mut start = [0; 64];
        let count = self.0.read_at(&mut start, 0).ok()?;
        let text = str::from_utf8(&start[..count]).ok()?;
        text.strip_prefix("usage_usec ")?.lines().next()?.parse().ok()
    }
}

fn signal_group(leader: Pid, signal: Signal) {
    // There may be none any more.
    let _ = kill_process_group(leader, signal);
}

pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{now_ended, reap, start};
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn groups_are_looked_for_where_the_process_is() {
        let mounts = "cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let found = candidates("6:freezer:/a\n0::/b\n", mounts, "n");
        let v2 = Freezer::V2("/sys/fs/cgroup/unified/b/n".into());
        assert_eq!(found, [v2, Freezer::V1("/sys/fs/cgroup/freezer/a/n".into())]);
        assert_eq!(candidates("0::/\n", "", "n"), []);
    }

    fn state(pid: Pid) -> char {
        let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).expect("it runs");
        text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).expect("a state")
    }

    fn wait_for(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(30), "it never came");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_program_without_a_cgroup_is_stopped_continued_and_ended() {
        let (_told, tell) = io::pipe().expect("a pipe");
        let (group, procs) = Freezer::Sessions.group("x").expect("a group");
        let mut sleep = Command::new("sleep");
        sleep.arg("1000");
        let started = start(sleep, &tell, b"", procs.as_slice(), None).expect("it starts");
        let leaders = [started.pid];
        group.stop(&leaders).expect("it stops");
        wait_for(|| state(started.pid) == 'T');
        group.resume(&leaders).expect("it continues");
        wait_for(|| state(started.pid) != 'T');
        group.stop(&leaders).expect("it stops");
        group.kill(&leaders);
        wait_for(|| now_ended(started.pid).expect("a child").is_some());
        let status = now_ended(started.pid).expect("a child").expect("it has ended");
        reap(started.pid).expect("it has ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    /// Each version that this user may use; none, perhaps.
    #[test]
    fn a_stopped_cgroup_is_ended_with_programs_that_left_their_session() {
        let [own, mounts] = ["cgroup", "mounts"].map(|name| fs::read_to_string(format!("/proc/self/{name}")));
        let name = format!("gristmill-test-{}", std::process::id());
        let found = candidates(&own.expect("a text"), &mounts.expect("a text"), &name);
        for freezer in found.into_iter().filter(Freezer::is_usable) {
            let (_told, tell) = io::pipe().expect("a pipe");
            let (group, procs) = freezer.group("x").expect("a group");
            let mut shell = Command::new("sh");
            shell.args(["-c", "setsid sleep 1000 & sleep 1000"]);
            let started = start(shell, &tell, b"", procs.as_slice(), None).expect("it starts");
            wait_for(|| group.processes().len() == 3);
            let clock = group.clock();
            assert_eq!(clock.as_ref().and_then(Clock::us).is_some(), matches!(freezer, Freezer::V2(_)));
            group.stop(&[started.pid]).expect("it stops");
            group.kill(&[started.pid]);
            wait_for(|| now_ended(started.pid).expect("a child").is_some());
            reap(started.pid).expect("it has ended");
            wait_for(|| group.remove());
            freezer.remove();
        }
    }
}
