//! The share of the processors that other programs took during a measurement.
//!
//! `/proc/stat` tells how long each processor was idle, and `getrusage` how much this process and its children used.
//! The rest was taken by other programs of this machine or, as stolen time, by other virtual machines.

use std::fs;
use std::time::{Duration, Instant};

use gristmill_os::machine::cpus_allowed;
use gristmill_os::usage::Usage;

/// The share of the processors above which other programs disturb a measurement.
pub const SHARE_MAX: f64 = 0.10;

/// The load of other programs, as shares of the processors' whole time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// The share of all others together.
    pub foreign: f64,
    /// The share of other virtual machines.
    pub stolen: f64,
    /// The least share of the others, given that the kernel counts in ticks.
    pub foreign_least: f64,
}

impl Load {
    /// Returns true if the load is too high for a fair comparison.
    pub fn disturbs(&self) -> bool {
        self.foreign_least > SHARE_MAX
    }

    /// Returns the mean load of measurements of equal length; `None` if there are none.
    pub fn mean(loads: impl IntoIterator<Item = Load>) -> Option<Load> {
        let (mut sum, mut count) = (Load::default(), 0.0);
        for load in loads {
            sum.foreign += load.foreign;
            sum.stolen += load.stolen;
            sum.foreign_least += load.foreign_least;
            count += 1.0;
        }
        let Load { foreign, stolen, foreign_least } = sum;
        (count > 0.0).then_some(Load {
            foreign: foreign / count,
            stolen: stolen / count,
            foreign_least: foreign_least / count,
        })
    }
}

/// The start of a measurement.
pub struct Watch {
    began: Instant,
    clocks: Option<Clocks>,
    own: Duration,
}

impl Watch {
    /// Starts a measurement.
    pub fn start() -> Watch {
        Watch { clocks: Clocks::now(), own: own_time(), began: Instant::now() }
    }

    /// Returns the load since the start; `None` if the machine does not report it.
    pub fn load(&self) -> Option<Load> {
        let (wall, own, now) = (self.began.elapsed(), own_time() - self.own, Clocks::now()?);
        Some(now.load_since(self.clocks.as_ref()?, wall, own))
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

/// Returns the processor time of this process and of its children that have ended.
fn own_time() -> Duration {
    let [own, children] = [Usage::of_process(), Usage::of_children()];
    Duration::from_micros(own.user_us + own.sys_us + children.user_us + children.sys_us)
}

/// The clocks in `/proc/stat` of the processors that this process may use.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Clocks {
    processors: u32,
    idle: Duration,
    /// In which somebody used them: also interrupts, and other virtual machines.
    busy: Duration,
    stolen: Duration,
    tick: Duration,
}

impl Clocks {
    fn now() -> Option<Clocks> {
        let tick = Duration::from_secs(1) / rustix::param::clock_ticks_per_second().try_into().ok()?;
        Clocks::of(&fs::read_to_string("/proc/stat").ok()?, &cpus_allowed().ok()?, tick)
    }

    /// Parses `/proc/stat`. Returns `None` if the kernel does not count: some sandboxes show zeros.
    fn of(stat: &str, cpus: &[usize], tick: Duration) -> Option<Clocks> {
        let [idle, busy, stolen] = [Duration::ZERO; 3];
        let mut clocks = Clocks { processors: 0, idle, busy, stolen, tick };
        for line in stat.lines() {
            // cpu0 user nice system idle iowait irq softirq steal guest guest_nice
            let mut fields = line.split_ascii_whitespace();
            let cpu = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if cpu.is_none_or(|cpu| !cpus.contains(&cpu)) {
                continue;
            }
            let ticks: Vec<u32> = fields.map_while(|field| field.parse().ok()).collect();
            let [user, nice, system, idle, iowait, interrupts, soft_interrupts, stolen, ..] = ticks[..] else {
                return None;
            };
            clocks.processors += 1;
            clocks.idle += tick * idle + tick * iowait;
            clocks.stolen += tick * stolen;
            for busy in [user, nice, system, interrupts, soft_interrupts, stolen] {
                clocks.busy += tick * busy;
            }
        }
        (clocks.processors > 0 && !clocks.busy.is_zero()).then_some(clocks)
    }

    /// Returns the load since `before`, in a time of `wall` in which this program and its children used `own`.
    fn load_since(&self, before: &Clocks, wall: Duration, own: Duration) -> Load {
        let all = wall * self.processors;
        let idle = self.idle.saturating_sub(before.idle);
        // Where threads sleep and wake all the time, a virtual machine loses ticks of either: only what is missing in
        // the idle time and seen as busy was used by others.
        let used = all.saturating_sub(idle).min(self.busy.saturating_sub(before.busy));
        let foreign = used.saturating_sub(own);
        let share = |time: Duration| time.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        // Each processor's idle time is truncated to a tick.
        let uncertain = self.tick * self.processors;
        Load {
            foreign: share(foreign),
            stolen: share(self.stolen.saturating_sub(before.stolen)).min(1.0),
            foreign_least: share(foreign.saturating_sub(uncertain)),
        }
    }
}

/// Returns how long, in percent of the last minute, some program waited for each resource.
pub fn pressure() -> Option<String> {
    let waits: Vec<String> = ["cpu", "memory", "io"]
        .into_iter()
        .filter_map(|resource| {
            let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
            Some(format!("{resource} {} %", of_a_minute(&text)?))
        })
        .collect();
    (!waits.is_empty()).then(|| waits.join(", "))
}

/// Returns `98.63` of `some avg10=97.01 avg60=98.63 ...`
fn of_a_minute(pressure: &str) -> Option<&str> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|field| field.strip_prefix("avg60="))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);

    /// Recorded on a machine with two processors, half a second apart, while two other programs ran.
    const BEFORE: &str = "\
cpu  727414 1182515 243805 440990 3299 0 1914 3994 0 0
cpu0 366243 586855 116577 228752 967 0 439 1990 0 0
cpu1 361171 595660 127227 212238 2332 0 1475 2004 0 0
intr 18823526 0 0
ctxt 41823793
";
    const AFTER: &str = "\
cpu  727504 1182515 243805 440995 3299 0 1914 3999 0 0
cpu0 366288 586855 116577 228757 967 0 439 1990 0 0
cpu1 361216 595660 127227 212238 2332 0 1475 2009 0 0
intr 18823526 0 0
ctxt 41823793
";

    fn load(cpus: &[usize], own_ms: u64) -> Load {
        let [before, after] = [BEFORE, AFTER].map(|text| Clocks::of(text, cpus, TICK).expect("it counts"));
        after.load_since(&before, Duration::from_millis(500), Duration::from_millis(own_ms))
    }

    /// A comparison that ran during a build once did not mention it in its conclusion.
    #[test]
    fn time_that_was_neither_idle_nor_ours_went_to_others() {
        // In 1000 ms on two processors, 50 were idle and 50 stolen. The others' share depends on ours.
        let loaded = load(&[0, 1], 400);
        assert!((loaded.foreign - 0.55).abs() < 1e-9 && (loaded.stolen - 0.05).abs() < 1e-9, "{loaded:?}");
        assert!((loaded.foreign_least - 0.53).abs() < 1e-9 && loaded.disturbs(), "{loaded:?}");
        // The same counts if nothing else ran.
        let quiet = load(&[0, 1], 945);
        assert!((quiet.foreign - 0.005).abs() < 1e-9 && !quiet.disturbs(), "{quiet:?}");
        // More than there was, because ticks are coarse.
        assert_eq!(load(&[0, 1], 2000).foreign, 0.0);
        // Only the processors that this process may use count.
        assert!((load(&[0], 450).foreign - 0.0).abs() < 1e-9);
        assert!((load(&[1], 250).foreign - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_few_ticks_do_not_prove_a_load() {
        // In 20 ms on two processors, one rounded tick on each would be the whole time.
        let clocks = Clocks::of(BEFORE, &[0, 1], TICK).expect("it counts");
        let later = Clocks { busy: clocks.busy + 2 * TICK, ..clocks };
        let short = later.load_since(&clocks, Duration::from_millis(20), Duration::ZERO);
        assert!(short.foreign == 0.5 && !short.disturbs(), "{short:?}");
    }

    /// Threads that fought for the lock of their address space were said to be disturbed by other programs: the idle
    /// time lacked an eighth.
    #[test]
    fn idle_time_that_got_lost_is_nobodys_work() {
        let before = Clocks::of(BEFORE, &[0, 1], TICK).expect("it counts");
        let after = Clocks { idle: before.idle + 20 * TICK, busy: before.busy + 60 * TICK, ..before };
        let load = after.load_since(&before, Duration::from_millis(500), Duration::from_millis(590));
        assert!(load.foreign < 0.02 && !load.disturbs(), "{load:?}");
    }

    #[test]
    fn a_machine_without_clocks_is_not_judged() {
        assert_eq!(Clocks::of("cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n", &[0], TICK), None);
        assert_eq!(Clocks::of("cpu0 1 2 3\n", &[0], TICK), None);
        assert_eq!(Clocks::of("", &[0], TICK), None);
        assert_eq!(Clocks::of(BEFORE, &[7], TICK), None);
    }

    #[test]
    fn pressure_is_that_of_the_last_minute() {
        let text = "some avg10=98.63 avg60=97.60 avg300=95.28 total=8111828989\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(of_a_minute(text), Some("97.60"));
        assert_eq!(of_a_minute("full avg10=0.00"), None);
    }

    #[test]
    fn a_mean_is_over_all_measurements() {
        let loaded = |foreign| Load { foreign, stolen: 0.0, foreign_least: foreign };
        assert_eq!(Load::mean([loaded(0.25), loaded(0.75)]), Some(loaded(0.5)));
        assert_eq!(Load::mean([]), None);
    }
}
