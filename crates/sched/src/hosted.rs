//! Code that is to see the thread, not the goroutine.
//!
//! A goroutine is a thread to the crates it uses, and some crates do not expect a hundred thousand
//! threads: they keep a list that grows with each, or refuse the 4,097th. What they count is
//! thread-local blocks, so for the length of a call the block is the machine's.
//!
//! The machine is hidden meanwhile, as while libc makes a thread: nobody can stop the code, or move
//! it to another thread, between the two changes of blocks.

use crate::current::current_outside;
use crate::machine::Inside;
use gosched_fiber::host;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// Runs `f` with the thread-locals of the thread that runs the goroutine now, and as that thread.
///
/// For short calls of crates that keep something for each thread and have a limit on how many there
/// may be, or get slow with their number: there are as many threads as processors, not as
/// goroutines. The guide `docs/CRATES.md` names some.
///
/// `f` is not stopped by signal, and what waits in it blocks the thread, as on any thread that is
/// none of the runtime's. The next call may be on another thread. Locks that know their owner (a
/// recursive one that the goroutine holds) take `f` for somebody else. On a plain thread `f` just
/// runs.
///
/// Go has no thread-locals and needs no counterpart.
///
/// # Panics
/// If `f` panics, with what it panicked with.
///
/// # Examples
/// ```
/// use std::cell::Cell;
/// use std::panic::Location;
///
/// thread_local! {
///     static CALLS: Cell<u32> = const { Cell::new(0) };
/// }
///
/// gosched_sched::run(|| {
///     CALLS.set(7);
///     // The thread's own count, not the goroutine's.
///     let calls = gosched_sched::hosted(|| CALLS.replace(CALLS.get() + 1));
///     assert_eq!(calls, 0);
///     assert_eq!(CALLS.get(), 7);
/// });
/// ```
pub fn hosted<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    // Entering ends a declared call, if this is in one.
    let Some(inside) = current_outside().and_then(|_| Inside::enter()) else { return f() };
    let mut call = Call { f: Some(f), result: None };
    let data = (&raw mut call).cast();
    let machine = inside.leave_hidden();
    // SAFETY: hidden, so the caller stays on this machine's thread; `data` is a call of these types
    // that lives here, and `run` catches panics.
    unsafe { host::call_as_thread(machine.host(), act_of(&call), data) };
    machine.show();
    match call.result {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => gosched_base::rt_abort!("hosted: the call has not run"),
    }
}

struct Call<F, T> {
    f: Option<F>,
    result: Option<thread::Result<T>>,
}

/// [`run`] for calls like this one.
fn act_of<F: FnOnce() -> T, T>(_: &Call<F, T>) -> unsafe fn(*mut ()) {
    run::<F, T>
}

/// # Safety
/// * `data` is a `Call<F, T>` that nobody else uses.
unsafe fn run<F: FnOnce() -> T, T>(data: *mut ()) {
    // SAFETY: by the caller.
    let call = unsafe { &mut *data.cast::<Call<F, T>>() };
    if let Some(f) = call.f.take() {
        call.result = Some(catch_unwind(AssertUnwindSafe(f)));
    }
}
