//! Atomics: std's, or loom's under its model checker.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
};

/// `const fn` but under loom, whose atomics can't be made in constants.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* pub fn $name:ident() -> $ret:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        #[must_use]
        pub const fn $name() -> $ret $body
        #[cfg(loom)]
        $(#[$meta])*
        #[must_use]
        pub fn $name() -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
