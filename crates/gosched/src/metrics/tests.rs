//! Tests of the table of metrics.

use super::{Sample, Value, ValueKind, all, read};

#[test]
fn names_are_in_order_and_have_units() {
    let all = all();
    let parts = |name: &'static str| name.split_once(':').expect("a unit");
    assert!(all.windows(2).all(|two| two[0].name < two[1].name), "not in order");
    for one in all {
        let (path, unit) = parts(one.name);
        let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(path.starts_with('/') && path[1..].split('/').all(|part| !part.is_empty()));
        assert!(path.chars().all(|c| c == '/' || is_word(c)) && unit.chars().all(is_word));
        assert!(one.description.ends_with('.'), "{}", one.name);
    }
}

#[test]
fn each_has_the_kind_that_it_says() {
    let mut samples: Vec<_> = all().iter().map(|one| Sample::new(one.name)).collect();
    read(&mut samples);
    for (sample, one) in samples.iter().zip(all()) {
        assert_eq!(sample.value.kind(), one.kind, "{}", one.name);
        if let Value::Float64Histogram(histogram) = &sample.value {
            assert_eq!(histogram.counts.len() + 1, histogram.buckets.len());
            assert!(histogram.buckets.windows(2).all(|two| two[0] < two[1]));
            assert_eq!(histogram.buckets.last(), Some(&f64::INFINITY));
        }
    }
    let latencies = all().into_iter().find(|one| one.name == "/sched/latencies:seconds");
    let share = format!("one of {} wakes", gosched_sched::WAKES_TO_A_LATENCY);
    assert!(latencies.is_some_and(|one| one.description.contains(&share)), "{share}");
    let mut unknown = [Sample::new("/sched/goroutines:threads")];
    read(&mut unknown);
    assert_eq!(unknown[0].value.kind(), ValueKind::Bad);
}
