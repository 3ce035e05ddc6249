//! Functions of libc's that goroutines must not call as they are.
//!
//! The executable's own definitions come before libc's, for std, for other Rust crates, and for
//! shared libraries. All work on any thread, before the runtime has started, and in signal
//! handlers: they only look at the calling thread's machine and, unless it runs a goroutine's own
//! code, make the system call as libc does.
//!
//! * `sched_yield` yields the goroutine. Spin locks and back-off loops call it to let the holder
//!   run; giving way to other *threads* would burn the time slice of the very processor that the
//!   holder waits for.
//! * `syscall(SYS_futex, ...)` is how std's locks, condition variables and `thread::park` sleep. A
//!   wait becomes a declared blocking call, so that it costs no look of the monitor's. At most
//!   [`sleepers_max`] goroutines hold a thread that way; others sleep as goroutines in
//!   `futex_queue`, where wakes that come by here find them, and look again now and then, as if
//!   woken spuriously, which futexes allow. With shared thread-locals the call is libc's (see `wait`).
//!
//! * `pthread_create` hides the machine while libc makes the thread. The kernel copies GS, by which
//!   code finds its machine, to the new thread, which would take itself for the goroutine that
//!   created it. For threads that glibc makes on its own account see `libc_threads`.
//!
//! * `dl_iterate_phdr`, `dlopen`, `dlclose`, `exit` and `fork` forbid that the goroutine is stopped:
//!   they call others under the loader's locks, see [`loader`] and [`process`].
//!
//! * Signal masks and handlers: see [`signals`].
//!
//! * `pkey_alloc`: from then on switches keep the rights of protection keys apart.
//!
//! glibc's own mutexes do not come by here; their waits are noticed by the monitor.
//!
//! Rejected: queues of our own for all waits. A waker that does not come by here (a shared library
//! with a std of its own, another process) would be missed for a while, and goroutines that wait
//! for long would have to look again and again.

mod keys;
mod loader;
mod next;
mod process;
mod signals;

use self::next::Next;
pub(crate) use self::signals::mark_installed;
use crate::blocking::blocking;
use crate::current::{current_outside, current_undeclared};
use crate::futex_queue::{self, Ended};
use crate::goroutine::GRef;
use crate::machine::Inside;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{last_spare, yields};
use gosched_base::os::{self, Errno};
use gosched_fiber::arch;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// So many goroutines sleep in futexes with a thread each: exact, whoever wakes them.
const SLEEPERS_MAX: u32 = 16;
/// How long one beyond that waits in `futex_queue` before it looks whether it was woken by somebody
/// who doesn't come by here: so long for each such goroutine, so that all of them together look as
/// often whatever their number.
const LOOK_EACH: Duration = Duration::from_micros(50);
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(20);
/// Every so many wakes threads come first.
const THREADS_TURN: u32 = 16;

/// Goroutines in futex waits.
static SLEEPERS: AtomicU32 = AtomicU32::new(0);

/// How many goroutines are in futex waits that came by here.
pub(crate) fn sleepers() -> u32 {
    // ORDERING: Relaxed; a hint.
    SLEEPERS.load(Relaxed)
}

/// libc's `sched_yield`.
#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    if current_undeclared().is_some() {
        SCHEDULER.counts.libc_yields.add_shared();
        yields::gosched();
        return 0;
    }
    // SAFETY: no arguments, no memory.
    let result = unsafe { os::syscall(libc::SYS_sched_yield, [0; 6]) };
    with_errno(result) as c_int
}

/// libc's `syscall`, which is variadic: callers pass what the call needs, and like libc's this
/// reads six arguments; what was not passed is never used.
///
/// # Safety
/// * As for the system call.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let args = [a, b, c, d, e, f];
    if number == libc::SYS_futex
        && is_wait(b)
        && let Some(g) = current_undeclared()
    {
        SCHEDULER.counts.futex_waits.add_shared();
        // SAFETY: by the caller.
        return with_errno(unsafe { wait(g, args) });
    }
    if number == libc::SYS_futex && is_wake(b) && futex_queue::has_waiters() {
        // SAFETY: by the caller.
        return with_errno(unsafe { wake(args) });
    }
    if number == libc::SYS_pkey_alloc {
        arch::use_protection_keys();
    }
    // SAFETY: by the caller.
    with_errno(unsafe { os::syscall(number, args) })
}

type PthreadCreate = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> c_int;

// SAFETY: libc's, as declared above.
static PTHREAD_CREATE: Next<PthreadCreate> = unsafe { Next::new(c"pthread_create") };

/// libc's `pthread_create`.
///
/// # Safety
/// * As for libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    let Some(create) = PTHREAD_CREATE.get() else { return libc::EAGAIN };
    // Entering ends a declared call, if this is in one.
    let hidden = current_outside().and_then(|_| Inside::enter()).map(Inside::leave_hidden);
    // SAFETY: by the caller.
    let result = unsafe { create(thread, attributes, start, argument) };
    if let Some(machine) = hidden {
        machine.show();
    }
    result
}

/// libc's way to return. The error's place is looked up last: it belongs to the thread-locals that
/// are loaded now, after a wait.
fn with_errno(result: Result<usize, Errno>) -> c_long {
    match result {
        Ok(value) => value as c_long,
        Err(Errno(number)) => {
            // SAFETY: libc's own, for the calling thread.
            let errno = unsafe { libc::__errno_location() };
            // SAFETY: as above.
            unsafe { errno.write(number) };
            -1
        }
    }
}

fn command(op: usize) -> c_int {
    op as c_int & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME)
}

fn is_wait(op: usize) -> bool {
    matches!(command(op), libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET)
}

/// At most half of the machines there may be: the others are for the holders of the locks.
fn sleepers_max() -> u32 {
    let machines = SCHEDULER.settled.get().map_or(SLEEPERS_MAX, |settled| settled.threads_max);
    SLEEPERS_MAX.min(machines / 2)
}

fn is_wake(op: usize) -> bool {
    matches!(command(op), libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET)
}

/// Goroutines without a thread first, since they run at once; but now and then a thread, so that
/// those do not wait for ever while there are others.
///
/// # Safety
/// * `args` are those of a futex wake.
#[cold]
unsafe fn wake(args: [usize; 6]) -> Result<usize, Errno> {
    static TURNS: AtomicU32 = AtomicU32::new(0);
    let max = args[2] as u32;
    let kernel = |max: u32| {
        let mut args = args;
        args[2] = max as usize;
        // SAFETY: by the caller.
        unsafe { os::syscall(libc::SYS_futex, args) }
    };
    // ORDERING: Relaxed; it steers only.
    if TURNS.fetch_add(1, Relaxed).is_multiple_of(THREADS_TURN) {
        let woken = kernel(max)?;
        return Ok(woken + queue(args[0], max - (woken as u32).min(max)) as usize);
    }
    let woken = queue(args[0], max);
    Ok(woken as usize + if woken < max { kernel(max - woken)? } else { 0 })
}

/// A signal's handler may have interrupted the runtime, which may hold the queue's lock: those who
/// wait look again by themselves.
fn queue(address: usize, max: u32) -> u32 {
    if crate::is_in_runtime() { 0 } else { futex_queue::wake(address, max) }
}

/// # Safety
/// * `args` are those of a futex wait.
unsafe fn wait(g: GRef, args: [usize; 6]) -> Result<usize, Errno> {
    // With shared thread-locals the waiter may have noted its thread's number, as the lock of standard
    // output does, and the word may be the thread's own (parking_lot's, a std thread's): it must go
    // on on this thread. Who enters the runtime may be moved, so this one does not, and the wait is
    // one for the monitor to see.
    if g.shares_tls() {
        // SAFETY: by the caller.
        return unsafe { os::syscall(libc::SYS_futex, args) };
    }
    // ORDERING: Relaxed for both; the number only decides how to wait.
    let before = SLEEPERS.fetch_add(1, Relaxed);
    // Nor on the last thread that there is: whoever holds the lock needs one.
    let max = if last_spare::is_none_left() { 0 } else { sleepers_max() };
    // The queue knows of no masks.
    let has_mask = command(args[1]) == libc::FUTEX_WAIT_BITSET && args[5] as u32 != u32::MAX;
    let max = if has_mask { u32::MAX } else { max };
    let result = match before.checked_sub(max) {
        None => {
            let has_end = args[3] != 0;
            g.set_reason(if has_end { WaitReason::Zero } else { WaitReason::Futex });
            // SAFETY: by the caller.
            let result = blocking(|| unsafe { os::syscall(libc::SYS_futex, args) });
            g.set_reason(WaitReason::Zero);
            result
        }
        // SAFETY: by the caller.
        Some(beyond) => unsafe { wait_without_thread(args, LOOK_EACH * beyond) },
    };
    // ORDERING: Relaxed; as above.
    SLEEPERS.fetch_sub(1, Relaxed);
    result
}

/// Sleeps as a goroutine and returns as if woken, or as if the time was over.
///
/// # Safety
/// * As for `wait`.
#[cold]
unsafe fn wait_without_thread(args: [usize; 6], pause: Duration) -> Result<usize, Errno> {
    // SAFETY: by the caller.
    if let Err(other @ Errno(libc::EAGAIN | libc::EFAULT | libc::EINVAL)) = unsafe { look(args) } {
        return Err(other);
    }
    let pause = pause.clamp(LOOK_MIN, LOOK_MAX);
    // SAFETY: by the caller.
    let left = unsafe { time_left(args) }.filter(|left| *left <= pause);
    // SAFETY: by the caller; the kernel has just read the word.
    let ended = unsafe { futex_queue::wait(args[0], args[2] as u32, left.unwrap_or(pause)) };
    if ended == Ended::TimedOut && left.is_some() {
        // SAFETY: by the caller.
        return unsafe { look(args) };
    }
    Ok(0)
}

/// The same wait with the time over already: `EAGAIN` if the word differs, else `ETIMEDOUT`.
///
/// # Safety
/// * As for `wait`.
unsafe fn look(mut args: [usize; 6]) -> Result<usize, Errno> {
    let over = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    args[3] = &raw const over as usize;
    // SAFETY: by the caller; the time-out is ours.
    unsafe { os::syscall(libc::SYS_futex, args) }
}

/// How long the caller wants to wait at most: `FUTEX_WAIT` counts from now, the other one is a
/// point in time.
///
/// # Safety
/// * As for `wait`.
unsafe fn time_left(args: [usize; 6]) -> Option<Duration> {
    let until = args[3] as *const libc::timespec;
    // SAFETY: null or a time-out, by the caller.
    let until = duration(unsafe { until.as_ref() }?);
    if command(args[1]) == libc::FUTEX_WAIT {
        return Some(until);
    }
    let is_real = args[1] as c_int & libc::FUTEX_CLOCK_REALTIME != 0;
    let clock = if is_real { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec, which is ours.
    unsafe { libc::clock_gettime(clock, &mut now) };
    Some(until.saturating_sub(duration(&now)))
}

fn duration(t: &libc::timespec) -> Duration {
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}
