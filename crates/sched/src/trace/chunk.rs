//! Memory for events: chunks that one lane fills, and the list of the full ones.
//!
//! Mapped from the kernel and used again until the trace ends, so that events can be written anywhere inside the
//! runtime. A chunk is one batch of the format: events of one thread in one generation.

use crate::slab;
use gosched_base::Lock;
use gosched_trace_format::{
    EVENT_MAX, NO_THREAD, STRING_MAX, STRINGS, encode, encode_in_room, encode_string,
};
pub(super) use gosched_trace_format::{EVENT_ROOM, Kind};
use std::ptr::{self, NonNull};

/// A chunk with its head: the format allows 64 KiB in a batch.
const CHUNK_BYTES: usize = 64 << 10;
const PAYLOAD: usize = CHUNK_BYTES - 48;
/// Room for a string with its event.
pub(super) const TEXT_ROOM: usize = STRING_MAX + EVENT_MAX;
/// So many are full or being filled at most: 256 MiB. A writer so slow is not waited for.
const CHUNKS_MAX: usize = 4096;
/// So many full ones, and the collector is called before its time.
const FULL_MANY: usize = 128;

/// Events of one thread in one generation.
#[repr(C)]
pub(super) struct Chunk {
    next: *mut Chunk,
    pub(super) generation: u64,
    pub(super) thread: u64,
    /// What the first event's time is relative to.
    pub(super) base: u64,
    /// The time of the last event.
    pub(super) last: u64,
    pub(super) len: usize,
    pub(super) bytes: [u8; PAYLOAD],
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

/// A chunk that nobody else has.
pub(super) struct Owned(NonNull<Chunk>);

// SAFETY: a chunk is plain memory, and its one owner has this.
unsafe impl Send for Owned {}

impl Owned {
    /// # Safety
    /// * `chunk` came from [`Owned::into_raw`], and nobody else has it.
    pub(super) unsafe fn from_raw(chunk: *mut Chunk) -> Option<Owned> {
        NonNull::new(chunk).map(Owned)
    }

    pub(super) fn into_raw(self) -> *mut Chunk {
        self.0.as_ptr()
    }

    pub(super) fn get(&mut self) -> &mut Chunk {
        // SAFETY: mapped, and the one owner's.
        unsafe { self.0.as_mut() }
    }

    pub(super) fn payload(&self) -> &[u8] {
        // SAFETY: as above.
        let chunk = unsafe { self.0.as_ref() };
        &chunk.bytes[..chunk.len]
    }
}

/// A list of chunks, first in, first out.
struct Chunks {
    first: *mut Chunk,
    last: *mut Chunk,
    count: usize,
}

// SAFETY: who has the list has the chunks.
unsafe impl Send for Chunks {}

impl Chunks {
    const fn new() -> Chunks {
        Chunks { first: ptr::null_mut(), last: ptr::null_mut(), count: 0 }
    }

    fn push(&mut self, mut chunk: Owned) {
        chunk.get().next = ptr::null_mut();
        let chunk = chunk.into_raw();
        // SAFETY: in the list, so it is there.
        match unsafe { self.last.as_mut() } {
            Some(last) => last.next = chunk,
            None => self.first = chunk,
        }
        self.last = chunk;
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Owned> {
        // SAFETY: only `push` puts chunks here.
        let mut chunk = unsafe { Owned::from_raw(self.first) }?;
        self.first = chunk.get().next;
        if self.first.is_null() {
            self.last = ptr::null_mut();
        }
        self.count -= 1;
        Some(chunk)
    }
}

static FREE: Lock<Chunks> = Lock::new(Chunks::new());
static FULL: Lock<Chunks> = Lock::new(Chunks::new());
/// Full ones that are not for everybody.
static APART: Lock<Chunks> = Lock::new(Chunks::new());
/// How many there are.
static MADE: Lock<usize> = Lock::new(0);

/// An empty one; `None` if there are too many.
pub(super) fn take(generation: u64, thread: u64, now: u64) -> Option<Owned> {
    let free = FREE.lock().pop();
    let mut chunk = match free {
        Some(chunk) => chunk,
        None => make()?,
    };
    let head = chunk.get();
    (head.generation, head.thread, head.base, head.last, head.len) =
        (generation, thread, now, now, 0);
    Some(chunk)
}

fn make() -> Option<Owned> {
    {
        let mut made = MADE.lock();
        if *made == CHUNKS_MAX {
            return None;
        }
        *made += 1;
    }
    // SAFETY: new memory, and zeroes are valid in every field.
    unsafe { Owned::from_raw(slab::map(CHUNK_BYTES).cast()) }
}

/// Takes a chunk that was read back.
pub(super) fn give(chunk: Owned) {
    FREE.lock().push(chunk);
}

/// Gives the memory of all empty ones back. When no trace is on.
pub(super) fn give_back() {
    while let Some(chunk) = FREE.lock().pop() {
        // SAFETY: mapped by `make`, and the one owner's.
        unsafe { slab::unmap(chunk.into_raw().cast(), CHUNK_BYTES) };
        *MADE.lock() -= 1;
    }
}

/// Puts a chunk among the full ones. True: there are many.
pub(super) fn put_full(chunk: Owned) -> bool {
    let mut full = FULL.lock();
    full.push(chunk);
    full.count.is_multiple_of(FULL_MANY)
}

/// The full chunk that was put first.
pub(super) fn take_full() -> Option<Owned> {
    FULL.lock().pop()
}

/// As [`put_full`], and [`take_full`], for what is not for everybody.
pub(super) fn put_apart(chunk: Owned) {
    APART.lock().push(chunk);
}

pub(super) fn take_apart() -> Option<Owned> {
    APART.lock().pop()
}

impl Chunk {
    #[inline]
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        PAYLOAD - self.len >= bytes
    }

    /// The generation of a chunk that somebody may be writing into: no reference is made to more than
    /// its head.
    ///
    /// # Safety
    /// * It is in use, and was given out by something that the caller has seen.
    pub(super) unsafe fn generation(chunk: NonNull<Chunk>) -> u64 {
        // SAFETY: by the caller, it is there.
        let generation = unsafe { &raw const (*chunk.as_ptr()).generation };
        // SAFETY: by the caller; the head stays as it is while the chunk is in use.
        unsafe { generation.read() }
    }

    /// Writes an event. There is [`EVENT_ROOM`].
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, kind: Kind, now: u64, args: &[u64; N]) {
        let dt = now.saturating_sub(self.last);
        self.put_after(kind, dt, args);
        self.last += dt;
    }

    /// As [`put`](Chunk::put), at the time of the event before.
    #[inline(always)]
    pub(super) fn put_along<const N: usize>(&mut self, kind: Kind, args: &[u64; N]) {
        self.put_after(kind, 0, args);
    }

    #[inline(always)]
    fn put_after<const N: usize>(&mut self, kind: Kind, dt: u64, args: &[u64; N]) {
        // SAFETY: there are so many bytes behind those that are used.
        let room = unsafe { self.bytes.as_mut_ptr().add(self.len) };
        // SAFETY: as above, and the chunk is borrowed for this writer.
        let room = unsafe { &mut *room.cast::<[u8; EVENT_ROOM]>() };
        self.len += encode_in_room(room, kind, dt, args);
    }

    /// As [`put`](Chunk::put), where the number of arguments depends.
    pub(super) fn put_slice(&mut self, kind: Kind, now: u64, args: &[u64]) {
        let dt = now.saturating_sub(self.last);
        if let Some(written) = encode(&mut self.bytes[self.len..], kind, dt, args) {
            self.len += written;
            self.last += dt;
        }
    }

    /// Writes a string under a number of its own. There is [`TEXT_ROOM`].
    pub(super) fn put_string(&mut self, id: u64, text: &str) {
        if self.len == 0 && self.thread == NO_THREAD {
            self.bytes[0] = STRINGS;
            self.len = 1;
        }
        if let Some(written) = encode_string(&mut self.bytes[self.len..], id, text) {
            self.len += written;
        }
    }
}
