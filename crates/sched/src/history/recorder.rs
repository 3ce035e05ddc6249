//! The memory of the records, and how they get there.

use super::Kind;
use crate::machine::Machine;
use crate::slab;
use gosched_base::os;
use gosched_fiber::host;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// Records there is room for. A test that needs more is told so.
const ROOM: usize = 4 << 20;
/// Stands for the number of a processor where there is none.
pub(crate) const NO_PROCESSOR: u32 = u32::MAX;
/// Set in the number of an actor that is a thread of its own, not a machine.
pub(crate) const OUTSIDE: u32 = 1 << 31;

/// One thing that happened.
#[cfg(any(test, feature = "history"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// Who did it: a machine's number, or a thread's with [`OUTSIDE`].
    pub(crate) actor: u32,
    /// The processor, or [`NO_PROCESSOR`].
    pub(crate) p: u32,
    /// The goroutine, or 0.
    pub(crate) g: u64,
    pub(crate) detail: u32,
}

/// A record in memory.
struct Slot {
    /// Actor and kind; 0 until the rest is written.
    head: AtomicU64,
    /// Processor and detail.
    numbers: AtomicU64,
    goroutine: AtomicU64,
}

static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());
static NEXT: AtomicU64 = AtomicU64::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
/// How many polls have begun. Written by: the machine that is about to announce itself.
static POLLS: AtomicU32 = AtomicU32::new(0);

/// Maps the memory. With `GOSCHED_TEST_SEED` each record may be followed by a pause, drawn from the
/// seed and the record's number, so that different seeds see different interleavings.
pub(crate) fn start() {
    if !cfg!(feature = "history") {
        return;
    }
    let seed = std::env::var("GOSCHED_TEST_SEED").ok().and_then(|text| text.parse().ok());
    // ORDERING: Relaxed and Release; the runtime has not started.
    SEED.store(seed.unwrap_or(0), Relaxed);
    SLOTS.store(slab::map(ROOM * size_of::<Slot>()).cast(), Release);
}

/// Who calls.
pub(crate) fn actor() -> u32 {
    let machine = host::current_machine().cast::<Machine>();
    // SAFETY: hosts of this process are machines, and never freed.
    match unsafe { machine.as_ref() } {
        Some(machine) => machine.id,
        None => OUTSIDE | os::gettid() as u32,
    }
}

/// A poll begins; before its announcement.
pub(crate) fn count_poll() {
    // ORDERING: Relaxed, and the fence pairs with the one in `current_poll`, by way of the bell's
    // word: who claims the announcement that follows sees this number, or a later one.
    POLLS.fetch_add(1, Relaxed);
    fence(Release);
}

/// The number of the last poll that has begun. One that is later than the claimed one was announced
/// before the caller rings, so that its sleeper is woken by that.
pub(crate) fn current_poll() -> u32 {
    // ORDERING: see `count_poll`.
    fence(Acquire);
    POLLS.load(Relaxed)
}

/// Writes a record. Inside the runtime or outside; neither locks nor allocates.
pub(crate) fn put(kind: Kind, actor: u32, p: u32, g: u64, detail: u32) {
    // ORDERING: Acquire pairs with `start`.
    let slots = SLOTS.load(Acquire);
    if slots.is_null() {
        return;
    }
    // ORDERING: SeqCst: this order is the history.
    let number = NEXT.fetch_add(1, SeqCst);
    if number >= ROOM as u64 {
        return;
    }
    // SAFETY: below the room, in memory that is mapped for good.
    let slot = unsafe { &*slots.wrapping_add(number as usize) };
    // ORDERING: Relaxed, and Release pairs with `records`.
    slot.numbers.store(u64::from(p) << 32 | u64::from(detail), Relaxed);
    slot.goroutine.store(g, Relaxed);
    slot.head.store(u64::from(actor) << 32 | kind as u64, Release);
    disturb(number);
}

/// Gives others a chance to get in between.
fn disturb(number: u64) {
    // ORDERING: Relaxed; set before the runtime starts.
    let seed = SEED.load(Relaxed);
    if seed == 0 {
        return;
    }
    let mut mixed = (number ^ seed.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 32;
    match mixed % 256 {
        0 => {
            // SAFETY: passes no memory.
            let _ = unsafe { os::syscall(libc::SYS_sched_yield, [0; 6]) };
        }
        1..16 => (0..mixed >> 8 & 511).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}

/// All records, in their order. Waits for those that are being written.
#[cfg(feature = "history")]
pub(crate) fn records() -> Vec<Record> {
    // ORDERING: SeqCst and Acquire; see `put`.
    let count = NEXT.load(SeqCst);
    let slots = SLOTS.load(Acquire);
    assert!(count <= ROOM as u64, "{count} records, and room for {ROOM}");
    let read = |i: u64| {
        // SAFETY: below the room, in memory that is mapped for good.
        let slot = unsafe { &*slots.wrapping_add(i as usize) };
        loop {
            if let Some(record) = slot.read() {
                return record;
            }
            std::thread::yield_now();
        }
    };
    (0..count).map(read).collect()
}

#[cfg(feature = "history")]
impl Slot {
    /// `None` while it is being written.
    fn read(&self) -> Option<Record> {
        // ORDERING: Acquire pairs with `put`.
        let head = self.head.load(Acquire);
        let (numbers, g) = (self.numbers.load(Relaxed), self.goroutine.load(Relaxed));
        let kind = Kind::from_number(head as u8)?;
        let (p, detail) = ((numbers >> 32) as u32, numbers as u32);
        Some(Record { kind, actor: (head >> 32) as u32, p, g, detail })
    }
}

impl Kind {
    #[cfg(feature = "history")]
    fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        const ALL: [Kind; Kind::Done as usize] = [
            Created, Ready, Run, Yielded, Park, Exit, EnterCall, ExitCall, WaitFiber, GotFiber,
            Search, Tried, Idle, Rest, Transit, Acquired, Retired, Lost, Left, Sleep, Awake,
            Ringing, Rung, PollEnd, Lookout, Next, Moved, Considered, Begun, Finished, Done,
        ];
        ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}
