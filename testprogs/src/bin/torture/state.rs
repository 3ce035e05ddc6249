//! State in registers.

use crate::pulse;
use std::hint::black_box;
use testprogs::random::Random;
use testprogs::registers::{FLAGS_ANY, Held};

/// Patterns in all registers, for some 100 us.
pub(crate) fn registers(random: &mut Random) {
    let before = Held::random(random, FLAGS_ANY);
    let mut after = before.clone();
    after.keep(random.below(100_000));
    assert_eq!(after, before, "a register has changed");
}

/// Two computations of the same, one after the other.
pub(crate) fn floats(random: &mut Random) {
    let (seed, rounds) = (random.bits() >> 12, 1 + random.below(8));
    let series = |mut x: f64| {
        let mut sum = 0.0;
        for _ in 0..rounds * 1_000 {
            x = (x * 1.000_000_1 + 0.5).sqrt();
            sum += x.sin() * x.exp();
        }
        sum
    };
    let (first, numbers) = (series(black_box(seed as f64)), pulse::compute(rounds, seed));
    assert_eq!(series(black_box(seed as f64)).to_bits(), first.to_bits());
    assert_eq!(pulse::compute(rounds, black_box(seed)), numbers);
}
