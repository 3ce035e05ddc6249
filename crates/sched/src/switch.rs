//! From goroutine to goroutine.
//!
//! A goroutine that parks, yields or ends switches straight to the next one if that is at hand,
//! else to the scheduler's own stack. What must happen once its registers are saved (publishing it
//! to a queue, unlocking, recycling) is a [`Left`] record: it runs on the side that is resumed,
//! so nobody can find the goroutine before it can be resumed.
//!
//! The direct switch is taken only if nobody asked for attention and it is not the round in which
//! the global queue has its turn.

use crate::attention::IDLE;
use crate::goroutine::GRef;
use crate::history::{self, Kind};
use crate::machine::{Inside, Machine};
use crate::plant::Wake;
use crate::processor::Processor;
use crate::{chaos, idle, locked, park, trace, transition, warm};
use gosched_fiber::arch::{self, Context};
use gosched_fiber::{Fiber, host};
use gosched_runq::Popped;
use std::sync::atomic::Ordering::Relaxed;

/// Go's number: every 61st round the global queue is looked at first.
pub(crate) const FAIRNESS_ROUNDS: u32 = 61;

/// What is to be done about a goroutine that was left. It gives back the proof it is called with, which
/// so stays in a register.
pub(crate) type Act = unsafe fn(Inside, GRef, *mut ()) -> Inside;

/// What is to be done about the goroutine that was left. Lives on its stack.
pub(crate) struct Left {
    g: GRef,
    act: Act,
    data: *mut (),
    /// On which machine it was left: the one that goes on with another.
    machine: &'static Machine,
}

/// Leaves the running goroutine `g`; `act(g, data)` runs on the resumed side. Returns when `g` is
/// resumed, perhaps on another machine.
///
/// # Safety
/// * `g` runs on `inside`, and its transition out of Running was made.
/// * `act` is sound with `g` and `data` once `g` is suspended, and is the first to publish it.
#[inline(always)]
pub(crate) unsafe fn leave(inside: Inside, g: GRef, act: Act, data: *mut ()) -> Inside {
    let (machine, p) = (inside.machine(), inside.processor());
    let left = Left { g, act, data, machine };
    if std::thread::panicking() {
        locked::goroutine_unwinds(machine, g);
    }
    // ORDERING: Relaxed; a request that comes now is seen in the next round.
    let passed = if p.attention.load(Relaxed) == 0 {
        match pick(machine, p) {
            // SAFETY: picked for this machine; `left` lives on the stack that is suspended.
            Some(next) => unsafe { switch_to_goroutine(machine, g, next, &left) },
            // SAFETY: as above.
            None => unsafe { switch_to_scheduler(machine, g, &left) },
        }
    } else {
        // SAFETY: by the caller.
        unsafe { leave_attentively(machine, p, g, &left) }
    };
    // SAFETY: what the resuming switch has passed.
    unsafe { settle(passed) }
}

/// As [`leave`], when somebody asks for something, or a trace is on.
///
/// # Safety
/// * As for [`leave`]; `left` stays until the resumed side has read it.
#[cold]
#[inline(never)]
unsafe fn leave_attentively(
    machine: &'static Machine,
    p: &'static Processor,
    g: GRef,
    left: &Left,
) -> usize {
    // ORDERING: Relaxed, as in `leave`.
    let may_be_direct = p.attention.load(Relaxed) & !IDLE == 0 && !chaos::goes_out_of_turn(p);
    match may_be_direct.then(|| pick(machine, p)).flatten() {
        Some(next) => {
            if trace::is_on() {
                trace::switches(machine, g, next);
            }
            // SAFETY: picked for this machine; the rest by the caller.
            unsafe { switch_to_goroutine(machine, g, next, left) }
        }
        None => {
            if trace::is_on() {
                trace::left(machine, g);
            }
            // SAFETY: by the caller.
            unsafe { switch_to_scheduler(machine, g, left) }
        }
    }
}

/// As [`leave`], from a machine that has no processor: to the scheduler's stack, where it waits.
///
/// # Safety
/// * As for [`leave`], with no data.
pub(crate) unsafe fn leave_without_processor(inside: Inside, g: GRef, act: Act) -> Inside {
    let left = Left { g, act, data: std::ptr::null_mut(), machine: inside.machine() };
    if std::thread::panicking() {
        locked::goroutine_unwinds(inside.machine(), g);
    }
    // SAFETY: `left` lives on the stack that is suspended.
    let passed = unsafe { switch_to_scheduler(inside.machine(), g, &left) };
    // SAFETY: what the resuming switch has passed.
    unsafe { settle(passed) }
}

/// The next goroutine, if it can be switched to from here. Nobody asks for anything.
#[inline(always)]
fn pick(machine: &Machine, p: &'static Processor) -> Option<GRef> {
    if is_for_scheduler(machine, p) {
        return None;
    }
    // SAFETY: the caller holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    let popped = queue.pop()?;
    let (Popped::Next(g) | Popped::Ring(g)) = popped;
    warm::up(&queue);
    let needs_scheduler = g.locked_to().is_some() || (!g.has_started() && !attach(p, g));
    if needs_scheduler {
        put_back(p, popped);
        history::machine(Kind::Moved, machine, 0);
        // It was in no queue for a moment, and others may go first here.
        idle::wake_one_for(Wake::PutBack);
        return None;
    }
    p.count_tick();
    p.counters.direct_switches.add();
    Some(g)
}

/// Undoes a `pop`: the goroutine is not for this moment.
pub(crate) fn put_back(p: &'static Processor, popped: Popped<GRef>) {
    match popped {
        Popped::Next(g) => _ = park::push_next(p, g),
        Popped::Ring(g) => park::push_front(p, g),
    }
}

/// Whether the next goroutine has to be chosen on the scheduler's stack: somebody asks for
/// attention, it is the global queue's round, or a goroutine is locked to this thread.
#[inline(always)]
pub(crate) fn must_use_scheduler(machine: &Machine, p: &Processor) -> bool {
    // ORDERING: Relaxed; a request that comes now is seen in the next round.
    p.attention.load(Relaxed) & !IDLE != 0 || is_for_scheduler(machine, p)
}

/// As [`must_use_scheduler`], if nobody asks for attention.
#[inline(always)]
fn is_for_scheduler(machine: &Machine, p: &Processor) -> bool {
    (p.tick() + 1).is_multiple_of(FAIRNESS_ROUNDS) || machine.locked.get().is_some()
}

/// Gives `g` a stack and a thread-local block for its first run; false if none is ready.
#[inline]
pub(crate) fn attach(p: &'static Processor, g: GRef) -> bool {
    // SAFETY: the caller holds `p`, inside the runtime.
    match unsafe { p.core() }.take_fiber(g.class.get()) {
        Some(fiber) => {
            attach_fiber(g, fiber);
            true
        }
        None => false,
    }
}

/// Makes `g` begin on `fiber`.
#[inline]
pub(crate) fn attach_fiber(g: GRef, fiber: Fiber) {
    // SAFETY: the caller owns `g`, which has not run; nobody else uses its context.
    let context = unsafe { &mut *g.context.get() };
    // SAFETY: an idle fiber, given up by its pool.
    unsafe { fiber.prepare(context, crate::exit::goroutine_main, g.as_ptr().cast()) };
    g.fiber.set(Some(fiber));
}

/// # Safety
/// * `from` runs on `machine` and made its transition; `next` is runnable, started or attached,
///   and the caller's.
#[inline(always)]
unsafe fn switch_to_goroutine(
    machine: &'static Machine,
    from: GRef,
    next: GRef,
    left: &Left,
) -> usize {
    let shares_tls = transition::run(machine, next);
    let (from, to) = (from.context.get(), next.context.get());
    if shares_tls {
        // SAFETY: `next` is the caller's.
        unsafe { (*to).set_fs(machine.own_block()) };
    }
    // SAFETY: `from` is the running goroutine's own context.
    let loaded = unsafe { (*from).fs() };
    // SAFETY: by the caller.
    unsafe { cross(machine, loaded, from, to, left) }
}

/// # Safety
/// * `from` runs on `machine` and made its transition.
#[inline(always)]
unsafe fn switch_to_scheduler(machine: &'static Machine, from: GRef, left: &Left) -> usize {
    locked::unlock_if_caught(machine);
    machine.set_current(None);
    let (from, to) = (from.context.get(), machine.context.get());
    // SAFETY: `from` is the running goroutine's own context.
    let loaded = unsafe { (*from).fs() };
    // SAFETY: the scheduler's stack waits in `enter_goroutine`.
    unsafe { cross(machine, loaded, from, to, left) }
}

/// From the scheduler's stack to `next`; returns when some goroutine leaves for the scheduler.
///
/// # Safety
/// * The caller is `machine`'s scheduler; `next` is runnable, started or attached, and the
///   caller's.
pub(crate) unsafe fn enter_goroutine(machine: &'static Machine, next: GRef) {
    let shares_tls = transition::run(machine, next);
    if trace::is_on() {
        trace::runs(machine, next);
    }
    let (from, to) = (machine.context.get(), next.context.get());
    let own = machine.own_block();
    // SAFETY: the scheduler's own context.
    unsafe { (*from).set_fs(own) };
    if shares_tls {
        // SAFETY: `next` is the caller's.
        unsafe { (*to).set_fs(own) };
    }
    // SAFETY: by the caller.
    let passed = unsafe { cross_with(machine, own, from, to, 0) };
    // SAFETY: what the switch back has passed.
    let _inside = unsafe { settle(passed) };
}

/// # Safety
/// * As for `cross_with`; `left` stays until the resumed side has read it.
#[inline(always)]
unsafe fn cross(
    machine: &'static Machine,
    loaded: usize,
    from: *mut Context,
    to: *mut Context,
    left: &Left,
) -> usize {
    // SAFETY: by the caller.
    unsafe { cross_with(machine, loaded, from, to, left as *const Left as usize) }
}

/// Loads the block of `to` and switches.
///
/// # Safety
/// * `from` is the context that runs, with `loaded` in FS; `to` is suspended and the caller's.
#[inline(always)]
unsafe fn cross_with(
    machine: &'static Machine,
    loaded: usize,
    from: *mut Context,
    to: *mut Context,
    pass: usize,
) -> usize {
    // SAFETY: by the caller.
    let target = unsafe { &*to };
    if target.fs() != loaded {
        // SAFETY: `to` is suspended, so nobody has its block; the runtime touches no thread-local.
        unsafe { host::load_block_on_machine(machine.host(), target.fs()) };
    }
    // SAFETY: by the caller; `from` is published by `Left::act` on the resumed side only.
    unsafe { arch::switch(from, to, pass) }
}

/// Does what the goroutine that was left asked for. The first thing on every resumed side.
///
/// # Safety
/// * `passed` is what the switch returned: 0 or a `Left`.
#[inline(always)]
pub(crate) unsafe fn settle(passed: usize) -> Inside {
    if passed == 0 {
        // SAFETY: every host is a machine, and switches happen inside the runtime.
        return unsafe { Inside::assume(host::current_on_host().cast()) };
    }
    // SAFETY: by the caller; its stack is suspended until `act` publishes it.
    let Left { g, act, data, machine } = unsafe { (passed as *const Left).read() };
    // SAFETY: a switch stays on its machine, inside the runtime.
    let inside = unsafe { Inside::assume(machine) };
    // SAFETY: by the promise of `leave`'s caller.
    unsafe { act(inside, g, data) }
}
