//! Entering the scheduler from a plain thread, and the main goroutine.

use crate::history::{self, Kind};
use crate::idle::FirstPoller;
use crate::machine::{Inside, Machine};
use crate::scheduler::SCHEDULER;
use crate::spawn::{SpawnOptions, spawn};
use crate::{current, fleet, forgotten, idle, machine, quit, start};
use std::panic::{Location, resume_unwind};
use std::process::Termination;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many plain threads wait in `run` or have become the main machine.
static WAITING: AtomicU32 = AtomicU32::new(0);

pub(crate) fn waiting() -> u32 {
    // ORDERING: Relaxed; read when all is quiet.
    WAITING.load(Relaxed)
}

/// Counts a plain thread as one that waits for the goroutine that holds this.
///
/// The goroutine holds it, not the thread: until the goroutine runs and once it has ended, the
/// thread has something to do, and the deadlock detector must take it for a foreign one.
struct Waiting;

impl Waiting {
    fn new() -> Waiting {
        // ORDERING: Relaxed for both; read by the deadlock detector when all is quiet.
        WAITING.fetch_add(1, Relaxed);
        SCHEDULER.known_threads.fetch_add(1, Relaxed);
        // Whoever sleeps in the poller without watching for deadlocks is to watch from now on. The
        // fence in here pairs with the poller's `announce`: it sees the count or is rung.
        idle::wake_one_from_outside();
        Waiting
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // ORDERING: Relaxed for both, as above.
        SCHEDULER.known_threads.fetch_sub(1, Relaxed);
        WAITING.fetch_sub(1, Relaxed);
    }
}

/// Runs `f` in a goroutine and returns its value.
///
/// From any plain thread, any number of times; inside a goroutine it just calls `f`. Other
/// goroutines go on after it returns, as threads do.
///
/// # Panics
/// If `f` panics, with its payload.
#[track_caller]
pub fn run<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    if current::is_goroutine() {
        return f();
    }
    quit::handle_unless_handled();
    let site = Location::caller();
    let options = SpawnOptions { name: Some("main".into()), ..SpawnOptions::default() };
    let awaited = move || {
        let _waiting = Waiting::new();
        f()
    };
    // SAFETY: `f` and `T` are Send and 'static; the block is its own.
    let handle = match unsafe { spawn(awaited, options, site) } {
        Ok(handle) => handle,
        Err(error) => panic!("run: {error}"),
    };
    match handle.join() {
        Ok(value) => value,
        Err(payload) => resume_unwind(payload),
    }
}

/// What `#[gosched::main]` calls on the process's main thread, which becomes the first machine;
/// `f` is the first goroutine. The process exits with what `f` returns; other goroutines are not
/// waited for (as Go).
pub fn run_main<T: Termination + 'static>(f: fn() -> T, site: &'static Location<'static>) -> ! {
    quit::handle_unless_handled();
    let machine = Machine::leak(SCHEDULER.next_machine_id());
    fleet::adopt();
    if let Ok(stack) = gosched_fiber::fault::alternate_stack_install() {
        std::mem::forget(stack);
    }
    // ORDERING: Relaxed; see `waiting`. For good: this thread is a machine from now on.
    WAITING.fetch_add(1, Relaxed);
    SCHEDULER.machine_started();
    let (p, poller) = start::start_as_first_machine();
    // Still a plain thread: spawning allocates.
    spawn_main(move || end_process(f, poller), site);
    start::restore_signals();
    machine.bind();
    if let Some(p) = p {
        idle::acquire(machine, p);
    }
    machine::run_bound_machine();
    history::machine(Kind::Sleep, machine, 0);
    // A goroutine that was locked to the main thread has ended. The thread can't: its end would be
    // the process's. (Go parks it as well.)
    loop {
        std::thread::park();
    }
}

fn spawn_main(main: impl FnOnce(), site: &'static Location<'static>) {
    let options = SpawnOptions { name: Some("main".into()), ..SpawnOptions::default() };
    // SAFETY: made of a function pointer and the proof that the runtime has started.
    let spawned = unsafe { spawn(main, options, site) };
    if let Err(error) = spawned {
        gosched_base::rt_abort!("main: {error}");
    }
}

/// The main goroutine. It is on the main thread: there is no other machine yet.
fn end_process<T: Termination>(f: fn() -> T, poller: Option<FirstPoller>) {
    if let (Some(poller), Some(inside)) = (poller, Inside::enter()) {
        poller.start();
        inside.leave();
    }
    let code = match std::panic::catch_unwind(f) {
        // A `Termination` may print an error.
        Ok(value) => {
            forgotten::hint();
            exit_code(value.report())
        }
        // std's code for a panic in `main`; the hook has printed it.
        Err(_) => 101,
    };
    std::process::exit(code)
}

/// `ExitCode` does not tell its number; its debug form does not promise to. On Unix it is a byte
/// that `exit_process` hands to libc, which is what is asked for here.
fn exit_code(code: std::process::ExitCode) -> i32 {
    if code == std::process::ExitCode::SUCCESS {
        return 0;
    }
    (1..=u8::MAX).find(|n| std::process::ExitCode::from(*n) == code).map_or(1, i32::from)
}
