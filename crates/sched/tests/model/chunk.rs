//! Chunks of events, in memory that loom watches.

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use std::ptr::NonNull;

pub(crate) const EVENT_ROOM: usize = 1;
pub(crate) const TEXT_ROOM: usize = 1;
/// Events in a chunk.
const ROOM: usize = 2;

pub(crate) struct Kind;

/// Kept until the model ends.
#[repr(align(4096))]
pub(crate) struct Chunk {
    generation: UnsafeCell<u64>,
    events: UnsafeCell<Vec<(u64, u64)>>,
}

impl Chunk {
    pub(crate) unsafe fn generation(chunk: NonNull<Chunk>) -> u64 {
        // SAFETY: kept; loom looks who writes.
        unsafe { chunk.as_ref() }.generation.with(|generation| unsafe { *generation })
    }

    pub(crate) fn has_room(&self, count: usize) -> bool {
        // SAFETY: loom looks who writes.
        self.events.with(|events| unsafe { &*events }.len() + count <= ROOM)
    }

    pub(crate) fn put<const N: usize>(&self, _: Kind, _: u64, args: &[u64; N]) {
        // SAFETY: as above.
        self.events.with_mut(|events| unsafe { &mut *events }.push((args[0], args[1])));
    }

    pub(crate) fn put_along<const N: usize>(&self, kind: Kind, args: &[u64; N]) {
        self.put(kind, 0, args);
    }

    pub(crate) fn put_slice(&self, _: Kind, _: u64, _: &[u64]) {}

    pub(crate) fn put_string(&self, _: u64, _: &str) {}
}

pub(crate) struct Owned(NonNull<Chunk>);

// SAFETY: its one owner's; loom looks.
unsafe impl Send for Owned {}

impl Owned {
    pub(crate) unsafe fn from_raw(chunk: *mut Chunk) -> Option<Owned> {
        NonNull::new(chunk).map(Owned)
    }

    pub(crate) fn into_raw(self) -> *mut Chunk {
        self.0.as_ptr()
    }

    fn chunk(&self) -> &Chunk {
        // SAFETY: kept.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn of(&self) -> u64 {
        // SAFETY: kept.
        unsafe { Chunk::generation(self.0) }
    }

    pub(crate) fn events(&self) -> Vec<(u64, u64)> {
        // SAFETY: loom looks who writes.
        self.chunk().events.with(|events| unsafe { (*events).clone() })
    }
}

loom::lazy_static! {
    /// All that there are, until the model's end.
    static ref MADE: Mutex<Vec<Box<Chunk>>> = Mutex::new(Vec::new());
    static ref FREE: Mutex<Vec<Owned>> = Mutex::new(Vec::new());
    static ref FULL: Mutex<Vec<Owned>> = Mutex::new(Vec::new());
}

pub(crate) fn take(generation: u64, _: u64, _: u64) -> Option<Owned> {
    let free = FREE.lock().unwrap().pop();
    let chunk = free.unwrap_or_else(|| {
        let (generation, events) = (UnsafeCell::new(0), UnsafeCell::new(Vec::new()));
        let chunk = Box::new(Chunk { generation, events });
        let owned = Owned(NonNull::from(&*chunk));
        MADE.lock().unwrap().push(chunk);
        owned
    });
    // SAFETY: loom looks who else uses it.
    chunk.chunk().generation.with_mut(|of| unsafe { *of = generation });
    // SAFETY: as above.
    chunk.chunk().events.with_mut(|events| unsafe { &mut *events }.clear());
    Some(chunk)
}

pub(crate) fn give(chunk: Owned) {
    FREE.lock().unwrap().push(chunk);
}

/// First in, first out.
pub(crate) fn put_full(chunk: Owned) -> bool {
    FULL.lock().unwrap().insert(0, chunk);
    false
}

pub(crate) fn put_apart(chunk: Owned) {
    put_full(chunk);
}

pub(crate) fn take_full() -> Option<Owned> {
    FULL.lock().unwrap().pop()
}
