//! The cases on may.

use crate::system;
use may::coroutine::{self, JoinHandle, sleep, yield_now};
use may::sync::{Blocker, Mutex, SyncFlag};
use may::{config, go};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn workers(count: usize) {
    config().set_workers(count);
}

fn join(all: impl IntoIterator<Item = JoinHandle<()>>) {
    all.into_iter().for_each(|one| one.join().expect("no panic"));
}

pub fn endless_loop() {
    workers(1);
    let over = Arc::new(AtomicBool::new(false));
    let theirs = over.clone();
    let looping = go!(move || {
        while !theirs.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    // It runs when the other one is made.
    std::thread::sleep(Duration::from_millis(100));
    join([go!(move || over.store(true, SeqCst)), looping]);
}

pub fn blocked() {
    workers(2);
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    go!(move || loop {
        sleep(Duration::from_millis(1));
        counted.fetch_add(1, SeqCst);
    });
    let block = || {
        yield_now();
        std::thread::sleep(Duration::from_secs(3));
    };
    let all = [go!(block), go!(block)];
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks.load(SeqCst);
    std::thread::sleep(Duration::from_secs(2));
    let meanwhile = ticks.load(SeqCst) - before;
    println!("ticks={meanwhile}");
    join(all);
    assert!(meanwhile > 100, "timers stood still while others blocked");
}

pub fn std_mutex() {
    workers(1);
    let lock = Arc::new(std::sync::Mutex::new(0));
    let all: Vec<_> = (0..10)
        .map(|_| {
            let lock = lock.clone();
            go!(move || {
                let mut count = lock.lock().expect("no panic");
                yield_now();
                *count += 1;
            })
        })
        .collect();
    join(all);
}

pub fn exit() {
    workers(2);
    go!(|| std::io::Read::read(&mut std::io::stdin(), &mut [0]));
    std::thread::sleep(Duration::from_millis(200));
}

pub fn endless_sleep() {
    workers(2);
    for endless in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(u64::MAX / 10)] {
        let over = Arc::new(AtomicBool::new(false));
        let theirs = over.clone();
        let sleeps = go!(move || {
            sleep(endless);
            theirs.store(true, SeqCst);
        });
        let blocker = Blocker::current();
        let theirs = blocker.clone();
        let parks = go!(move || coroutine::park_timeout(endless));
        std::thread::sleep(Duration::from_millis(20));
        drop(theirs);
        assert!(!over.load(SeqCst), "a sleep of {endless:?} is over");
        assert!(!parks.is_done(), "a wait of {endless:?} is over");
        parks.coroutine().unpark();
        join([parks]);
        // SAFETY: it holds nothing.
        unsafe { sleeps.coroutine().cancel() };
    }
}

pub fn parked() {
    workers(2);
    let flag = Arc::new(SyncFlag::new());
    let all: Vec<_> = (0..100_000)
        .map(|_| {
            let flag = flag.clone();
            go!(move || flag.wait())
        })
        .collect();
    flag.fire();
    join(all);
}

pub fn thread_local() {
    workers(4);
    let wrong = Arc::new(AtomicU64::new(0));
    let one = |_| {
        let wrong = wrong.clone();
        go!(move || {
            wrong.fetch_add(system::wrong_locals(yield_now), SeqCst);
        })
    };
    join((0..100).map(one).collect::<Vec<_>>());
    println!("wrong={}", wrong.load(SeqCst));
    assert_eq!(wrong.load(SeqCst), 0, "another thread's thread-local");
}

pub fn errno() {
    workers(4);
    let wrong = Arc::new(AtomicU64::new(0));
    let one = |n| {
        let wrong = wrong.clone();
        go!(move || {
            wrong.fetch_add(system::wrong_errors(n, yield_now), SeqCst);
        })
    };
    join((0..100).map(one).collect::<Vec<_>>());
    println!("wrong={}", wrong.load(SeqCst));
    assert_eq!(wrong.load(SeqCst), 0, "another thread's errno");
}

pub fn overflow() {
    workers(1);
    let _ = go!(|| system::recurse(0)).join();
}

pub fn fork() {
    workers(2);
    join([go!(|| sleep(Duration::from_millis(1)))]);
    join([go!(|| {
        system::fork_and_wait(|| {
            join([go!(|| sleep(Duration::from_millis(1)))]);
        });
    })]);
}

/// Ends well if it says that there is no stack, or waits for one, and the others go on.
pub fn no_memory() {
    workers(2);
    join([go!(|| ())]);
    system::limit_memory(64 << 20);
    let flag = Arc::new(SyncFlag::new());
    let all: Vec<_> = (0..2_000)
        .map(|_| {
            let flag = flag.clone();
            // SAFETY: they use little stack.
            let made = unsafe { coroutine::Builder::new().stack_size(1 << 17).spawn(move || flag.wait()) };
            made.map_err(|error| println!("error={error}"))
        })
        .collect();
    system::unlimit_memory();
    flag.fire();
    join(all.into_iter().flatten());
}

pub fn cancel_poisons() {
    workers(2);
    let lock = Arc::new(Mutex::new(0));
    let theirs = lock.clone();
    let holds = go!(move || {
        let _held = theirs.lock().expect("no panic");
        coroutine::park();
    });
    std::thread::sleep(Duration::from_millis(100));
    // SAFETY: what it holds is what this is about.
    unsafe { holds.coroutine().cancel() };
    let _ = holds.join();
    assert!(lock.lock().is_ok(), "the lock is poisoned");
}
