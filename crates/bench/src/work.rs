//! Work for the CPU, the same in every peer, and what it must come to.

use std::arch::asm;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Returns `x`, but the compiler can't know that; so a loop around it can't become a formula.
///
/// `black_box` would send each value through memory, which the peers in Go don't.
#[inline(always)]
pub(crate) fn opaque(mut x: u64) -> u64 {
    // SAFETY: no instruction is in it.
    unsafe { asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

/// 0 + 1 + ... + (n - 1), one addition at a time.
pub(crate) fn sum_to(n: u64) -> u64 {
    (0..n).fold(0, |sum, i| opaque(sum + i))
}

/// Arithmetic that never yields.
pub(crate) fn spin(rounds: u64) {
    black_box((0..rounds).fold(1, |x, _| opaque(x * 5 % 1_000_003)));
}

/// How many rounds of `spin` take `wanted` on this machine: the best of ten tries.
pub(crate) fn calibrate(wanted: Duration) -> u64 {
    const TRY: u64 = 500_000;
    let tries = (0..10).map(|_| {
        let start = Instant::now();
        spin(TRY);
        start.elapsed()
    });
    rounds_for(wanted, TRY, tries.min().expect("there were ten"))
}

/// How many rounds take `wanted` where so many have taken `took`.
fn rounds_for(wanted: Duration, rounds: u64, took: Duration) -> u64 {
    (rounds as f64 * wanted.as_secs_f64() / took.as_secs_f64()) as u64
}

/// The n-th Fibonacci number, computed the slow way.
pub(crate) fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

/// Well mixed bits of `i` (splitmix64), so that every peer sees the same "random" numbers.
pub(crate) fn mix(i: u64) -> u64 {
    let mut bits = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests;
