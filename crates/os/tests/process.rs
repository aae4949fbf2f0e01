//! Workers that are really forked. Forking needs a program with one thread, so this one has its own
//! `main` instead of the test harness: it runs one claim after another.

#![allow(unsafe_code)]

use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gristmill_os::Region;
use gristmill_os::file_size::LimitIsAnError;
use gristmill_os::futex::SharedFutex;
use gristmill_os::process::{Death, ForkError, PANICKED, fork_worker, threads_in_this_process};
use gristmill_os::usage::Usage;
use gristmill_os::wake::{Bell, poll};
use gristmill_ring::Doorbell;

macro_rules! claims {
    ($($name:ident),+ $(,)?) => {
        const CLAIMS: &[(&str, fn())] = &[$((stringify!($name), $name)),+];
    };
}

claims![
    the_region_is_at_the_same_address_in_the_worker,
    a_populated_range_takes_no_fault_later,
    discarded_memory_reads_zero_in_every_process,
    an_exit_status_is_told,
    a_segmentation_fault_is_told,
    a_kill_is_told_and_is_not_the_kernels,
    a_panic_ends_the_worker_with_101,
    a_panic_payload_that_panics_when_dropped_still_ends_the_worker,
    a_worker_never_runs_its_callers_destructors,
    printed_text_appears_once,
    a_worker_dies_with_its_parent,
    a_worker_dies_of_sigterm_though_its_parent_handles_it,
    a_second_thread_forbids_the_fork,
    a_joined_thread_does_not_forbid_the_fork,
    a_fork_that_the_kernel_refuses_is_an_error,
    a_kernel_without_descriptors_of_processes_is_named,
    a_futex_wakes_another_process,
    no_wake_up_is_lost_between_processes,
    a_ringer_killed_at_any_moment_leaves_nobody_asleep,
    a_pidfd_becomes_readable_at_death,
    a_dropped_child_is_killed_and_reaped,
    a_worker_that_drops_its_siblings_handle_leaves_it_alive,
    a_bell_rings_across_processes,
    the_signal_of_file_sizes_does_again_what_it_did_when_the_last_guard_is_dropped,
];

fn main() -> ExitCode {
    // `cargo test NAME` gives the name here; options such as `--nocapture` mean nothing to us.
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let (mut passed, mut failed) = (0, 0);
    for (name, claim) in CLAIMS {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let outcome = catch_unwind(AssertUnwindSafe(claim));
        println!("{name} ... {}", if outcome.is_ok() { "ok" } else { "FAILED" });
        if outcome.is_ok() { passed += 1 } else { failed += 1 }
    }
    println!("{passed} claims passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const OS_PAGE: usize = 4096;

/// Waits until `done` holds, at most ten seconds.
fn eventually(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(10), "still not: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_running(pid: u32) -> bool {
    // A dead process that nobody has reaped yet is a zombie, state Z.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

fn the_region_is_at_the_same_address_in_the_worker() {
    let region = Region::new(4096, 4 << 20).unwrap();
    let address = region.page_area().as_ptr() as u64;
    let mut worker = fork_worker(|| {
        region.u64s(0, 1)[0].store(region.page_area().as_ptr() as u64, Ordering::Relaxed);
        // SAFETY: inside the page area, and the parent looks only after this process has ended.
        unsafe { region.page_area().add(OS_PAGE).write(42) };
        0
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    assert_eq!(region.u64s(0, 1)[0].load(Ordering::Relaxed), address);
    // SAFETY: inside the page area, and the only other process that wrote there has ended.
    assert_eq!(unsafe { region.page_area().add(OS_PAGE).read() }, 42);
}

/// Writes one byte to every OS page of the first `bytes` and returns the faults that took.
fn faults_of_touching(region: &Region, bytes: usize) -> u64 {
    let before = Usage::of_thread();
    for offset in (0..bytes).step_by(OS_PAGE) {
        // SAFETY: inside the page area, which no other process touches meanwhile.
        unsafe { region.page_area().add(offset).write_volatile(1) };
    }
    (Usage::of_thread() - before).minor_faults
}

fn a_populated_range_takes_no_fault_later() {
    const BYTES: usize = 4 << 20;
    const OS_PAGES: u64 = (BYTES / OS_PAGE) as u64;
    let touched_first = Region::new(64, BYTES).unwrap();
    assert!(faults_of_touching(&touched_first, BYTES) >= OS_PAGES);
    let populated = Region::new(64, BYTES).unwrap();
    // SAFETY: nobody else uses this region.
    unsafe { populated.populate(0..BYTES) }.unwrap();
    // None here; a sanitizer's own memory takes one fault for eight OS pages.
    let faults = faults_of_touching(&populated, BYTES);
    assert!(faults < OS_PAGES / 4, "{faults} faults in {OS_PAGES} OS pages");
}

fn discarded_memory_reads_zero_in_every_process() {
    let region = Region::new(64, 2 << 20).unwrap();
    let byte = |offset| region.page_area().as_ptr().wrapping_add(offset);
    faults_of_touching(&region, 4 * OS_PAGE);
    let mut worker = fork_worker(|| {
        // SAFETY: the process that has touched it waits for this one.
        unsafe { region.discard(OS_PAGE..3 * OS_PAGE) }.unwrap();
        0
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    // SAFETY: inside the page area, and the only other process that uses it has ended.
    let left = [0, 1, 2, 3].map(|page| unsafe { byte(page * OS_PAGE).read_volatile() });
    assert_eq!(left, [1, 0, 0, 1]);
}

/// Lets this process get an error for a system call, as from an old kernel or in a container.
fn refuse(call: libc::c_long, errno: i32) {
    let instruction =
        |code: u32, jump: [u8; 2], k: u32| libc::sock_filter { code: code as u16, jt: jump[0], jf: jump[1], k };
    let mut filter = [
        // The number of the call is the first word.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, [0, 0], 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, [0, 1], call as u32),
        instruction(libc::BPF_RET | libc::BPF_K, [0, 0], libc::SECCOMP_RET_ERRNO | errno as u32),
        instruction(libc::BPF_RET | libc::BPF_K, [0, 0], libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which outlives the calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    assert_eq!(done, 0);
}

/// Before Linux 5.3, and in old containers, a job ended with "Function not implemented (os error 38)", without naming
/// the function.
fn a_kernel_without_descriptors_of_processes_is_named() {
    for errno in [libc::ENOSYS, libc::EPERM] {
        let mut worker = fork_worker(|| {
            refuse(libc::SYS_pidfd_open, errno);
            let error = fork_worker(|| 0).expect_err("refused").to_string();
            i32::from(!error.contains("pidfd_open") || !error.contains("this needs Linux 5.3 or later"))
        })
        .unwrap();
        assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    }
}

fn an_exit_status_is_told() {
    let mut worker = fork_worker(|| 3).unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(3));
    assert_eq!(worker.wait().unwrap(), Death::Exited(3), "and told again");
    worker.kill().expect("killing the dead is no error");
}

fn a_segmentation_fault_is_told() {
    let mut worker = fork_worker(|| {
        // SAFETY: none; the fault is the point of the test.
        unsafe { std::ptr::without_provenance_mut::<u8>(16).write_volatile(1) };
        0
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap().to_string(), "signal 11 (SIGSEGV)");
}

fn a_kill_is_told_and_is_not_the_kernels() {
    let mut worker = fork_worker(sleep_for_ever).unwrap();
    assert_eq!(worker.try_wait().unwrap(), None);
    worker.kill().unwrap();
    let death = worker.wait().unwrap();
    assert!(matches!(death, Death::Signalled { signal: 9, oom: None | Some(false) }), "{death:?}");
    assert_eq!(death.to_string(), "signal 9 (SIGKILL)");
}

fn sleep_for_ever() -> i32 {
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}

fn a_panic_ends_the_worker_with_101() {
    let mut worker = fork_worker(|| {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("a map function that panics")
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(PANICKED));
}

fn a_panic_payload_that_panics_when_dropped_still_ends_the_worker() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let mut worker = fork_worker(|| {
        std::panic::set_hook(Box::new(|_| {}));
        std::panic::panic_any(Bomb)
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(PANICKED));
}

fn a_worker_never_runs_its_callers_destructors() {
    struct Mark<'a>(&'a AtomicU32);
    impl Drop for Mark<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let region = Region::new(64, 0).unwrap();
    let drops = &region.u32s(0, 1)[0];
    let mark = Mark(drops);
    let mut worker = fork_worker(|| 0).unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(mark);
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

/// Runs this claim as a program of its own, to read all that the program and its worker print.
fn printed_text_appears_once() {
    if std::env::var_os("GRISTMILL_PRINT").is_some() {
        print!("before ");
        let mut worker = fork_worker(|| {
            print!("inside ");
            0
        })
        .unwrap();
        worker.wait().unwrap();
        print!("after ");
        std::io::stdout().flush().unwrap();
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("printed_text_appears_once")
        .env("GRISTMILL_PRINT", "1")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("before inside after "), "{text}");
    assert_eq!(text.matches("before").count(), 1, "{text}");
}

fn a_worker_dies_with_its_parent() {
    let region = Region::new(64, 0).unwrap();
    let grandchild = &region.u32s(0, 1)[0];
    let mut middle = fork_worker(|| {
        // The handle is never dropped, so only the kernel can end the grandchild.
        let worker = ManuallyDrop::new(fork_worker(sleep_for_ever).unwrap());
        grandchild.store(worker.pid(), Ordering::Relaxed);
        sleep_for_ever()
    })
    .unwrap();
    eventually("the grandchild runs", || grandchild.load(Ordering::Relaxed) != 0);
    let pid = grandchild.load(Ordering::Relaxed);
    assert!(is_running(pid));
    middle.kill().unwrap();
    middle.wait().unwrap();
    eventually("the grandchild is dead", || !is_running(pid));
}

fn a_worker_dies_of_sigterm_though_its_parent_handles_it() {
    static HANDLED: AtomicBool = AtomicBool::new(false);
    extern "C" fn handle(_signal: libc::c_int) {
        HANDLED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to an atomic.
    let before = unsafe { libc::signal(libc::SIGTERM, handle as *const () as libc::sighandler_t) };
    let mut worker = fork_worker(sleep_for_ever).unwrap();
    // SAFETY: the worker is our child and not reaped, so the pid is its own.
    unsafe { libc::kill(worker.pid() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(worker.wait().unwrap().to_string(), "signal 15 (SIGTERM)");
    // SAFETY: the handler runs in this thread before `raise` returns.
    unsafe { libc::raise(libc::SIGTERM) };
    assert!(HANDLED.load(Ordering::Relaxed), "this process still has its handler");
    // SAFETY: puts back what was there.
    unsafe { libc::signal(libc::SIGTERM, before) };
}

fn a_second_thread_forbids_the_fork() {
    assert_eq!(threads_in_this_process().unwrap(), 1);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let other = thread::spawn(move || stopped.recv());
    let refused = fork_worker(|| 0);
    assert!(matches!(refused, Err(ForkError::ThreadsRunning { count: 2 })), "{refused:?}");
    stop.send(()).unwrap();
    other.join().unwrap().unwrap();
}

fn a_joined_thread_does_not_forbid_the_fork() {
    for _ in 0..100 {
        thread::spawn(|| {}).join().unwrap();
        let mut worker = fork_worker(|| 0).unwrap();
        assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    }
}

fn a_fork_that_the_kernel_refuses_is_an_error() {
    // In a worker, because the limits cannot be raised again. Root is exempt from the limit of
    // processes, so the worker becomes a user nobody else is, with room for itself only.
    let mut worker = fork_worker(|| {
        let one = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
        // SAFETY: a valid pointer, and numbers.
        let prepared = unsafe {
            libc::setrlimit(libc::RLIMIT_NPROC, &one) == 0 && (libc::getuid() != 0 || libc::setuid(54_321) == 0)
        };
        assert!(prepared);
        match fork_worker(|| 0) {
            Err(ForkError::Kernel(error)) if error.raw_os_error() == Some(libc::EAGAIN) => 7,
            _ => 8,
        }
    })
    .unwrap();
    assert_eq!(worker.wait().unwrap(), Death::Exited(7));
}

fn a_futex_wakes_another_process() {
    let region = Region::new(64, 0).unwrap();
    let [word, awake] = region.u32s(0, 2) else { unreachable!() };
    let mut worker = fork_worker(|| {
        Doorbell::new(word).sleep_unless(&SharedFutex, || false);
        awake.store(1, Ordering::Relaxed);
        0
    })
    .unwrap();
    eventually("the worker sleeps", || word.load(Ordering::Relaxed) == 1);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(awake.load(Ordering::Relaxed), 0);
    Doorbell::new(word).ring(&SharedFutex);
    assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    assert_eq!(awake.load(Ordering::Relaxed), 1);
}

fn no_wake_up_is_lost_between_processes() {
    const TURNS: u32 = 20_000;
    let region = Region::new(4096, 0).unwrap();
    // Two processes take turns; each sleeps until the turn is its own.
    let turn = &region.u32s(0, 1)[0];
    let bells = [Doorbell::new(&region.u32s(128, 1)[0]), Doorbell::new(&region.u32s(256, 1)[0])];
    let play = |own: usize| {
        for expected in (own as u32..TURNS).step_by(2) {
            while turn.load(Ordering::Acquire) != expected {
                bells[own].sleep_unless(&SharedFutex, || turn.load(Ordering::Acquire) == expected);
            }
            turn.store(expected + 1, Ordering::Release);
            bells[1 - own].ring(&SharedFutex);
        }
        0
    };
    let mut worker = fork_worker(|| play(1)).unwrap();
    play(0);
    assert_eq!(worker.wait().unwrap(), Death::Exited(0));
    assert_eq!(turn.load(Ordering::Relaxed), TURNS);
}

fn a_ringer_killed_at_any_moment_leaves_nobody_asleep() {
    for round in 0..100 {
        let region = Region::new(4096, 0).unwrap();
        let [word, work, over] = region.u32s(0, 3) else { unreachable!() };
        let bell = Doorbell::new(word);
        let mut sleeper = fork_worker(|| {
            let mut seen = 0;
            while over.load(Ordering::Acquire) == 0 {
                let now = work.load(Ordering::Acquire);
                if now == seen {
                    bell.sleep_unless(&SharedFutex, || {
                        over.load(Ordering::Acquire) != 0 || work.load(Ordering::Acquire) != seen
                    });
                }
                seen = now;
            }
            0
        })
        .unwrap();
        let mut ringer = fork_worker(|| {
            loop {
                work.fetch_add(1, Ordering::Release);
                bell.ring(&SharedFutex);
            }
        })
        .unwrap();
        thread::sleep(Duration::from_micros(500 + 37 * round));
        ringer.kill().unwrap();
        ringer.wait().unwrap();
        over.store(1, Ordering::Release);
        bell.ring_after_death(&SharedFutex);
        let ready = poll(&[sleeper.pidfd()], Some(10_000)).unwrap();
        assert_eq!(ready, [0], "round {round}: the sleeper sleeps on");
        assert_eq!(sleeper.wait().unwrap(), Death::Exited(0));
    }
}

fn a_pidfd_becomes_readable_at_death() {
    let mut sleeper = fork_worker(sleep_for_ever).unwrap();
    let mut mortal = fork_worker(|| {
        thread::sleep(Duration::from_millis(20));
        5
    })
    .unwrap();
    let ready = poll(&[sleeper.pidfd(), mortal.pidfd()], Some(10_000)).unwrap();
    assert_eq!(ready, [1]);
    assert_eq!(mortal.try_wait().unwrap(), Some(Death::Exited(5)));
    assert_eq!(sleeper.try_wait().unwrap(), None);
}

fn a_dropped_child_is_killed_and_reaped() {
    let worker = fork_worker(sleep_for_ever).unwrap();
    let pid = worker.pid();
    assert!(is_running(pid));
    drop(worker);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "not even a zombie is left");
}

fn a_worker_that_drops_its_siblings_handle_leaves_it_alive() {
    let mut elder = Some(fork_worker(sleep_for_ever).unwrap());
    let mut younger = fork_worker(|| {
        drop(elder.take());
        0
    })
    .unwrap();
    assert_eq!(younger.wait().unwrap(), Death::Exited(0));
    assert_eq!(elder.expect("only the copy was dropped").try_wait().unwrap(), None);
}

fn a_bell_rings_across_processes() {
    let bell = Bell::new().unwrap();
    let mut worker = fork_worker(|| {
        bell.ring();
        bell.ring();
        0
    })
    .unwrap();
    assert_eq!(poll(&[bell.as_fd()], Some(10_000)).unwrap(), [0]);
    worker.wait().unwrap();
    assert_eq!(bell.drain(), 2);
    assert_eq!(bell.drain(), 0);
    assert_eq!(poll(&[bell.as_fd()], Some(0)).unwrap(), []);
}

/// Regions hold such guards too: among tests in threads, one of them was still alive when this one looked.
fn the_signal_of_file_sizes_does_again_what_it_did_when_the_last_guard_is_dropped() {
    // SAFETY: neither disposition runs code of ours.
    let set = |disposition| unsafe { libc::signal(libc::SIGXFSZ, disposition) };
    let host = set(libc::SIG_DFL);
    let (first, second) = (LimitIsAnError::new(), LimitIsAnError::new());
    drop(first);
    assert!(ignores_file_size_signal());
    drop(second);
    assert!(!ignores_file_size_signal());
    set(libc::SIG_IGN);
    drop(LimitIsAnError::new());
    assert!(ignores_file_size_signal(), "the host's own choice stays");
    set(host);
}

fn ignores_file_size_signal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 << (libc::SIGXFSZ - 1) != 0
}
