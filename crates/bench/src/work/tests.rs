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
fn twice_the_time_is_about_twice_the_rounds() {
    let (one, two) = (calibrate(Duration::from_millis(1)), calibrate(Duration::from_millis(2)));
    assert!(one > 0 && two > one, "{one} {two}");
}
