//! The locks without their data: a word each, and a queue for those who wait.

mod mutex;
mod rw_lock;
mod semaphore;

pub(crate) use mutex::RawMutex;
pub(crate) use rw_lock::RawRwLock;
pub(crate) use semaphore::RawSemaphore;

use crate::rt::{may_spin, spin_loop};

/// A waiter older than this, in nanoseconds, is given the lock instead of a chance at it. Go's.
const STARVING_NS: u64 = 1_000_000;

/// A bounded spin before a wait: 4 times 30 pauses, about 2 us, as Go's.
#[derive(Default)]
struct Spin {
    rounds: u32,
}

impl Spin {
    /// Whether to look again, after a few pauses.
    fn again(&mut self) -> bool {
        if self.rounds == ROUNDS || !may_spin() {
            return false;
        }
        self.rounds += 1;
        for _ in 0..PAUSES {
            spin_loop();
        }
        true
    }
}

const ROUNDS: u32 = if cfg!(loom) { 1 } else { 4 };
const PAUSES: u32 = if cfg!(loom) { 1 } else { 30 };
