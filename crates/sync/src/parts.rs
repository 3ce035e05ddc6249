//! The parts of a pool: values kept by processor.
//!
//! Under a part's lock values are moved only, and the room for them is made before.
//!
//! Invariant: a value is in one part, or in the hands of one caller.

use crate::rt::{CachePadded, Critical, Lock};
use std::fmt;
use std::mem;

/// One for each processor.
pub struct Parts<T>(Box<[CachePadded<Lock<Part<T>>>]>);

struct Part<T> {
    fresh: Vec<T>,
    /// What was there at the last cycle.
    old: Vec<T>,
}

/// A pool, for the cycle.
pub trait Aged: Send + Sync {
    /// What was not taken since the last cycle is old, what was old then is dropped.
    fn age(&self);
}

impl<T> Parts<T> {
    /// At least `count` of them, all empty.
    #[must_use]
    pub fn new(count: usize) -> Parts<T> {
        let part = || Part { fresh: Vec::new(), old: Vec::new() };
        let count = count.next_power_of_two();
        Parts((0..count).map(|_| CachePadded::new(Lock::new(part()))).collect())
    }

    /// The own part first, then the others, then what is old.
    pub fn take(&self) -> Option<T> {
        let critical = Critical::enter();
        let own = critical.processor_index();
        let part = |i: usize| &self.0[own.wrapping_add(i) & (self.0.len() - 1)];
        for i in 0..self.0.len() {
            if let Some(value) = part(i).lock().fresh.pop() {
                return Some(value);
            }
        }
        (0..self.0.len()).find_map(|i| part(i).lock().old.pop())
    }

    /// Puts a value into the own part.
    pub fn put(&self, value: T) {
        let mut room = Vec::new();
        loop {
            let critical = Critical::enter();
            let own = critical.processor_index() & (self.0.len() - 1);
            let mut part = self.0[own].lock();
            if part.fresh.len() == part.fresh.capacity() && room.capacity() > part.fresh.len() {
                // Moves them; there is room.
                room.append(&mut part.fresh);
                mem::swap(&mut room, &mut part.fresh);
            }
            let capacity = part.fresh.capacity();
            if part.fresh.len() < capacity {
                part.fresh.push(value);
                drop(part);
                // Before `room` is freed.
                drop(critical);
                return;
            }
            drop(part);
            drop(critical);
            room = Vec::with_capacity((capacity * 2).max(8));
        }
    }
}

impl<T: Send> Aged for Parts<T> {
    fn age(&self) {
        for part in &self.0 {
            let critical = Critical::enter();
            let mut part = part.lock();
            let fresh = mem::take(&mut part.fresh);
            let dead = mem::replace(&mut part.old, fresh);
            drop(part);
            drop(critical);
            drop(dead);
        }
    }
}

impl<T> fmt::Debug for Parts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parts").field(&self.0.len()).finish()
    }
}
