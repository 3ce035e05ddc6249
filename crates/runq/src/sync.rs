//! The atomics and the lock of this crate: the real ones, or those of a checker.
//!
//! Everything shared goes through here, so that loom models the types that ship. The lock of `base`
//! sleeps by a system call that neither loom nor Miri can look into; there a mutex that they know
//! stands in for it.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
};

#[cfg(not(any(loom, miri)))]
pub(crate) use gosched_base::{Lock, LockGuard};

#[cfg(any(loom, miri))]
pub(crate) use self::stand_in::{Lock, LockGuard};

/// Declares a constructor that is `const`, except in the model, whose atomics register themselves
/// when they are made.
macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $name($($arg: $ty),*) -> $ret $body

        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
}
pub(crate) use const_unless_modelled;

/// Pointers that are all null.
#[cfg(not(loom))]
pub(crate) const fn null_pointers<const N: usize>() -> [AtomicPtr<()>; N] {
    [const { AtomicPtr::new(std::ptr::null_mut()) }; N]
}

/// Pointers that are all null.
#[cfg(loom)]
pub(crate) fn null_pointers<const N: usize>() -> [AtomicPtr<()>; N] {
    std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut()))
}

/// A mutex with the interface of the lock of `base`.
#[cfg(any(loom, miri))]
mod stand_in {
    #[cfg(loom)]
    use loom::sync::{Mutex, MutexGuard};
    #[cfg(not(loom))]
    use std::sync::{Mutex, MutexGuard};

    /// Access to the value of a [`Lock`].
    pub(crate) type LockGuard<'a, V> = MutexGuard<'a, V>;

    /// A value behind a lock.
    pub(crate) struct Lock<V>(Mutex<V>);

    impl<V> Lock<V> {
        const_unless_modelled! {
            pub(crate) fn new(value: V) -> Lock<V> {
                Lock(Mutex::new(value))
            }
        }

        pub(crate) fn lock(&self) -> LockGuard<'_, V> {
            self.0.lock().expect("nothing panics while it holds the lock")
        }
    }
}
