//! A goroutine's whole life on its stack: it starts, runs its function, ends, and makes room.
//!
//! A goroutine that ends while a fresh one is next lends it stack and block on the spot: no switch,
//! only a restored image of thread-locals. A burst of short tasks runs on one hot stack that way.

use crate::attention::TRACE;
use crate::goroutine::{GRef, Goroutine};
use crate::history::{self, Kind};
use crate::machine::{Inside, Machine};
use crate::plant::Place;
use crate::processor::Processor;
use crate::task::{AbortOnUnwind, Ended, FreedInside, TaskHeader};
use crate::wait::Waiter;
use crate::{idle, labels, locked, panic, park, plant, switch, threads, trace, transition, warm};
use gosched_base::rt_abort;
use gosched_fiber::stack::Class;
use gosched_fiber::{Fiber, host};
use gosched_protocol::Completed;
use gosched_runq::Popped;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// The first function on every stack.
///
/// # Safety
/// * Called by the first frame with a goroutine's descriptor and what the switch has passed.
pub(crate) unsafe extern "C" fn goroutine_main(data: *mut (), passed: usize) -> ! {
    // SAFETY: by the caller.
    let mut inside = unsafe { switch::settle(passed) };
    let Some(g) = NonNull::new(data.cast::<Goroutine>()) else {
        rt_abort!("a stack without a goroutine began")
    };
    // SAFETY: a descriptor, by the caller.
    let mut g = unsafe { GRef::new(g) };
    loop {
        inside.leave();
        run_function(g);
        inside = Inside::enter_on_goroutine();
        inside = complete(inside, g);
        (inside, g) = next_in_place(inside, g);
    }
}

/// All user code of a goroutine: its function, then its thread-locals' destructors.
#[inline]
fn run_function(g: GRef) {
    let Some(task) = g.task.get() else { rt_abort!("goroutine {} has no function", g.id()) };
    if let Some(fiber) = g.fiber.get().filter(|_| !g.shares_tls()) {
        // SAFETY: this runs on the fiber, and nobody has since it was prepared or renewed.
        unsafe { fiber.begin() };
    }
    // SAFETY: the goroutine's own task, run once.
    let ended = unsafe { TaskHeader::run(task) };
    if ended == Ended::Panicked {
        panic::count();
    }
    labels::forget(g);
    // SAFETY: run just now, and not completed yet.
    unsafe { TaskHeader::drop_if_detached(task) };
    if g.shares_tls() {
        // The block that is loaded is the machine's, whose time has not come.
        return;
    }
    if let Some(fiber) = g.fiber.get() {
        // SAFETY: the function has returned; the fiber is the one that runs this, on its block.
        unsafe { fiber.finish() };
    }
}

/// Hands the result over and wakes whoever waits for it.
#[inline]
fn complete(inside: Inside, g: GRef) -> Inside {
    let Some(task) = g.task.take() else { rt_abort!("goroutine {} ended twice", g.id()) };
    // SAFETY: run, and completed here only.
    match unsafe { TaskHeader::complete(task) } {
        Completed::Unclaimed => inside,
        Completed::Wake(word) => {
            // SAFETY: joiners register waiters.
            unsafe { Waiter::from_word(word) }.wake_in_turn(&inside);
            inside
        }
        Completed::Detached => free_detached(inside, g, task),
    }
}

/// Frees what nobody will ask for, in user context if need be.
#[inline]
fn free_detached(inside: Inside, g: GRef, task: NonNull<TaskHeader>) -> Inside {
    // SAFETY: detached, so the task is ours.
    if unsafe { task.as_ref() }.has_result() {
        return drop_late(inside, g, task);
    }
    // SAFETY: as above.
    match unsafe { TaskHeader::free_inside(task, &inside) } {
        FreedInside::Yes => return inside,
        FreedInside::Surplus(surplus) => {
            inside.leave();
            surplus.free();
        }
        FreedInside::No => {
            inside.leave();
            // SAFETY: as above.
            unsafe { TaskHeader::free(task) };
        }
    }
    Inside::enter_on_goroutine()
}

/// The handle went while the goroutine's thread-locals ended. The result's drop may use some: they
/// begin, and end, once more.
#[cold]
fn drop_late(inside: Inside, g: GRef, task: NonNull<TaskHeader>) -> Inside {
    let fiber = g.fiber.get().filter(|_| !g.shares_tls());
    if let Some(fiber) = fiber {
        // SAFETY: finished by `run_function`, and inside the runtime nothing touches thread-locals.
        // If it can't be renewed, they stay ended.
        let _ = unsafe { fiber.renew() };
        // SAFETY: the context of a goroutine that runs is its own; only its block matters.
        let block = unsafe { (*g.context.get()).fs() };
        keep_host(inside.machine(), block);
    }
    inside.leave();
    if let Some(fiber) = fiber {
        // SAFETY: this runs on the fiber, which was renewed.
        unsafe { fiber.begin() };
    }
    let guard = AbortOnUnwind("a goroutine's detached result panicked while it was dropped");
    // SAFETY: detached, so the task is ours.
    unsafe { TaskHeader::free(task) };
    std::mem::forget(guard);
    if let Some(fiber) = fiber {
        // SAFETY: the goroutine's code has ended; the fiber is the one that runs this.
        unsafe { fiber.finish() };
    }
    Inside::enter_on_goroutine()
}

/// Ends `g` and begins the next goroutine on its stack if that is a fresh one; else switches away
/// for good.
#[inline]
fn next_in_place(inside: Inside, g: GRef) -> (Inside, GRef) {
    plant::here(Place::Exit);
    let p = inside.processor();
    transition::exit(p, g);
    let Some(fiber) = g.fiber.get() else { rt_abort!("goroutine {} has no stack", g.id()) };
    locked::goroutine_ended(inside.machine(), g);
    match fresh_neighbour(inside.machine(), p, g, fiber) {
        Some(next) => {
            g.fiber.set(None);
            next.fiber.set(Some(fiber));
            // SAFETY: the context of a goroutine that runs is its own; only its block matters.
            let old = unsafe { &mut *g.context.get() };
            // SAFETY: taken from the queue just now.
            let new = unsafe { &mut *next.context.get() };
            new.take_over(old);
            keep_host(inside.machine(), new.fs());
            // ORDERING: Relaxed; a trace begins while nobody runs here.
            if p.attention.load(Relaxed) & TRACE != 0 {
                trace::switches(inside.machine(), g, next);
            }
            // SAFETY: this machine holds `p`.
            unsafe { p.core() }.give_descriptor(g);
            p.count_tick();
            // It shares thread-locals if the one before did, and those are loaded.
            let _ = transition::run(inside.machine(), next);
            p.counters.runs_in_place.add();
            (inside, next)
        }
        None => {
            // SAFETY: the context of a goroutine that runs is its own.
            unsafe { (*g.context.get()).end_on_stack() };
            // SAFETY: `g` has ended; `recycle` takes its stack once it is left.
            unsafe { switch::leave(inside, g, recycle, std::ptr::null_mut()) };
            rt_abort!("a goroutine that ended was resumed")
        }
    }
}

/// Where machines are found with a slot in the block, the restored image has emptied it.
#[inline]
fn keep_host(machine: &Machine, block: usize) {
    if host::needs_slot() {
        // SAFETY: the block that is loaded, on its machine; the runtime touches no thread-local.
        unsafe { host::load_block(machine.host(), block) };
    }
}

/// The next goroutine of this processor, taken, if it is fresh and can use `fiber`.
#[inline]
fn fresh_neighbour(
    machine: &Machine,
    p: &'static Processor,
    g: GRef,
    fiber: Fiber,
) -> Option<GRef> {
    if switch::must_use_scheduler(machine, p) {
        return None;
    }
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let mut queue = unsafe { p.queue() };
    let popped = queue.pop()?;
    let (Popped::Next(next) | Popped::Ring(next)) = popped;
    warm::up(&queue);
    let fits = !next.has_started()
        && next.class.get() == fiber.class()
        && next.shares_tls() == g.shares_tls();
    // SAFETY: the caller's machine holds `p`, inside the runtime.
    let core = unsafe { p.core() };
    // SAFETY: `g` has ended, and the runtime touches no thread-local.
    if fits && unsafe { core.renew_in_place(fiber) } {
        return Some(next);
    }
    switch::put_back(p, popped);
    None
}

/// # Safety
/// * `g` has ended and was left for good.
unsafe fn recycle(inside: Inside, g: GRef, _: *mut ()) -> Inside {
    // SAFETY: this machine holds the processor.
    let core = unsafe { inside.processor().core() };
    let fiber = g.fiber.take();
    // SAFETY: by the caller.
    unsafe { (*g.context.get()).ended_on_stack() };
    // From here on another machine may use it.
    core.give_descriptor(g);
    if let Some(fiber) = fiber {
        // SAFETY: by the caller.
        unsafe { core.give_fiber(fiber) };
        if threads::fiber_waiters() > 0 {
            start_one_that_waits(&inside, fiber.class());
        }
    }
    inside
}

/// Memory is short, or many begin at once: who waits for a fiber gets the one that is free now.
#[cold]
fn start_one_that_waits(inside: &Inside, class: Class) {
    let p = inside.processor();
    // SAFETY: this machine holds the processor.
    let core = unsafe { p.core() };
    let Some(fiber) = core.take_fiber(class) else { return };
    match threads::stop_waiting_for_fiber(class) {
        Some(g) => {
            switch::attach_fiber(g, fiber);
            history::goroutine(Kind::GotFiber, g, 0);
            park::push_back(p, g);
            idle::wake_one();
        }
        // SAFETY: taken just now, and nobody ran on it.
        None => unsafe { core.keep_fiber(fiber) },
    }
}
