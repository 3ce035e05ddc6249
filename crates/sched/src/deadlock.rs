//! All goroutines are asleep: is it a deadlock?
//!
//! It is suspected when every processor is idle and nothing is armed that could wake anyone: the
//! last machine is about to sleep in the poller without a time-out. It is one if, besides, no
//! thread of the process is foreign: any other thread may be about to unpark somebody.
//!
//! Goroutines asleep in futexes (std's locks) are no witnesses: whoever may wake them can be in
//! another process. If they are all that is not parked there is one warning that names them.
//!
//! Go's `checkdead`. Unlike Go's it stays on although C code is linked.

use crate::fatal::{self, Request};
use crate::goroutine::GRef;
use crate::machine::Machine;
use crate::monitor::REVOKER;
use crate::netpoll::{self, Ready};
use crate::observe::Whereabouts;
use crate::reason::WaitReason;
use crate::scheduler::SCHEDULER;
use crate::{dump, idle, last_spare, main_goroutine, slab, threads};
use gosched_base::Stderr;
use gosched_base::os::{self, Errno};
use gosched_fiber::pool;
use gosched_poll::Wait;
use gosched_protocol::Status;
use std::fmt::Write;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use std::time::Duration;

/// A suspicion must last that long: threads that begin or end are no witnesses either way.
const SUSPICION: Duration = Duration::from_millis(10);
/// With foreign threads about there is no verdict, but one warning after this time.
pub(crate) const WARNING: Duration = Duration::from_secs(10);

/// Whether the sleeper in the poller relies on a goroutine in a blocking call, and has to be told
/// when the last machine goes to sleep.
static RELIES_ON_CALLS: AtomicBool = AtomicBool::new(false);

/// Sleeps until the bell rings or a file is ready; reports a deadlock instead if it is one.
/// Returns the goroutines that can go on.
pub(crate) fn sleep_for_ever() -> Ready {
    if main_goroutine::waiting() == 0 {
        // Nobody waits for a goroutine's end: plain threads use the runtime as they like.
        return netpoll::poll(Wait::Forever);
    }
    let mut pause = SUSPICION;
    let mut waited = Duration::ZERO;
    while waited < WARNING {
        let ready = netpoll::poll(Wait::Roughly(pause));
        if !ready.is_empty() || !is_still_quiet() {
            return ready;
        }
        match who_is_awake() {
            Awake::Somebody => return rely_on_calls(),
            _ if netpoll::is_any_waiting() => return netpoll::poll(Wait::Forever),
            // Another process may wake them, or a thread that a library makes: no verdict.
            Awake::InFutexes => {}
            Awake::Nobody => {
                if foreign_threads() == Some(0) {
                    report();
                }
            }
        }
        // One of ours may begin or end just now; so ask again, less and less often.
        waited += pause;
        pause *= 2;
    }
    match who_is_awake() {
        Awake::Nobody => {
            warn_once(
                "gosched: all goroutines have been asleep for 10 s; other threads of the process \
                 may still wake them\n",
            );
            netpoll::poll(Wait::Forever)
        }
        awake => {
            if awake == Awake::InFutexes {
                warn_of_futexes_once();
            }
            rely_on_calls()
        }
    }
}

/// A plain thread has waited for [`WARNING`], for a goroutine or for another thread. If all goroutines
/// are asleep, and nothing is armed that would wake one, it is told so once; whether another thread
/// will wake somebody is not known.
#[cold]
pub(crate) fn plain_thread_waits() {
    let is_quiet = || {
        is_still_quiet()
            && idle::next_deadline() == u64::MAX
            && !netpoll::is_any_waiting()
            && who_is_awake() == Awake::Nobody
    };
    // Who waits in `run` is looked after by the sleeper in the poller.
    if main_goroutine::waiting() > 0 || SCHEDULER.settled.get().is_none() || !is_quiet() {
        return;
    }
    warn_once(
        "gosched: a thread of the process has waited for 10 s, and all goroutines are asleep; other \
         threads may still wake them (in programs that begin with #[gosched::main] or \
         gosched::run a deadlock is reported as one)\n",
    );
}

/// Some goroutine is in a blocking call. When it returns it gets a processor without a bell.
#[cold]
fn rely_on_calls() -> Ready {
    // ORDERING: the fence pairs with the one in `machine_sleeps`: either this thread sees the
    // goroutine asleep, or that machine sees the flag.
    RELIES_ON_CALLS.store(true, Relaxed);
    fence(SeqCst);
    let ready = match is_still_quiet() && who_is_awake() != Awake::Nobody {
        true => netpoll::poll(Wait::Forever),
        false => Ready::new(),
    };
    RELIES_ON_CALLS.store(false, Relaxed);
    ready
}

/// A machine goes to sleep outside the poller: if it was the last one the question is open again.
#[inline]
pub(crate) fn machine_sleeps() {
    // ORDERING: the fence pairs with the one in `rely_on_calls`.
    fence(SeqCst);
    if RELIES_ON_CALLS.load(Relaxed) && SCHEDULER.are_all_unused() {
        idle::wake_one_from_outside();
    }
}

/// The bell was not rung, nothing was made runnable, and every processor is idle.
fn is_still_quiet() -> bool {
    SCHEDULER.poller_bell.is_announced()
        && threads::fiber_waiters() == 0
        && SCHEDULER.injected.is_empty()
        && SCHEDULER.are_all_unused()
        && SCHEDULER.searchers.count() == 0
        && crate::num_goroutine() > 0
}

/// Who could wake the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awake {
    /// All are parked.
    Nobody,
    /// Those that are not parked sleep in futexes, without end as far as is known.
    InFutexes,
    /// At least one is in another call, declared or not, holds no processor and may come back.
    Somebody,
}

fn who_is_awake() -> Awake {
    let (mut elsewhere, mut in_declared_futex, mut running) = (false, false, 0);
    slab::for_each(|g| match g.status.get() {
        Status::Syscall if g.reason() == WaitReason::Futex => in_declared_futex = true,
        Status::Runnable | Status::Syscall => elsewhere = true,
        Status::Running => running += 1,
        _ => {}
    });
    if elsewhere || running > last_spare::lost_in_futex() {
        Awake::Somebody
    } else if in_declared_futex || running > 0 {
        Awake::InFutexes
    } else {
        Awake::Nobody
    }
}

#[cold]
fn report() -> ! {
    let mut out = Stderr;
    let _ = writeln!(out, "fatal error: all goroutines are asleep - deadlock!\n");
    fatal::write(Request { cause: None, at: None, is_headed: false });
    if dump::shows_others() {
        let _ = writeln!(
            out,
            "gosched: nobody is left to wake any of them: look for an end of a channel that is \
             still held, a lock that is never released, or goroutines that join each other"
        );
    }
    os::exit_group(2)
}

#[cold]
fn warn_once(text: &str) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed; only the first one prints.
    if WARNED.swap(true, Relaxed) {
        return;
    }
    let mut out = Stderr;
    let _ = writeln!(out, "{text}");
    let _ = dump::write_all(&mut out);
}

#[cold]
fn warn_of_futexes_once() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // ORDERING: Relaxed; only the first one prints.
    if !are_in_futexes_still() || WARNED.swap(true, Relaxed) {
        return;
    }
    let mut out = Stderr;
    let _ = writeln!(
        out,
        "gosched: all goroutines have been asleep for 10 s, some of them in futexes: locks, \
         condition variables or joins of std or of libraries, which only they may end"
    );
    for (machine, g) in machines_in_futexes() {
        let _ = writeln!(out, "goroutine {} waits in a futex in thread {}", g.id(), machine.tid());
    }
    let _ = writeln!(out);
    let _ = dump::write_all(&mut out);
}

/// Machines that lost their processor in a futex, and their goroutines.
fn machines_in_futexes() -> impl Iterator<Item = (&'static Machine, GRef)> {
    (0..SCHEDULER.machine_count()).filter_map(|id| {
        let machine = SCHEDULER.machine(id)?;
        // ORDERING: Relaxed; a hint.
        machine.lost_in_futex.load(Relaxed).then_some((machine, machine.current()?))
    })
}

/// Whether none of them has come back to compute without a processor.
fn are_in_futexes_still() -> bool {
    let _one_revoker = REVOKER.lock();
    machines_in_futexes().all(|(machine, _)| {
        let is_asleep = machine.eyes.look() == Whereabouts::InCall(libc::SYS_futex);
        machine.eyes.close();
        is_asleep
    })
}

/// How many threads of the process don't belong to the runtime; `None` if /proc is missing.
fn foreign_threads() -> Option<usize> {
    // ORDERING: Relaxed; all is quiet.
    let known = SCHEDULER.known_threads.load(Relaxed) as usize + pool::threads();
    count_threads().map(|all| all.saturating_sub(known))
}

/// Counts the entries of /proc/self/task without libc, since this runs inside the runtime.
fn count_threads() -> Option<usize> {
    let path = c"/proc/self/task";
    let flags = (libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) as usize;
    let at = libc::AT_FDCWD as usize;
    let args = [at, path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the kernel reads a terminated string.
    let fd = unsafe { os::syscall(libc::SYS_openat, args) }.ok()?;
    let mut count = 0;
    let mut buffer = [0_u64; 512];
    loop {
        match read_directory(fd, &mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(bytes) => count += count_entries(&buffer, bytes),
        }
    }
    // SAFETY: opened above.
    let _ = unsafe { os::syscall(libc::SYS_close, [fd, 0, 0, 0, 0, 0]) };
    // "." and ".." are entries too.
    count.checked_sub(2)
}

fn read_directory(fd: usize, buffer: &mut [u64]) -> Result<usize, Errno> {
    let args = [fd, buffer.as_mut_ptr() as usize, size_of_val(buffer), 0, 0, 0];
    // SAFETY: the kernel writes at most that many bytes.
    unsafe { os::syscall(libc::SYS_getdents64, args) }
}

/// `struct linux_dirent64`: 8 bytes inode, 8 offset, 2 record length, then type and name.
fn count_entries(buffer: &[u64], bytes: usize) -> usize {
    const LENGTH_AT: usize = 16;
    let (mut at, mut count) = (0, 0);
    let base = buffer.as_ptr().cast::<u8>();
    while at < bytes {
        let length = base.wrapping_add(at + LENGTH_AT).cast::<u16>();
        // SAFETY: inside the bytes that the kernel wrote; entries are aligned to 8.
        at += usize::from(unsafe { length.read() });
        count += 1;
    }
    count
}
