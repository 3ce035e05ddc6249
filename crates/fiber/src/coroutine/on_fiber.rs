//! A coroutine on a fiber.
//!
//! Invariants
//! * I1. The record is reached through raw pointers only: by the owner while the coroutine does not
//!   run, by the coroutine while it runs.
//! * I2. `fiber` is there until the coroutine has ended, and then given to the pool.

use super::{Carrier, Stop};
use crate::arch::{self, Context};
use crate::fiber::{Fiber, FiberError, load_block_of};
use crate::host;
use crate::pool;
use crate::stack::Class;
use crate::tls::{self, Kind};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

type Function = Box<dyn FnOnce() + Send>;

/// The owner of a coroutine's record.
pub(super) struct OnFiber {
    record: NonNull<Record>,
}

// SAFETY: the function is `Send`, and what it leaves on its stack between resumes belongs to a
// fiber, whose thread-locals move with it (that is what the own block is for).
unsafe impl Send for OnFiber {}

struct Record {
    context: Context,
    carrier: Context,
    fiber: Option<Fiber>,
    /// Taken when the coroutine starts.
    function: Option<Function>,
    panic: Option<Box<dyn Any + Send>>,
    ended: bool,
}

impl OnFiber {
    pub(super) fn new(class: Class, function: Function) -> Result<OnFiber, FiberError> {
        let fiber = pool::take_or_make(class)?;
        let record = Box::into_raw(Box::new(Record {
            context: Context::empty(),
            carrier: Context::empty(),
            fiber: None,
            function: Some(function),
            panic: None,
            ended: false,
        }));
        // SAFETY: from a box; ours alone until the coroutine runs.
        let fields = unsafe { &mut *record };
        // SAFETY: the fiber is ours, nothing runs on it, and the record stays where it is.
        unsafe { fiber.prepare(&mut fields.context, entry, record.cast()) };
        fields.fiber = Some(fiber);
        // SAFETY: from a box.
        Ok(OnFiber { record: unsafe { NonNull::new_unchecked(record) } })
    }

    pub(super) fn resume(&mut self) -> Stop {
        match Carrier::current() {
            // SAFETY: a bound carrier is alive, and stays so until this returns.
            Some(carrier) => self.resume_on(unsafe { &*carrier }),
            None => self.resume_on(&Carrier::new()),
        }
    }

    fn resume_on(&mut self, carrier: &Carrier) -> Stop {
        let record = self.record.as_ptr();
        let outer = carrier.replace_running(record.cast());
        // SAFETY: ours (I1); this thread is a carrier.
        unsafe { enter(record) };
        carrier.replace_running(outer);
        // SAFETY: the coroutine does not run (I1).
        let fields = unsafe { &mut *record };
        if !fields.ended {
            return Stop::Suspended;
        }
        fields.context.ended_on_stack();
        if let Some(fiber) = fields.fiber.take() {
            give_back(fiber);
        }
        fields.panic.take().map_or(Stop::Ended, Stop::Panicked)
    }
}

/// Switches from the calling thread to the coroutine; returns when that leaves.
///
/// # Safety
/// * `record` is a coroutine that does not run and has not ended, and the caller owns it.
/// * The calling thread is a carrier.
unsafe fn enter(record: *mut Record) {
    let loaded = host::current_block();
    // SAFETY: by the caller.
    let fields = unsafe { &mut *record };
    // The carrier's context must name the block to come back to.
    fields.carrier.set_fs(loaded);
    if tls::kind() == Kind::Shared {
        // Whatever thread carries lends its thread-locals.
        fields.context.set_fs(loaded);
    }
    let (from, to) = (&raw mut fields.carrier, &raw const fields.context);
    // SAFETY: the coroutine's block, which no other thread has: only its owner can resume it.
    unsafe { load_block_of(host::current_on_host(), loaded, &fields.context) };
    // SAFETY: made by `prepare` or saved by `leave`, and resumed by nobody else.
    unsafe { arch::switch(from, to, 0) };
}

/// Switches from the running coroutine to its carrier.
///
/// # Safety
/// * `record` is the coroutine that runs.
unsafe fn leave(record: *mut Record) {
    // SAFETY: by the caller.
    let fields = unsafe { &mut *record };
    let (from, to) = (&raw mut fields.context, &raw const fields.carrier);
    // SAFETY: the carrier's own block, on its thread; nothing thread-local until the switch.
    unsafe { load_block_of(host::current_on_host(), host::current_block(), &fields.carrier) };
    // SAFETY: saved by `enter`, where the carrier waits; nobody resumes us before it returns.
    unsafe { arch::switch(from, to, 0) };
}

pub(super) fn suspend() {
    let carrier = Carrier::current().expect("suspend: not in a coroutine");
    // SAFETY: a bound carrier is alive; its coroutine is this one.
    let record = unsafe { &*carrier }.running().cast::<Record>();
    assert!(!record.is_null(), "suspend: not in a coroutine");
    // SAFETY: the running coroutine, whose carrier waits in `resume`.
    unsafe { leave(record) };
}

fn give_back(fiber: Fiber) {
    // SAFETY: the coroutine ended: `entry` called `finish`, and nothing runs on the fiber.
    if unsafe { fiber.is_reusable() } {
        // SAFETY: finished and reusable.
        unsafe { pool::give(fiber) };
    } else {
        // SAFETY: as above.
        unsafe { pool::discard(fiber) };
    }
    pool::start_if_needed();
}

impl Drop for OnFiber {
    fn drop(&mut self) {
        // SAFETY: from a box, and the coroutine does not run. If it is suspended it never runs
        // again, so nobody follows the pointer to its record that its stack holds.
        let record = unsafe { Box::from_raw(self.record.as_ptr()) };
        if let (Some(fiber), Some(_)) = (record.fiber, record.function) {
            // SAFETY: the function was not taken, so nothing ever ran on this fiber.
            unsafe { pool::give(fiber) };
        }
    }
}

/// # Safety
/// * Called by the first frame of a fiber with its `Record`.
unsafe extern "C" fn entry(data: *mut (), _passed: usize) -> ! {
    let record = data.cast::<Record>();
    // SAFETY: the coroutine runs (I1).
    let function = unsafe { &mut *record }.function.take();
    // SAFETY: as above.
    let block = unsafe { &*record }.fiber.as_ref().and_then(Fiber::block);
    if let Some(block) = block {
        // SAFETY: the fiber's own block was just loaded for the first time since it was prepared.
        unsafe { tls::begin(block) };
    }
    let result = catch_unwind(AssertUnwindSafe(|| {
        if let Some(f) = function {
            f();
        }
    }));
    // SAFETY: as above; the function has returned, and its use of the record with it.
    let fields = unsafe { &mut *record };
    fields.panic = result.err();
    if let Some(block) = block {
        // SAFETY: the loaded block; only thread-locals are left. They may suspend.
        unsafe { tls::finish(block) };
    }
    // SAFETY: as above.
    let fields = unsafe { &mut *record };
    fields.ended = true;
    fields.context.end_on_stack();
    // SAFETY: the coroutine that runs.
    unsafe { leave(record) };
    gosched_base::rt_abort!("coroutine: resumed after its end")
}
