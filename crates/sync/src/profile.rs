//! Waits for locks tell profiles how long they lasted: the scheduler's hook, which channels use too.

use crate::rt::WaitReason;
#[cfg(not(loom))]
pub(crate) use gosched_sched::is_wait_hooked as is_on;
#[cfg(not(loom))]
use gosched_sched::tell_wait as tell;
#[cfg(not(loom))]
pub use gosched_sched::{WaitEvent, WaitSide, set_wait_hook};
#[cfg(loom)]
pub(crate) use without::is_on;
#[cfg(loom)]
use without::{WaitEvent, WaitSide, tell};

/// Models have no profiles.
#[cfg(loom)]
#[allow(dead_code, reason = "nobody looks")]
mod without {
    pub(super) struct WaitEvent {
        pub(super) reason: super::WaitReason,
        pub(super) ns: u64,
        pub(super) side: WaitSide,
    }

    pub(super) enum WaitSide {
        Waiter,
        Releaser,
    }

    pub(super) fn tell(_: WaitEvent) {}

    pub(crate) fn is_on() -> bool {
        false
    }
}

#[cold]
pub(crate) fn waited(reason: WaitReason, ns: u64) {
    tell(WaitEvent { reason, ns, side: WaitSide::Waiter });
}

/// For whoever has let go of a lock, with what [`Queue::waited`](crate::queue::Queue::waited) said.
#[inline]
pub(crate) fn released(reason: WaitReason, ns: Option<u64>) {
    if let Some(ns) = ns {
        tell(WaitEvent { reason, ns, side: WaitSide::Releaser });
    }
}
