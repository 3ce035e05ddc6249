//! The hook of block and mutex profiles.

use crate::support::{SHORT, Who};
use gosched_sched::WaitReason;
use gosched_sync::{Arc, Mutex, WaitEvent, WaitSide, mpsc, set_wait_hook};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

static WAITED: AtomicU64 = AtomicU64::new(0);
static RELEASED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this goroutine or thread is one of this test's: others' tests wait as well.
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

fn note(event: &WaitEvent) {
    if event.reason == WaitReason::MutexLock && IS_OURS.get() {
        match event.side {
            WaitSide::Waiter => WAITED.fetch_max(event.ns, SeqCst),
            WaitSide::Releaser => RELEASED.fetch_max(event.ns, SeqCst),
        };
    }
}

#[test]
fn a_wait_is_told_by_both_sides() {
    IS_OURS.set(true);
    set_wait_hook(Some(note));
    let is_told = |ns: &AtomicU64| ns.load(SeqCst) >= SHORT.as_nanos() as u64;
    for _ in 0..1000 {
        wait_about_twice_as_long();
        if is_told(&WAITED) && is_told(&RELEASED) {
            break;
        }
    }
    set_wait_hook(None);
    assert!(is_told(&WAITED), "the waiter");
    assert!(is_told(&RELEASED), "the one who let go");
}

/// The waiter may come late, or even too late to wait at all.
fn wait_about_twice_as_long() {
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock().unwrap();
    let (say, begun) = mpsc::channel();
    let waiter = Who::Goroutine.start({
        let mutex = mutex.clone();
        move || {
            IS_OURS.set(true);
            say.send(()).unwrap();
            drop(mutex.lock().unwrap());
        }
    });
    begun.recv().unwrap();
    gosched_sched::sleep(2 * SHORT);
    drop(guard);
    waiter.join();
}
