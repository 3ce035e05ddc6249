//! What happens when memory is short, and when there is too much of it idle.

use crate::harness::{BLOCKS, coroutine, in_each};
use gosched_fiber::pool::Refill;
use gosched_fiber::stack::Class;
use gosched_fiber::{pool, suspend};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

fn address_space_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages: u64 = pages.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    pages * 4096
}

fn limit_address_space(bytes: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limits, which are ours.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) }, 0);
    limit.rlim_cur = bytes.min(limit.rlim_max);
    // SAFETY: reads the limits.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn a_request_is_served_once_there_is_memory_again() {
    static SERVED: AtomicUsize = AtomicUsize::new(0);
    in_each(BLOCKS, "memory::a_request_is_served_once_there_is_memory_again", |_| {
        static COUNTING: Refill = Refill {
            is_waiting: || true,
            offer: |_, _| {
                SERVED.fetch_add(1, SeqCst);
                false
            },
            flush: || {},
        };
        pool::set_refill_hook(&COUNTING);
        pool::start().expect("a thread");
        // The reserve of the default class first.
        while pool::idle_count() < 64 {
            std::thread::sleep(Duration::from_millis(1));
        }
        limit_address_space(address_space_bytes() + (4 << 20));
        pool::request(Class::MIB_64);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(SERVED.load(SeqCst), 0, "there was memory after all");
        limit_address_space(u64::MAX);
        // Nobody rings again. What hangs here ends by the watchdog.
        while SERVED.load(SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// The helper starts by itself when coroutines leave more behind than is kept.
#[test]
fn idle_fibers_above_the_bound_are_given_back() {
    in_each(&BLOCKS[..1], "memory::idle_fibers_above_the_bound_are_given_back", |_| {
        const KEPT: usize = 4096;
        let mut all: Vec<_> = (0..3 * KEPT).map(|_| coroutine(suspend)).collect();
        all.iter_mut().for_each(|c| assert!(!c.resume()));
        all.iter_mut().for_each(|c| assert!(c.resume()));
        while pool::idle_count() > KEPT {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What was given back is used again.
        let mut again: Vec<_> = (0..3 * KEPT).map(|_| coroutine(suspend)).collect();
        again.iter_mut().for_each(|c| assert!(!c.resume()));
        again.iter_mut().for_each(|c| assert!(c.resume()));
    });
}
