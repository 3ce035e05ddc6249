//! The cases on tokio.

use crate::system;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("it starts")
}

pub fn endless_loop() {
    let rt = runtime(1);
    let over = Arc::new(AtomicBool::new(false));
    let theirs = over.clone();
    let looping = rt.spawn(async move {
        while !theirs.load(SeqCst) {
            std::hint::spin_loop();
        }
    });
    let other = rt.spawn(async move { over.store(true, SeqCst) });
    rt.block_on(async { (looping.await, other.await) }).0.expect("no panic");
}

pub fn blocked() {
    let rt = runtime(2);
    let ticks = Arc::new(AtomicU64::new(0));
    let counted = ticks.clone();
    rt.spawn(async move {
        loop {
            sleep(Duration::from_millis(1)).await;
            counted.fetch_add(1, SeqCst);
        }
    });
    let block = async || {
        yield_now().await;
        std::thread::sleep(Duration::from_secs(3));
    };
    let all = [rt.spawn(block()), rt.spawn(block())];
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks.load(SeqCst);
    std::thread::sleep(Duration::from_secs(2));
    let meanwhile = ticks.load(SeqCst) - before;
    println!("ticks={meanwhile}");
    rt.block_on(async {
        for one in all {
            one.await.expect("no panic")
        }
    });
    assert!(meanwhile > 100, "timers stood still while others blocked");
}

/// A guard of std's can't cross threads, so all is on one.
pub fn std_mutex() {
    let rt = Builder::new_current_thread().enable_all().build().expect("it starts");
    let lock = std::rc::Rc::new(std::sync::Mutex::new(0));
    LocalSet::new().block_on(&rt, async {
        let all: Vec<_> = (0..10)
            .map(|_| {
                let lock = lock.clone();
                tokio::task::spawn_local(async move {
                    #[allow(clippy::await_holding_lock)]
                    let mut count = lock.lock().expect("no panic");
                    yield_now().await;
                    *count += 1;
                })
            })
            .collect();
        for one in all {
            one.await.expect("no panic");
        }
    });
}

pub fn exit() {
    let rt = runtime(2);
    rt.block_on(async {
        tokio::spawn(async {
            let mut byte = [0];
            tokio::io::AsyncReadExt::read(&mut tokio::io::stdin(), &mut byte).await
        });
        sleep(Duration::from_millis(200)).await;
    });
}

pub fn endless_sleep() {
    runtime(2).block_on(async {
        for endless in [Duration::MAX, Duration::from_nanos(u64::MAX), Duration::from_secs(u64::MAX / 10)] {
            let sleeps = tokio::spawn(sleep(endless));
            let (give, take) = oneshot::channel();
            let waits = tokio::spawn(timeout(endless, take));
            sleep(Duration::from_millis(20)).await;
            give.send(7).expect("somebody waits");
            assert_eq!(waits.await.expect("no panic").expect("in time"), Ok(7));
            assert!(!sleeps.is_finished());
            sleeps.abort();
        }
    });
}

pub fn overflow() {
    let rt = runtime(1);
    let _ = rt.block_on(rt.spawn(async { system::recurse(0) }));
}

pub fn fork() {
    let rt = runtime(2);
    rt.block_on(async { tokio::spawn(sleep(Duration::from_millis(1))).await }).expect("no panic");
    rt.block_on(rt.spawn(async {
        system::fork_and_wait(|| {
            let handle = tokio::runtime::Handle::current();
            let (done, wait) = std::sync::mpsc::channel();
            handle.spawn(async move {
                sleep(Duration::from_millis(1)).await;
                let _ = done.send(());
            });
            let _ = wait.recv();
        });
    }))
    .expect("no panic");
}

pub fn no_threads() {
    let rt = runtime(1);
    rt.block_on(async { tokio::spawn(async {}).await }).expect("no panic");
    system::refuse_threads();
    let begin = Instant::now();
    let job = rt.block_on(async { timeout(Duration::from_secs(10), spawn_blocking(|| 7)).await });
    println!("ms={}", begin.elapsed().as_millis());
    let job = job.expect("the job is forgotten");
    println!("is_error={}", job.is_err());
}
