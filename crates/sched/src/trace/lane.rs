//! Where one thread at a time writes events.
//!
//! Each machine has a lane, written by its own thread inside the runtime (and once, while it is known
//! to sleep in the kernel, by whoever takes its processor: see [`Lane::lend`]). Threads that are no
//! machines, or have no processor, share a few more.
//!
//! The protocol between a writer and the collector, who ends a generation:
//!
//! * Writer: W1 `section` odd; W2 a light barrier; W3 read the generation, write into a chunk of it;
//!   W4 `section` even, Release.
//! * Collector: C1 the next generation; C2 a heavy barrier; C3 wait until `section` is even or has
//!   changed; C4 take chunks of the old generation, under `flips`.
//!
//! If W1 comes before C2 the collector sees the section and waits for its end; if after, W3 reads the
//! next generation, and the writer leaves the old chunk alone but for giving it away under `flips`. It
//! knows by a mark in the lane's pointer which generation the chunk is of: the collector may have taken
//! it meanwhile, and others may use its memory.

use super::chunk::{self, Chunk, Owned};
use super::clock;
use super::{GENERATION, overrun};
use gosched_base::{Lock, barrier};
use gosched_trace_format::{
    EVENT_MAX, EVENT_ROOM, Kind, NO_THREAD, STRING_MAX, STRINGS, encode, encode_in_room,
    encode_string,
};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};

/// A place to write events.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Odd while somebody writes.
    section: AtomicU32,
    /// With the lowest bits of its generation in the address, see [`mark`].
    chunk: AtomicPtr<Chunk>,
    /// Held while the chunk is exchanged.
    flips: Lock<()>,
    /// Whether the machine's goroutine is in a call, as far as the trace says. Written by: its thread;
    /// the borrower; whoever starts a trace, under `calls`.
    in_call: AtomicBool,
    /// Held where a machine without a processor gives its goroutine up.
    pub(super) calls: Lock<()>,
    /// The taker of the machine's processor writes here, or may be about to.
    is_lent: AtomicBool,
    /// Why the machine's goroutine is about to give way. Its thread only.
    why: AtomicU8,
    /// What is written here is not for everybody.
    is_apart: bool,
}

/// The right to write into a lane, in one generation.
pub(super) struct Section<'a> {
    lane: &'a Lane,
    /// The lane's chunk, if it is of this generation; else null. Nobody else uses it before the section
    /// has ended (the protocol).
    chunk: *mut Chunk,
    pub(super) generation: u64,
    thread: u64,
    pub(super) now: u64,
}

impl Lane {
    pub(crate) const fn new() -> Lane {
        Lane {
            section: AtomicU32::new(0),
            chunk: AtomicPtr::new(ptr::null_mut()),
            flips: Lock::new(()),
            in_call: AtomicBool::new(false),
            calls: Lock::new(()),
            is_lent: AtomicBool::new(false),
            why: AtomicU8::new(0),
            is_apart: false,
        }
    }

    /// One whose chunks are collected apart from the others.
    pub(super) const fn apart() -> Lane {
        Lane { is_apart: true, ..Lane::new() }
    }

    /// Puts a chunk among the full ones; true: there are many.
    fn put(&self, chunk: Owned) -> bool {
        if self.is_apart {
            chunk::put_apart(chunk);
            return false;
        }
        chunk::put_full(chunk)
    }

    /// Begins to write for `thread`, if a trace is on. One at a time.
    pub(super) fn enter(&self, thread: u64) -> Option<Section<'_>> {
        self.enter_at(thread, 0)
    }

    /// As [`enter`](Lane::enter), at the time of the lane's last event, which the caller knows; 0 for
    /// now. In another generation the time is another: none of its events is older than itself.
    pub(super) fn enter_at(&self, thread: u64, now: u64) -> Option<Section<'_>> {
        // ORDERING: Relaxed for both; W1, one writer.
        self.section.store(self.section.load(Relaxed).wrapping_add(1), Relaxed);
        if barrier::is_asymmetric() {
            // ORDERING: W2; the CPU's part is C2.
            compiler_fence(SeqCst);
        } else {
            // ORDERING: W2; pairs with the fence of `next_generation`.
            fence(SeqCst);
        }
        // ORDERING: Relaxed: whoever comes after an event, by way of its goroutine, reads the same
        // generation or a later one (coherence).
        let generation = u64::from(GENERATION.load(Relaxed));
        if generation == 0 {
            self.leave();
            return None;
        }
        let chunk = self.chunk_of(generation);
        let is_known = now != 0 && !chunk.is_null();
        let now = if is_known { now } else { clock::now() };
        Some(Section { lane: self, chunk, generation, thread, now })
    }

    /// Its chunk, if it is of that generation; else null.
    fn chunk_of(&self, generation: u64) -> *mut Chunk {
        // ORDERING: Acquire pairs with `flip`: the memory may be another thread's from before.
        let held = self.chunk.load(Acquire);
        let chunk = unmark(held);
        if held == mark(chunk, generation) { chunk } else { ptr::null_mut() }
    }

    fn leave(&self) {
        // ORDERING: W4; Release pairs with `wait_for_writer`.
        self.section.store(self.section.load(Relaxed).wrapping_add(1), Release);
    }

    /// C3. For the collector, after C1 and C2.
    pub(super) fn wait_for_writer(&self) {
        // ORDERING: Acquire pairs with `leave`.
        let seen = self.section.load(Acquire);
        while seen % 2 == 1 && self.section.load(Acquire) == seen {
            std::thread::yield_now();
        }
    }

    /// C4: puts what was written in generations before `next` among the full chunks. The thread of a
    /// machine does so before its end, too, with everything.
    pub(crate) fn flush(&self, next: u64) {
        let _alone = self.flips.lock();
        // ORDERING: Acquire pairs with `flip`.
        let held = unmark(self.chunk.load(Acquire));
        // SAFETY: the lane's, under the lock; the head is written before the chunk is published.
        let Some(chunk) = (unsafe { held.as_ref() }) else { return };
        if chunk.generation < next {
            // ORDERING: Release, as in `flip`.
            self.chunk.store(ptr::null_mut(), Release);
            // SAFETY: by the protocol its writer leaves it alone, and the lane has it no more.
            let chunk = unsafe { Owned::from_raw(held) };
            chunk.map(|chunk| self.put(chunk));
        }
    }

    /// Whether the trace has the machine's goroutine in a call.
    pub(super) fn is_in_call(&self) -> bool {
        // ORDERING: Relaxed; ordered by what orders the writers.
        self.in_call.load(Relaxed)
    }

    pub(super) fn set_in_call(&self, in_call: bool) {
        // ORDERING: Relaxed; as above.
        self.in_call.store(in_call, Relaxed);
    }

    /// Before the processor of a machine that sleeps in the kernel is taken: its thread will wait for
    /// [`Lane::take_back`] before it writes.
    pub(crate) fn lend(&self) {
        // ORDERING: Relaxed; published by the taking.
        self.is_lent.store(true, Relaxed);
    }

    /// Ends [`Lane::lend`].
    pub(crate) fn take_back(&self) {
        // ORDERING: Release pairs with `wait_for_borrower`.
        self.is_lent.store(false, Release);
    }

    /// The machine has seen that its processor is gone. Its thread's first act then.
    pub(crate) fn wait_for_borrower(&self) {
        // ORDERING: Acquire pairs with `take_back`.
        while self.is_lent.load(Acquire) {
            give_way();
        }
    }

    /// Says why the goroutine is about to give way.
    pub(crate) fn set_why(&self, why: u8) {
        // ORDERING: Relaxed; one thread.
        self.why.store(why, Relaxed);
    }

    #[inline]
    pub(super) fn take_why(&self) -> u8 {
        // ORDERING: Relaxed for both; one thread, so no exchange is needed.
        let why = self.why.load(Relaxed);
        if why != 0 {
            self.why.store(0, Relaxed);
        }
        why
    }
}

impl Section<'_> {
    /// Writes an event.
    #[inline]
    pub(super) fn put<const N: usize>(&mut self, kind: Kind, args: &[u64; N]) {
        let now = self.now;
        let Some(chunk) = self.chunk_with_room(EVENT_ROOM) else { return };
        let dt = now.saturating_sub(chunk.last);
        // SAFETY: there are so many bytes behind those that are used.
        let room = unsafe { chunk.bytes.as_mut_ptr().add(chunk.len) };
        // SAFETY: as above, and the chunk is borrowed for this writer.
        let room = unsafe { &mut *room.cast::<[u8; EVENT_ROOM]>() };
        chunk.len += encode_in_room(room, kind, dt, args);
        chunk.last += dt;
    }

    /// As [`put`](Section::put), where the number of arguments depends.
    pub(super) fn put_slice(&mut self, kind: Kind, args: &[u64]) {
        let now = self.now;
        let Some(chunk) = self.chunk_with_room(EVENT_MAX) else { return };
        let dt = now.saturating_sub(chunk.last);
        if let Some(written) = encode(&mut chunk.bytes[chunk.len..], kind, dt, args) {
            chunk.len += written;
            chunk.last += dt;
        }
    }

    /// Writes a string under a number of its own.
    pub(super) fn put_string(&mut self, id: u64, text: &str) {
        let Some(chunk) = self.chunk_with_room(STRING_MAX + EVENT_MAX) else { return };
        if chunk.len == 0 && chunk.is_of_no_thread() {
            chunk.bytes[0] = STRINGS;
            chunk.len = 1;
        }
        if let Some(written) = encode_string(&mut chunk.bytes[chunk.len..], id, text) {
            chunk.len += written;
        }
    }

    #[inline]
    fn chunk_with_room(&mut self, room: usize) -> Option<&mut Chunk> {
        let chunk = self.chunk;
        // SAFETY: the lane's chunk, of which this writer is the only user while the generation is
        // its own (the protocol).
        let fits = !chunk.is_null() && unsafe { (*chunk).has_room(room) };
        let chunk = if fits { chunk } else { self.flip()? };
        // SAFETY: as above.
        unsafe { chunk.as_mut() }
    }

    /// Gives the lane's chunk away and takes an empty one.
    #[cold]
    fn flip(&mut self) -> Option<*mut Chunk> {
        let _alone = self.lane.flips.lock();
        // ORDERING: Relaxed for this one, under the lock; Release publishes the new one's head.
        let old = unmark(self.lane.chunk.load(Relaxed));
        let new = chunk::take(self.generation, self.thread, self.now)
            .map_or(ptr::null_mut(), Owned::into_raw);
        self.lane.chunk.store(mark(new, self.generation), Release);
        self.chunk = new;
        // SAFETY: it was the lane's, which has it no more.
        let is_much = unsafe { Owned::from_raw(old) }.is_some_and(|chunk| self.lane.put(chunk));
        if new.is_null() || is_much {
            overrun(new.is_null());
        }
        (!new.is_null()).then_some(new)
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.lane.leave();
    }
}

/// Chunks lie at multiples of a page.
const MARK: usize = 0xfff;

/// The address of a chunk with the lowest bits of its generation. Of one 4,096 generations older no
/// lane has a chunk.
fn mark(chunk: *mut Chunk, generation: u64) -> *mut Chunk {
    if chunk.is_null() { chunk } else { chunk.map_addr(|at| at | generation as usize & MARK) }
}

fn unmark(held: *mut Chunk) -> *mut Chunk {
    held.map_addr(|at| at & !MARK)
}

/// Lets whoever holds what the caller waits for have the CPU.
fn give_way() {
    // SAFETY: passes no memory.
    let _ = unsafe { gosched_base::os::syscall(libc::SYS_sched_yield, [0; 6]) };
}

/// So many threads can write at once that are no machines.
const OUTSIDE: usize = 16;
/// Their lanes' numbers as threads.
const OUTSIDE_THREAD: u64 = 1 << 40;

/// The lane of whoever has taken it.
struct Shared {
    is_taken: AtomicBool,
    lane: Lane,
}

static SHARED: [Shared; OUTSIDE] =
    [const { Shared { is_taken: AtomicBool::new(false), lane: Lane::new() } }; OUTSIDE];

/// Calls `write` with a lane that no machine has, or with nothing if no trace is on.
pub(super) fn outside(write: impl FnOnce(Option<&mut Section<'_>>)) {
    let mut at = gosched_base::os::gettid() as usize % OUTSIDE;
    // ORDERING: Relaxed look; Acquire pairs with the Release below.
    while SHARED[at].is_taken.load(Relaxed) || SHARED[at].is_taken.swap(true, Acquire) {
        at = (at + 1) % OUTSIDE;
        if at == 0 {
            give_way();
        }
    }
    write(SHARED[at].lane.enter(OUTSIDE_THREAD + at as u64).as_mut());
    // ORDERING: Release: the next one to take it finds the lane as it was left.
    SHARED[at].is_taken.store(false, Release);
}

/// Where strings of the user's go. One writer at a time: under the lock.
static TEXTS: Lock<()> = Lock::new(());
static TEXT_LANE: Lane = Lane::new();

/// Writes `text` in the generation of `section`, whose writer the collector waits for.
pub(super) fn text(section: &Section<'_>, id: u64, text: &str) {
    let _alone = TEXTS.lock();
    let (generation, now) = (section.generation, section.now);
    // No section of its own: that of the event which names the string holds the generation open.
    let mut own = std::mem::ManuallyDrop::new(Section {
        lane: &TEXT_LANE,
        chunk: TEXT_LANE.chunk_of(generation),
        generation,
        thread: NO_THREAD,
        now,
    });
    own.put_string(id, text);
}

/// Every lane that belongs to no machine.
pub(super) fn all_outside() -> impl Iterator<Item = &'static Lane> {
    SHARED.iter().map(|shared| &shared.lane).chain([&TEXT_LANE])
}
