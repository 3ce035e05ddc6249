//! A barrier of which one side is free.
//!
//! Two sides that each write and then look at what the other wrote need a full barrier in between,
//! both of them. Where one side does so all the time and the other hardly ever, the rare side can
//! pay for both: `membarrier(2)` makes every CPU that runs a thread of this process execute one.
//! (0.6 us alone, 17 us mean beside a busy neighbour.) The light side is then a compiler fence.

use crate::os;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release, SeqCst},
    compiler_fence, fence,
};

/// `linux/membarrier.h`.
const PRIVATE_EXPEDITED: usize = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: usize = 1 << 4;

static ASYMMETRIC: AtomicBool = AtomicBool::new(false);

fn membarrier(command: usize) -> bool {
    // SAFETY: no memory is passed.
    unsafe { os::syscall(libc::SYS_membarrier, [command, 0, 0, 0, 0, 0]) }.is_ok()
}

/// Asks the kernel for the service; without it the light side uses a fence. At any time, by anyone.
pub fn init() {
    if membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED) {
        // ORDERING: Release pairs with `is_asymmetric`, see `heavy`.
        ASYMMETRIC.store(true, Release);
    }
}

/// Whether the light side needs no fence of the CPU.
#[inline(always)]
pub fn is_asymmetric() -> bool {
    // ORDERING: Acquire pairs with `init`, see `heavy`.
    ASYMMETRIC.load(Acquire)
}

/// Whether the kernel offers the service.
#[must_use]
pub fn is_offered() -> bool {
    const QUERY: usize = 0;
    // SAFETY: no memory is passed.
    let commands = unsafe { os::syscall(libc::SYS_membarrier, [QUERY, 0, 0, 0, 0, 0]) };
    commands.is_ok_and(|bits| bits & PRIVATE_EXPEDITED != 0)
}

/// The heavy side's barrier. True: after it every thread of the process has a full barrier behind it
/// since the call began. False: the kernel refuses.
///
/// Before `init` it fails, and the light side has a fence. If `init` comes in between, a light side
/// that sees it sees all that was written before a failed `heavy` as well, which had not been
/// registered yet.
#[cold]
pub fn heavy() -> bool {
    // ORDERING: the caller's own part of the barrier, where the kernel has none.
    fence(SeqCst);
    let done = membarrier(PRIVATE_EXPEDITED);
    if !done && is_asymmetric() {
        refused();
    }
    done
}

/// As [`heavy`], for light sides that have seen [`is_asymmetric`] once and do not look again. Where
/// the kernel has come to refuse it, this waits instead.
#[cold]
pub fn heavy_or_wait() {
    if !heavy() {
        wait_for_stores();
    }
}

/// A filter for system calls was installed after `init`. From now on the light side has a fence.
#[cold]
fn refused() {
    // ORDERING: Release; as in `init`.
    ASYMMETRIC.store(false, Release);
    wait_for_stores();
}

/// A CPU drains its stores at the next interrupt at the latest, and a timer's comes within 10 ms
/// (`CONFIG_HZ` is 100 at least).
fn wait_for_stores() {
    let nobodys = std::sync::atomic::AtomicU32::new(0);
    let _ = os::futex_wait(&nobodys, 0, Some(std::time::Duration::from_millis(20)));
}

/// A full barrier for one whose last access was an exchange, or another one that reads and writes at
/// once: on x86 that is one by itself (Intel SDM, volume 3, "Loads and Stores Are Not Reordered with
/// Locked Instructions"), and only the compiler has to be told.
#[inline(always)]
pub fn after_exchange() {
    // ORDERING: SeqCst; what it pairs with is the caller's affair.
    if cfg!(target_arch = "x86_64") { compiler_fence(SeqCst) } else { fence(SeqCst) }
}

/// The light side's barrier, while [`is_asymmetric`] holds.
#[inline(always)]
pub fn light() {
    // ORDERING: SeqCst, for the compiler; the CPU's part is the heavy side's.
    compiler_fence(SeqCst);
}

#[cfg(test)]
mod tests {
    use super::{heavy, init, is_asymmetric, is_offered};

    #[test]
    fn what_is_offered_is_given() {
        init();
        assert_eq!(is_asymmetric(), is_offered());
        assert_eq!(heavy(), is_offered());
        assert_eq!(heavy(), is_offered(), "not only once");
    }
}
