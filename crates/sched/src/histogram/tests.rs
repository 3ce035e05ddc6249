//! Tests of the histogram.

use super::{Histogram, bucket, end};
use std::time::Duration;

#[test]
fn every_time_lies_before_its_buckets_end_and_close_to_it() {
    for ns in (4..2_000).chain((11..30).map(|bits| (1 << bits) + 12_345 % (1 << bits))) {
        let end = end(bucket(ns));
        assert!(ns < end && end <= ns + ns / 4 + 1, "{ns} in a bucket that ends at {end}");
    }
}

#[test]
fn percentiles_are_near_the_truth() {
    let histogram = Histogram::new();
    (1..=1_000).for_each(|us| histogram.record(us * 1_000));
    assert_eq!(histogram.count(), 1_000);
    assert_eq!(histogram.longest(), Duration::from_millis(1));
    let half = histogram.percentile(50);
    assert!(half >= Duration::from_micros(500) && half <= Duration::from_micros(625), "{half:?}");
    assert!(histogram.percentile(99) >= Duration::from_micros(990));
}
