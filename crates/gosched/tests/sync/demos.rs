//! The examples show what they say. Those that count goroutines are in `tests/alone.rs`.

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/false_sharing.rs"]
mod false_sharing;
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/parallelism.rs"]
mod parallelism;
#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../../examples/race.rs"]
mod race;

use gosched::run;

#[test]
fn race_loses_steps_and_the_others_do_not() {
    let shown = run(race::demo);
    let right = race::GOROUTINES * race::EACH;
    assert!(shown.wrong < right, "{} of {right}", shown.wrong);
    assert_eq!((shown.atomic, shown.locked), (right, right));
}

#[test]
fn false_sharing_is_a_matter_of_addresses() {
    let [packed, padded] = run(|| false_sharing::demo(1000));
    assert_eq!((packed.counts, padded.counts), ([1000; 2], [1000; 2]));
    assert!(packed.bytes_apart < 64 && padded.bytes_apart >= 64);
}

#[test]
fn parallelism_comes_to_the_same_by_more_and_more() {
    let shown = run(|| parallelism::demo(5000));
    assert!(shown.iter().all(|s| s.sum == shown[0].sum));
    assert_eq!((shown[0].goroutines, shown[3].goroutines), (1, 5000));
}
