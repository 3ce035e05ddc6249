//! What requests stand on; in their model, loom's.

pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, fence};

/// `const fn`: loom's atomics can't be made in constants, so its model writes this otherwise.
macro_rules! const_unless_modelled {
    ($vis:vis fn $name:ident() -> $ret:ty $body:block) => {
        $vis const fn $name() -> $ret $body
    };
}
pub(super) use const_unless_modelled;

/// So many counts of nothing.
macro_rules! zeros {
    ($count:expr) => {
        [const { AtomicUsize::new(0) }; $count]
    };
}
pub(super) use zeros;
