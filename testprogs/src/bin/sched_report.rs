//! Goroutines in each state, for reports of the scheduler (`GOSCHED=schedtrace=N`), until standard
//! input ends.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use gosched::{blocking, channel, go, runtime, thread};

#[gosched::main]
fn main() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let (tell, told) = channel::bounded::<()>(0);
    go(move || told.recv());
    go(|| thread::sleep(Duration::from_secs(3600)));
    let (locked, is_locked) = channel::bounded(0);
    go(move || {
        runtime::lock_os_thread();
        locked.send(()).expect("it is received");
        thread::park();
    });
    is_locked.recv().expect("it is sent");
    go(|| blocking(|| std::thread::sleep(Duration::from_secs(3600))));
    go(|| {
        while !STOP.load(Relaxed) {
            hint::spin_loop();
        }
    });
    let lines = gosched::io::stdin().lines();
    lines.for_each(drop);
    STOP.store(true, Relaxed);
    drop(tell);
}
