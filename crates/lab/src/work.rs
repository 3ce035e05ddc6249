//! Work for the CPU, measured in rounds and not by the clock.
//!
//! A loop that looks at the clock would do less work on a busy machine, and hide what is wanted.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Arithmetic that depends on itself and never calls anything.
pub(crate) fn spin(rounds: u64) {
    black_box((0..rounds).fold(black_box(1_u64), |x, _| x * 5 % 1_000_003));
}

/// How many rounds take `wanted` on an undisturbed CPU of this machine: the best of some tries.
pub(crate) fn calibrate(wanted: Duration) -> u64 {
    const TRY: u64 = 500_000;
    let timed = |_| {
        let start = Instant::now();
        spin(TRY);
        start.elapsed()
    };
    let best = (0..20).map(timed).min().unwrap_or_default().max(Duration::from_nanos(1));
    ((TRY as f64 * wanted.as_secs_f64() / best.as_secs_f64()) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::calibrate;
    use std::time::Duration;

    #[test]
    fn there_is_always_something_to_do() {
        assert!(calibrate(Duration::from_millis(1)) > 1);
        assert_eq!(calibrate(Duration::ZERO), 1);
    }
}
