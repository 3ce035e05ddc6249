//! What the scheduler does, in numbers. Go's package `runtime/metrics`.
//!
//! Names are Go's where Go has the metric (`/sched/goroutines:goroutines`); the others follow its rule:
//! a path, a colon, a unit. [`all`] lists them with what they mean.
//!
//! Counting costs what runs nothing that can be measured: each processor counts for itself, and the
//! sums are made by who reads. Numbers are read while all goes on, so those that belong together may
//! not quite agree.
//!
//! ```
//! use gosched::metrics::{self, Sample, Value};
//!
//! gosched::run(|| {
//!     let mut samples = [
//!         Sample::new("/sched/gomaxprocs:threads"),
//!         Sample::new("/sched/goroutines:goroutines"),
//!     ];
//!     metrics::read(&mut samples);
//!     let [procs, goroutines] = samples.map(|sample| sample.value.as_uint64().unwrap());
//!     println!("{goroutines} goroutines on {procs} processors");
//! });
//! ```
//!
//! [`prometheus()`] writes all of them for a collector, and the crate `gosched-debug` serves that over
//! HTTP.

mod prometheus;
mod reading;
mod table;
#[cfg(test)]
mod tests;

use gosched_sched::Durations;
#[doc(hidden)]
pub use gosched_sched::is_latency_sampled;
pub use gosched_sched::{
    Activity, GoroutineStates, ProcessorCounters, ProcessorState, Snapshot, WaitReason,
    goroutine_states, snapshot,
};
pub use prometheus::prometheus;
use reading::Reading;
use std::borrow::Cow;

/// A metric: its name and meaning. Go's `metrics.Description`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// A path, a colon, a unit.
    pub name: &'static str,
    /// What it counts or measures.
    pub description: &'static str,
    /// What [`read`] gives.
    pub kind: ValueKind,
    /// Whether it only grows.
    pub cumulative: bool,
}

/// The type of a value. Go's `metrics.ValueKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// There is no such metric.
    Bad,
    /// [`Value::Uint64`].
    Uint64,
    /// [`Value::Float64Histogram`].
    Float64Histogram,
}

/// A metric's value. Go's `metrics.Value`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Not read yet, or there is no such metric.
    #[default]
    Bad,
    /// A number.
    Uint64(u64),
    /// How often values were in which range.
    Float64Histogram(Float64Histogram),
}

impl Value {
    /// Its type.
    #[must_use]
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::Bad => ValueKind::Bad,
            Value::Uint64(_) => ValueKind::Uint64,
            Value::Float64Histogram(_) => ValueKind::Float64Histogram,
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn as_uint64(&self) -> Option<u64> {
        match self {
            Value::Uint64(n) => Some(*n),
            _ => None,
        }
    }

    /// The histogram, if it is one.
    #[must_use]
    pub fn as_float64_histogram(&self) -> Option<&Float64Histogram> {
        match self {
            Value::Float64Histogram(histogram) => Some(histogram),
            _ => None,
        }
    }
}

/// How often values were in which range. Go's `metrics.Float64Histogram`.
#[derive(Clone, Debug, PartialEq)]
pub struct Float64Histogram {
    /// How many values there are in each bucket.
    pub counts: Vec<u64>,
    /// Where the buckets begin and end: bucket `n` is from `buckets[n]` to before `buckets[n + 1]`, so
    /// there is one more of these. The last one is infinite.
    pub buckets: Vec<f64>,
}

impl Float64Histogram {
    fn in_seconds(durations: &Durations) -> Float64Histogram {
        let (_, ends) = durations.ends_ns.split_last().expect("there are buckets");
        let ends = ends.iter().map(|ns| *ns as f64 / 1e9);
        let buckets = std::iter::once(0.0).chain(ends).chain([f64::INFINITY]).collect();
        Float64Histogram { counts: durations.counts.clone(), buckets }
    }
}

/// A metric that [`read`] looks up. Go's `metrics.Sample`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What was read last.
    pub value: Value,
}

impl Sample {
    /// Of the metric with this name; not read yet.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>) -> Sample {
        Sample { name: name.into(), value: Value::Bad }
    }
}

/// Every metric there is, in the order of names. Go's `metrics.All`.
///
/// ```
/// let all = gosched::metrics::all();
/// assert!(all.iter().any(|one| one.name == "/sched/latencies:seconds" && one.cumulative));
/// ```
#[must_use]
pub fn all() -> Vec<Description> {
    table::METRICS.iter().map(|metric| metric.description).collect()
}

/// Reads the metrics that `samples` name; a name that there is not gives [`Value::Bad`]. Go's
/// `metrics.Read`.
///
/// Reading goroutines by state looks at each of them, some 30 ns. Before the runtime has started all
/// is 0.
///
/// ```
/// use gosched::metrics::{self, Sample, ValueKind};
///
/// let mut sample = [Sample::new("/sched/latencies:seconds"), Sample::new("/no/such:thing")];
/// metrics::read(&mut sample);
/// assert_eq!(sample[0].value.kind(), ValueKind::Float64Histogram);
/// assert_eq!(sample[1].value.kind(), ValueKind::Bad);
/// ```
pub fn read(samples: &mut [Sample]) {
    let reading = Reading::new();
    for sample in samples {
        let metric = table::METRICS.iter().find(|metric| metric.description.name == sample.name);
        sample.value = metric.map_or(Value::Bad, |metric| match metric.get {
            table::Get::Number(get) => Value::Uint64(get(&reading)),
            table::Get::Times(get) => {
                Value::Float64Histogram(Float64Histogram::in_seconds(&get(&reading)))
            }
        });
    }
}
