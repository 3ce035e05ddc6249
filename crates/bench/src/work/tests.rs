use super::*;

#[test]
fn results() {
    assert_eq!(opaque(42), 42);
    assert_eq!(sum_to(10_000), 49_995_000);
    assert_eq!((0..10).map(fib).collect::<Vec<_>>(), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]);
    // The first output of splitmix64 with seed 0.
    assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn twice_the_time_is_twice_the_rounds() {
    let in_ms = |ms| rounds_for(Duration::from_millis(ms), 500_000, Duration::from_millis(4));
    assert_eq!([in_ms(1), in_ms(2), in_ms(40)], [125_000, 250_000, 5_000_000]);
    assert!(calibrate(Duration::from_millis(1)) > 0);
}
