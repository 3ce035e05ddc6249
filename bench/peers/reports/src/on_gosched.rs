//! The cases on gosched.

use crate::system;
use gosched::channel::bounded;
use gosched::sync::Mutex;
use gosched::thread::{self, Builder, JoinHandle, park_timeout, sleep, yield_now};
use gosched::{Config, go, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn procs(count: usize) {
    Config::new().procs(count).start().expect("nobody was first");
}

fn join(all: impl IntoIterator<Item = JoinHandle<()>>) {
    all.into_iter().for_each(|one| one.join().expect("no panic"));
}

pub fn endless_loop() {
    procs(1);
    let over = Arc::new(AtomicBool::new(false));
    let theirs = over.clone();
    let looping = go(move || {
        while !theirs.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    join([go(move || over.store(true, SeqCst)), looping]);
}

pub fn blocked() {
    procs(2);
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    go(move || {
        loop {
            sleep(Duration::from_millis(1));
            counted.fetch_add(1, SeqCst);
        }
    });
    let block = || {
        yield_now();
        std::thread::sleep(Duration::from_secs(3));
    };
    let all = [go(block), go(block)];
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks.load(SeqCst);
    std::thread::sleep(Duration::from_secs(2));
    let meanwhile = ticks.load(SeqCst) - before;
    println!("ticks={meanwhile}");
    join(all);
    assert!(meanwhile > 100, "timers stood still while others blocked");
}

pub fn std_mutex() {
    procs(1);
    let lock = Arc::new(std::sync::Mutex::new(0));
    let one = |_| {
        let lock = lock.clone();
        go(move || {
            let mut count = lock.lock().expect("no panic");
            yield_now();
            *count += 1;
        })
    };
    join((0..10).map(one).collect::<Vec<_>>());
}

pub fn exit() {
    procs(2);
    run(|| {
        go(|| std::io::Read::read(&mut std::io::stdin(), &mut [0]));
        sleep(Duration::from_millis(200));
    });
}

pub fn endless_sleep() {
    procs(2);
    for endless in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(u64::MAX / 10)] {
        let sleeps = go(move || sleep(endless));
        let parks = go(move || park_timeout(endless));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!sleeps.is_finished(), "a sleep of {endless:?} is over");
        assert!(!parks.is_finished(), "a wait of {endless:?} is over");
        parks.thread().unpark();
        join([parks]);
    }
}

pub fn parked() {
    procs(2);
    let (fire, flag) = bounded::<()>(0);
    let one = |_| {
        let flag = flag.clone();
        go(move || {
            let _ = flag.recv();
        })
    };
    let all: Vec<_> = (0..100_000).map(one).collect();
    drop(fire);
    join(all);
}

pub fn thread_local() {
    procs(4);
    let all: Vec<_> = (0..100).map(|_| go(|| system::wrong_locals(yield_now))).collect();
    let wrong: u64 = all.into_iter().map(|one| one.join().expect("no panic")).sum();
    println!("wrong={wrong}");
    assert_eq!(wrong, 0, "another thread's thread-local");
}

pub fn errno() {
    procs(4);
    let all: Vec<_> = (0..100).map(|n| go(move || system::wrong_errors(n, yield_now))).collect();
    let wrong: u64 = all.into_iter().map(|one| one.join().expect("no panic")).sum();
    println!("wrong={wrong}");
    assert_eq!(wrong, 0, "another thread's errno");
}

pub fn overflow() {
    procs(1);
    let _ = go(|| system::recurse(0)).join();
}

pub fn lock_and_join() {
    procs(2);
    let lock = Mutex::new(0_u64);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut count = lock.lock().expect("no panic");
                let halves = [go(|| crate::alone::some_work()), go(|| crate::alone::some_work())];
                *count += halves.map(|half| half.join().expect("no panic")).iter().sum::<u64>();
            });
        }
    });
}

pub fn fork() {
    procs(2);
    join([go(|| sleep(Duration::from_millis(1)))]);
    join([go(|| {
        system::fork_and_wait(|| join([go(|| sleep(Duration::from_millis(1)))]));
    })]);
}

pub fn no_memory() {
    procs(2);
    join([go(|| ())]);
    system::limit_memory(64 << 20);
    let (fire, flag) = bounded::<()>(0);
    let one = |_| {
        let flag = flag.clone();
        let builder = Builder::new().stack_size(1 << 20);
        builder
            .spawn(move || {
                let _ = flag.recv();
            })
            .expect("it waits for its stack")
    };
    let all: Vec<_> = (0..2_000).map(one).collect();
    // Beside those that wait for one.
    (0..100).for_each(|_| join([go(|| sleep(Duration::from_micros(100)))]));
    system::unlimit_memory();
    drop(fire);
    join(all);
}

pub fn no_threads() {
    procs(1);
    join([go(|| ())]);
    system::refuse_threads();
    let job = go(|| gosched::blocking(|| 7));
    assert_eq!(job.join().expect("no panic"), 7);
}
