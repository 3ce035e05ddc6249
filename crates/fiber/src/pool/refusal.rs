//! What is said when no fibers can be made for a while. Once: whoever waits goes on when there is
//! memory again, and it may be short time and again.

use super::REQUESTS;
use crate::fiber::{Fiber, FiberError, Makings};
use crate::stack::Class;
use gosched_base::{Lock, Stderr};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Why the last one could not be made.
static LAST: Lock<Option<FiberError>> = Lock::new(None);

/// Makes a fiber, or notes why not.
pub(super) fn make(makings: &mut Makings) -> Option<Fiber> {
    match makings.make() {
        Ok(fiber) => Some(fiber),
        Err(error) => {
            // What was there is dropped without the lock.
            let _before = LAST.lock().replace(error);
            None
        }
    }
}

/// Says who waits for what. On the helper's thread.
pub(super) fn warn_once() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let last = LAST.lock().take();
    let Some(error) = last else { return };
    // ORDERING: Relaxed; the helper's alone.
    if WARNED.swap(true, Relaxed) {
        return;
    }
    let count: usize = Class::all().map(|class| REQUESTS.wanted(class)).sum();
    let _ = writeln!(
        Stderr,
        "gosched: {error}; {count} wait for theirs until some end or there is more memory"
    );
}
