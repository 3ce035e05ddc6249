//! Linux: epoll, and an eventfd as the bell.
//!
//! The bell is level-triggered and read only by the waits that sleep, as Go's: a look in passing
//! ([`Wait::Never`]) that comes between the ring and the sleeper must not take it away.

use crate::Descriptor;
use gosched_base::os::{self, Errno};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long [`Poller::wait`] may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Never,
    /// At most this long.
    For(Duration),
    /// At most about this long, give or take the kernel's 50 us.
    Roughly(Duration),
    /// Until something happens.
    Forever,
}

/// From here on a time-out may be 50 us late as well: to have it precise takes three system calls, and
/// a server whose connections have time-outs goes to sleep thousands of times a second.
const SLACK_MATTERS: Duration = Duration::from_secs(1);
/// Events taken at once. Go's number.
const EVENTS: usize = 128;
/// The bell's event; no descriptor has the address 0.
const BELL: u64 = 0;

/// What the kernel writes events into.
type Events = [MaybeUninit<libc::epoll_event>; EVENTS];

/// An epoll instance with a bell. One thread sleeps in it at a time; anyone rings.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    bell: OwnedFd,
    /// Whether `epoll_pwait2` exists; else time-outs are rounded up to milliseconds.
    precise: AtomicBool,
}

impl Poller {
    /// Opens the poller.
    ///
    /// # Errors
    /// Too many open files, or no memory.
    pub fn new() -> std::io::Result<Poller> {
        // SAFETY: no memory is passed.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no memory is passed.
        let bell = owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let poller = Poller { epoll, bell, precise: AtomicBool::new(true) };
        let bell = poller.bell.as_raw_fd();
        match poller.control(libc::EPOLL_CTL_ADD, bell, libc::EPOLLIN, BELL) {
            Ok(()) => Ok(poller),
            Err(Errno(number)) => Err(std::io::Error::from_raw_os_error(number)),
        }
    }

    /// Registers a file for both directions. If it is ready already, the descriptor soon says so.
    ///
    /// Allocates nothing: may be called inside the runtime.
    ///
    /// # Errors
    /// A file that can't be polled (`EPERM`), one that is registered already (`EEXIST`), no memory,
    /// too many registrations (`ENOSPC`, see `/proc/sys/fs/epoll/max_user_watches`).
    pub fn add(&self, fd: RawFd) -> Result<&'static Descriptor, Errno> {
        let descriptor = Descriptor::take().ok_or(Errno(libc::ENOMEM))?;
        let events =
            libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLPRI | libc::EPOLLET;
        match self.control(libc::EPOLL_CTL_ADD, fd, events, descriptor.event_word()) {
            Ok(()) => Ok(descriptor),
            Err(error) => {
                descriptor.give();
                Err(error)
            }
        }
    }

    /// Ends a registration. Before the file is closed: a copy of it that stays open elsewhere would
    /// keep sending events.
    ///
    /// Nobody waits on the descriptor, and it isn't used afterwards.
    pub fn remove(&self, fd: RawFd, descriptor: &'static Descriptor) {
        // It fails only if the user has closed the file behind our back, which removes it as well.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
        descriptor.give();
    }

    fn control(&self, op: i32, fd: RawFd, events: i32, word: u64) -> Result<(), Errno> {
        let event = libc::epoll_event { events: events as u32, u64: word };
        let (epoll, at) = (self.epoll.as_raw_fd() as usize, &raw const event as usize);
        let args = [epoll, op as usize, fd as usize, at, 0, 0];
        // SAFETY: the kernel reads one event, which is ours.
        unsafe { os::syscall(libc::SYS_epoll_ctl, args) }.map(drop)
    }

    /// Sleeps until a descriptor changes, the bell rings, or the time is over; then calls `found`
    /// with each waiter that must be made runnable now. May be called inside the runtime.
    ///
    /// A ring before the wait ends it at once. A wait that may not sleep leaves the bell as it is.
    pub fn wait(&self, wait: Wait, found: impl FnMut(NonZeroUsize)) {
        let mut events: Events = [const { MaybeUninit::uninit() }; EVENTS];
        let count = match self.wait_for_events(&mut events, wait) {
            Ok(count) => count.min(EVENTS),
            // Interrupted: whoever waits looks at its deadline again.
            Err(_) => return,
        };
        if self.take_events(&events[..count], found) && wait != Wait::Never {
            self.read_bell();
        }
    }

    fn wait_for_events(&self, events: &mut Events, wait: Wait) -> Result<usize, Errno> {
        // Looks in passing need no clock; the older call is a little cheaper.
        if wait == Wait::Never {
            return self.wait_roughly(events, wait);
        }
        // ORDERING: Relaxed; a hint about the kernel.
        if self.precise.load(Ordering::Relaxed) {
            match self.wait_precisely(events, wait) {
                Err(Errno(libc::ENOSYS)) => self.precise.store(false, Ordering::Relaxed),
                result => return result,
            }
        }
        self.wait_roughly(events, wait)
    }

    fn wait_precisely(&self, events: &mut Events, wait: Wait) -> Result<usize, Errno> {
        let _precise = is_precise(wait).then(NoSlack::begin);
        let timeout = match wait {
            Wait::Never => Some(Duration::ZERO),
            Wait::For(d) | Wait::Roughly(d) => Some(d),
            Wait::Forever => None,
        };
        let spec = timeout.map(|d| libc::timespec {
            tv_sec: d.as_secs().min(i64::MAX as u64) as i64,
            tv_nsec: i64::from(d.subsec_nanos()),
        });
        let spec = spec.as_ref().map_or(0, |s| s as *const libc::timespec as usize);
        let at = events.as_mut_ptr() as usize;
        let args = [self.epoll.as_raw_fd() as usize, at, EVENTS, spec, 0, 8];
        // SAFETY: the kernel writes at most `EVENTS` events and reads the time-out.
        unsafe { os::syscall(libc::SYS_epoll_pwait2, args) }
    }

    fn wait_roughly(&self, events: &mut Events, wait: Wait) -> Result<usize, Errno> {
        let timeout = match wait {
            Wait::Never => 0,
            Wait::For(d) | Wait::Roughly(d) => {
                d.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as usize
            }
            Wait::Forever => usize::MAX,
        };
        let at = events.as_mut_ptr() as usize;
        let args = [self.epoll.as_raw_fd() as usize, at, EVENTS, timeout, 0, 8];
        // SAFETY: the kernel writes at most `EVENTS` events.
        unsafe { os::syscall(libc::SYS_epoll_pwait, args) }
    }

    /// Makes the descriptors of the events ready. True: the bell is among them.
    fn take_events(
        &self,
        events: &[MaybeUninit<libc::epoll_event>],
        mut found: impl FnMut(NonZeroUsize),
    ) -> bool {
        let mut has_rung = false;
        for event in events {
            // SAFETY: the kernel has written it.
            let libc::epoll_event { events, u64: word } = unsafe { event.assume_init() };
            if word == BELL {
                has_rung = true;
                continue;
            }
            // SAFETY: all other events were registered with a descriptor's word.
            let Some(descriptor) = (unsafe { Descriptor::of_event(word) }) else { continue };
            let events = events as i32;
            if events & MORE != 0 {
                descriptor.note_more();
            }
            if events & READ_SIDE != 0 {
                descriptor.read.make_ready().into_iter().for_each(&mut found);
            }
            if events & WRITE_SIDE != 0 {
                descriptor.write.make_ready().into_iter().for_each(&mut found);
            }
        }
        has_rung
    }

    fn read_bell(&self) {
        let mut count = 0_u64;
        let args = [self.bell.as_raw_fd() as usize, &raw mut count as usize, 8, 0, 0, 0];
        // SAFETY: the kernel writes eight bytes, which are ours.
        let _ = unsafe { os::syscall(libc::SYS_read, args) };
    }

    /// Ends the wait of whoever sleeps now, or the next one.
    pub fn ring(&self) {
        let one = 1_u64;
        let args = [self.bell.as_raw_fd() as usize, &raw const one as usize, 8, 0, 0, 0];
        // SAFETY: the kernel reads eight bytes, which are ours. A full counter (EAGAIN) has rung.
        let _ = unsafe { os::syscall(libc::SYS_write, args) };
    }
}

/// Whether a time-out that is 50 us late would be.
fn is_precise(wait: Wait) -> bool {
    matches!(wait, Wait::For(time) if time < SLACK_MATTERS)
}

/// While it lives the kernel wakes this thread when its time-out is over and not, to save wake-ups, up
/// to 50 us later. Not for good, since the thread's children would inherit it.
struct NoSlack {
    before: usize,
}

impl NoSlack {
    fn begin() -> NoSlack {
        let before = slack(libc::PR_GET_TIMERSLACK, 0).unwrap_or(0);
        let _ = slack(libc::PR_SET_TIMERSLACK, 1);
        NoSlack { before }
    }
}

impl Drop for NoSlack {
    fn drop(&mut self) {
        // 0 would mean the thread's default.
        let _ = slack(libc::PR_SET_TIMERSLACK, self.before);
    }
}

fn slack(what: i32, ns: usize) -> Result<usize, Errno> {
    // SAFETY: no memory is passed.
    unsafe { os::syscall(libc::SYS_prctl, [what as usize, ns, 0, 0, 0, 0]) }
}
/// Go's sides: what is broken is ready in both directions, so that whoever waits sees the error.
const READ_SIDE: i32 = libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR;
/// What is behind the data, or in the middle of it, and has no event of its own if it came with it.
const MORE: i32 = libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLPRI;
const WRITE_SIDE: i32 = libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR;

fn owned(fd: i32) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests;
