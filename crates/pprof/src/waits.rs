//! Block and mutex profiles: where goroutines wait for each other, and whom for.

use crate::encode::{Encoder, Kind};
use gosched_base::Rng;
use gosched_base::os::monotonic_ns;
use gosched_sched::{WaitEvent, WaitSide, set_wait_hook};
use gosched_unwind::Frames;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// 0: none; else of waits that are shorter than so many nanoseconds only some are noted.
static BLOCK_RATE: AtomicU64 = AtomicU64::new(0);
/// 0: none; else one of so many.
static MUTEX_FRACTION: AtomicU64 = AtomicU64::new(0);

/// Waits by stack.
#[derive(Default)]
struct Waits(HashMap<Box<[usize]>, Sum>);

/// What was seen, scaled up to what there was.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: f64,
    ns: f64,
}

static BLOCK: Mutex<Option<Waits>> = Mutex::new(None);
static MUTEX: Mutex<Option<Waits>> = Mutex::new(None);

thread_local! {
    static RNG: RefCell<Rng> = RefCell::new(Rng::new(monotonic_ns()));
}

/// Has the block profile note one wait in `rate` nanoseconds waited, on average; returns the former rate.
/// 1 notes each, 0 none. Go's `runtime.SetBlockProfileRate`, which counts likewise.
///
/// What was noted before stays. Waits for channels, selects, locks, condition variables, semaphores and
/// wait groups are noted, by goroutines and plain threads; sleeps, sockets and joins are not.
///
/// ```
/// let before = gosched_pprof::set_block_profile_rate(1_000_000);
/// assert_eq!(gosched_pprof::set_block_profile_rate(before), 1_000_000);
/// ```
pub fn set_block_profile_rate(rate: u64) -> u64 {
    set(&BLOCK_RATE, rate)
}

/// Has the mutex profile note one of `fraction` waits for a lock; returns the former fraction. 0 notes none.
/// Go's `runtime.SetMutexProfileFraction`.
///
/// A wait is charged to who has let go of the lock.
///
/// ```
/// let before = gosched_pprof::set_mutex_profile_fraction(10);
/// assert_eq!(gosched_pprof::set_mutex_profile_fraction(before), 10);
/// ```
pub fn set_mutex_profile_fraction(fraction: u64) -> u64 {
    set(&MUTEX_FRACTION, fraction)
}

fn set(which: &AtomicU64, new: u64) -> u64 {
    static SETTING: Mutex<()> = Mutex::new(());
    let _alone = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    gosched_unwind::prepare();
    // ORDERING: Relaxed for all; a wait that ends just now is noted by the one or the other.
    let former = which.swap(new, Relaxed);
    let is_any = BLOCK_RATE.load(Relaxed) | MUTEX_FRACTION.load(Relaxed) != 0;
    set_wait_hook(is_any.then_some(note));
    former
}

/// In whatever code has waited; outside the runtime.
fn note(event: &WaitEvent) {
    let (profile, weight) = match event.side {
        // ORDERING: Relaxed for both; see `set`.
        WaitSide::Waiter => (&BLOCK, block_weight(event.ns, BLOCK_RATE.load(Relaxed))),
        WaitSide::Releaser => (&MUTEX, mutex_weight(MUTEX_FRACTION.load(Relaxed))),
    };
    let Some(weight) = weight else { return };
    let mut frames = Frames::new();
    gosched_unwind::here(&mut frames);
    let mut profile = profile.lock().unwrap_or_else(PoisonError::into_inner);
    let waits = &mut profile.get_or_insert_default().0;
    let sum = match waits.get_mut(frames.pcs()) {
        Some(sum) => sum,
        None => waits.entry(frames.pcs().into()).or_default(),
    };
    sum.count += weight;
    sum.ns += weight * event.ns as f64;
}

/// For how many such waits one stands: a short one is noted the more rarely the shorter it is.
pub(crate) fn block_weight(ns: u64, rate: u64) -> Option<f64> {
    match rate {
        0 => None,
        _ if ns >= rate => Some(1.0),
        _ if ns > 0 && random() % rate < ns => Some(rate as f64 / ns as f64),
        _ => None,
    }
}

pub(crate) fn mutex_weight(fraction: u64) -> Option<f64> {
    (fraction > 0 && random().is_multiple_of(fraction)).then_some(fraction as f64)
}

fn random() -> u64 {
    // At a goroutine's end its generator may be gone.
    RNG.try_with(|rng| rng.borrow_mut().next_u64()).unwrap_or_else(|_| monotonic_ns())
}

/// A sum of waits at one stack: how many, and for how many nanoseconds.
pub(crate) struct Wait {
    pub(crate) pcs: Box<[usize]>,
    pub(crate) count: i64,
    pub(crate) ns: i64,
}

/// The block profile (else the mutex profile) so far, the longest first.
pub(crate) fn waits(is_block: bool) -> Vec<Wait> {
    let profile = if is_block { &BLOCK } else { &MUTEX };
    let profile = profile.lock().unwrap_or_else(PoisonError::into_inner);
    let all = profile.iter().flat_map(|waits| &waits.0);
    let mut all: Vec<_> = all
        .map(|(pcs, sum)| Wait { pcs: pcs.clone(), count: sum.count as i64, ns: sum.ns as i64 })
        .collect();
    all.sort_by_key(|wait| std::cmp::Reverse(wait.ns));
    all
}

/// One of how many waits is noted.
pub(crate) fn mutex_fraction() -> u64 {
    // ORDERING: Relaxed; a number.
    MUTEX_FRACTION.load(Relaxed)
}

const CONTENTIONS: Kind = ("contentions", "count");

/// Writes pprof's file.
pub(crate) fn write(is_block: bool, out: &mut impl Write) -> io::Result<()> {
    let mut encoder = Encoder::new(&[CONTENTIONS, ("delay", "nanoseconds")], CONTENTIONS, 1);
    for wait in waits(is_block) {
        encoder.add_operation(&wait.pcs, &[wait.count, wait.ns]);
    }
    encoder.write(out)
}
