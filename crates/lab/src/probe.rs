//! The probe: a goroutine that sleeps and looks how late it wakes.
//!
//! Completion times look much the same in whatever order goroutines run; how long a goroutine
//! waits that has just become runnable does not.

use crate::record::Sample;
use gosched::go;
use gosched::thread::JoinHandle;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// How long the probe sleeps each time.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);

/// Sleeps when nobody else has anything to do.
const ALONE: usize = 50;

/// How late one sleep ends, which `sleep` makes.
fn late_ns(sleep: impl FnOnce(Duration)) -> u64 {
    let asleep = Instant::now();
    sleep(PERIOD);
    asleep.elapsed().saturating_sub(PERIOD).as_nanos() as u64
}

/// What the machine and the runtime do to a sleeper when there is nothing else to run.
pub(crate) fn alone(sleep: impl Fn(Duration)) -> Vec<u64> {
    (0..ALONE).map(|_| late_ns(&sleep)).collect()
}

/// One sleep: when it began, and how late it ended.
pub(crate) type Sleep = (Instant, u64);

/// Sleeps again and again until the other end of `stop` is dropped.
pub(crate) fn until(stop: &Receiver<()>, sleep: impl Fn(Duration)) -> Vec<Sleep> {
    let mut sleeps = Vec::new();
    while stop.try_recv() == Err(TryRecvError::Empty) {
        sleeps.push((Instant::now(), late_ns(&sleep)));
    }
    sleeps
}

/// The probe as a goroutine.
pub(crate) fn spawn(stop: Receiver<()>) -> JoinHandle<Vec<Sleep>> {
    go(move || until(&stop, gosched::thread::sleep))
}

/// Whether a trace calls the goroutine of [`spawn`] so.
pub(crate) fn is_probe(function: &str) -> bool {
    function.contains("::probe::spawn")
}

/// The sleeps that ended after `start`. One that began before is among them: it may be the one
/// that waited for everybody.
pub(crate) fn samples(sleeps: &[Sleep], start: Instant) -> Vec<Sample> {
    let ended_after =
        |(began, late_ns): &&Sleep| *began + PERIOD + Duration::from_nanos(*late_ns) >= start;
    let sample = |(began, late_ns): &Sleep| Sample {
        at_ns: began.saturating_duration_since(start).as_nanos() as u64,
        late_ns: *late_ns,
    };
    sleeps.iter().filter(ended_after).map(sample).collect()
}

/// The lateness of `samples`, and of the sleeps that were missed meanwhile.
///
/// A probe that wakes a second late did not fall asleep a thousand times; counting it as one late
/// sleep among many would hide the second. Each one missed would have waited for the same end, a
/// period less than the one before.
pub(crate) fn any_time(samples: &[Sample]) -> impl Iterator<Item = u64> {
    let period = PERIOD.as_nanos() as u64;
    samples.iter().flat_map(move |sample| {
        let missed = (1..=sample.late_ns / period).map(move |i| sample.late_ns - i * period);
        std::iter::once(sample.late_ns).chain(missed)
    })
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Sample, any_time, samples};
    use std::time::{Duration, Instant};

    #[test]
    fn sleeps_that_ended_after_the_start_count() {
        let began = Instant::now();
        let start = began + 5 * PERIOD;
        let long = 10 * PERIOD.as_nanos() as u64;
        let sleeps = [(began, 0), (began, long), (start + Duration::from_nanos(7), 3)];
        let expected = [Sample { at_ns: 0, late_ns: long }, Sample { at_ns: 7, late_ns: 3 }];
        assert_eq!(samples(&sleeps, start), expected);
    }

    #[test]
    fn missed_sleeps_count() {
        let sample = |late_ns| Sample { at_ns: 0, late_ns };
        let samples = [sample(0), sample(60_000), sample(3_500_000)];
        let late: Vec<u64> = any_time(&samples).collect();
        assert_eq!(late, [0, 60_000, 3_500_000, 2_500_000, 1_500_000, 500_000]);
    }
}
