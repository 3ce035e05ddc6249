//! Waits of loom's threads.

use crate::reason::WaitReason;
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::cell::Cell;
use std::time::{Duration, Instant};

std::thread_local! {
    // All threads of a loom model are on one thread of the system.
    static TIME_PASSES: Cell<bool> = const { Cell::new(false) };
}

/// Until the guard goes, waits that may end at a time do so, at any moment.
pub(crate) fn let_time_pass() -> impl Drop {
    struct Stops;
    impl Drop for Stops {
        fn drop(&mut self) {
            TIME_PASSES.set(false);
        }
    }
    TIME_PASSES.set(true);
    Stops
}

/// The number of permits and a bell. Kept until the end of the process, since wakers may use it
/// after the waiter has gone.
#[derive(Clone, Copy)]
pub(crate) struct Waiter(&'static (Mutex<u32>, Condvar));

impl Waiter {
    pub(crate) fn new() -> Waiter {
        Waiter(Box::leak(Box::new((Mutex::new(0), Condvar::new()))))
    }

    pub(crate) fn wake(self) {
        let (permits, bell) = self.0;
        let mut permits = permits.lock().expect("no panic");
        *permits += 1;
        assert_eq!(*permits, 1, "a waiter is woken once");
        bell.notify_one();
    }

    fn sleep(self) {
        let (permits, bell) = self.0;
        let mut permits = permits.lock().expect("no panic");
        while *permits == 0 {
            permits = bell.wait(permits).expect("no panic");
        }
    }
}

pub(crate) fn block<F: FnOnce(Waiter) -> bool>(_: WaitReason, commit: F) {
    let waiter = Waiter::new();
    if commit(waiter) {
        waiter.sleep();
    }
}

/// As a goroutine is suspended: `commit` runs on another stack, and may still be under way when the
/// goroutine goes on.
pub(crate) fn suspend<F: FnOnce(Waiter) -> bool>(waiter: Waiter, commit: F) {
    let act = move || {
        if !commit(waiter) {
            waiter.wake();
        }
    };
    // SAFETY: a commit uses the frame until it has published its waiter, which the model checks.
    drop(unsafe { spawn(act) });
    waiter.sleep();
}

/// The time-out strikes at any moment, if at all.
pub(crate) fn block_until<F, E>(reason: WaitReason, _: Instant, commit: F, expire: E)
where
    F: FnOnce(Waiter) -> bool,
    E: Fn() -> bool + Sync,
{
    if !TIME_PASSES.get() {
        return block(reason, commit);
    }
    let waiter = Waiter::new();
    if !commit(waiter) {
        return;
    }
    let strike = || {
        if expire() {
            waiter.wake();
        }
    };
    // SAFETY: joined before this frame ends.
    let timer = unsafe { spawn(strike) };
    waiter.sleep();
    timer.join().expect("no panic");
}

pub(crate) fn nanoseconds(d: Duration) -> u64 {
    d.as_nanos() as u64
}

/// # Safety
/// * What `f` borrows lives until it is done with it.
unsafe fn spawn<'a>(f: impl FnOnce() + 'a) -> thread::JoinHandle<()> {
    struct Sent(Box<dyn FnOnce()>);
    // SAFETY: only one thread runs it, and the other waits or stays away from what it uses.
    unsafe impl Send for Sent {}
    impl Sent {
        fn run(self) {
            (self.0)();
        }
    }
    let f: Box<dyn FnOnce() + 'a> = Box::new(f);
    // SAFETY: by the caller.
    let f = Sent(unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce()>>(f) });
    thread::spawn(move || f.run())
}
