//! Something that is done once. [`std::sync::Once`].

use crate::node::{Node, Patience, Wish};
use crate::queue::Waiters;
use crate::rt::{AtomicU8, Critical, WaitReason, const_unless_modelled};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::Ordering::{Acquire, Release};

/// Nobody has begun.
const INCOMPLETE: u8 = 0;
/// The function has panicked. It may be begun anew, by those who don't mind.
const POISONED: u8 = 1;
/// Somebody runs the function; others wait in the queue.
const RUNNING: u8 = 2;
/// Done.
const COMPLETE: u8 = 3;

/// Runs a function once, whoever comes first. [`std::sync::Once`]; Go's `sync.Once`.
///
/// As with std's, calling it from its own function deadlocks, and a panic of the function poisons
/// it (Go's counts as done).
///
/// ```
/// use gosched_sync::Once;
///
/// static START: Once = Once::new();
/// let mut started = 0;
/// START.call_once(|| started += 1);
/// START.call_once(|| started += 1);
/// assert_eq!(started, 1);
/// assert!(START.is_completed());
/// ```
pub struct Once {
    state: AtomicU8,
    waiters: Waiters,
}

impl UnwindSafe for Once {}
impl RefUnwindSafe for Once {}

/// What a function of [`Once::call_once_force`] is told. [`std::sync::OnceState`].
pub struct OnceState {
    was_poisoned: bool,
}

impl OnceState {
    /// Whether an earlier function has panicked.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.was_poisoned
    }
}

/// Sets the state and wakes those who wait, also when the function unwinds.
struct Running<'a> {
    once: &'a Once,
    becomes: u8,
}

impl fmt::Debug for OnceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceState").field("poisoned", &self.was_poisoned).finish()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the loads of `Once::state`; makes what the function wrote
        // visible. Those who found RUNNING before are in the queue, or look again under its lock.
        self.once.state.store(self.becomes, Release);
        self.once.waiters.wake_all();
    }
}

impl Once {
    const_unless_modelled! {
        /// Not done yet.
        pub fn new() -> Once {
            Once { state: AtomicU8::new(INCOMPLETE), waiters: Waiters::new() }
        }
    }

    #[inline(always)]
    fn state(&self) -> u8 {
        // ORDERING: Acquire pairs with `Running::drop`; makes what the function wrote visible.
        self.state.load(Acquire)
    }

    /// Runs `f` if nobody has; when it returns, somebody's function has been run.
    ///
    /// # Panics
    /// If `f` panics, or an earlier one has.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if self.state() != COMPLETE {
            let mut f = Some(f);
            self.call(false, &mut |_| f.take().into_iter().for_each(|f| f()));
        }
    }

    /// As [`call_once`](Once::call_once), but an earlier panic is forgotten.
    ///
    /// # Panics
    /// If `f` panics.
    #[inline]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if self.state() != COMPLETE {
            let mut f = Some(f);
            self.call(true, &mut |state| f.take().into_iter().for_each(|f| f(state)));
        }
    }

    /// Whether a function was run to its end.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state() == COMPLETE
    }

    /// Waits until a function was run.
    ///
    /// # Panics
    /// If one has panicked.
    #[track_caller]
    pub fn wait(&self) {
        if !self.wait_for(&[INCOMPLETE, RUNNING]) {
            panic!("Once instance has previously been poisoned");
        }
    }

    /// Waits until a function was run to its end, whatever panics before.
    pub fn wait_force(&self) {
        self.wait_for(&[INCOMPLETE, POISONED, RUNNING]);
    }

    #[cold]
    #[track_caller]
    fn call(&self, ignore_poison: bool, f: &mut dyn FnMut(&OnceState)) {
        loop {
            match self.state() {
                COMPLETE => return,
                RUNNING => self.wait_while(&[RUNNING]),
                POISONED if !ignore_poison => {
                    panic!("Once instance has previously been poisoned")
                }
                state => {
                    // ORDERING: Acquire as in `state`: what an earlier function wrote.
                    let begun = self.state.compare_exchange(state, RUNNING, Acquire, Acquire);
                    if begun.is_ok() {
                        return self.run(state == POISONED, f);
                    }
                }
            }
        }
    }

    fn run(&self, was_poisoned: bool, f: &mut dyn FnMut(&OnceState)) {
        let mut running = Running { once: self, becomes: POISONED };
        f(&OnceState { was_poisoned });
        running.becomes = COMPLETE;
    }

    /// Waits until the state is none of `states`; whether it is complete then.
    #[cold]
    fn wait_for(&self, states: &[u8]) -> bool {
        while states.contains(&self.state()) {
            self.wait_while(states);
        }
        self.state() == COMPLETE
    }

    /// Waits once if the state is one of `states`.
    fn wait_while(&self, states: &[u8]) {
        let node = Node::new(Wish::Whole, 0);
        {
            let critical = Critical::enter();
            let mut queue = self.waiters.lock(&critical);
            if !states.contains(&self.state()) {
                return;
            }
            // SAFETY: it stays on this stack until `Waiters::wait` has returned.
            unsafe { queue.push_back(&node) };
        }
        let _woken = self.waiters.wait(&node, WaitReason::MutexLock, Patience::Endless);
    }
}

impl Default for Once {
    fn default() -> Once {
        Once::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
