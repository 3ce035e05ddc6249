//! Numbers of the scheduler, while it does what they count.

use gosched::metrics::{self, Sample, WaitReason, goroutine_states, snapshot};
use gosched::{go, runtime, thread};

fn number(name: &'static str) -> u64 {
    let mut sample = [Sample::new(name)];
    metrics::read(&mut sample);
    sample[0].value.as_uint64().unwrap_or_else(|| panic!("{name} is no number"))
}

fn samples_of(name: &'static str) -> u64 {
    let mut sample = [Sample::new(name)];
    metrics::read(&mut sample);
    sample[0].value.as_float64_histogram().unwrap_or_else(|| panic!("{name}")).counts.iter().sum()
}

fn switches() -> u64 {
    ["/sched/switches/direct:switches", "/sched/switches/scheduled:switches"]
        .map(number)
        .iter()
        .sum()
}

/// Every 64th time that a goroutine becomes runnable is timed.
#[test]
fn wakes_are_sampled() {
    if !metrics::is_latency_sampled() {
        println!("SKIPPED: the clock is a system call here");
        return;
    }
    const LATENCIES: &str = "/sched/latencies:seconds";
    const SAMPLES: u64 = 100;
    gosched::run(|| {
        let (before, switched) = (samples_of(LATENCIES), switches());
        (0..64 * SAMPLES).for_each(|_| thread::yield_now());
        assert!(switches() - switched >= 64 * SAMPLES);
        assert!(samples_of(LATENCIES) - before >= SAMPLES);
    });
}

#[test]
fn waiting_goroutines_are_counted_by_reason() {
    const MANY: usize = 50;
    let parked: Vec<_> = (0..MANY).map(|_| go(thread::park)).collect();
    let of_parked = || {
        let states = goroutine_states();
        let all: u64 = states.by_reason.iter().map(|(_, count)| count).sum();
        assert_eq!(all, states.waiting);
        let parked = states.by_reason.iter().find(|(why, _)| *why == WaitReason::Park);
        parked.map_or(0, |(_, count)| *count)
    };
    while of_parked() < MANY as u64 {
        std::thread::yield_now();
    }
    assert!(number("/sched/goroutines:goroutines") >= MANY as u64);
    assert!(number("/sched/goroutines/waiting:goroutines") >= MANY as u64);
    parked.iter().for_each(|one| one.thread().unpark());
    parked.into_iter().for_each(|one| one.join().unwrap());
}

/// Who asks runs, on a processor that shows it.
#[test]
fn the_one_who_looks_is_seen() {
    gosched::run(|| {
        let id = runtime::goroutine_id();
        // It may be moved between the look and the test.
        while !snapshot().processors.iter().any(|p| p.goroutine == id) {}
        assert!(goroutine_states().running >= 1);
    });
}

#[test]
fn collections_stop_the_world() {
    let of_collections = || samples_of("/sched/pauses/total/gc:seconds");
    let (before, cycles) = (of_collections(), number("/gc/cycles/total:gc-cycles"));
    runtime::gc();
    assert!(of_collections() > before);
    assert!(number("/gc/cycles/total:gc-cycles") > cycles);
    assert!(number("/sched/threads/total:threads") > 0);
}
