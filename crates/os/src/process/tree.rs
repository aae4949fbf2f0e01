//! Process trees: the descendants of a process, and their end.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

/// How often [`end_descendants`] looks again while something runs.
const ATTEMPTS: usize = 1000;
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Ends all descendants of this process, and returns how many ran. They must have this process as their reaper
/// (`PR_SET_CHILD_SUBREAPER`), or those whose parents end are missed.
///
/// ```
/// use gristmill_os::process::end_descendants;
///
/// std::process::Command::new("sleep").arg("60").spawn()?;
/// assert_eq!((end_descendants()?, end_descendants()?), (1, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn end_descendants() -> io::Result<usize> {
    let mut count = 0;
    for attempt in 0..ATTEMPTS {
        let left = descendants(std::process::id());
        // Reaps orphans that have ended, in any process group.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let left: Vec<Pid> = left.into_iter().filter_map(|process| Pid::from_raw(process as i32)).collect();
        let running = left.iter().filter(|process| kill_process(**process, Signal::KILL).is_ok()).count();
        if running == 0 {
            break;
        }
        if attempt == 0 {
            count = running;
        } else {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(count)
}

/// Returns the numbers of all descendants of process `root`, without itself. Those that end in the meantime may be
/// missing.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![root];
    // If the kernel has no lists of children, all processes are searched once.
    let has_lists = fs::exists(format!("/proc/{root}/task/{root}/children")).unwrap_or(false);
    let parents = if has_lists { Vec::new() } else { parents() };
    while let Some(parent) = open.pop() {
        let children = if has_lists {
            children(parent)
        } else {
            parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child).collect()
        };
        for child in children {
            if child != root && !found.contains(&child) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// Returns the numbers that name entries in a folder of `/proc`.
pub fn numbers(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn children(parent: u32) -> Vec<u32> {
    let of_thread = |thread: u32| text(&format!("/proc/{parent}/task/{thread}/children")).unwrap_or_default();
    let lists: Vec<String> = numbers(&format!("/proc/{parent}/task")).into_iter().map(of_thread).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|child| child.parse().ok()).collect()
}

/// Reads a file, in which the name of a program may be no text.
fn text(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let parent = |process: u32| Some((process, Stat::of(&text(&format!("/proc/{process}/stat"))?)?.parent));
    numbers("/proc").into_iter().filter_map(parent).collect()
}

/// The parsed fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The letter of the state: R, S, D, Z and others.
    pub state: char,
    /// The parent process.
    pub parent: u32,
    /// The time on processors, in ticks of the kernel's clock (10 ms on most); 0 if the line ends before.
    pub ticks: u64,
}

impl Stat {
    /// Parses a line. The name of the program may contain spaces and brackets.
    pub fn of(text: &str) -> Option<Stat> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
        // utime and stime are the 14th and the 15th field of the line.
        let ticks = fields.skip(9).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Stat { state, parent, ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_brackets_does_not_hide_the_state() {
        assert_eq!(Stat::of("7 (a) R 1) (b) S 42 7 7"), Some(Stat { state: 'S', parent: 42, ticks: 0 }));
        let whole = "7 (a) S 42 7 7 0 -1 4194304 130 0 1 0 31 11 99 0 20";
        assert_eq!(Stat::of(whole), Some(Stat { state: 'S', parent: 42, ticks: 42 }));
        for text in ["", "7 (a", "7 (a) ", "7 (a) S", "7 (a) S x"] {
            assert_eq!(Stat::of(text), None, "{text}");
        }
    }

    #[test]
    fn grandchildren_are_descendants() {
        let mut shell = Command::new("sh")
            .args(["-c", "sh -c 'read line; :' & read line; wait"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let is_all = || {
            let all = descendants(std::process::id());
            let of_shell = descendants(shell.id());
            all.contains(&shell.id()) && !of_shell.is_empty() && of_shell.iter().all(|child| all.contains(child))
        };
        let began = std::time::Instant::now();
        let mut seen = is_all();
        while !seen && began.elapsed().as_secs() < 30 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            seen = is_all();
        }
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
        assert!(seen);
        assert!(parents().iter().any(|(process, _)| *process == std::process::id()));
    }
}
