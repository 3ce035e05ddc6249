//! What the poller knows of a registered file descriptor.
//!
//! Go's `pollDesc`. Descriptors are type-stable: an event that the kernel still holds for a
//! descriptor that was given back meanwhile finds a descriptor, of another file perhaps, and at
//! worst makes it ready without cause, which means one look for nothing. The number in the event
//! tells most of those apart.
//!
//! Invariants
//! * I1. A descriptor is in the free list or belongs to one registration.
//! * I2. `number` changes while it is free, so an event of an earlier registration doesn't fit.

use gosched_base::{Lock, os};
use gosched_protocol::Readiness;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16,
    Ordering::{Acquire, Relaxed, Release},
};

/// Descriptors made at once: 32 KiB.
const CHUNK: usize = 512;

/// One registered file: its readiness in both directions.
#[derive(Debug)]
#[repr(align(64))]
pub struct Descriptor {
    /// Readable, or at its end, or broken.
    pub read: Readiness,
    /// Writable, or broken.
    pub write: Readiness,
    /// An end, an error or urgent data has been reported, perhaps together with data before it: it
    /// comes without another event. Written by: pollers, before they make `read` ready; the free
    /// list's owner. Read by: who reads.
    has_more: AtomicBool,
    /// Which registration this is. Written by: the free list's owner, under its lock.
    number: AtomicU16,
    /// Guarded by: the free list's lock.
    next: AtomicPtr<Descriptor>,
}

/// Descriptors that belong to nobody.
struct Free {
    first: *const Descriptor,
}

// SAFETY: descriptors are never freed; the pointer is used under the lock.
unsafe impl Send for Free {}

static FREE: Lock<Free> = Lock::new(Free { first: ptr::null() });

/// Addresses of user space end below this bit; above it the event carries the number.
const NUMBER_SHIFT: u32 = 48;

impl Descriptor {
    const fn new() -> Descriptor {
        Descriptor {
            read: Readiness::new(),
            write: Readiness::new(),
            has_more: AtomicBool::new(false),
            number: AtomicU16::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Whether a read that got less than it has asked for has left nothing to find without another
    /// event. Of a stream whose reads end early for no other reason than that it is empty (TCP).
    #[inline]
    #[must_use]
    pub fn short_read_empties(&self) -> bool {
        // ORDERING: Relaxed; what was reported before the reader took its note came with it (edge
        // `ready`), and after anything later there is a new note.
        !self.has_more.load(Relaxed)
    }

    /// The next events may report less than there is: see [`short_read_empties`](Self::short_read_empties).
    pub(crate) fn note_more(&self) {
        // ORDERING: Relaxed; `make_ready` follows and releases it.
        self.has_more.store(true, Relaxed);
    }

    /// Takes a free one. Without malloc; a leaf lock. `None`: there is no memory.
    pub(crate) fn take() -> Option<&'static Descriptor> {
        let mut free = FREE.lock();
        if free.first.is_null() {
            free.add_chunk()?;
        }
        // SAFETY: never freed.
        let descriptor = unsafe { free.first.as_ref() }?;
        // ORDERING: Relaxed; under the lock.
        free.first = descriptor.next.load(Relaxed);
        // ORDERING: Release pairs with `of_event`: who is told of an event sees what was made here. (The
        // kernel orders them anyway, but not by rules that a compiler knows of.)
        descriptor.number.store(descriptor.number.load(Relaxed), Release);
        Some(descriptor)
    }

    /// Gives it back. Nobody waits on it, and the kernel has forgotten the file.
    pub(crate) fn give(&'static self) {
        let mut free = FREE.lock();
        // Whatever the last registration has left.
        self.read.take();
        self.write.take();
        // ORDERING: Relaxed; under the lock, and an event of the last registration that comes late
        // costs a look.
        self.has_more.store(false, Relaxed);
        // ORDERING: Relaxed for all; under the lock, and readers of the number may be late (I2).
        self.number.store(self.number.load(Relaxed).wrapping_add(1), Relaxed);
        self.next.store(free.first.cast_mut(), Relaxed);
        free.first = self;
    }

    /// What the kernel is to send with each event.
    pub(crate) fn event_word(&'static self) -> u64 {
        // ORDERING: Relaxed; the number doesn't change while the registration lasts.
        let number = u64::from(self.number.load(Relaxed));
        ptr::from_ref(self).expose_provenance() as u64 | number << NUMBER_SHIFT
    }

    /// The descriptor that an event is for; `None` if it is for an earlier registration.
    ///
    /// # Safety
    /// * The word came from [`event_word`](Descriptor::event_word).
    pub(crate) unsafe fn of_event(word: u64) -> Option<&'static Descriptor> {
        let address = word as usize & ((1 << NUMBER_SHIFT) - 1);
        // SAFETY: by the caller the address of a descriptor, and they are never freed.
        let descriptor = unsafe { &*ptr::with_exposed_provenance::<Descriptor>(address) };
        // ORDERING: Acquire pairs with `take`. An event of before makes ready without cause.
        (descriptor.number.load(Acquire) == (word >> NUMBER_SHIFT) as u16).then_some(descriptor)
    }
}

impl Free {
    fn add_chunk(&mut self) -> Option<()> {
        let chunk = os::map_zeroed(CHUNK * size_of::<Descriptor>())?.cast::<Descriptor>();
        for i in 0..CHUNK {
            let descriptor = chunk.as_ptr().wrapping_add(i);
            // SAFETY: inside the fresh mapping, which is aligned to pages.
            unsafe { descriptor.write(Descriptor::new()) };
            // SAFETY: written above, and never freed.
            let descriptor = unsafe { &*descriptor };
            // ORDERING: Relaxed; under the lock.
            descriptor.next.store(self.first.cast_mut(), Relaxed);
            self.first = descriptor;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
