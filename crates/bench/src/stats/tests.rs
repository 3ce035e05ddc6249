use super::*;

#[test]
fn nearest_ranks() {
    let sorted = Sorted::new(vec![30, 10, 20, 40]);
    let got = [0.01, 0.25, 0.26, 0.50, 0.75, 0.99, 1.0].map(|p| sorted.at(p));
    assert_eq!(got, [10.0, 10.0, 20.0, 20.0, 30.0, 40.0, 40.0]);
    assert_eq!(Sorted::new(vec![]).at(0.5), 0.0);
    assert_eq!(Sorted::new(vec![7]).at(0.01), 7.0);
}

#[test]
fn early_is_not_late() {
    assert_eq!(late_ns(Instant::now(), Duration::from_secs(3600)), 0);
    assert!(late_ns(Instant::now(), Duration::ZERO) < 3_600_000_000_000);
}
