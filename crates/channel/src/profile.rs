//! Waits for channels tell profiles how long they lasted.

use crate::rt::WaitReason;

/// Calls `wait`, which waits for `reason`, and tells how long it took, if anybody asks. One call of
/// it, so that it can be inlined here.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn timed<R>(reason: WaitReason, wait: impl FnOnce() -> R) -> R {
    let start = if gosched_sched::is_wait_hooked() { now() } else { UNTIMED };
    let waited = wait();
    if start != UNTIMED {
        tell(reason, start);
    }
    waited
}

/// A start that nobody asks for.
#[cfg(not(loom))]
const UNTIMED: u64 = 0;

#[cfg(not(loom))]
#[cold]
fn now() -> u64 {
    gosched_base::os::monotonic_ns()
}

#[cfg(not(loom))]
#[cold]
fn tell(reason: WaitReason, start: u64) {
    use gosched_sched::{WaitEvent, WaitSide, tell_wait};

    let ns = now().saturating_sub(start);
    tell_wait(WaitEvent { reason, ns, side: WaitSide::Waiter });
}

/// Models have no profiles.
#[cfg(loom)]
pub(crate) fn timed<R>(_: WaitReason, wait: impl FnOnce() -> R) -> R {
    wait()
}
