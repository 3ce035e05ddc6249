//! The runtime's start: once, by whoever uses it first.

use crate::config::{Config, Settled, TlsSetting};
use crate::idle::FirstPoller;
use crate::processor::Processor;
use crate::scheduler::SCHEDULER;
use crate::signal_mask::bit;
use crate::{
    chaos, fleet, forked, gomaxprocs, history, latency, locked, monitor, near, panic, plant,
    preempt, report, steal, threads,
};
use gosched_base::{Stderr, barrier, os, rt_abort};
use gosched_fiber::{fault, pool, tls};
use gosched_poll::Poller;
use gosched_topology::Topology;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Only for the start itself, which plain threads may race for.
static STARTING: Mutex<()> = Mutex::new(());

/// The signal mask the process started with; machines keep it, so that children inherit it.
static MASK: AtomicU64 = AtomicU64::new(0);

static SLICE: AtomicU64 = AtomicU64::new(u64::MAX);

/// The settings; starts the runtime if it has not started.
#[inline]
pub(crate) fn ensure_started() -> &'static Settled {
    match SCHEDULER.settled.get() {
        Some(settled) => settled,
        None => start_or_warn(),
    }
}

/// Starts with the environment's settings.
#[cold]
pub(crate) fn start_or_warn() -> &'static Settled {
    let _ = start(Config::new());
    match SCHEDULER.settled.get() {
        Some(settled) => settled,
        None => rt_abort!("the runtime did not start"),
    }
}

/// Starts the runtime with `config`, over which `GOSCHED` and `GOMAXPROCS` in the environment win.
///
/// Returns false if it has started before; the running one keeps its settings.
pub fn start(config: Config) -> bool {
    let _one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let started = prepare(config);
    if started {
        FirstPoller::hold_back().start();
    }
    started
}

/// As [`start`] with the environment's settings, for the thread that becomes the first machine:
/// its processor is set aside, and there is no other machine before [`FirstPoller::start`]. `None`
/// for the processor if the runtime runs already and all of them are busy.
pub(crate) fn start_as_first_machine() -> (Option<&'static Processor>, Option<FirstPoller>) {
    let _one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let poller = prepare(Config::new()).then(FirstPoller::hold_back);
    (SCHEDULER.take_idle(), poller)
}

/// Everything but the first machine. False if the runtime has started before.
fn prepare(config: Config) -> bool {
    if SCHEDULER.settled.get().is_some() {
        return false;
    }
    barrier::init();
    plant::choose();
    report::start();
    latency::start();
    history::start();
    let mut settled = config.settle();
    let (kind, access) = settled.tls.kind();
    let chosen = tls::init(kind, access);
    if chosen == tls::Kind::Threads {
        // A goroutine's block is its thread's.
        settled.shares_tls = true;
        locked::lock_all_for_life();
        if settled.tls != TlsSetting::Threads {
            warn_of_threads();
        }
    }
    remember_signals();
    match Poller::new() {
        Ok(poller) => SCHEDULER.set_poller(poller),
        Err(error) => refused("open epoll", &error),
    }
    pool::set_refill_hook(&threads::REFILL);
    let threads = pool::start()
        .and_then(|()| fleet::start())
        .and_then(|()| monitor::start_thread(settled.report));
    if let Err(error) = threads {
        refused("create its first threads", &error);
    }
    let _ = fault::install();
    // ORDERING: Relaxed; read by threads that see the runtime started.
    SLICE.store(settled.slice_ns, Relaxed);
    if settled.async_preempt {
        preempt::install();
    }
    forked::watch();
    panic::install_hook();
    crate::identity::install();
    near::start(|| Topology::read(&settled.sight.root), settled.numa);
    if !settled.steals {
        steal::switch_off();
    }
    if let Some(seed) = settled.chaos {
        chaos::start(seed);
    }
    gomaxprocs::start(&settled);
    SCHEDULER.make_processors(settled.procs);
    history::done_outside();
    let _ = SCHEDULER.settled.set(settled);
    true
}

/// Ends the process, as Go does: what the runtime can't start without was refused.
#[cold]
fn refused(what: &str, error: &std::io::Error) -> ! {
    let help = match error.raw_os_error() {
        Some(libc::EMFILE) => "; there may be more open files with `ulimit -n`",
        Some(libc::ENFILE) => "; there may be more open files with sysctl fs.file-max",
        Some(libc::EAGAIN) => {
            "; there may be more threads with `ulimit -u`, or with pids.max of the cgroup"
        }
        Some(libc::ENOMEM) => "; there may be more memory with `ulimit -v`, or in the cgroup",
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => "; a filter of system calls, perhaps",
        _ => "",
    };
    let _ = writeln!(Stderr, "fatal error: gosched can't {what}: {error}{help}");
    os::exit_group(2)
}

fn warn_of_threads() {
    let _ = writeln!(
        Stderr,
        "gosched: thread-local blocks can't be made on this system; each goroutine gets a thread of \
         its own (`gosched doctor` says why)"
    );
}

fn remember_signals() {
    // A program that starts with SIGURG blocked could not be preempted.
    let mask = signal_mask(libc::SIG_BLOCK, None) & !bit(libc::SIGURG);
    // ORDERING: Relaxed; threads that read it are created later.
    MASK.store(mask, Relaxed);
}

/// The mask of every machine while no handler runs on it.
pub(crate) fn machine_mask() -> u64 {
    // ORDERING: Relaxed; see `remember_signals`.
    MASK.load(Relaxed)
}

/// A goroutine's time slice in nanoseconds; `u64::MAX` for none.
pub(crate) fn slice_ns() -> u64 {
    // ORDERING: Relaxed; set once at the start.
    SLICE.load(Relaxed)
}

/// For threads of ours that run no user code.
pub(crate) fn block_signals() {
    // Two of libc's own signals stay free: `setuid` and its kin wait for an answer of every thread.
    const CANCEL_AND_SETXID: u64 = 1 << 31 | 1 << 32;
    signal_mask(libc::SIG_SETMASK, Some(!CANCEL_AND_SETXID));
}

/// For machines, which the starter creates with everything blocked.
pub(crate) fn restore_signals() {
    // ORDERING: Relaxed; see `remember_signals`.
    signal_mask(libc::SIG_SETMASK, Some(MASK.load(Relaxed)));
}

fn signal_mask(how: i32, new: Option<u64>) -> u64 {
    let mut old = 0_u64;
    let new = new.as_ref().map_or(0, |mask| mask as *const u64 as usize);
    let args = [how as usize, new, &raw mut old as usize, 8, 0, 0];
    // SAFETY: the kernel reads and writes eight bytes each, which are ours.
    let _ = unsafe { os::syscall(libc::SYS_rt_sigprocmask, args) };
    old
}
