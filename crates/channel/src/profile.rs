//! Waits for channels tell profiles how long they lasted.

use crate::rt::WaitReason;

/// Calls `wait`, which waits for `reason`, and tells how long it took, if anybody asks.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn timed<R>(reason: WaitReason, wait: impl FnOnce() -> R) -> R {
    if gosched_sched::is_wait_hooked() { timed_now(reason, wait) } else { wait() }
}

#[cfg(not(loom))]
#[cold]
#[inline(never)]
fn timed_now<R>(reason: WaitReason, wait: impl FnOnce() -> R) -> R {
    use gosched_base::os::monotonic_ns;
    use gosched_sched::{WaitEvent, WaitSide, tell_wait};

    let start = monotonic_ns();
    let waited = wait();
    let ns = monotonic_ns().saturating_sub(start);
    tell_wait(WaitEvent { reason, ns, side: WaitSide::Waiter });
    waited
}

/// Models have no profiles.
#[cfg(loom)]
pub(crate) fn timed<R>(_: WaitReason, wait: impl FnOnce() -> R) -> R {
    wait()
}
