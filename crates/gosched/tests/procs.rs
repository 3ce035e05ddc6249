//! GOMAXPROCS while running, and goroutines locked to their threads.

use gosched::sync::Pool;
use gosched::{go, run, runtime, thread};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn tid() -> i64 {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

#[test]
fn changes_while_goroutines_run_lose_nothing() {
    run(|| {
        static DONE: AtomicBool = AtomicBool::new(false);
        // Its parts are as many as there are processors when it is used first.
        static POOL: Pool<Vec<u8>> = Pool::new(Vec::new);
        let steps = Arc::new(AtomicU64::new(0));
        let workers: Vec<_> = (0..50)
            .map(|i| {
                let steps = steps.clone();
                go(move || {
                    let mut n = 0;
                    while !DONE.load(SeqCst) {
                        match (i + n) % 4 {
                            0 => thread::yield_now(),
                            1 => thread::sleep(Duration::from_micros(100)),
                            2 => POOL.get().push(1),
                            _ => go(|| ()).join().unwrap(),
                        }
                        steps.fetch_add(1, SeqCst);
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        let first = runtime::gomaxprocs(0);
        for n in [1, 3, 8, 2, 1, 5].into_iter().cycle().take(60).chain([1024]) {
            let before = runtime::gomaxprocs(0);
            assert_eq!(runtime::gomaxprocs(n), before);
            assert_eq!(runtime::gomaxprocs(0), n);
            let seen = steps.load(SeqCst);
            while steps.load(SeqCst) < seen + 50 {
                thread::yield_now();
            }
        }
        runtime::gomaxprocs(first);
        DONE.store(true, SeqCst);
        let sum: u64 = workers.into_iter().map(|w| w.join().unwrap()).sum();
        assert_eq!(sum, steps.load(SeqCst));
    });
}

#[test]
fn a_locked_goroutine_stays_on_its_thread_alone() {
    run(|| {
        let others: Vec<_> = (0..20)
            .map(|_| {
                go(|| {
                    let mut seen = HashSet::new();
                    for _ in 0..200 {
                        seen.insert(tid());
                        thread::yield_now();
                    }
                    seen
                })
            })
            .collect();
        let locked = go(|| {
            runtime::lock_os_thread();
            runtime::lock_os_thread();
            let own = tid();
            for i in 0..200 {
                assert_eq!(tid(), own);
                match i % 3 {
                    0 => thread::yield_now(),
                    1 => thread::sleep(Duration::from_micros(50)),
                    _ => go(|| ()).join().unwrap(),
                }
                if i == 100 {
                    runtime::unlock_os_thread();
                }
            }
            assert_eq!(tid(), own);
            own
        });
        let own = locked.join().unwrap();
        others.into_iter().for_each(|o| drop(o.join().unwrap()));
        // It ended locked: its thread is gone, and with it what was done to it.
        while std::path::Path::new(&format!("/proc/self/task/{own}")).exists() {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

#[test]
fn unlocking_lets_it_move_again() {
    run(|| {
        go(|| {
            runtime::unlock_os_thread();
            runtime::lock_os_thread();
            runtime::unlock_os_thread();
            for _ in 0..100 {
                thread::yield_now();
            }
        })
        .join()
        .unwrap();
    });
}
