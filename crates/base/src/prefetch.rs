//! Fetching a cache line before it is needed.

/// Asks for the line at `address`, which need not be mapped. Changes nothing but the cache.
///
/// # Examples
/// ```
/// let line = [0_u8; 64];
/// gosched_base::prefetch(line.as_ptr().addr());
/// gosched_base::prefetch(8); // No harm.
/// ```
#[inline(always)]
pub fn prefetch(address: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: fetching ahead never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: fetching ahead never faults.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}
