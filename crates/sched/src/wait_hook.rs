//! Where waits tell profiles how long they lasted.
//!
//! One hook for channels and locks: a block profile takes what the waiters say, a mutex profile what
//! those say who let go of a lock that others waited for. Without a hook it is one relaxed load in a
//! wait, and nothing where nobody waits.

use crate::reason::WaitReason;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// What a profile is told. The caller of the hook is the one whose stack it is charged to.
#[derive(Clone, Copy, Debug)]
pub struct WaitEvent {
    /// What was waited for.
    pub reason: WaitReason,
    /// How long, in nanoseconds.
    pub ns: u64,
    /// Who says so.
    pub side: WaitSide,
}

/// Who tells a profile of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitSide {
    /// The one who waited, at its end. Go's block profile.
    Waiter,
    /// The one who let go of the lock: how long all have waited until then. Go's mutex profile.
    Releaser,
}

static HOOK: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the hook, or takes it away. It is called outside the runtime and may allocate.
pub fn set_wait_hook(hook: Option<fn(&WaitEvent)>) {
    let hook = hook.map_or(std::ptr::null_mut(), |hook| hook as *mut ());
    // ORDERING: Release pairs with `tell_wait`.
    HOOK.store(hook, Release);
}

/// Whether anybody asks.
#[doc(hidden)]
#[inline]
#[must_use]
pub fn is_wait_hooked() -> bool {
    // ORDERING: Relaxed; a hint, `tell_wait` looks again.
    !HOOK.load(Relaxed).is_null()
}

/// Tells the hook, if there is one. Outside the runtime.
#[doc(hidden)]
#[cold]
pub fn tell_wait(event: WaitEvent) {
    // ORDERING: Acquire pairs with `set_wait_hook`.
    let hook = HOOK.load(Acquire);
    if !hook.is_null() {
        // SAFETY: only `set_wait_hook` stores here, functions of this type.
        let hook = unsafe { std::mem::transmute::<*mut (), fn(&WaitEvent)>(hook) };
        hook(&event);
    }
}
