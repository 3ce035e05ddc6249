//! Memory protection keys: the register PKRU says which of them the running code may use.
//!
//! It belongs to the goroutine, as it belongs to a thread otherwise. The switch saves and compares
//! it only once somebody has asked the kernel for a key: reading it costs 1 ns, writing 13.

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

static IN_USE: AtomicBool = AtomicBool::new(false);
/// PKRU before anybody had a key.
static START: AtomicU32 = AtomicU32::new(0);

/// In a context: not saved, since keys were not in use. (All keys forbidden, the one of ordinary
/// memory included: no code runs with that.)
pub(super) const UNSAVED: u32 = u32::MAX;

/// From here on the switch keeps protection keys apart. Before the first key is asked for.
pub fn use_protection_keys() {
    // ORDERING: Relaxed for all; a thread that gets to know of the key gets to know of this.
    if has_protection_keys() && !IN_USE.load(Relaxed) {
        // SAFETY: the CPU has the instruction.
        START.store(unsafe { read() }, Relaxed);
        IN_USE.store(true, Relaxed);
    }
}

/// Whether the kernel has switched protection keys on.
#[must_use]
pub fn has_protection_keys() -> bool {
    const OSPKE: u32 = 1 << 4;
    __cpuid_count(7, 0).ecx & OSPKE != 0
}

#[inline(always)]
pub(super) fn are_in_use() -> bool {
    // ORDERING: Relaxed; see `use_protection_keys`.
    IN_USE.load(Relaxed)
}

/// Returns the PKRU in force, to be saved, and loads `wanted` if it differs.
///
/// # Safety
/// * [`are_in_use`] is true.
#[cold]
pub(super) unsafe fn exchange(wanted: u32) -> u32 {
    // SAFETY: in use, so the CPU has the instruction.
    let now = unsafe { read() };
    // ORDERING: Relaxed; see `use_protection_keys`.
    let wanted = if wanted == UNSAVED { START.load(Relaxed) } else { wanted };
    if wanted != now {
        // SAFETY: as above; the value was in force before, or is the start's.
        unsafe { write(wanted) };
    }
    now
}

/// # Safety
/// * The CPU has protection keys.
pub(super) unsafe fn read() -> u32 {
    let value: u32;
    // SAFETY: by the caller.
    unsafe {
        asm!("rdpkru", in("ecx") 0, out("eax") value, out("edx") _, options(nostack));
    }
    value
}

/// # Safety
/// * The CPU has protection keys.
/// * The code that runs from here on touches no page that `value` forbids.
unsafe fn write(value: u32) {
    // SAFETY: by the caller.
    unsafe { asm!("wrpkru", in("ecx") 0, in("eax") value, in("edx") 0, options(nostack)) };
}
