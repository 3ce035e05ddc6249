//! What the parker stands on; in its model, loom's.

pub(crate) use std::sync::atomic::AtomicU32;

/// `const fn`: loom's atomics can't be made in constants, so its model writes this otherwise.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident() -> $ret:ty $body:block) => {
        $(#[$meta])*
        $vis const fn $name() -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
