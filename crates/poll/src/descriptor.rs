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
use std::sync::atomic::{AtomicPtr, AtomicU16, Ordering::Relaxed};

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
            number: AtomicU16::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }
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
        Some(descriptor)
    }

    /// Gives it back. Nobody waits on it, and the kernel has forgotten the file.
    pub(crate) fn give(&'static self) {
        let mut free = FREE.lock();
        // Whatever the last registration has left.
        self.read.take();
        self.write.take();
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
        // ORDERING: Relaxed; an event that slips through makes ready without cause.
        (descriptor.number.load(Relaxed) == (word >> NUMBER_SHIFT) as u16).then_some(descriptor)
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
