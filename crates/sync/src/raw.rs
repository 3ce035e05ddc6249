//! The locks without their data: a word each, and a queue for those who wait.

mod mutex;
mod rw_lock;
mod semaphore;

pub(crate) use mutex::RawMutex;
pub(crate) use rw_lock::RawRwLock;
pub(crate) use semaphore::RawSemaphore;

use crate::rt::{may_spin, may_spin_briefly, spin_loop};

/// A waiter older than this, in nanoseconds, is given the lock instead of a chance at it. Go's.
const STARVING_NS: u64 = 1_000_000;

/// A bounded spin before a wait: some us.
///
/// The pauses leave the lock to its holder, which finds its lines where they were: on two
/// processors one goes on for hundreds of turns while the other pauses. With looks 0.4 us apart, as
/// Go's, they changed places all the time, and a turn took twice as long.
struct Spin {
    looks: u32,
    /// Before the next look.
    pauses: u32,
}

impl Spin {
    /// For a lock that one holds at a time.
    const fn for_one() -> Spin {
        Spin { looks: pick(3), pauses: pick(64) }
    }

    /// For a lock that others may share meanwhile: while several come and go each use is two lines
    /// from another processor, so who has to wait at all leaves them alone for longer.
    const fn for_shared() -> Spin {
        Spin { looks: pick(2), pauses: pick(256) }
    }

    /// Whether to look again, after some pauses; twice as many each time.
    ///
    /// Beside goroutines that wait for this processor it spins only for a lock that nobody waits
    /// for: that one goes from hand to hand, and a wait would take longer than the spin.
    fn again(&mut self, others_wait: bool) -> bool {
        if self.looks == 0 || !(may_spin() || !others_wait && may_spin_briefly()) {
            return false;
        }
        for _ in 0..self.pauses {
            spin_loop();
        }
        self.pauses *= 2;
        self.looks -= 1;
        true
    }
}

/// So many; in a model one.
const fn pick(n: u32) -> u32 {
    if cfg!(loom) { 1 } else { n }
}
