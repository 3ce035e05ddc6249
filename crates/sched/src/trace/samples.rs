//! Samples of the CPU profile in traces.
//!
//! The profile's signal handler notes where a thread was, in one of a fixed number of places; the
//! collector takes those of a generation when it ends. Whoever has a place has its lock, which handlers
//! only try. A handler that finds no place counts its sample as lost.
//!
//! A sample that comes late, of a moment before the generation, is shown at its beginning.

use super::{COLLECTOR, clock, is_on};
use crate::machine::Machine;
use crate::profile;
use gosched_base::{Lock, os};
use gosched_trace_format::{CpuSample, Frame, NO_PROCESSOR, Table, sample_batches};
use gosched_unwind::Frames;
use gosched_unwind::symbols::Symbol;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// So many between two looks of the collector: 1.1 MiB.
const PLACES: usize = 1024;
/// So many are looked at for an empty one.
const TRIES: usize = 16;
/// Numbers of stacks of samples are above those of [`sites`](super::sites).
const FIRST_STACK: u64 = 1 << 20;

/// What a handler has seen.
#[derive(Default)]
struct Sample {
    /// When, in ticks; 0: the place is empty.
    time: u64,
    thread: u64,
    processor: u64,
    goroutine: u64,
    frames: Frames,
}

static PLACES_MADE: OnceLock<Box<[Lock<Sample>]>> = OnceLock::new();
/// Where the next handler looks first: how many there were.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// How many found no place.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Makes the places. Allocates; before a handler calls [`note`].
pub(crate) fn prepare() {
    PLACES_MADE.get_or_init(|| (0..PLACES).map(|_| Lock::new(Sample::default())).collect());
}

/// The time of a sample; 0 if no trace is on. Signal-safe.
pub(crate) fn now() -> u64 {
    if is_on() { clock::now() } else { 0 }
}

/// The calling handler has interrupted code of its thread there, at the time [`now`]. Signal-safe.
pub(crate) fn note(goroutine: u64, time: u64, frames: &Frames) {
    let Some(places) = PLACES_MADE.get().filter(|_| time != 0) else { return };
    // ORDERING: Relaxed; only so that handlers look in different places.
    let first = NEXT.fetch_add(1, Relaxed);
    if first % (PLACES / 2) == PLACES / 2 - 1 {
        COLLECTOR.wake();
    }
    let mut tried = (0..TRIES).filter_map(|i| places[first.wrapping_add(i) % PLACES].try_lock());
    let Some(mut place) = tried.find(|place| place.time == 0) else {
        // ORDERING: Relaxed; a number.
        LOST.fetch_add(1, Relaxed);
        return;
    };
    let machine = Machine::current_here();
    let holds = machine.filter(|machine| !machine.ownership.is_lost());
    place.thread = os::gettid() as u64;
    place.processor = holds.and_then(Machine::processor).map_or(NO_PROCESSOR, |p| u64::from(p.id));
    place.goroutine = goroutine;
    place.frames.clone_from(frames);
    place.time = time;
}

/// How many samples were lost since the start.
pub(crate) fn lost() -> u64 {
    // ORDERING: Relaxed; a number.
    LOST.load(Relaxed)
}

/// A trace begins: forgets what is left of another one.
pub(super) fn clear() {
    places().for_each(|place| place.lock().time = 0);
}

fn places() -> impl Iterator<Item = &'static Lock<Sample>> {
    PLACES_MADE.get().into_iter().flatten()
}

/// Names of addresses, kept for a trace.
#[derive(Default)]
pub(super) struct Names(HashMap<usize, Vec<Frame>>);

/// Writes the samples of a generation, from `begun` to `ended`, and enters their stacks. The
/// collector's, on whose thread no handler runs.
pub(super) fn write(
    out: &mut Vec<u8>,
    table: &mut Table,
    names: &mut Names,
    generation: u64,
    (begun, ended): (u64, u64),
) {
    let mut stacks: HashMap<Box<[usize]>, u64> = HashMap::new();
    let mut samples = Vec::new();
    for place in places() {
        let mut place = place.lock();
        if place.time == 0 || place.time > ended {
            continue;
        }
        let next = FIRST_STACK + stacks.len() as u64;
        let stack = *stacks.entry(Box::from(place.frames.pcs())).or_insert(next);
        samples.push(CpuSample {
            time: place.time.max(begun),
            thread: place.thread,
            processor: place.processor,
            goroutine: place.goroutine,
            stack,
        });
        place.time = 0;
    }
    samples.sort_by_key(|sample| sample.time);
    sample_batches(out, generation, begun, &samples);
    for (pcs, id) in &stacks {
        let frames: Vec<Frame> = pcs.iter().flat_map(|pc| names.at(*pc).to_vec()).collect();
        table.stack(*id, &frames[..frames.len().min(gosched_unwind::FRAMES_MAX)]);
    }
}

impl Names {
    fn at(&mut self, pc: usize) -> &[Frame] {
        self.0.entry(pc).or_insert_with(|| {
            let symbols = profile::symbols_at(pc);
            // Readers take frames with one address for the same frame, but functions that are inlined
            // share theirs: each has a number above all addresses.
            let depth = |at: usize| (symbols.len() - 1 - at) as u64;
            let frame = |(at, symbol): (usize, &Symbol)| Frame {
                pc: pc as u64 | depth(at) << 48,
                function: symbol.function.to_string(),
                file: symbol.file.to_string(),
                line: symbol.line.into(),
            };
            symbols.iter().enumerate().map(frame).collect()
        })
    }
}
