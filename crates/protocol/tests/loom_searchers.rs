//! Models of the idle protocol, whose proof is in `README.md` of this crate:
//! `RUSTFLAGS="--cfg loom" cargo test -p gosched-protocol --release --test loom_searchers`.
//!
//! Each test names changes of the code, or of the steps around it, that it is known to catch.
//!
//! What is simplified: a queue is a number of tasks, with relaxed atomics, so that nothing but the
//! protocol makes a push visible; every task runs for ever, so that a processor that found one is
//! lost to the others; there is always a machine to wake, and it runs on the thread that woke it,
//! which has nothing else to do by then.
#![cfg(loom)]

mod model;

use self::model::explore;
use gosched_protocol::Searchers;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Arc, Mutex};
use loom::thread;

#[derive(Debug)]
struct Scheduler {
    searchers: Searchers,
    /// Tasks in each queue. Two, since a searcher looks at them one after the other.
    queues: [AtomicU32; 2],
    /// Idle processors.
    idle: Mutex<u32>,
}

impl Scheduler {
    fn new() -> Arc<Scheduler> {
        Arc::new(Scheduler {
            searchers: Searchers::new(),
            queues: [AtomicU32::new(0), AtomicU32::new(0)],
            idle: Mutex::new(0),
        })
    }

    /// P1 to P4.
    fn publish(&self, queue: usize) {
        self.queues[queue].fetch_add(1, Relaxed); // P1
        self.wake_another();
    }

    /// P2 to P4, and the life of the machine that is woken.
    fn wake_another(&self) {
        if !self.searchers.summon() {
            return;
        }
        let mut idle = self.idle.lock().unwrap();
        if *idle == 0 {
            self.searchers.call_off();
            return;
        }
        *idle -= 1;
        drop(idle);
        self.search();
    }

    /// The life of a machine that has a processor and is counted as searching.
    fn search(&self) {
        loop {
            // F1
            if self.take_task() {
                // F2
                if self.searchers.found() {
                    self.wake_another();
                }
                return;
            }
            self.put_idle(); // S1
            self.searchers.give_up(); // S2, S3
            if !self.looks_again() {
                return;
            }
        }
    }

    /// The life of a machine that has a processor, is not counted, and goes idle.
    fn go_idle(&self) {
        self.put_idle(); // S1
        self.searchers.sit_out(); // S3
        if self.looks_again() {
            self.search();
        }
    }

    /// S4 and S5. True: it searches, again or for the first time.
    fn looks_again(&self) -> bool {
        let again = self.has_work() && self.take_idle();
        if again {
            self.searchers.join_for_sure();
        }
        again
    }

    fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| queue.load(Relaxed) > 0)
    }

    fn take_task(&self) -> bool {
        let take_one = |tasks: u32| tasks.checked_sub(1);
        self.queues.iter().any(|queue| queue.fetch_update(Relaxed, Relaxed, take_one).is_ok())
    }

    fn put_idle(&self) {
        *self.idle.lock().unwrap() += 1;
    }

    fn take_idle(&self) -> bool {
        let mut idle = self.idle.lock().unwrap();
        let any = *idle > 0;
        *idle -= u32::from(any);
        any
    }

    /// I3, when all have done their steps.
    fn assert_conserves_work(&self) {
        assert_eq!(self.searchers.count(), 0, "all have ended");
        let tasks: u32 = self.queues.iter().map(|queue| queue.load(Relaxed)).sum();
        let idle = *self.idle.lock().unwrap();
        assert!(tasks == 0 || idle == 0, "{tasks} tasks wait, {idle} processors are idle");
    }
}

type Life = fn(&Scheduler);

/// Runs `first` on this thread and each of `others` on one of its own, then checks I3.
fn run(scheduler: &Arc<Scheduler>, first: Life, others: &[Life]) {
    let others = others.iter().map(|&life| {
        let scheduler = scheduler.clone();
        thread::spawn(move || life(&scheduler))
    });
    let others: Vec<_> = others.collect();
    first(scheduler);
    others.into_iter().for_each(|other| other.join().unwrap());
    scheduler.assert_conserves_work();
}

/// The publisher relies on the only searcher, which gives up. Catches: `Searchers::summon` or
/// `give_up` without its fence, or with it on the other side of `count`; a searcher that gives up
/// without S4, or with S4 before S1 or before S2.
#[test]
fn publisher_against_searcher() {
    explore(3, || {
        let scheduler = Scheduler::new();
        scheduler.searchers.join_for_sure();
        run(&scheduler, Scheduler::search, &[|s| s.publish(1)]);
    });
}

/// Catches: as the test above; `call_off` after the lock of the idle list is released; `summon`
/// that stores (I1).
#[test]
fn two_publishers_against_two_searchers() {
    explore(2, || {
        let scheduler = Scheduler::new();
        scheduler.searchers.join_for_sure();
        scheduler.searchers.join_for_sure();
        let others: [Life; 3] = [Scheduler::search, |s| s.publish(0), |s| s.publish(1)];
        run(&scheduler, Scheduler::search, &others);
    });
}

/// Both publishers may rely on one searcher, which finds one of the tasks. Catches: a finder that
/// was the last and wakes nobody; a searcher that isn't counted after S5.
#[test]
fn two_publishers_against_a_searcher_that_wakes_another() {
    explore(3, || {
        let scheduler = Scheduler::new();
        scheduler.put_idle();
        scheduler.searchers.join_for_sure();
        run(&scheduler, Scheduler::search, &[|s| s.publish(0), |s| s.publish(1)]);
    });
}

/// Two publishers and nobody who searches. Catches: a finder that was the last and wakes nobody.
#[test]
fn two_publishers_against_two_idle_processors() {
    explore(3, || {
        let scheduler = Scheduler::new();
        scheduler.put_idle();
        scheduler.put_idle();
        run(&scheduler, |s| s.publish(0), &[|s| s.publish(1)]);
    });
}

/// The publisher relies on a searcher that finds another task, and then nobody to wake, while a
/// processor that didn't search becomes idle. Catches: `sit_out` without its fence; an idler that
/// skips S4; `call_off` after the lock of the idle list is released.
#[test]
fn publisher_against_finder_and_idler() {
    explore(3, || {
        let scheduler = Scheduler::new();
        scheduler.queues[0].fetch_add(1, Relaxed);
        scheduler.searchers.join_for_sure();
        run(&scheduler, Scheduler::search, &[Scheduler::go_idle, |s| s.publish(1)]);
    });
}

/// The publisher relies on a machine that is called off, while a searcher gives up. Catches:
/// `call_off` after the lock of the idle list is released; a finder that was the last and wakes
/// nobody.
#[test]
fn publisher_against_call_off() {
    explore(3, || {
        let scheduler = Scheduler::new();
        scheduler.queues[0].fetch_add(1, Relaxed);
        scheduler.searchers.join_for_sure();
        let searcher: Life = |s| {
            if s.searchers.join(4) {
                s.search();
            } else {
                s.go_idle();
            }
        };
        run(&scheduler, Scheduler::search, &[searcher, |s| s.publish(1)]);
    });
}
