//! Names of goroutines, for dumps that run beside them.
//!
//! A dump must not follow a pointer to a name that its goroutine's end may free. So each named
//! goroutine's name is copied to a place of its own beside the descriptors, which is never freed;
//! pages of it are touched only once a goroutine with a name has used them.
//!
//! The goroutine's number is the version that readers check. Steps of the spawner: N1 number 0,
//! N2 write the name, N3 the new number. Steps of a reader: R1 read the number, R2 read the name,
//! R3 read the number again; if it is the same, the name is that goroutine's.

use crate::goroutine::{GRef, GoroutineId};
use crate::labels::Labels;
use crate::slab;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Longer names are cut in dumps.
const BYTES_MAX: usize = 104;
const WORDS: usize = BYTES_MAX / 8;

/// Where a goroutine's name lies.
#[repr(C, align(128))]
pub(crate) struct Place {
    words: [AtomicU64; WORDS],
    /// What the trace says of the goroutine. Written by: its owner of the moment.
    pub(crate) traced: AtomicU64,
    /// The root of its stacks in the trace, while that knows it. As `traced`.
    pub(crate) root: AtomicU32,
    /// Its labels; see `labels`.
    pub(crate) labels: AtomicPtr<Labels>,
}

/// A copy of a name.
pub(crate) struct Name {
    bytes: [u8; BYTES_MAX],
    len: usize,
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).unwrap_or("?")
    }
}

/// Gives `g`, which its spawner still owns, the number `id` and the name.
#[inline]
pub(crate) fn set_identity(g: GRef, id: GoroutineId, name: Option<&str>) {
    match name {
        // ORDERING: Relaxed; published by `set_id` below.
        None => g.name_bytes.store(0, Relaxed),
        Some(name) => write(g, name),
    }
    // ORDERING: Release is N3, pairs with `read` (edge `name`).
    g.set_id(id, Release);
}

fn write(g: GRef, name: &str) {
    let name = &name[..name.floor_char_boundary(BYTES_MAX)];
    // ORDERING: Relaxed is N1; the fence below comes after it.
    g.set_id(0, Relaxed);
    // ORDERING: pairs with the fence in `read` (edge `name-rewritten`): whoever sees a
    // word of the new name sees that the number has changed.
    fence(Release);
    for (word, bytes) in slab::name_of(g).words.iter().zip(name.as_bytes().chunks(8)) {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        // ORDERING: Relaxed; the fences around order it.
        word.store(u64::from_ne_bytes(padded), Relaxed);
    }
    g.name_bytes.store(name.len() as u8, Relaxed);
}

/// The goroutine's number and name, of one life.
pub(crate) fn read(g: GRef) -> (GoroutineId, Option<Name>) {
    loop {
        // ORDERING: Acquire is R1, pairs with `set_identity` (edge `name`).
        let id = g.id_ordered(Acquire);
        let len = usize::from(g.name_bytes.load(Relaxed));
        let name = (len > 0).then(|| copy(g, len));
        // ORDERING: before R3; pairs with the fence in `write` (edge `name-rewritten`).
        fence(Acquire);
        if g.id() == id {
            return (id, name);
        }
        std::hint::spin_loop();
    }
}

fn copy(g: GRef, len: usize) -> Name {
    let mut bytes = [0; BYTES_MAX];
    for (to, word) in bytes.chunks_mut(8).zip(&slab::name_of(g).words) {
        // ORDERING: Relaxed; see `write`.
        to.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    Name { bytes, len: len.min(BYTES_MAX) }
}
