//! The hook of block and mutex profiles.

use crate::support::{SHORT, Who};
use gosched_sched::WaitReason;
use gosched_sync::{Arc, Mutex, WaitEvent, WaitSide, mpsc, set_wait_hook};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

static WAITED: AtomicU64 = AtomicU64::new(0);
static RELEASED: AtomicU64 = AtomicU64::new(0);

fn note(event: &WaitEvent) {
    // Others' tests wait as well, so the one with a length of its own is looked for.
    if event.reason == WaitReason::MutexLock && event.ns >= SHORT.as_nanos() as u64 {
        match event.side {
            WaitSide::Waiter => WAITED.fetch_max(event.ns, SeqCst),
            WaitSide::Releaser => RELEASED.fetch_max(event.ns, SeqCst),
        };
    }
}

#[test]
fn a_wait_is_told_by_both_sides() {
    set_wait_hook(Some(note));
    let mutex = Arc::new(Mutex::new(()));
    let guard = mutex.lock().unwrap();
    let (say, begun) = mpsc::channel();
    let waiter = Who::Goroutine.start({
        let mutex = mutex.clone();
        move || {
            say.send(()).unwrap();
            drop(mutex.lock().unwrap());
        }
    });
    begun.recv().unwrap();
    gosched_sched::sleep(2 * SHORT);
    drop(guard);
    waiter.join();
    set_wait_hook(None);
    assert!(WAITED.load(SeqCst) > 0, "the waiter");
    assert!(RELEASED.load(SeqCst) > 0, "the one who let go");
}
