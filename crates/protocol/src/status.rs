//! Where a goroutine is. The status also says who owns its stack.
//!
//! Names and numbers are Go's (`runtime2.go`), since dumps and `scheddetail` print them.
//!
//! ```text
//!   Dead --created--> Runnable --run--> Running --park--> Waiting --ready--> Runnable
//!     ^                   ^--------yielded--'|
//!     `--------------------exit--------------'
//!   Running --enter_call--> Syscall --exit_call--> Running
//! ```
//!
//! Every transition is made by whoever owns the goroutine at that moment, so none is a
//! read-modify-write: the queue or wait structure that handed the goroutine over has decided the
//! winner and carries the memory, this word included. The check is kept: a wrong status is a
//! broken invariant. The table of all pairs is `status/tests.rs`; `tests/loom_permit.rs` runs the
//! word together with a wait structure.
//!
//! Who hands over: `run` reads what `created`, `yielded` or `ready` wrote, through the run queue.
//! `ready` reads what `park` wrote, through the wait structure: the goroutine is Waiting *before*
//! it can be found there (edge `permit-park` for [`Permit`](crate::Permit)). If the wait structure
//! turns it down instead, its machine makes it `ready` and `run`s it at once.

use crate::sync::{AtomicU8, const_unless_modelled};
use gosched_base::rt_abort;
use std::sync::atomic::Ordering::Relaxed;

/// A goroutine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Go's for a descriptor that is being made. No transition leads here: descriptors are Dead
    /// from [`never_used`](StatusWord::never_used) on.
    Idle = 0,
    /// In exactly one run queue. The stack is frozen; the queue's reader owns it next.
    Runnable = 1,
    /// On a machine that holds a processor. The stack belongs to that machine's thread.
    Running = 2,
    /// In a declared blocking call, on a machine whose processor others may take. The stack belongs
    /// to that machine's thread.
    Syscall = 3,
    /// In one wait structure, found by whoever calls `ready`. The stack is frozen, except that the
    /// waker may write what the waiter left for it there.
    Waiting = 4,
    /// Ended; in a free list, or being made anew. No stack.
    Dead = 6,
}

impl Status {
    /// Go's word for it in dumps.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Runnable => "runnable",
            Status::Running => "running",
            Status::Syscall => "syscall",
            Status::Waiting => "waiting",
            Status::Dead => "dead",
        }
    }

    /// The word holds nothing but what `step` stored, so `_` is 6.
    const fn from_number(n: u8) -> Status {
        match n {
            0 => Status::Idle,
            1 => Status::Runnable,
            2 => Status::Running,
            3 => Status::Syscall,
            4 => Status::Waiting,
            _ => Status::Dead,
        }
    }
}

/// A goroutine's status word.
///
/// Written by: the goroutine's owner of the moment. Read by: anyone, as a hint.
///
/// A transition from any status but the one it names aborts the process.
///
/// # Examples
/// ```
/// use gosched_protocol::{Status, StatusWord};
///
/// let status = StatusWord::new();
/// status.created();
/// status.run();
/// status.park();
/// assert_eq!(status.get(), Status::Waiting);
/// status.ready();
/// status.run();
/// status.exit();
/// assert_eq!(status.get(), Status::Dead);
/// ```
#[derive(Debug)]
pub struct StatusWord(AtomicU8);

impl StatusWord {
    const_unless_modelled! {
        /// A descriptor that was never used: dead.
        pub fn new() -> StatusWord {
            StatusWord(AtomicU8::new(Status::Dead as u8))
        }
    }

    /// The status now; by the time the caller looks at it, a hint.
    #[must_use]
    pub fn get(&self) -> Status {
        // ORDERING: Relaxed; see the module page.
        Status::from_number(self.0.load(Relaxed))
    }

    /// Makes zeroed memory, which reads as `Idle`, a descriptor that was never used.
    #[inline]
    pub fn never_used(&self) {
        // ORDERING: Relaxed; whoever looks meanwhile sees Idle, which nobody asks about.
        self.0.store(Status::Dead as u8, Relaxed);
    }

    #[inline]
    fn step(&self, from: Status, to: Status) {
        // ORDERING: Relaxed for both; the queue or wait structure that hands the goroutine over
        // carries its memory.
        let found = self.0.load(Relaxed);
        if found != from as u8 {
            wrong(from, to, found);
        }
        self.0.store(to as u8, Relaxed);
    }

    /// Dead -> Runnable: it has a function and goes into its first queue.
    #[inline]
    pub fn created(&self) {
        self.step(Status::Dead, Status::Runnable);
    }

    /// Runnable -> Running: its machine took it from a queue.
    #[inline]
    pub fn run(&self) {
        self.step(Status::Runnable, Status::Running);
    }

    /// Running -> Runnable: it yields, or is preempted.
    #[inline]
    pub fn yielded(&self) {
        self.step(Status::Running, Status::Runnable);
    }

    /// Running -> Waiting: it parks.
    #[inline]
    pub fn park(&self) {
        self.step(Status::Running, Status::Waiting);
    }

    /// Waiting -> Runnable: the one waker that won.
    #[inline]
    pub fn ready(&self) {
        self.step(Status::Waiting, Status::Runnable);
    }

    /// Running -> Syscall: it begins a declared blocking call.
    #[inline]
    pub fn enter_call(&self) {
        self.step(Status::Running, Status::Syscall);
    }

    /// Syscall -> Running: the call is over.
    #[inline]
    pub fn exit_call(&self) {
        self.step(Status::Syscall, Status::Running);
    }

    /// Running -> Dead: its function has returned.
    #[inline]
    pub fn exit(&self) {
        self.step(Status::Running, Status::Dead);
    }
}

#[cold]
#[inline(never)]
fn wrong(from: Status, to: Status, found: u8) -> ! {
    let found = Status::from_number(found);
    rt_abort!("goroutine status: {from:?} -> {to:?} wanted, found {found:?}")
}

impl Default for StatusWord {
    fn default() -> StatusWord {
        StatusWord::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
