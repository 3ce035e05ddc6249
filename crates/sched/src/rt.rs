//! What the protocols that loom models stand on; in a model, loom's own.

pub(crate) use gosched_base::{Lock, Parker, barrier, os, rt_abort};
pub(crate) use std::cell::Cell;
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, compiler_fence, fence,
};
pub(crate) use std::thread::yield_now;

/// Lets whoever holds what the caller waits for have the CPU. Inside the runtime, where
/// [`yield_now`] would yield the goroutine.
pub(crate) fn give_way() {
    // SAFETY: passes no memory.
    let _ = unsafe { os::syscall(libc::SYS_sched_yield, [0; 6]) };
}

/// Lists of goroutines in futex waits.
pub(crate) const LISTS: usize = 64;

/// A static; loom's are made when they are first used.
macro_rules! shared {
    ($(#[$meta:meta])* static $name:ident: $of:ty = $value:expr;) => {
        $(#[$meta])*
        static $name: $of = $value;
    };
}
pub(crate) use shared;

/// So many that are made alike.
macro_rules! array {
    ($value:expr) => {
        [const { $value }; LISTS]
    };
}
pub(crate) use array;

/// `const fn`: loom's atomics can't be made in constants, so its models write this otherwise.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $of:ty)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        $vis const fn $name($($arg: $of)?) -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
