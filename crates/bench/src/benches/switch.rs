//! `switch`: two stacks that switch to each other, without a scheduler. The floor of the others.

use super::Outcome;
use crate::args::Args;
use crate::report::Report;
use gosched_fiber::Fiber;
use gosched_fiber::arch::{self, Context};
use gosched_fiber::host::{self, Host};
use gosched_fiber::stack::Class;
use gosched_fiber::tls::{self, Kind};
use std::time::Instant;

/// This thread's stack and another one.
struct Pair {
    thread: Context,
    other: Context,
    host: &'static Host,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let n = args.n(10_000_000)?;
    let own = args.choice("tls", &[("own", true), ("shared", false)])?;
    tls::init((!own).then_some(Kind::Shared), None);
    let host = Box::leak(Box::new(Host::unbound()));
    // SAFETY: leaked, and the main thread, on which this runs, has no host yet.
    unsafe { host::bind(host) };
    let mut pair = Pair { thread: Context::empty(), other: Context::empty(), host };
    let fiber = Fiber::make(Class::DEFAULT).expect("memory for one stack");
    let data = (&raw mut pair).cast();
    let entry = if own { bounce::<true> } else { bounce::<false> };
    // SAFETY: the fiber is new, and stays.
    unsafe { fiber.prepare(&mut pair.other, entry, data) };
    pair.thread.set_fs(host::current_block());
    let start = Instant::now();
    for _ in 0..n.div_ceil(2) {
        let (from, to) = (&raw mut pair.thread, &raw const pair.other);
        // SAFETY: prepared, or saved by `bounce`; the pair stays where it is.
        unsafe { cross(pair.host, own, from, to) };
    }
    let took = start.elapsed();
    Ok(Report::new(args, n).time(took, n).set("tls", if own { "own" } else { "shared" }))
}

/// # Safety
/// * The first frame of the other stack, with the pair as its data.
unsafe extern "C" fn bounce<const OWN: bool>(data: *mut (), _: usize) -> ! {
    let pair = data.cast::<Pair>();
    loop {
        // SAFETY: the pair stays where it is, and its thread waits in `run`.
        let Pair { thread, other, host } = unsafe { &mut *pair };
        // SAFETY: saved when this stack was entered.
        unsafe { cross(host, OWN, other, thread) };
    }
}

/// Loads the other side's thread-local block if it has one of its own, and switches.
///
/// # Safety
/// * The caller runs on `from`; `to` is suspended.
#[inline(always)]
unsafe fn cross(host: &Host, own: bool, from: *mut Context, to: *const Context) {
    if own {
        // SAFETY: by the caller.
        let block = unsafe { (*to).fs() };
        // SAFETY: the block of whoever runs next, which nobody else has.
        unsafe { host::load_block(host, block) };
    }
    // SAFETY: by the caller.
    unsafe { arch::switch(from, to, 0) };
}
