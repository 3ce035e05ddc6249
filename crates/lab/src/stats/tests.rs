use super::{Line, Quantiles, most_at_once};

#[test]
fn quantiles_are_nearest_ranks() {
    let hundred = Quantiles::of((1..=100).rev());
    assert_eq!(
        hundred,
        Quantiles { min: 1.0, p50: 50.0, p90: 90.0, p99: 99.0, max: 100.0, mean: 50.5 }
    );
    let one = Quantiles::of([7]);
    assert_eq!((one.min, one.p50, one.p99, one.max), (7.0, 7.0, 7.0, 7.0));
    assert_eq!(Quantiles::of([3, 1, 2]).p50, 2.0);
    assert_eq!(Quantiles::of([]), Quantiles::default());
}

#[test]
fn a_line_is_found_again() {
    let line = Line::through(&(0..50).map(|k| 3 + 10 * k).collect::<Vec<_>>());
    assert!((line.offset - 3.0).abs() < 1e-9 && (line.slope - 10.0).abs() < 1e-9, "{line:?}");
    assert!((line.r2 - 1.0).abs() < 1e-12, "{line:?}");
}

#[test]
fn what_is_no_line_has_a_small_r2() {
    let zigzag: Vec<u64> = (0..100).map(|k| if k % 2 == 0 { 0 } else { 1_000 }).collect();
    assert!(Line::through(&zigzag).r2 < 0.01);
}

#[test]
fn lines_through_too_little_are_flat() {
    assert_eq!(Line::through(&[]), Line::default());
    assert_eq!(Line::through(&[5]), Line { offset: 5.0, ..Line::default() });
    assert_eq!(Line::through(&[5, 5, 5]), Line { offset: 5.0, ..Line::default() });
}

#[test]
fn intervals_at_once() {
    assert_eq!(most_at_once([].into_iter()), 0);
    assert_eq!(most_at_once([(0, 10), (10, 20), (20, 30)].into_iter()), 1);
    assert_eq!(most_at_once([(0, 10), (5, 20), (9, 30), (10, 11)].into_iter()), 3);
    assert_eq!(most_at_once([(4, 4)].into_iter()), 0);
}
