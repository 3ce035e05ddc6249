//! Code above the scheduler that counts as inside the runtime.
//!
//! A goroutine may be stopped anywhere outside the runtime, whatever it holds. So whoever takes a
//! [`Lock`](gosched_base::Lock) above the scheduler does it within a [`Critical`], and from its
//! first to its last instruction obeys the rule of the inside: no allocation, no formatting, no
//! panic, no user code (drops and clones included), no lock that outside code can hold.

use crate::machine::Inside;
use crate::park;
use crate::reason::WaitReason;
use crate::wait::{self, Waiter};
use std::mem;
use std::time::Instant;

/// The caller is inside the runtime while this lives, or until it blocks.
///
/// On a plain thread, which the runtime never stops, it does nothing. They do not nest.
///
/// ```
/// # use gosched_sched::Critical;
/// static COUNT: gosched_base::Lock<u32> = gosched_base::Lock::new(0);
/// let critical = Critical::enter();
/// *COUNT.lock() += 1;
/// drop(critical); // may yield, if somebody asked for it
/// ```
#[derive(Debug)]
#[must_use = "ends when it is dropped"]
pub struct Critical {
    inside: Option<Inside>,
}

impl Critical {
    /// Enters the runtime.
    #[inline(always)]
    pub fn enter() -> Critical {
        Critical { inside: Inside::enter() }
    }

    pub(crate) fn inside(&self) -> Option<&Inside> {
        self.inside.as_ref()
    }

    /// [`Waiter::wake`], for callers that are inside.
    #[inline]
    pub fn wake(&self, waiter: Waiter) {
        match &self.inside {
            Some(inside) => waiter.wake_inside(inside),
            None => waiter.wake(),
        }
    }

    /// [`block`](crate::block), without leaving in between: locks may be held until `commit`, which
    /// lets go of them.
    #[inline]
    pub fn block<F: FnOnce(Waiter) -> bool>(mut self, reason: WaitReason, commit: F) {
        match self.inside.take() {
            Some(inside) => {
                park::park(inside, reason, move |g| commit(Waiter::of_goroutine(g))).leave();
            }
            None => wait::block_thread(commit),
        }
    }

    /// As [`block`](Critical::block), and the caller is inside again once it was woken.
    #[inline]
    pub fn block_and_stay<F: FnOnce(Waiter) -> bool>(
        mut self,
        reason: WaitReason,
        commit: F,
    ) -> Critical {
        let inside = match self.inside.take() {
            Some(inside) => {
                Some(park::park(inside, reason, move |g| commit(Waiter::of_goroutine(g))))
            }
            None => {
                wait::block_thread(commit);
                None
            }
        };
        Critical { inside }
    }

    /// [`block_until`](crate::block_until), likewise. `expire` must not wait for a lock that is
    /// held here.
    pub fn block_until<F, E>(self, reason: WaitReason, deadline: Instant, commit: F, expire: E)
    where
        F: FnOnce(Waiter) -> bool,
        E: Fn() -> bool + Sync,
    {
        // Entering again where one is inside changes nothing, and the wait leaves.
        mem::forget(self);
        wait::block_until(reason, deadline, commit, expire);
    }
}

impl Drop for Critical {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(inside) = self.inside.take() {
            inside.leave();
        }
    }
}
