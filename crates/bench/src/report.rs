//! The figures of one run, and their one line of JSON.

use crate::args::Args;
use crate::stats::Sorted;
use std::fmt;
use std::time::Duration;

/// Figures by name, in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<(&'static str, Value)>);

#[derive(Debug)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Rows(Vec<Report>),
}

impl Report {
    /// What every line begins with.
    pub(crate) fn new(args: &Args, n: u64) -> Self {
        Report::default()
            .set("impl", "gosched")
            .set("bench", args.bench.as_str())
            .set("procs", args.procs)
            .set("n", n)
    }

    pub(crate) fn set(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((key, value.into()));
        self
    }

    /// `ns_per_op` over `ops` operations, and `secs`.
    pub(crate) fn time(self, took: Duration, ops: u64) -> Self {
        self.set("ns_per_op", ns_per(took, ops)).secs(took)
    }

    pub(crate) fn secs(self, took: Duration) -> Self {
        self.set("secs", took.as_secs_f64())
    }

    /// The middle, the tail and the end of lateness samples in ns.
    pub(crate) fn lateness(self, samples_ns: Vec<u64>) -> Self {
        let late = Sorted::new(samples_ns);
        self.set("late_p50_us", late.at(0.50) / 1e3)
            .set("late_p99_us", late.at(0.99) / 1e3)
            .set("late_max_us", late.at(1.0) / 1e3)
    }

    /// The middle, the tail and the end of round trips in ns.
    pub(crate) fn round_trips(self, samples_ns: Vec<u64>) -> Self {
        let times = Sorted::new(samples_ns);
        self.set("rtt_p50_us", times.at(0.50) / 1e3)
            .set("rtt_p99_us", times.at(0.99) / 1e3)
            .set("rtt_max_us", times.at(1.0) / 1e3)
    }
}

/// Nanoseconds for each of `ops` operations.
pub(crate) fn ns_per(took: Duration, ops: u64) -> f64 {
    took.as_nanos() as f64 / ops.max(1) as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (key, value)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}\"{key}\":{value}")?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) if value.abs() < 1.0 => write!(f, "{value:.6}"),
            Value::Float(value) => write!(f, "{value:.3}"),
            Value::Text(text) => quoted(f, text),
            Value::Rows(rows) => {
                f.write_str("[")?;
                for (i, row) in rows.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{row}")?;
                }
                f.write_str("]")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

macro_rules! value_from {
    ($($of:ty => $make:expr),+ $(,)?) => {
        $(impl From<$of> for Value {
            fn from(value: $of) -> Self {
                $make(value)
            }
        })+
    };
}
value_from! {
    bool => Value::Bool,
    i64 => Value::Int,
    u64 => |value| Value::Int(value as i64),
    usize => |value| Value::Int(value as i64),
    f64 => Value::Float,
    &str => |text: &str| Value::Text(text.into()),
    String => Value::Text,
    Vec<Report> => Value::Rows,
}

#[cfg(test)]
mod tests;
