//! The pages that suspended code has left behind below its stack pointer.
//!
//! Go halves such a stack, by copying it. Here its pages go, and come back when they are touched.

use std::ops::Range;

use super::arena::slot_of;
use super::sys;

/// What code may use below its stack pointer without moving it, by the C ABI.
const RED_ZONE: usize = 128;

/// How many bytes of memory lie below `sp` in its slot, beyond the page that it is in: what
/// [`release_below`] would give back. 0 if `sp` is on a stack that is no slot.
///
/// Only a hint while code runs on that stack. Takes no lock.
#[must_use]
pub fn resident_below(sp: usize) -> usize {
    unused_below(sp).map_or(0, sys::resident)
}

/// Gives the pages below `sp` back. Takes no lock.
///
/// # Safety
/// * `sp` is where the code on that stack was suspended, and it does not go on before this returns.
pub unsafe fn release_below(sp: usize) {
    if let Some(range) = unused_below(sp) {
        // SAFETY: below the red zone of suspended code, by the caller: not needed. A failure costs
        // memory and nothing else.
        let _ = unsafe { sys::drop_pages(range) };
    }
}

fn unused_below(sp: usize) -> Option<Range<usize>> {
    let slot = slot_of(sp)?;
    let end = sp.saturating_sub(RED_ZONE) & !(sys::PAGE - 1);
    Some(slot.limit()..end).filter(|range| !range.is_empty())
}
