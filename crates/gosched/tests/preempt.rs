//! Goroutines that only compute are stopped wherever they are.

use gosched::{go, run, runtime, thread};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

static STOP: AtomicBool = AtomicBool::new(false);

#[inline(never)]
fn mix(mut x: u64) -> u64 {
    for _ in 0..1000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        x ^= x >> 29;
    }
    x
}

/// Computes in every way that keeps state in registers and thread-locals, and checks it.
fn hog(seed: u64) -> u64 {
    thread_local! {
        static COUNT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
        static MAP: std::cell::RefCell<HashMap<u64, String>> = Default::default();
    }
    let me = std::thread::current().id();
    let (mut rounds, mut x, mut f) = (0, seed, 1.0_f64);
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    while !STOP.load(SeqCst) {
        rounds += 1;
        x = mix(x);
        COUNT.set(COUNT.get() + 1);
        assert_eq!(COUNT.get(), rounds);
        f = (f * 1.000_000_1 + 0.5).sqrt();
        assert!(f > 0.0 && f < 10.0, "{f}");
        blocks.push(vec![x as u8; (x >> 50) as usize % 3000 + 1]);
        if blocks.len() > 40 {
            let block = blocks.swap_remove((x >> 33) as usize % 40);
            assert!(block.iter().all(|b| *b == block[0]));
        }
        MAP.with_borrow_mut(|m| {
            m.insert(x % 64, format!("{x}"));
            assert!(m.len() <= 64);
        });
        if rounds % 100 == 0 {
            let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(x)));
            assert_eq!(*caught.unwrap_err().downcast::<u64>().unwrap(), x);
            assert_eq!(std::thread::current().id(), me);
        }
    }
    rounds
}

static TICKS: AtomicU64 = AtomicU64::new(0);

/// What `secs` seconds come to on a machine that has nothing else to do, and more than that.
fn is_enough(secs: u64) -> bool {
    let seen = runtime::preemptions();
    seen.in_place > 500 * secs && seen.in_libc > 0 && TICKS.load(SeqCst) > 50 * secs
}

#[test]
fn hogs_share_and_nothing_is_torn() {
    gosched::Config::new().slice(Duration::from_micros(100)).start().ok();
    let secs: u64 = std::env::var("GOSCHED_TEST_SECS").map_or(3, |s| s.parse().unwrap());
    let (rounds, ticks) = run(move || {
        let hogs: Vec<_> = (0..50).map(|i| go(move || hog(i))).collect();
        let ticker = go(|| {
            while !STOP.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
                TICKS.fetch_add(1, SeqCst);
            }
        });
        let end = Instant::now() + Duration::from_secs(secs);
        // Longer where CPUs are taken away: a run in which hardly anything was stopped shows nothing.
        while Instant::now() < end || !is_enough(secs) {
            thread::sleep(Duration::from_millis(10));
        }
        STOP.store(true, SeqCst);
        ticker.join().unwrap();
        let rounds: Vec<u64> = hogs.into_iter().map(|h| h.join().unwrap()).collect();
        (rounds, TICKS.load(SeqCst))
    });
    let seen = runtime::preemptions();
    println!(
        "{seen:?}\nticks {ticks}, rounds {:?} .. {:?}",
        rounds.iter().min(),
        rounds.iter().max()
    );
    assert!(rounds.iter().all(|r| *r > 0), "{rounds:?}");
}
