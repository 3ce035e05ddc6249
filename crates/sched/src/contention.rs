//! What locks and per-processor caches ask about processors.

use crate::critical::Critical;
use crate::machine::Inside;
use crate::scheduler::SCHEDULER;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// Whether it makes sense to spin for a lock: its holder may run on another processor now, and no
/// goroutine waits for this one. Go's `sync_runtime_canSpin`.
#[must_use]
pub fn may_spin() -> bool {
    let Some(inside) = Inside::enter() else { return crate::num_cpu() > 1 };
    let may = another_runs() && inside.processor().ring.is_empty();
    inside.leave();
    may
}

/// Whether the holder of a lock may run now while the caller does. For a spin that is no longer than
/// a wait and a wake-up would take, so that it pays although goroutines wait for this processor.
#[must_use]
pub fn may_spin_briefly() -> bool {
    let Some(inside) = Inside::enter() else { return crate::num_cpu() > 1 };
    inside.leave();
    another_runs()
}

/// Whether a processor beside the caller's runs goroutines.
fn another_runs() -> bool {
    SCHEDULER.used_count() > 1
}

/// Whether a goroutine made ready now would have to wait for a busy processor. A hint.
#[must_use]
#[inline]
pub fn is_busy() -> bool {
    SCHEDULER.idle_count() == 0
}

impl Critical {
    /// The index of the processor that runs the caller; 0 on a plain thread. It stays the caller's
    /// until the critical part ends.
    #[inline]
    #[must_use]
    pub fn processor_index(&self) -> usize {
        self.inside().map_or(0, |inside| inside.processor().id as usize)
    }
}

/// What ages caches, as a function pointer.
static AGER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Sets what [`age_caches`] calls.
pub fn set_cache_ager(age: fn()) {
    // ORDERING: Release pairs with `age_caches`.
    AGER.store(age as *mut (), Release);
}

/// Ages the caches of the layers above, such as `sync::Pool`: what was not used since the last time
/// is dropped. A cycle of `gc` calls it once the world runs again, outside the runtime: it drops
/// values of users.
pub fn age_caches() {
    // ORDERING: Acquire pairs with `set_cache_ager`.
    let age = AGER.load(Acquire);
    if !age.is_null() {
        // SAFETY: only `set_cache_ager` stores here, functions of this type.
        let age = unsafe { std::mem::transmute::<*mut (), fn()>(age) };
        age();
    }
}
