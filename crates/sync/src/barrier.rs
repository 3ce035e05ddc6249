//! A barrier. [`std::sync::Barrier`].

use crate::condvar::Condvar;
use crate::mutex::Mutex;
use std::fmt;
use std::sync::PoisonError;

/// Lets go of all when so many have come, again and again. [`std::sync::Barrier`].
///
/// ```
/// use gosched_sync::{Arc, Barrier};
///
/// let barrier = Arc::new(Barrier::new(2));
/// let other = std::thread::spawn({
///     let barrier = barrier.clone();
///     move || barrier.wait().is_leader()
/// });
/// let leads = barrier.wait().is_leader();
/// assert!(leads != other.join().unwrap());
/// ```
pub struct Barrier {
    arrived: Mutex<Arrived>,
    all_here: Condvar,
    size: usize,
}

#[derive(Default)]
struct Arrived {
    count: usize,
    /// Which time it is, so that one that comes again does not count as one of the last time.
    round: usize,
}

/// Whether one was the last to come. [`std::sync::BarrierWaitResult`].
#[derive(Clone, Copy)]
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// For `size`; 0 counts as 1.
    #[must_use]
    #[inline]
    pub const fn new(size: usize) -> Barrier {
        Barrier {
            arrived: Mutex::new(Arrived { count: 0, round: 0 }),
            all_here: Condvar::new(),
            size,
        }
    }

    /// Waits until all have come.
    pub fn wait(&self) -> BarrierWaitResult {
        // Nothing panics under this lock.
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let round = arrived.round;
        arrived.count += 1;
        if arrived.count < self.size {
            let all_here = self.all_here.wait_while(arrived, |arrived| arrived.round == round);
            drop(all_here);
            return BarrierWaitResult(false);
        }
        arrived.count = 0;
        arrived.round = arrived.round.wrapping_add(1);
        drop(arrived);
        self.all_here.notify_all();
        BarrierWaitResult(true)
    }
}

impl BarrierWaitResult {
    /// True for one of those whom the barrier let go at a time.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.is_leader()).finish()
    }
}
