//! A whole file checked: it can be read, its events have an order, and no more processors run than
//! there are.

use crate::event::{Event, Kind};
use crate::order::{Order, ProcStatus, Seen};
use crate::read::{Generation, Trace};
use std::collections::BTreeMap;
use std::fmt;

/// What a trace that is right has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many generations.
    pub generations: usize,
    /// How many events of each kind.
    pub events: BTreeMap<Kind, u64>,
    /// How many samples of the CPU profiler.
    pub samples: u64,
    /// From the first event to the last, in nanoseconds.
    pub nanoseconds: u64,
    /// Most processors that ran at a time.
    pub most_running: usize,
    /// Goroutines that were left waiting for a cause that never came, or might yet: those that wait at
    /// the end.
    pub waiting_at_end: usize,
}

impl Verified {
    /// How many events of a kind there are.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.events.get(&kind).copied().unwrap_or(0)
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub(crate) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// Checks `file`, calling `see` for each event in order with its generation.
///
/// # Errors
/// What is wrong with it, the first thing.
///
/// ```
/// let told = gosched_trace_format::verify(b"no trace", |_, _| {}).unwrap_err();
/// assert!(told.to_string().contains("go 1.23 trace"));
/// ```
pub fn verify(file: &[u8], mut see: impl FnMut(&Generation<'_>, &Seen)) -> Result<Verified, Fault> {
    let trace = Trace::read(file).map_err(|damaged| Fault(damaged.to_string()))?;
    let mut verified = Verified { generations: trace.generations.len(), ..Verified::default() };
    let (mut order, mut limit) = (Order::new(), u64::MAX);
    let (mut first, mut last, mut excess) = (u64::MAX, 0, None);
    let mut running = 0_usize;
    for generation in &trace.generations {
        verified.samples += generation.samples.len() as u64;
        let mut look = |order: &Order, seen: &Seen| {
            let Event { kind, time, args } = seen.event;
            *verified.events.entry(kind).or_default() += 1;
            let now = generation.nanoseconds(time);
            (first, last) = (first.min(now), last.max(now));
            if kind == Kind::ProcsChange {
                limit = args[0];
            }
            if concerns_processors(kind) {
                running = order.processors().filter(|(_, s)| *s == ProcStatus::Running).count();
                verified.most_running = verified.most_running.max(running);
                if running as u64 > limit && excess.is_none() {
                    excess = Some(format!("at {now} ns {running} of {limit} processors run"));
                }
            }
            see(generation, seen);
        };
        order.check(generation, &mut look).map_err(|broken| Fault(broken.to_string()))?;
    }
    if let Some(excess) = excess {
        return Err(Fault(excess));
    }
    verified.nanoseconds = last.saturating_sub(first);
    let waits = order.goroutines().filter(|(_, status)| *status == crate::GoStatus::Waiting);
    verified.waiting_at_end = waits.count();
    Ok(verified)
}

fn concerns_processors(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ProcStart
            | Kind::ProcStop
            | Kind::ProcStatus
            | Kind::ProcSteal
            | Kind::GoSyscallBegin
            | Kind::GoSyscallEnd
            | Kind::ProcsChange
    )
}
