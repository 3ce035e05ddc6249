//! The pool, as far as requests need it.

#[allow(dead_code, reason = "the pool's")]
#[path = "../../src/pool/requests.rs"]
mod requests;
#[path = "../../src/pool/serve.rs"]
mod serve;

mod rt {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};

    macro_rules! const_unless_modelled {
        ($vis:vis fn $name:ident() -> $ret:ty $body:block) => {
            $vis fn $name() -> $ret $body
        };
    }
    pub(crate) use const_unless_modelled;

    macro_rules! zeros {
        ($count:expr) => {
            std::array::from_fn::<AtomicUsize, { $count }, _>(|_| AtomicUsize::new(0))
        };
    }
    pub(crate) use zeros;
}

/// More threads that make fibers are the models' own.
pub(super) mod makers {
    pub(crate) fn call(_: usize) {}
}

use crate::fiber::{Fiber, Makings};
use crate::stack::Class;
use loom::sync::{Condvar, Mutex, MutexGuard};
use requests::Requests;
use serve::{Served, serve, serve_all};

loom::lazy_static! {
    static ref REQUESTS: Requests = Requests::new();
    static ref IDLE: [Lock; Class::COUNT] = [Lock(Mutex::new(Vec::new()))];
    static ref BELL: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
}

struct Lock(Mutex<Vec<Fiber>>);

impl Lock {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Fiber>> {
        self.0.lock().unwrap()
    }
}

/// As in the production file.
pub(super) type Make = fn(&mut Makings) -> Option<Fiber>;

pub(super) struct Refill {
    pub(super) is_waiting: fn() -> bool,
    pub(super) offer: fn(Fiber, bool) -> bool,
    pub(super) flush: fn(),
}

fn refill() -> Option<&'static Refill> {
    Some(&crate::REFILL)
}

/// As in the production file.
fn is_waiting() -> bool {
    refill().is_none_or(|refill| (refill.is_waiting)())
}

pub(super) fn request() {
    if REQUESTS.add(Class) {
        ring();
    }
}

pub(super) fn withdraw() -> bool {
    REQUESTS.claim(Class, 1) == 1
}

pub(super) unsafe fn give(fiber: Fiber) {
    IDLE[0].lock().push(fiber);
    if REQUESTS.wanted(Class) > 0 {
        ring();
    }
}

pub(super) fn ring() {
    *BELL.0.lock().unwrap() = true;
    BELL.1.notify_one();
}

pub(super) fn sleep() {
    let mut has_rung = BELL.0.lock().unwrap();
    while !*has_rung {
        has_rung = BELL.1.wait(has_rung).unwrap();
    }
    *has_rung = false;
}

/// A look of the helper's; true: it sleeps until the bell.
pub(super) fn leaves_none(make: Make, is_time: bool) -> bool {
    serve_all(make, is_time) == Served::All
}

/// A look of another thread's that makes fibers, which calls the helper for what it leaves.
pub(super) fn help_to_make(make: Make) {
    if serve(Class, make, false) != Served::All {
        ring();
    }
}
