//! Giving way: to the tail of the own ring, or of the global queue.

use crate::goroutine::GRef;
use crate::machine::Inside;
use crate::plant::Wake;
use crate::scheduler::SCHEDULER;
use crate::switch::Act;
use crate::{idle, jumps, park, switch, transition};
use gosched_base::rt_abort;

/// Lets other goroutines of this processor run; the caller goes to the tail of its ring.
///
/// std's `thread::yield_now`; inside Go `goyield`. On a plain thread it is std's.
#[inline]
pub fn yield_now() {
    match Inside::enter() {
        Some(inside) => leave(inside, to_ring).leave(),
        None => std::thread::yield_now(),
    }
}

/// Lets the goroutine run that the caller has just woken; the caller goes on when that one waits or
/// has had its slice, before the others of the ring.
///
/// Go's scheduler has `goyield` for this, to the ring's tail. There whoever lets go of a lock would
/// wait for the slices of all who compute. On a plain thread it is `std::thread::yield_now`.
pub fn give_way() {
    match Inside::enter() {
        Some(inside) => to_ring_front(inside).leave(),
        None => std::thread::yield_now(),
    }
}

/// On a single processor, lets those run that wait for it. For whoever leaves something free that
/// another goroutine was woken for, and could take it again at once. Where there are more processors
/// another one takes who was woken, and nothing happens.
#[inline]
pub fn give_way_if_alone() {
    if SCHEDULER.procs() == 1 {
        give_way_alone();
    }
}

#[cold]
fn give_way_alone() {
    let Some(inside) = Inside::enter() else { return };
    let ring = &inside.processor().ring;
    let inside = if ring.has_next() {
        to_ring_front(inside)
    } else if !ring.is_empty() {
        leave(inside, to_ring)
    } else {
        inside
    };
    inside.leave();
}

/// Lets others run; the caller goes to the tail of the global queue. Go's `runtime.Gosched`.
///
/// On a plain thread it is `std::thread::yield_now`.
pub fn gosched() {
    match Inside::enter() {
        Some(inside) => to_global_queue(inside).leave(),
        None => std::thread::yield_now(),
    }
}

/// Yields to the global queue's tail and returns when the goroutine runs again.
pub(crate) fn to_global_queue(inside: Inside) -> Inside {
    leave(inside, to_global)
}

/// Yields to the tail of the own ring and returns when the goroutine runs again.
pub(crate) fn to_ring_tail(inside: Inside) -> Inside {
    leave(inside, to_ring)
}

/// Yields to the head of the own ring: the caller goes on first after what is in the next slot, or
/// what else is to go first.
pub(crate) fn to_ring_front(inside: Inside) -> Inside {
    leave(inside, to_front)
}

#[inline(always)]
fn leave(inside: Inside, act: Act) -> Inside {
    let Some(g) = inside.machine().current() else { rt_abort!("yield: the scheduler can't yield") };
    transition::yielded(g);
    // SAFETY: `g` runs here and is Runnable now; `act` puts it into a queue.
    unsafe { switch::leave(inside, g, act, std::ptr::null_mut()) }
}

/// # Safety
/// * `g` is suspended, runnable and in no queue.
unsafe fn to_ring(inside: Inside, g: GRef, _: *mut ()) -> Inside {
    park::push_back(inside.processor(), g);
    // This machine may run another goroutine by now, and whoever was woken for that one has not
    // seen `g` in any queue while it was on its way.
    if SCHEDULER.procs() > 1 {
        idle::wake_one_for(Wake::Yield);
    }
    inside
}

/// # Safety
/// * As for `to_ring`.
unsafe fn to_front(inside: Inside, g: GRef, _: *mut ()) -> Inside {
    jumps::push_ahead(inside.processor(), g);
    // As in `to_ring`: an urgent one goes first here, and takes its time.
    idle::wake_one_for(Wake::Front);
    inside
}

/// # Safety
/// * As for `to_ring`.
unsafe fn to_global(inside: Inside, g: GRef, _: *mut ()) -> Inside {
    SCHEDULER.global.push_back(g);
    idle::wake_one_for(Wake::Gosched);
    inside
}
