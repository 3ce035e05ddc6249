//! Models of requests for fibers:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-fiber --release --test loom_pool`.
//!
//! The production files on loom's atomics, with numbers for fibers and a list of waiters as the
//! scheduler's. Loom fails when somebody waits for ever; who gets two fibers, or none, fails an
//! assertion. Each test names changes of the code that it is known to catch.
#![cfg(loom)]

#[path = "model/pool.rs"]
mod pool;

mod fiber {
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Fiber;

    /// Where several are made in a row.
    pub(crate) struct Makings;

    impl Makings {
        pub(crate) fn new(_: crate::stack::Class, _: usize) -> Makings {
            Makings
        }
    }
}

mod stack {
    #[derive(Clone, Copy)]
    pub(crate) struct Class;

    impl Class {
        pub(crate) const COUNT: usize = 1;

        pub(crate) fn index(self) -> usize {
            0
        }

        pub(crate) fn all() -> impl Iterator<Item = Class> {
            std::iter::once(Class)
        }
    }
}

use fiber::{Fiber, Makings};
use loom::sync::Mutex;
use loom::thread;
use pool::{Refill, give, help_to_make, leaves_none, request, ring, sleep, withdraw};

loom::lazy_static! {
    /// How many wait for a fiber, and how many have got theirs.
    static ref WAITERS: Mutex<(u32, u32)> = Mutex::new((0, 0));
    /// Whether those who wait have nothing else to do.
    static ref IS_IDLE: Mutex<bool> = Mutex::new(false);
    /// How often there is no memory.
    static ref REFUSALS: Mutex<u32> = Mutex::new(0);
}

static REFILL: Refill = Refill { is_waiting: || *IS_IDLE.lock().unwrap(), offer, flush: || () };

/// As the scheduler sets a goroutine aside.
fn wait_for_fiber() {
    WAITERS.lock().unwrap().0 += 1;
    request();
}

/// As the scheduler takes one.
fn offer(_: Fiber, _: bool) -> bool {
    let has_one = start_one();
    if !has_one {
        request();
    }
    has_one
}

fn start_one() -> bool {
    let mut waiters = WAITERS.lock().unwrap();
    let Some(left) = waiters.0.checked_sub(1) else { return false };
    *waiters = (left, waiters.1 + 1);
    if waiters.1 == 2 {
        // The model is over.
        ring();
    }
    true
}

/// A goroutine has ended: its fiber goes to one that waits, or back.
fn end_one() {
    if !withdraw() {
        // SAFETY: nothing else is done with it.
        unsafe { give(Fiber) };
    } else if !start_one() {
        request();
        // SAFETY: as above.
        unsafe { give(Fiber) };
    }
}

fn make(_: &mut Makings) -> Option<Fiber> {
    let mut refusals = REFUSALS.lock().unwrap();
    let Some(left) = refusals.checked_sub(1) else { return Some(Fiber) };
    *refusals = left;
    None
}

fn started() -> u32 {
    WAITERS.lock().unwrap().1
}

/// The helper, until two have got theirs. It sleeps without an end when nobody waits, and else
/// looks again: it is always time then.
fn help_two() {
    let mut is_time = false;
    while started() < 2 {
        match leaves_none(make, is_time) {
            true if started() < 2 => sleep(),
            _ => thread::yield_now(),
        }
        is_time = true;
    }
}

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(3).min(preemptions));
    builder.check(move || {
        model();
        assert_eq!(WAITERS.lock().unwrap().0, 0, "nobody is left");
    });
}

/// All are busy, so that the helper looks by itself, and one asks while it looks for the last time.
/// Catches: no fence in `add`, or none in `begin_look`; `add` that looks whether the helper is paced
/// before it counts; `serve_all` that says `leave_for_later` whatever was served.
#[test]
fn who_asks_while_the_helper_goes_to_sleep_gets_one() {
    explore(3, || {
        wait_for_fiber();
        let asks = thread::spawn(wait_for_fiber);
        help_two();
        asks.join().unwrap();
    });
}

/// One that ends leaves its fiber, and there is no memory for a while: everybody gets one, and no
/// request is answered twice. Catches: `serve` that does not give back what it could not make.
#[test]
fn everybody_gets_one_when_others_end() {
    explore(2, || {
        *IS_IDLE.lock().unwrap() = true;
        *REFUSALS.lock().unwrap() = 1;
        (0..2).for_each(|_| wait_for_fiber());
        let ends = thread::spawn(end_one);
        help_two();
        ends.join().unwrap();
    });
}

/// Catches: `claim` that says it has more than there were.
#[test]
fn everybody_gets_one_when_two_make_them() {
    explore(2, || {
        *IS_IDLE.lock().unwrap() = true;
        (0..2).for_each(|_| wait_for_fiber());
        let makes = thread::spawn(|| help_to_make(make));
        help_two();
        makes.join().unwrap();
        assert!(!withdraw(), "no request is left");
    });
}
