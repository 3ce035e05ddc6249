//! Fibers made ahead, and given back, by a helper thread.
//!
//! Making a thread-local block takes the loader's lock, which stopped code can hold, and giving one
//! back frees memory. Neither may happen inside the runtime, so a thread that nobody stops does
//! both: it keeps a reserve of fibers, and destroys what is idle above a bound. While many are
//! waited for, further threads help it to make them (`makers`).
//!
//! Invariants
//! * I1. [`take`], [`give`], [`discard`] and [`request`] never allocate, never call libc and hold
//!   only leaf locks: they may be called inside the runtime.
//! * I2. Every idle fiber is new, or finished and reusable (I3 of `fiber`).
//! * I3. A destroyed fiber's slot is released when no walk through libc's list of threads is left
//!   that may have seen it, see `tls::glibc::list`.
//! * I4. While somebody waits for a fiber the helper looks again, with or without a bell.
//!
//! The reserve, of the default class only, is filled up when a [`take`] leaves less than half of
//! it. The helper sleeps without a time-out unless there is something to give back, or a request
//! that could not be served for want of memory.

mod collect;
mod helper;
mod makers;
mod refusal;
mod requests;
mod rt;
mod serve;
mod stock;

#[cfg(test)]
mod tests;

pub use self::collect::{collect, collect_surplus, given_back, surplus};

use self::requests::Requests;
use self::stock::Stock;
use crate::fiber::{Fiber, FiberError, Makings};
use crate::stack::Class;
use crate::{thread, tls};
use gosched_base::{Lock, Parker};
use std::io;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, PoisonError};

/// Fibers of the default class that the helper keeps ready.
const RESERVE: usize = 64;
/// Idle fibers of a class that are kept between two collections, unless somebody says otherwise:
/// 32 MiB of two pages each.
const IDLE_MAX: usize = 4096;
/// What an idle fiber holds at least: a page of stack, and one that it shares with its block.
const IDLE_BYTES: usize = 8192;

/// The stack of a thread that works for the pool, as std's threads have.
const STACK_BYTES: usize = 2 << 20;

static LIMIT: AtomicUsize = AtomicUsize::new(IDLE_MAX);

static IDLE: [Lock<Stock>; Class::COUNT] = [const { Lock::new(Stock::new()) }; Class::COUNT];
/// Finished fibers that can't be used again as they are.
static DISCARDED: Lock<Stock> = Lock::new(Stock::new());
/// Who waits for a fiber.
static REQUESTS: Requests = Requests::new();
/// Whether there ever was something to give back. Relaxed: a hint, see `start_if_needed`.
static SURPLUS: AtomicBool = AtomicBool::new(false);
static BELL: Parker = Parker::new();
static HOOK: AtomicPtr<Refill> = AtomicPtr::new(std::ptr::null_mut());
/// Held while the helper is made.
static MAKING: Mutex<()> = Mutex::new(());
/// Whether there is a helper. Relaxed: it reads nothing that its maker has written.
static HAS_HELPER: AtomicBool = AtomicBool::new(false);

/// How the helper makes a fiber; tests have their own.
type Make = fn(&mut Makings) -> Option<Fiber>;

/// Starts the helper thread, once. `tls::init` must have been called.
///
/// # Errors
/// If the thread can't be created; the next call tries again.
pub fn start() -> io::Result<()> {
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if !has_helper() {
        static HELP: fn() = helper::help;
        thread::start(&HELP, Some(STACK_BYTES))?;
        // ORDERING: Relaxed; see there.
        HAS_HELPER.store(true, Relaxed);
    }
    Ok(())
}

fn has_helper() -> bool {
    // ORDERING: Relaxed; see there.
    HAS_HELPER.load(Relaxed)
}

/// Starts the helper thread if there is something to give back. Not inside the runtime.
pub(crate) fn start_if_needed() {
    // ORDERING: Relaxed; a hint, the next end of a coroutine looks again.
    if !has_helper() && SURPLUS.load(Relaxed) {
        // Without one what is idle stays so until the next attempt.
        let _ = start();
    }
}

/// Who is given the fibers that were requested. Runs on the threads that make them.
#[derive(Clone, Copy, Debug)]
pub struct Refill {
    /// Whether requesters have nothing else to do. Else requests are served at a pace.
    pub is_waiting: fn() -> bool,
    /// Offered each fiber as it is made: takes it (true) or leaves it. The second argument is what
    /// `is_waiting` said; if false, it is the turn of whoever has waited longest.
    pub offer: fn(Fiber, bool) -> bool,
    /// Called after each batch of which some were taken, so that whoever sleeps is woken once for
    /// many.
    pub flush: fn(),
}

/// Registers who is offered what was requested.
pub fn set_refill_hook(refill: &'static Refill) {
    // ORDERING: Release pairs with the Acquire in `refill`; what the functions rely on is ready.
    HOOK.store((refill as *const Refill).cast_mut(), Release);
}

/// A fiber of `class`, if one is idle. May be called inside the runtime.
#[must_use]
pub fn take(class: Class) -> Option<Fiber> {
    let mut idle = IDLE[class.index()].lock();
    let fiber = idle.pop();
    let left = idle.count();
    drop(idle);
    if left < RESERVE / 2 && class == Class::DEFAULT && tls::kind().has_blocks() {
        ring();
    }
    fiber
}

/// Asks the helper for one more fiber of `class`, to be offered to the refill hook. May be called
/// inside the runtime.
pub fn request(class: Class) {
    if REQUESTS.add(class) {
        ring();
    }
}

/// Requesters have nothing else to do any more: the helper does not wait for its time. May be
/// called inside the runtime.
pub fn hurry() {
    if REQUESTS.hurry() {
        ring();
    }
}

/// Takes a request back: the requester has a fiber from elsewhere. May be called inside the
/// runtime. False: a thread already makes it, which then goes to the idle ones.
pub fn withdraw(class: Class) -> bool {
    REQUESTS.claim(class, 1) == 1
}

/// Gives back a fiber that can be used again. May be called inside the runtime.
///
/// # Safety
/// * [`Fiber::is_reusable`] returned true, or nothing ever ran on the fiber.
/// * The caller holds the fiber, and uses no copy of it any more.
pub unsafe fn give(fiber: Fiber) {
    let class = fiber.class();
    let mut idle = IDLE[class.index()].lock();
    idle.push(fiber);
    let count = idle.count();
    drop(idle);
    if count == idle_max() + 1 {
        // ORDERING: Relaxed; see `start_if_needed`.
        SURPLUS.store(true, Relaxed);
        ring();
    } else if REQUESTS.wanted(class) > 0 {
        ring();
    }
}

/// How many threads of the process work for the pool.
#[must_use]
pub fn threads() -> usize {
    usize::from(has_helper()) + makers::count()
}

/// Gives up a finished fiber that can't be used again. May be called inside the runtime.
///
/// # Safety
/// * [`Fiber::finish`] was called, and nothing runs on the fiber.
/// * The caller holds the fiber, and uses no copy of it any more.
pub unsafe fn discard(fiber: Fiber) {
    DISCARDED.lock().push(fiber);
    // ORDERING: Relaxed; see `start_if_needed`.
    SURPLUS.store(true, Relaxed);
    ring();
}

/// Idle fibers of a class above which some are given back soon.
fn idle_max() -> usize {
    // ORDERING: Relaxed; a number that steers.
    LIMIT.load(Relaxed)
}

/// Sets the soft limit of what idle fibers of a class hold, in bytes, and returns the former one.
///
/// Beyond it they are given back within moments, below it by the next collection. It counts two
/// pages a fiber; one whose stack was deep holds more until a collection.
pub fn set_idle_limit(bytes: usize) -> usize {
    // ORDERING: Relaxed; as in `idle_max`.
    let former = LIMIT.swap((bytes / IDLE_BYTES).max(RESERVE), Relaxed);
    SURPLUS.store(true, Relaxed);
    ring();
    former * IDLE_BYTES
}

/// How many fibers are idle.
#[must_use]
pub fn idle_count() -> usize {
    IDLE.iter().map(|idle| idle.lock().count()).sum()
}

/// Takes a fiber from the reserve or makes one. Not inside the runtime.
///
/// # Errors
/// No memory for the stack or its block.
pub fn take_or_make(class: Class) -> Result<Fiber, FiberError> {
    match take(class) {
        Some(fiber) => Ok(fiber),
        None => Fiber::make(class),
    }
}

fn ring() {
    BELL.wake();
}

/// Whether requesters, if there are any, have nothing else to do.
fn is_waiting() -> bool {
    refill().is_none_or(|refill| (refill.is_waiting)())
}

/// Whoever was registered.
fn refill() -> Option<&'static Refill> {
    // ORDERING: Acquire pairs with `set_refill_hook`.
    let hook = HOOK.load(Acquire);
    // SAFETY: only `set_refill_hook` stores here, and it stores such a reference.
    unsafe { hook.as_ref() }
}
