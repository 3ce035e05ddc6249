//! What the protocols of this module stand on; in their model, loom's.

pub(super) use std::sync::atomic::AtomicU64;
pub(super) use std::sync::{Mutex, MutexGuard};

/// `const fn`: loom's atomics can't be made in constants, so their model writes this otherwise.
macro_rules! const_unless_modelled {
    ($vis:vis fn $name:ident($($arg:ident: $of:ty),*) -> $ret:ty $body:block) => {
        $vis const fn $name($($arg: $of),*) -> $ret $body
    };
}
pub(super) use const_unless_modelled;
