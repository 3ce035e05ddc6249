//! As `rt` of the scheduler, for loom.

pub(crate) use loom::cell::Cell;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, fence};
pub(crate) use loom::thread::yield_now;
pub(crate) use loom::thread::yield_now as give_way;
pub(crate) use std::sync::atomic::compiler_fence;

use loom::sync::{Condvar, Mutex, MutexGuard};

/// The scheduler's way to end.
macro_rules! rt_abort {
    ($($message:tt)*) => {
        panic!($($message)*)
    };
}
pub(crate) use rt_abort;

/// As where the kernel refuses it.
pub(crate) mod barrier {
    use loom::sync::atomic::fence;
    use std::sync::atomic::Ordering::SeqCst;

    pub(crate) fn is_asymmetric() -> bool {
        false
    }

    pub(crate) fn heavy() {
        fence(SeqCst);
    }
}

pub(crate) mod os {
    /// Time stands still.
    pub(crate) fn monotonic_ns() -> u64 {
        0
    }
}

/// One, so that all are in the same.
pub(crate) const LISTS: usize = 1;

#[derive(Debug)]
pub(crate) struct Lock<V>(Mutex<V>);

impl<V> Lock<V> {
    pub(crate) fn new(value: V) -> Lock<V> {
        Lock(Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, V> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }
}

/// As the base's: a permit that is kept.
pub(crate) struct Parker(Mutex<bool>, Condvar);

impl Parker {
    pub(crate) fn new() -> Parker {
        Parker(Mutex::new(false), Condvar::new())
    }

    pub(crate) fn sleep(&self) {
        let mut permit = self.0.lock().expect("no panic");
        while !*permit {
            permit = self.1.wait(permit).expect("no panic");
        }
        *permit = false;
    }

    pub(crate) fn wake(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_one();
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
