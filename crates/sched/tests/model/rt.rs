//! As `rt` of the scheduler, for loom.

pub(crate) use loom::cell::Cell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, fence};

use loom::sync::{Mutex, MutexGuard};

/// The scheduler's way to end.
macro_rules! rt_abort {
    ($($message:tt)*) => {
        panic!($($message)*)
    };
}
pub(crate) use rt_abort;

pub(crate) mod os {
    /// Time stands still.
    pub(crate) fn monotonic_ns() -> u64 {
        0
    }
}

/// One, so that all are in the same.
pub(crate) const LISTS: usize = 1;

pub(crate) struct Lock<V>(Mutex<V>);

impl<V> Lock<V> {
    pub(crate) fn new(value: V) -> Lock<V> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, V> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

macro_rules! shared {
    ($(#[$meta:meta])* static $name:ident: $of:ty = $value:expr;) => {
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $of = $value;
        }
    };
}
pub(crate) use shared;

macro_rules! array {
    ($value:expr) => {
        [$value]
    };
}
pub(crate) use array;

macro_rules! const_unless_modelled {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $of:ty)?) -> $ret:ty $body:block) => {
        $(#[$meta])*
        $vis fn $name($($arg: $of)?) -> $ret $body
    };
}
pub(crate) use const_unless_modelled;
