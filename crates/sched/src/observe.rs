//! What the kernel says about a machine's thread: has it computed, and where does it sleep?
//!
//! Two questions, cheapest first: the thread's CPU clock (0.5 us), and, if that has not moved,
//! `/proc/self/task/T/syscall` (1.2 us for a running thread, 6.5 us for a blocked one), read
//! through a descriptor that stays open, so that a thread number that is used again can't be
//! mistaken.
//!
//! A thread that somebody stopped (a tracer) looks asleep in that file too; `stat` tells, and is
//! asked last, before a processor is taken.
//!
//! Where the file can't be opened (no /proc, a filter of system calls, no descriptor left) there is
//! the clock alone, and [`heavy`](gosched_base::barrier::heavy) for the order that a look at a sleeping
//! thread brings.
//!
//! Rejected for these questions: `schedstat`, which is stale by up to a tick (for what a thread has
//! waited over a longer time it is good enough, see `monitor/rest`); `stat`, whose state S can also be
//! a page fault that is being waited for.

use gosched_base::os::{self, Errno};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// On a CPU, or waiting for one: throttled, stolen from, queued.
    Running,
    /// In this system call, with these first two arguments.
    InCall(i64),
    /// Asleep in the kernel outside a system call: a page fault, a freezer.
    Faulting,
    /// The kernel doesn't tell.
    Unknown,
}

/// Eyes on one thread. Used by the one revoker, but for `turn_to`.
#[derive(Debug)]
pub(crate) struct Eyes {
    /// `/proc/self/task/T/syscall`, or -1.
    file: AtomicI32,
    tid: AtomicI32,
}

impl Eyes {
    pub(crate) const fn closed() -> Eyes {
        Eyes { file: AtomicI32::new(-1), tid: AtomicI32::new(0) }
    }

    /// On the thread itself, before anybody looks at it.
    pub(crate) fn turn_to(&self, tid: i32) {
        // ORDERING: Relaxed; published with the machine's first processor.
        self.tid.store(tid, Relaxed);
    }

    /// The descriptor. It is opened by the first look and not before: a machine that only ever
    /// sleeps or makes declared calls has none, and a process may have more threads than files.
    fn file(&self) -> Option<i32> {
        // ORDERING: Relaxed for all; the one revoker's alone.
        let mut file = self.file.load(Relaxed);
        if file < 0 {
            file = open(self.tid.load(Relaxed), b"/syscall\0").unwrap_or(-1);
            self.file.store(file, Relaxed);
        }
        (file >= 0).then_some(file)
    }

    /// Gives the descriptor back: nobody will look for a while.
    pub(crate) fn close(&self) {
        // ORDERING: Relaxed; as above.
        let file = self.file.swap(-1, Relaxed);
        if file >= 0 {
            close(file);
        }
    }

    /// CPU time of the thread in nanoseconds; `None` if the thread is gone.
    pub(crate) fn cpu_time(&self) -> Option<u64> {
        // ORDERING: Relaxed; see `turn_to`.
        let tid = self.tid.load(Relaxed);
        // The kernel's number for "the scheduler's clock of thread `tid`" (CPUCLOCK_PERTHREAD |
        // CPUCLOCK_SCHED), as `pthread_getcpuclockid` computes it.
        let clock = (!tid << 3) | 6;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let args = [clock as usize, &raw mut time as usize, 0, 0, 0, 0];
        // SAFETY: the kernel writes one timespec, which is ours.
        unsafe { os::syscall(libc::SYS_clock_gettime, args) }.ok()?;
        Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// How long the thread was ready and waited for a CPU, in nanoseconds: up to when it last got one,
    /// or a tick ago.
    pub(crate) fn waited(&self) -> Option<u64> {
        // ORDERING: Relaxed; see `turn_to`.
        let file = open(self.tid.load(Relaxed), b"/schedstat\0")?;
        let mut text = [0_u8; 80];
        let len = read_at_start(file, &mut text).unwrap_or(0);
        close(file);
        parse_waited(&text[..len])
    }

    /// The system call that the thread sleeps in, with its arguments.
    pub(crate) fn call(&self) -> Option<[u64; 7]> {
        let mut text = [0_u8; 160];
        let len = read_at_start(self.file()?, &mut text).ok()?;
        parse_call(&text[..len])
    }

    /// Whether the thread sleeps by itself: nobody has stopped it, and it does not wait for a CPU
    /// because whoever had stopped it let it go since the look before. True where the kernel
    /// doesn't tell.
    pub(crate) fn is_asleep(&self) -> bool {
        // ORDERING: Relaxed; see `turn_to`.
        let Some(file) = open(self.tid.load(Relaxed), b"/stat\0") else { return true };
        // As much as holds the number, the name and the state.
        let mut text = [0_u8; 64];
        let len = read_at_start(file, &mut text).unwrap_or(0);
        close(file);
        is_sleep(state(&text[..len]))
    }

    /// Where the thread is now.
    pub(crate) fn look(&self) -> Whereabouts {
        let Some(file) = self.file() else { return Whereabouts::Unknown };
        let mut text = [0_u8; 160];
        match read_at_start(file, &mut text) {
            Ok(len) => parse(&text[..len]),
            Err(_) => Whereabouts::Unknown,
        }
    }
}

/// Opens a file of thread `tid`. Neither allocates nor formats.
fn open(tid: i32, name: &[u8]) -> Option<i32> {
    let mut path = [0_u8; 40];
    let mut digits = [0_u8; 10];
    let mut first = digits.len();
    let mut rest = tid;
    while rest > 0 {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let parts = [b"/proc/self/task/", &digits[first..], name];
    let mut at = 0;
    for part in parts {
        path[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let args = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the kernel reads a terminated string.
    unsafe { os::syscall(libc::SYS_openat, args) }.ok().map(|file| file as i32)
}

/// Whether the kernel tells what a thread sleeps in. For `doctor`.
pub(crate) fn is_possible() -> bool {
    let Some(file) = open(os::gettid(), b"/syscall\0") else { return false };
    close(file);
    true
}

/// Closes what `open` has opened.
fn close(file: i32) {
    // SAFETY: opened here, and used by nobody else.
    let _ = unsafe { os::syscall(libc::SYS_close, [file as usize, 0, 0, 0, 0, 0]) };
}

fn read_at_start(file: i32, text: &mut [u8]) -> Result<usize, Errno> {
    let args = [file as usize, text.as_mut_ptr() as usize, text.len(), 0, 0, 0];
    // SAFETY: the kernel writes at most that many bytes.
    unsafe { os::syscall(libc::SYS_pread64, args) }
}

/// The second number of three.
fn parse_waited(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// `running`, or a system call's number (-1: none) followed by arguments.
fn parse(text: &[u8]) -> Whereabouts {
    if text.starts_with(b"running") {
        return Whereabouts::Running;
    }
    let word = text.split(|b| b.is_ascii_whitespace()).next().unwrap_or(&[]);
    match std::str::from_utf8(word).ok().and_then(|w| w.parse::<i64>().ok()) {
        Some(-1) => Whereabouts::Faulting,
        Some(number) => Whereabouts::InCall(number),
        None => Whereabouts::Unknown,
    }
}

/// A system call's number, then its arguments in hexadecimal.
fn parse_call(text: &[u8]) -> Option<[u64; 7]> {
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut call = [0; 7];
    call[0] = words.next()?.parse().ok()?;
    for argument in &mut call[1..] {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(call)
}

/// Whether that state is a sleep. Named one by one: of R, T and t none is.
fn is_sleep(state: Option<u8>) -> bool {
    matches!(state, Some(b'S' | b'D') | None)
}

/// The state in a `stat` line: behind the name, which is in brackets and may hold any byte.
fn state(text: &[u8]) -> Option<u8> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    text.get(end + 2).copied()
}

#[cfg(test)]
mod tests;
