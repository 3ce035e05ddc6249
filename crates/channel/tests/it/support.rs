//! Goroutines without the facade, which is above this crate.

use gosched_sched::{JoinHandle, SpawnOptions, spawn};
use std::panic::Location;
use std::time::Duration;

/// Long enough for the other side to have begun to wait.
pub(crate) const SHORT: Duration = Duration::from_millis(10);

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sleeps without a machine.
pub(crate) fn sleep(d: Duration) {
    gosched_sched::sleep(d);
}

/// `gosched::go`.
#[track_caller]
pub(crate) fn go<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // SAFETY: the bounds are those of `std::thread::spawn`, and thread-locals are its own.
    unsafe { spawn(f, SpawnOptions::default(), Location::caller()) }.expect("a goroutine")
}

/// Who runs a piece of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Goroutine,
    Thread,
}

pub(crate) const ALL: [Who; 2] = [Who::Goroutine, Who::Thread];

/// Every way to have two parties.
pub(crate) const PAIRS: [(Who, Who); 4] = [
    (Who::Goroutine, Who::Goroutine),
    (Who::Goroutine, Who::Thread),
    (Who::Thread, Who::Goroutine),
    (Who::Thread, Who::Thread),
];

/// One that runs.
pub(crate) enum Running<T> {
    Goroutine(JoinHandle<T>),
    Thread(std::thread::JoinHandle<T>),
}

impl Who {
    #[track_caller]
    pub(crate) fn start<T: Send + 'static>(
        self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Running<T> {
        match self {
            Who::Goroutine => Running::Goroutine(go(f)),
            Who::Thread => Running::Thread(std::thread::spawn(f)),
        }
    }
}

impl<T> Running<T> {
    #[track_caller]
    pub(crate) fn join(self) -> T {
        match self {
            Running::Goroutine(handle) => handle.join(),
            Running::Thread(handle) => handle.join(),
        }
        .expect("no panic")
    }
}
