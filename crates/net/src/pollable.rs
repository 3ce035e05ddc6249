//! A nonblocking file whose calls wait for it in the poller.

use crate::side::{Side, too_late};
use crate::turn::{Taken, Turn};
use crate::with_context::check;
use gosched_sched::{Cancellation, Cancels, Direction, PollFd};
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A file that doesn't block, and calls on it that wait.
///
/// Everything of this project that waits for the kernel to have something is built on it: sockets,
/// pipes of child processes, process descriptors.
///
/// A call tries first, and waits only if there was nothing; the file is registered with the poller
/// at the first wait. Many goroutines and threads may use it at once, in both directions.
///
/// ```
/// use gosched_net::{Direction, Pollable};
/// use std::io::{Read, Write};
///
/// let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
/// ours.set_nonblocking(true).unwrap();
/// let ours = Pollable::new(ours);
/// theirs.write_all(b"hello").unwrap();
///
/// let mut buffer = [0; 8];
/// let n = ours.call(Direction::Read, |mut file| file.read(&mut buffer)).unwrap();
/// assert_eq!(&buffer[..n], b"hello");
/// ```
pub struct Pollable<T> {
    /// First, so that it ends before the file is closed.
    registration: Registration,
    read: Side,
    write: Side,
    /// The user wants `WouldBlock` instead of waits.
    returns_at_once: AtomicBool,
    is_closed: AtomicBool,
    file: T,
}

/// The file's place in the poller, from the first wait on.
struct Registration {
    fd: RawFd,
    entered: OnceLock<PollFd>,
    /// Held while it is entered. std's: a second one that waits for the same moment is rare.
    entering: Mutex<()>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(entered) = self.entered.take() {
            entered.remove(self.fd);
        }
    }
}

impl Registration {
    fn get_or_enter(&self) -> io::Result<&PollFd> {
        if let Some(entered) = self.entered.get() {
            return Ok(entered);
        }
        let _one = self.entering.lock().unwrap_or_else(PoisonError::into_inner);
        match self.entered.get() {
            Some(entered) => Ok(entered),
            None => {
                let entered = PollFd::add(self.fd)?;
                Ok(self.entered.get_or_init(|| entered))
            }
        }
    }
}

/// Gives the turn on when its holder is done, also when the call unwinds.
struct HeldTurn<'a>(&'a Turn);

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}

impl<T: AsFd> Pollable<T> {
    /// For a file that has been made nonblocking.
    pub fn new(file: T) -> Pollable<T> {
        let fd = file.as_fd().as_raw_fd();
        let registration = Registration { fd, entered: OnceLock::new(), entering: Mutex::new(()) };
        Pollable {
            registration,
            read: Side::new(),
            write: Side::new(),
            returns_at_once: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            file,
        }
    }

    /// As [`new`](Pollable::new), with the time-outs, deadlines and mode that this one has now.
    pub fn like(&self, file: T) -> Pollable<T> {
        Pollable {
            read: Side::like(&self.read),
            write: Side::like(&self.write),
            returns_at_once: AtomicBool::new(self.returns_at_once()),
            ..Pollable::new(file)
        }
    }

    /// The file.
    pub fn get_ref(&self) -> &T {
        &self.file
    }

    /// The file, no longer registered. It still doesn't block.
    pub fn into_inner(self) -> T {
        let Pollable { registration, file, .. } = self;
        drop(registration);
        file
    }

    /// Calls `f`, again and again after waits, until it returns something else than `WouldBlock`.
    ///
    /// Go's `RawConn.Read` and `RawConn.Write`.
    ///
    /// # Errors
    /// What `f` returns; `TimedOut` after the time-out or deadline of the direction; that the file
    /// can't be registered; `NotConnected` once it is [closed](Pollable::close). `WouldBlock` only
    /// after [`set_returns_at_once`](Pollable::set_returns_at_once).
    #[inline]
    pub fn call<R>(
        &self,
        direction: Direction,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.check(direction)?;
        match f(&self.file) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.wait_and_call(direction, f, |_| false, Some(error), None)
            }
            result => result,
        }
    }

    /// As [`call`](Pollable::call) with a read of a stream into a buffer of `room` bytes. If reads
    /// end early only where there is nothing more (`short_read_empties`), the one after a short read
    /// waits without a look of its own: a system call less for each message.
    ///
    /// # Errors
    /// As of [`call`](Pollable::call).
    #[inline]
    pub(crate) fn read(
        &self,
        short_read_empties: bool,
        room: usize,
        mut f: impl FnMut(&T) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.check(Direction::Read)?;
        let nothing = if self.read.seems_empty() && !self.returns_at_once() {
            None
        } else {
            match f(&self.file) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => Some(error),
                result => return result,
            }
        };
        let empties = |n: &usize| short_read_empties && 0 < *n && *n < room;
        self.wait_and_call(Direction::Read, f, empties, nothing, None)
    }

    /// As [`call`](Pollable::call), but gives up when `ctx` is cancelled.
    ///
    /// # Errors
    /// As of [`call`](Pollable::call), and one that [`is_cancelled`](crate::is_cancelled) knows if
    /// `ctx` was cancelled, before or meanwhile.
    pub fn call_ctx<R, C: Cancels + ?Sized>(
        &self,
        ctx: &C,
        direction: Direction,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        let cancellation = ctx.cancellation();
        check(cancellation)?;
        self.check(direction)?;
        match f(&self.file) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.wait_and_call(direction, f, |_| false, Some(error), cancellation)
            }
            result => result,
        }
    }

    /// Calls `f` once, whatever it returns.
    ///
    /// # Errors
    /// As of [`call`](Pollable::call), and `WouldBlock`.
    pub fn try_call<R>(
        &self,
        direction: Direction,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.check(direction)?;
        f(&self.file)
    }

    /// The calls after the first one, which has found `nothing`, or was left out since the last one
    /// under the turn has emptied the file: its result was one that `empties`.
    #[inline(never)]
    fn wait_and_call<R>(
        &self,
        direction: Direction,
        mut f: impl FnMut(&T) -> io::Result<R>,
        empties: impl Fn(&R) -> bool,
        nothing: Option<io::Error>,
        cancellation: Option<&Cancellation>,
    ) -> io::Result<R> {
        let has_looked = nothing.is_some();
        if self.returns_at_once()
            && let Some(nothing) = nothing
        {
            return Err(nothing);
        }
        let side = self.side(direction);
        let entered = self.registration.get_or_enter()?;
        let end = side.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
        let mut must_look = false;
        let turn = loop {
            match side.turn.take(earlier(end, side.deadline()), cancellation) {
                Taken::AtOnce => break HeldTurn(&side.turn),
                Taken::AfterAnother => {
                    must_look = true;
                    break HeldTurn(&side.turn);
                }
                Taken::LookAgain => self.check(direction)?,
                Taken::TooLate => {
                    check(cancellation)?;
                    self.check_late(direction, end)?;
                }
            }
        };
        // Only who has the turn takes notes, so that no change was missed since.
        must_look |= !(side.take_empty() || has_looked);
        loop {
            let until = earlier(end, side.deadline());
            if !must_look && !entered.wait(direction, until, cancellation) {
                check(cancellation)?;
                self.check_late(direction, end)?;
                continue;
            }
            must_look = false;
            self.check(direction)?;
            match f(&self.file) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => {
                    if result.as_ref().is_ok_and(&empties) && entered.short_read_empties() {
                        side.note_empty();
                    }
                    drop(turn);
                    return result;
                }
            }
        }
    }

    /// Waits until the direction has changed since the caller has looked, or something else wants
    /// it to look again.
    ///
    /// # Errors
    /// As of [`call`](Pollable::call).
    pub fn wait(&self, direction: Direction, until: Option<Instant>) -> io::Result<()> {
        let side = self.side(direction);
        let entered = self.registration.get_or_enter()?;
        self.check(direction)?;
        match side.turn.take(earlier(until, side.deadline()), None) {
            Taken::AtOnce => {}
            Taken::AfterAnother => {
                side.turn.give();
                return Ok(());
            }
            Taken::LookAgain => return self.check(direction),
            Taken::TooLate => return self.check_late(direction, until),
        }
        let _turn = HeldTurn(&side.turn);
        side.take_empty();
        if !entered.wait(direction, earlier(until, side.deadline()), None) {
            self.check_late(direction, until)?;
        }
        self.check(direction)
    }

    /// A wait was over: too late, unless the deadline has been moved meanwhile.
    fn check_late(&self, direction: Direction, end: Option<Instant>) -> io::Result<()> {
        self.check(direction)?;
        match end {
            Some(end) if end <= Instant::now() => Err(too_late()),
            _ => Ok(()),
        }
    }

    #[inline]
    fn check(&self, direction: Direction) -> io::Result<()> {
        // ORDERING: Relaxed; who closes makes waiting calls look again, as with deadlines.
        if self.is_closed.load(Relaxed) {
            return Err(closed());
        }
        self.side(direction).check_deadline()
    }

    fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// Makes waiting calls look at the file, the deadline and the rest again.
    pub fn look_again(&self, direction: Direction) {
        if let Some(entered) = self.registration.entered.get() {
            entered.make_ready(direction);
        }
        self.side(direction).turn.look_again();
    }

    /// From now on all calls fail, those that wait included. The descriptor itself is closed when
    /// the value is dropped.
    pub fn close(&self) {
        // ORDERING: Relaxed; see `check`.
        self.is_closed.store(true, Relaxed);
        self.look_again(Direction::Read);
        self.look_again(Direction::Write);
    }

    /// How long each call in this direction may wait.
    pub fn timeout(&self, direction: Direction) -> Option<Duration> {
        self.side(direction).timeout()
    }

    /// Sets how long each call in this direction that begins from now on may wait.
    ///
    /// # Errors
    /// A time-out of zero.
    pub fn set_timeout(&self, direction: Direction, timeout: Option<Duration>) -> io::Result<()> {
        self.side(direction).set_timeout(timeout)
    }

    /// Sets until when calls in this direction may wait, those that wait already included. Once it
    /// is over they fail without a try.
    pub fn set_deadline(&self, direction: Direction, deadline: Option<Instant>) {
        self.side(direction).set_deadline(deadline);
        self.look_again(direction);
    }

    /// Whether calls return `WouldBlock` instead of waiting.
    pub fn returns_at_once(&self) -> bool {
        // ORDERING: Relaxed; a setting.
        self.returns_at_once.load(Relaxed)
    }

    /// Sets whether calls that begin from now on return `WouldBlock` instead of waiting.
    pub fn set_returns_at_once(&self, at_once: bool) {
        // ORDERING: Relaxed; a setting.
        self.returns_at_once.store(at_once, Relaxed);
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Go's `ErrClosed`.
fn closed() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "use of closed network connection")
}

impl<T: fmt::Debug> fmt::Debug for Pollable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
